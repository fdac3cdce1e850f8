// Package runner takes one job on one replica from tick to tick: it reads the job's
// entry, lets internal/plan decide, acquires the lease, writes the claim, runs the
// user's function by internal/supervise, writes the outcome and releases the lease.
// [Loop] does that until the replica stops; [RunDue] does it once, for
// a platform that wakes the program up; [RunNow] runs the job manually.
//
// A [Runner] belongs to one goroutine and needs no locks. What other goroutines ask
// of it, such as Health and StepDown, goes through its state.
//
// The types that act build on each other, and each has what its methods need: base (a job on this replica), reporter (its
// events), condition (whether this replica can do its part), Runner (what it has seen of the entry), driver (the call that it
// steps for), hold (a time under a lease), several (runs of one claim). Beside these are here (a job of EveryReplica), inquiry
// (what is asked about a job) and preceding (jobs that others follow).
package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/internal/swept"
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
	alarm alarm // has Loop make the next step

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
	rec      record.Record    // of entry
	etag     string           // of rec; it outlives entry, so that an unchanged record need not be decoded again
	latest   time.Time        // that the service's clock could show when rec was last found usable; zero: not since rec changed
	readAt   time.Time        // the entry is not read before
	seenAt   time.Time        // when it was last read or written here, by the wall clock; see RunDue
	seen     plan.Observation // what has been noticed over several reads
	lead     lead
	waited   record.Span // the ticks for which the group of the job had no free slot
	toldLate time.Time   // the newest late tick that this process has reported
	before   *following  // nil: the job follows none
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
	n := &Runner{turn: turn{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}, losses: c.Backoff(firstLook)}
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

// looked notes that the entry was read or written now, and returns the time.
func (r *Runner) looked() time.Time {
	r.view.seen.LookedAt, r.view.seenAt = time.Now(), r.clock.Wall()
	now := r.clock.Best()
	r.source.state.set(func(n *snapshot) { n.entry.looked = now })
	return now
}

// ranLast reports whether this replica ran the last tick, as far as it knows.
func (r *Runner) ranLast() bool { return r.view.rec.Run.Replica == r.replica.Name }

// weigh counts the job in the load of this replica, if this replica ran its last tick.
func (r *Runner) weigh() {
	mine := r.source.byHand == "" && r.job.Policy.Ticks != nil && r.ranLast()
	if mine != r.view.mine {
		r.replica.jobs.load.mine.Add(int64(change(mine)))
	}
	r.view.mine = mine
}

// read reads the entry into the view, and creates it if there is none. A record that
// cannot be used is an error, and the view stays as it was: nothing may run by it, and
// nothing may overwrite it. wake is the tick that the program was woken for; zero: not known.
func (r *Runner) read(ctx context.Context, wake time.Time) error {
	r.view.seen.Sends(time.Now())
	entry, err := r.replica.reads.Read(ctx, r.client.InHaste(&r.view.rec))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		// Only an answer gives the service's time, on which the time of our start
		// depends. The step afterwards needs that to compare definitions.
		r.rank.since = instant.Later(r.replica.Started(), r.rank.adopted)
	}
	if errors.Is(err, fs.ErrNotExist) {
		entry, err = r.create(ctx, entry.Date, wake)
	}
	if err != nil {
		return err
	}
	// The same ETag is the same record, so it was checked already, except for its instants.
	if r.view.known && entry.ETag == r.view.etag {
		if err := r.fromFuture(); err != nil {
			return err
		}
		r.view.entry = &entry
	} else {
		rec, err := r.usable(&entry, &r.view.rec)
		if err != nil {
			return &recordError{err}
		}
		r.recall(ctx, &rec)
		r.keep(&entry, rec)
	}
	entry.Record = nil // the views of ten thousand jobs would keep its bytes for nothing
	r.see()
	return nil
}

// recall takes in a record that was read. Before it the entry counts as never seen if a sweep may have removed what was seen.
func (r *Runner) recall(ctx context.Context, rec *record.Record) {
	known := r.source.state.get().entry
	if known.replacedBy(rec) {
		ctx, cancel := context.WithTimeout(ctx, r.client.CallTimeout())
		defer cancel()
		if swept.Forgets(ctx, r.client.Store, r.replica.App, r.job.Name, known.looked) {
			r.source.state.set(func(n *snapshot) { n.entry.created = time.Time{} })
		}
	}
	r.source.state.set(func(n *snapshot) { n.entry.recall(rec) })
}

// usable returns the record of an entry, or why it cannot be used. last is what was seen of it before; zero: nothing.
func (b *base) usable(e *store.Entry, last *record.Record) (rec record.Record, err error) {
	if rec, err = record.Decode(e.Record, b.replica.App, b.job.Name); err != nil {
		return rec, err
	}
	if plan.OlderThan(&rec, last) {
		return rec, fmt.Errorf("it is older than what it was at %s: somebody has put back an old version", last.Watermark.Format(time.RFC3339))
	}
	return rec, plan.Unusable(&rec, b.bounds())
}

