package runner

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

const firstLook = 300 * time.Millisecond

// A Job is a job or singleton, as the program says.
type Job struct {
	Name         string
	Policy       plan.Policy
	Task         supervise.Task
	EveryReplica bool          // it has no entry at all
	Rest         time.Duration // of a singleton: the shortest pause between two runs here
	Schedule     func() string // in words, for people
}

// A Runner does the ticks of one job on one replica, or the terms of one
// singleton. It lives in one goroutine.
type Runner struct {
	job     *Job
	replica *Replica
	client  *lease.Client
	source  *source
	log     *slog.Logger  // through the queue
	runLog  *slog.Logger  // of what runs: not through it
	turn    chan struct{} // has room for whoever drives it: Loop or RunDue

	pause  *lease.Backoff // between calls to a store that does not answer
	losses *lease.Backoff // between acquisitions that come too late
	denial denial

	view    view
	since   time.Time // from when the definition of this replica counts
	adopted time.Time // when this replica took over from younger ones that are gone, by the service's clock
	here    here
}

// A view is the entry as this replica last saw it.
type view struct {
	known  bool         // an entry of this job, ever
	entry  *store.Entry // nil: has to be read
	rec    store.Record // of entry
	etag   string       // of rec, as last read or written here
	readAt time.Time    // an entry that has to be read is not read before
	seenAt time.Time    // when it was last read or written here, by the wall clock
	seen   plan.Observation
}

// A denial is why this replica cannot write the entry.
type denial struct {
	err   error          // nil: it can, as far as known
	etag  string         // of the record then
	pause *lease.Backoff // between claims that fail for that
}

// here is the state of a job that runs on each replica.
type here struct {
	settled time.Time // ticks up to here are over
	resting bool      // this replica takes nothing new
}

// A Wake is what a platform wakes a program up for.
type Wake struct {
	Jobs []string
	Tick time.Time
}

// A call is what steps are for, and what came of them. Loop makes one for each of
// its steps.
type call struct {
	request string // of RunNow
	wake    Wake   // of RunDue
	bounded bool   // it is of RunNow or RunDue: it ends, and so does the time for a run

	claimedAt time.Duration // elapsed, of the claim

	again  bool            // the next step ends the business of this one, and is for no later tick
	ran    []store.Outcome // in order
	holder string          // the other replica that runs now, as far as known
	short  error           // why the tick that is due was not started
	undone error           // why what was claimed has no outcome by this call
}

// New returns the runner of a job, which is the replica's from now on.
func New(r *Replica, j *Job) *Runner {
	st := &state{job: j.Name, everyReplica: j.EveryReplica}
	r.jobs = append(r.jobs, st)
	client := &lease.Client{Store: r.Store, Name: r.App + "/" + j.Name, Length: j.Policy.Lease, Clock: r.Clock,
		Jitter: lease.NewJitter(fmt.Sprint(r.Name, j.Name, r.Created))}
	return newRunner(r, j, client, &source{&origin{}, st})
}

// beside returns a runner of the same job for what is asked by hand.
func (r *Runner) beside(request string) *Runner {
	return newRunner(r.replica, r.job, r.client, &source{&origin{request}, r.source.state})
}

func newRunner(r *Replica, j *Job, c *lease.Client, s *source) *Runner {
	log := r.Logger.With("job", j.Name, "replica", r.Name)
	return &Runner{job: j, replica: r, client: c, source: s, log: r.Lines.Logger(log), runLog: log,
		turn: make(chan struct{}, 1), pause: c.Backoff(c.Length / 30), losses: c.Backoff(firstLook),
		denial: denial{pause: &lease.Backoff{First: c.Length, Longest: plan.LookEvery, Jitter: c.Jitter}}}
}

// Name is that of the job.
func (r *Runner) Name() string { return r.job.Name }

// Singleton reports whether there are no ticks.
func (r *Runner) Singleton() bool { return r.job.Policy.Ticks == nil }

// now is the instant up to which ticks are due. A fast clock of this replica
// would start ticks early; a slow one, alone, would find at the end of each run
// that newer ticks had come due under it. Hence the service's.
func (r *Runner) now() time.Time { return r.client.Clock.Best() }

// approach is how long it takes until the other replicas, which look at each
// third of the lease, have seen that a run is to be handed over.
func (r *Runner) approach() time.Duration {
	return max(r.client.Length, time.Duration(r.view.rec.Lease))/3 + time.Second
}
