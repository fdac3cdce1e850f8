package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/ontime"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// firstLook is how soon a replica that lost the race for a lease reads the entry
// again. A short run is over by then, so one read settles the tick for the loser.
const firstLook = 300 * time.Millisecond

// A Job is what the program says about a job or a singleton, checked, with the
// defaults filled in.
type Job struct {
	Name         string
	Policy       plan.Policy
	Task         supervise.Task
	EveryReplica bool          // it has neither an entry nor a lease
	Rest         time.Duration // of a singleton: the shortest pause between two runs on this replica
	Schedule     func() string // in words, for people
	Group        Group         // limits how many runs of several jobs take place at a time; nil: nothing does
	Shard        Shard         // zero: the job is not one of several shards
	Seat         Seat          // of a shard that is spread; nil: the lease is acquired whenever it is free
}

// A Shard says which part of a job that is split another job is.
type Shard struct {
	Of    string // the name of the whole
	Index int    // from zero
	Count int
}

// definition says, for people, in what two definitions of the job can differ.
func (s *Shard) definition() string {
	if s.Count == 0 {
		return "schedule"
	}
	return "schedule or number of shards"
}

// A base is a job on this replica, with what its runners share. Its fields stay as they are, so any goroutine may use it.
//
// Ticks are due up to clock.Best: the wall clock's time, corrected as far as the service's clock proves it wrong. With a
// fast wall clock this replica would start ticks early; with a slow one it would find, at the end of each run, that newer
// ticks had come due under the run, and skip them.
type base struct {
	job     *Job
	replica *Replica
	source  *source
	client  *lease.Client
	clock   *lease.Clock
}

// A Runner does one job, or one singleton, on one replica. One goroutine at a time
// drives it: Loop, RunDue, or RunNow on a Runner of its own; see beside.
type Runner struct {
	condition
	turn  turn
	alarm ontime.Alarm // has Loop make the next step

	losses        *lease.Backoff // between acquisitions that another replica won
	contradiction contradiction  // between reads and acquisitions

	view view
	rank rank
	here *here // nil: the job is no EveryReplica job
}

// A rank decides which of two definitions of a job counts: the younger replica's.
type rank struct {
	since   time.Time // from when the definition of this replica counts; see plan.Policy.Outdated
	adopted time.Time // when this replica took the job back from younger replicas that are gone, by the service's clock; zero: it did not
}

// A view is the entry as this replica last saw it. Decisions are made from it; the
// ETag makes sure that a decision from an old view cannot be written.
type view struct {
	known    bool             // this process has read an entry of this job before, so a change of it can be judged
	mine     bool             // this job counts in the load of the replica
	entry    *store.Entry     // nil: it has to be read before the next decision
	rec      store.Record     // of entry
	etag     string           // of rec; it outlives entry, so that an unchanged record need not be decoded again
	latest   time.Time        // of the service's clock when rec was found usable; zero: it was not since it was changed, or its clock was not known
	readAt   time.Time        // the entry is not read before
	seenAt   time.Time        // when it was last read or written here, by the wall clock; see frozen
	seen     plan.Observation // what has been noticed over several reads
	lead     lead
	waited   store.Span // the ticks for which the group of the job had no free slot
	toldLate time.Time  // the newest late tick that this process has reported
	before   *following // nil: the job follows none
}

// A lead is how long before a tick this replica acts; see plan.Policy.Lead. It is drawn
// once for each tick.
type lead struct {
	tick time.Time
	last bool          // it was drawn for the replica that ran the last tick
	d    time.Duration // until the tick, when it looks or acquires
	grab time.Duration // the same, when it acquires what it has found free

	outrun time.Time // the tick before which another replica was first with the lease
}

// A denial is why this replica can lease the entry and not write it. It outlives the
// attempt: a replica that acquired the lease again at once, for nothing, would keep
// it from replicas that can write.
type denial struct {
	err    error          // nil: the last write succeeded, or none was tried
	etag   string         // of the record when the write failed; another one shows that some replica can write
	pause  *lease.Backoff // until this replica tries again
	writes int            // writes of this process that had succeeded by then
	until  time.Time      // monotonic: the end of that pause, or of the first one in doubt
	left   unanswered     // what this replica may have left at the entry

	unproved bool      // a claim or acquisition here failed or got no clear answer, and no write has succeeded since
	gaveWay  bool      // the others have had their head start for what is due
	tried    time.Time // the tick before which the last such acquisition was sent; zero: it was sent at the tick itself
}

// lift forgets why this replica could not write.
func (d *denial) lift() {
	d.err, d.unproved = nil, false
	d.pause.Reset()
}

// mayWrite notes that a write of this replica has succeeded, also for the loop if this is a manual run in parallel.
func (r *Runner) mayWrite() {
	r.denial.lift()
	r.source.state.set(func(n *snapshot) { n.writes++ })
}

// A Wake is what a platform woke the program up for.
type Wake struct {
	Jobs []string  // empty: all
	Tick time.Time // that the timer has fired for; zero: not known
}