// fromFuture returns that the record in the view has an instant in the future. The service's clock may be put back while the
// record stays.
func (r *Runner) fromFuture() error {
	bounds := r.bounds()
	if !r.view.latest.IsZero() && !bounds.Latest.Before(r.view.latest) {
		return nil
	}
	if err := plan.Unusable(&r.view.rec, bounds); err != nil {
		return &recordError{err}
	}
	r.view.latest = bounds.Latest
	return nil
}

// keep puts what was read into the view.
func (r *Runner) keep(e *store.Entry, rec record.Record) {
	r.view.known, r.view.entry, r.view.rec, r.view.etag, r.view.latest = true, e, rec, e.ETag, time.Time{}
	r.weigh()
}

// create creates the entry of a new job. If another replica was first, its entry is
// read instead.
func (r *Runner) create(ctx context.Context, date, wake time.Time) (store.Entry, error) {
	if date.IsZero() {
		date = r.clock.Wall()
	}
	before, err := r.view.before.made(ctx, wake, date)
	if err != nil {
		return store.Entry{}, err
	}
	rec := r.job.Policy.New(r.replica.App, r.job.Name, plan.View{Now: date, Since: r.rank.since, Before: before}, wake)
	b, err := rec.Encode()
	if err != nil {
		return store.Entry{}, err
	}
	done := r.replica.reads.Pass(ctx)
	entry, err := r.client.Create(ctx, b)
	done()
	switch {
	case errors.Is(err, fs.ErrExist):
		return r.client.Read(ctx)
	case err == nil:
		r.mayWrite()
	}
	return entry, err
}

// made returns what the entry says to a follower, and makes it if there is none. A record that cannot be used says
// nothing. Any goroutine may call it.
func (r *Runner) made(ctx context.Context, wake time.Time) (finding, error) {
	other := r.beside("of a follower")
	err := other.read(ctx, wake)
	if Unusable(err) {
		return finding{}, nil
	}
	if err != nil {
		return finding{}, fmt.Errorf("it waits for %s, whose entry cannot be read: %w", r.Name(), err)
	}
	return finding{etag: other.view.etag, record: &other.view.rec}, nil
}

// see adds one read to the observation. It counts from the first read that showed
// something, so a hold-off that was cut short need not start again.
func (r *Runner) see() {
	r.view.seen.At = time.Now()
	r.view.seen.See(r.view.entry, &r.view.rec, r.looked())
	r.reportApplied()
}

// ordered is a view of a record for what depends on the time, on orders and on the definition in force alone.
func (r *Runner) ordered(rec *record.Record) plan.View {
	return plan.View{Record: rec, Now: r.clock.Best(), Since: r.rank.since, Control: r.orders()}
}

// bounds returns the limits that a record has to keep for the store and its clock.
func (b *base) bounds() (limits plan.Bounds) {
	limits.Shortest, limits.Longest = b.client.Store.Limits()
	limits.Latest = b.clock.Now().Latest
	return limits
}

// readAgain forgets the entry, so that it is read after d and not before. It returns d,
// which is usually how long the step waits. Where there are many jobs, d becomes a little longer,
// so that their reads come together.
func (r *Runner) readAgain(d time.Duration) time.Duration {
	d = r.replica.reads.Round(d)
	r.view.entry, r.view.readAt = nil, time.Now().Add(d)
	return d
}

// lookedAway notes a time in which this replica did not watch the entry: it may have
// changed and changed back, so nothing seen before counts as seen without a break.
func (r *Runner) lookedAway() {
	r.view.entry = nil
	r.view.seen.At = time.Now()
	r.view.seen.LookedAway()
}

// wait returns how long an action makes this replica wait, with its jitter.
func (r *Runner) wait(a plan.Action) time.Duration {
	d := a.After
	if a.Jitter > 0 && !(a.Read && r.replica.reads.Many()) { // readAgain has instants that differ between replicas
		d += r.client.Jitter.UpTo(a.Jitter)
	}
	if a.Most > 0 {
		d = min(d, a.Most)
	}
	if a.Read {
		return r.readAgain(d)
	}
	return d
}

// written takes over what a session has written as what this replica has seen. The followers of
// the job may wait for what it has settled, or for what another replica had settled before: they do
// not read the entry while this replica is busy with the job.
func (r *Runner) written(s *lease.Session) {
	through, last := r.view.rec.Watermark, s.Revision()
	r.view.rec, r.view.etag, r.view.latest = s.Record(), last.ETag, time.Time{}
	r.precede(&r.view.rec, r.view.rec.Watermark.After(through))
	r.weigh()
	r.view.seen.Dated(last.ETag, last.Date)
}

// precede notifies the followers of the job of what a record says that this replica has written. settles
// says that this write has settled ticks.
func (b *base) precede(rec *record.Record, settles bool) {
	for _, tell := range b.source.state.followed {
		tell(rec, settles, b.clock.Best())
	}
}