// A call is what a step is made for, and what came of it. RunDue and RunNow make one
// for all their steps; Loop makes one for each, since it reports nothing.
type call struct {
	request string      // RunNow: the name of the request
	wake    wakeUp      // RunDue: what it was called for
	claims  plan.Claims // which runs it may claim
	bounded bool        // by RunNow or RunDue: the call ends some time, so a run may not have the time that it needs
	take    *taking     // Take: what differs from RunNow; nil: nothing
	slot    slot        // of the group of the job

	ahead time.Time // the tick before which the lease is acquired, or kept; zero: something is due

	again  bool            // RunDue must step once more, as this step left something unfinished that is due now
	ran    []store.Outcome // what was run here, in order
	holder string          // the other replica that runs the job now, as far as known
	short  error           // why what is due was not started: too little time is left, or a client has the lease and claims nothing
	claim  *unbegun        // the last one; nil: there was none
	begun  bool            // it was begun, or has its outcome
	undone error           // why this call claimed something and wrote no outcome for it, or could not wait until it may claim
}

// A wakeUp is what a call of RunDue was called for.
type wakeUp struct {
	Wake
	now   time.Time // of an EveryReplica job: the wall clock when the call began, for its first step
	begin time.Time // monotonic: when the call began; zero: this is no call of RunDue
}

// queuesNext reports whether the call runs a tick that waits for the run which is under way.
func (c *call) queuesNext() bool { return c.claims == plan.NoBackfill && len(c.ran) == 0 }

// isFirst reports whether the call has run one tick, and not yet a tick that waited for that.
func (c *call) isFirst() bool { return len(c.ran) == 1 }

// endedBefore notes that a call which ends some time has ended before it could claim anything. The next one needs more time.
// After the loss of its lease a call goes on.
func (c *call) endedBefore(stop context.Context, what string) {
	if c.bounded && stop.Err() != nil {
		c.undone = errors.Join(c.undone, fmt.Errorf("%s, and this call ended before", what))
	}
}

// New returns the runner of a job and adds the job to those that r reports in its
// Health. The jitter is seeded by what this replica is, so that replicas differ and a
// simulation can be repeated.
func New(r *Replica, j *Job) *Runner {
	st := &state{job: j.Name, place: len(r.jobs.states), everyReplica: j.EveryReplica, degradation: &r.vitals.degradation}
	r.jobs.states = append(r.jobs.states, st)
	if !j.EveryReplica && j.Policy.Ticks != nil {
		r.jobs.load.jobs++
	}
	client := &lease.Client{Store: r.Store, Name: r.App + "/" + j.Name, Length: j.Policy.Lease, Beat: j.Policy.Beat, Clock: r.Clock,
		Jitter: lease.NewJitter(fmt.Sprint(r.Name, j.Name, r.Created))}
	if !j.EveryReplica {
		r.reads.Add(r.App, r.Store, client.Jitter)
	}
	return newRunner(r, j, client, &source{origin: &origin{}, state: st})
}

// beside returns a runner of the same job for a manual call, or for a new follower, while this one
// goes on in its own goroutine. The two share the clock and the state, not the view, except what is
// known of the jobs before theirs.
// The lease keeps their runs apart, as it does for two replicas.
func (r *Runner) beside(request string) *Runner {
	client := *r.client
	client.Jitter = lease.NewJitter(fmt.Sprint(r.replica.Name, r.Name(), request)) // the pauses of one do not depend on the other's
	b := newRunner(r.replica, r.job, &client, &source{origin: &origin{request}, state: r.source.state})
	if r.view.before != nil {
		b.view.before = &following{jobs: r.view.before.jobs}
	}
	return b
}

// newRunner returns a runner of its own view and pauses. Clock and state are shared.
func newRunner(r *Replica, j *Job, c *lease.Client, s *source) *Runner {
	n := &Runner{turn: newTurn(), losses: c.Backoff(firstLook)}
	n.base, n.pause = base{j, r, s, c, c.Clock}, c.Backoff(c.Length/30)
	n.denial.pause = &lease.Backoff{First: c.Length, Longest: plan.LookEvery, Jitter: c.Jitter}
	if j.EveryReplica {
		n.here = &here{condition: &n.condition}
	}
	return n
}

// Name returns the name of the job.
func (b *base) Name() string { return b.job.Name }

// ShardOf returns the name of the job that this one is a shard of, empty if it is none.
func (b *base) ShardOf() string { return b.job.Shard.Of }

// EveryReplica reports whether the job runs on each replica, without an entry.
func (b *base) EveryReplica() bool { return b.job.EveryReplica }

// Singleton reports whether the job has no ticks and runs all the time.
func (b *base) Singleton() bool { return b.job.Policy.Ticks == nil }

// looked notes that the entry was read or written now.
func (r *Runner) looked() {
	r.view.seen.LookedAt, r.view.seenAt = time.Now(), r.clock.Wall()
	now := r.clock.Best()
	r.source.state.set(func(n *snapshot) { n.entry.looked = now })
}

// approach is how long it takes until the other replicas have read that a run is to
// be handed over. They read at each third of the lease, which may be the longer lease
// of an older program.
func (r *Runner) approach() time.Duration {
	if beat := r.view.rec.Beats(); beat > 0 {
		return beat/3 + time.Second
	}
	return max(r.client.Length, time.Duration(r.view.rec.Run.Lease))/3 + time.Second
}

// ranLast reports whether this replica ran the last tick, as far as it knows.
func (r *Runner) ranLast() bool { return r.view.rec.Run.Replica == r.replica.Name }

// weigh counts the job in the load of this replica, if this replica ran its last tick.
func (r *Runner) weigh() {
	mine := r.source.byHand == "" && r.job.Policy.Ticks != nil && r.ranLast()
	r.replica.jobs.load.count(r.view.mine, mine)
	r.view.mine = mine
}
