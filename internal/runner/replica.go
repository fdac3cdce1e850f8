package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/reads"
	"github.com/soloist-go/soloist/store"
)

// A Replica is what the jobs of one process share.
type Replica struct {
	App     string
	Name    string
	Store   store.Store
	Grace   time.Duration
	Alone   func(context.Context) bool    // no other replica is up; nil: one is assumed to be
	Overrun func(job string, cause error) // called when a run goes on without its lease; nil: it is not
	Clock   *lease.Clock
	Orders  *control.Watch // of operators; nil: the store keeps none

	// Events receives all that happens. Any goroutine calls it, also under a lock or just before
	// a lease runs out, so it must not block.
	Events func(event.Event)
	// Flush waits until the log lines of all events are written, for at most d.
	Flush func(d time.Duration)

	Created time.Duration // elapsed time when the scheduler was made

	birth  birth // see Started
	jobs   roster
	vitals vitals
	reads  reads.Gathering
}

// A vitals is what keeps a replica from its work.
type vitals struct {
	outage      outage
	degradation degradation
}

// A roster is the jobs of a replica, how much of their work it does, what it is about to start, and what they must not tell.
type roster struct {
	states []*state  // of all runners, in their order, and of spread
	spread []*source // one for each singleton whose shards are spread
	load   load
	starts starts
	mask   func(text string) string // see Hide; nil: there is nothing to hide
}

// Hide has secrets taken out of what the functions of jobs say of their runs. It is called before the first run.
func (r *Replica) Hide(mask func(text string) string) { r.jobs.mask = mask }

// HideAs hides what another replica hides.
func (r *Replica) HideAs(of *Replica) { r.jobs.mask = of.jobs.mask }

// A birth is Created by the service's clock, computed once.
type birth struct {
	once sync.Once
	at   time.Time
}

// Started returns when this replica started, by the service's clock, so that replicas
// can decide which of them is the younger. It is computed once, and only after the
// first answer of the store: before that it could only come from the wall clock, and
// a replica that started with a fast wall clock in an outage would keep younger
// definitions away for hours.
func (r *Replica) Started() time.Time {
	r.birth.once.Do(func() {
		r.birth.at = r.Clock.Best().Add(r.Created - r.Clock.Elapsed()).Round(0).UTC()
	})
	return r.birth.at
}

// Degraded returns why this replica starts nothing new, nil if it does start. A run
// that ignores the end of its context can only be ended with the process, and each
// further run would be lost with it. A run of an EveryReplica job is no reason: all
// replicas run that job at once, and none would be left.
func (r *Replica) Degraded() error {
	if cause := r.vitals.degradation.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// Emit hands over an event, with the time and the name of this replica.
func (r *Replica) Emit(e event.Event) {
	e.Time, e.Replica = r.Clock.Best().Round(0).UTC(), r.Name
	r.Events(e)
}

// A degradation is why a replica starts nothing new: which runs under a lease go on though
// their contexts have ended. Every step asks for it, so what it costs must not grow with the
// number of jobs: only a run that begins or ends to go on so changes it.
type degradation struct {
	mu    sync.Mutex
	runs  []stray               // in the order of the jobs
	cause atomic.Pointer[error] // of the first of them; nil: there is none
}

// A stray is one such run. A job has more than one if it was run manually as well.
type stray struct {
	overrun
	job   string
	place int // of the job among the replica's jobs
}

// set replaces what is known of the runs of one origin; without a cause there is none.
func (d *degradation) set(s stray) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs = slices.DeleteFunc(d.runs, func(old stray) bool { return old.of == s.of })
	if s.cause != nil {
		d.runs = append(d.runs, s)
		slices.SortStableFunc(d.runs, func(a, b stray) int { return a.place - b.place })
	}
	if len(d.runs) == 0 {
		d.cause.Store(nil)
		return
	}
	// The cause is that run's: what is refused here has lost nothing.
	err := fmt.Errorf("%s goes on though its context has ended (%v): this replica takes nothing new until it returns or the process is restarted", d.runs[0].job, d.runs[0].cause)
	d.cause.Store(&err)
}

// A Health is the state of the jobs of a replica; the root explains the fields.
type Health struct {
	Running []string
	Stuck   []string
	Broken  map[string]error
	Overrun map[string]error
	Skew    time.Duration
	Storage error
	Reached bool
}

// Health returns the state of the replica's jobs from memory. It makes no storage call,
// so it answers at once in an outage too.
func (r *Replica) Health() Health {
	h := Health{Broken: map[string]error{}, Overrun: map[string]error{}, Skew: r.Clock.Skew()}
	h.Storage, h.Reached = r.vitals.outage.now()
	for _, s := range r.jobs.states {
		n := s.get()
		if n.running > 0 {
			h.Running = append(h.Running, s.job)
		}
		if n.looping && !n.busy && time.Since(n.beat) > stuckAfter {
			h.Stuck = append(h.Stuck, s.job)
		}
		// A job with a lease that overruns degrades the whole replica; a job that runs on
		// each replica is only broken itself. An outage that hits all jobs is Storage;
		// only trouble that hits this job alone is its own trouble.
		cause := n.overruns()
		if cause != nil && !s.everyReplica {
			h.Overrun[s.job] = cause
		}
		switch {
		case n.broken != nil:
			h.Broken[s.job] = n.broken
		case cause != nil && s.everyReplica:
			h.Broken[s.job] = cause
		case n.storage != nil && h.Storage == nil:
			h.Broken[s.job] = n.storage
		}
	}
	return h
}

// A load is how much of the work of all replicas this one does. How many replicas there
// are is not known, so it is compared with the jobs.
type load struct {
	jobs int          // that have ticks and leases
	mine atomic.Int64 // of these: their last tick was run here
}

// share returns the part of the jobs that this replica runs, in addition to the job that asks.
func (l *load) share() float64 {
	return float64(max(0, l.mine.Load()-1)) / float64(max(1, l.jobs))
}

// cedes reports whether this replica leaves a tick to others. If it runs more than half of
// the jobs it does so for as many as are above half, on average.
func (l *load) cedes(j *lease.Jitter) bool {
	mine := l.mine.Load()
	above := mine - int64(l.jobs)/2
	return above > 1 && j.UpTo(time.Duration(mine-1)) < time.Duration(above)
}

// An outage collects the trouble that the jobs of a replica have with the store, so
// that it is reported once when it begins and once when it is over, however many jobs it
// hits. It also distinguishes a store that answers no job from a store that refuses one job.
type outage struct {
	mu      sync.Mutex
	hit     map[*source]trouble // the sources whose last call failed
	since   time.Time           // when the first of them failed
	left    bool                // a source whose last call failed has ended, and the store has answered none since
	answers int                 // of the store to any source, counted
	err     error               // why the store answers no source; nil: it does, as far as known
}

// A trouble belongs to one source.
type trouble struct {
	answers int // the count of answers when it began
	err     error
}

// trouble notes why a call of s to the store has failed; nil: the store has answered one.
func (r *Replica) trouble(s *source, err error) {
	s.state.set(func(n *snapshot) { n.storage = err })
	if err != nil {
		r.vitals.outage.begin(s, err, r.Emit)
	} else {
		r.vitals.outage.end(s, r.Emit)
	}
}

// begin notes a call of s that failed. The store is out of reach only if it has
// answered no source since: a blob that is refused is the trouble of one job.
func (o *outage) begin(s *source, err error, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.hit) == 0 {
		o.hit = map[*source]trouble{}
		if !o.left {
			o.since = time.Now()
			emit(event.Event{Kind: event.StoreTrouble, Note: s.state.job, Err: err})
		}
	}
	t, again := o.hit[s]
	if !again {
		t.answers = o.answers
	}
	t.err = err
	o.hit[s] = t
	// No source has had an answer since the trouble of s began. The renewals of a holder count only
	// after a renewal that has failed, so a listing that is refused would look like a store out of reach.
	if t.answers == o.answers && !s.lists {
		o.err = err
	}
}

// end notes a call of s that was answered.
func (o *outage) end(s *source, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.err = nil
	if len(o.hit) == 0 && !o.left {
		return
	}
	delete(o.hit, s)
	o.left = false
	if len(o.hit) == 0 {
		emit(event.Event{Kind: event.StoreBack, Took: time.Since(o.since).Round(time.Second)})
	}
}

// leave forgets the trouble of a source that is about to end, a manual run: no call of
// it will be answered any more. The loop of the same job may have trouble of its own,
// which then stands for the job. The trouble of a source which has given up still describes the
// store: until another one is answered, it is neither over nor reported again.
func (o *outage) leave(s *source, gaveUp bool, emit func(event.Event)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, hit := o.hit[s]; !hit {
		return
	}
	delete(o.hit, s)
	var left error
	for other, t := range o.hit {
		if other.state == s.state {
			left = t.err
		}
	}
	s.state.set(func(n *snapshot) { n.storage = left })
	o.left = o.left || gaveUp
	if len(o.hit) == 0 && !o.left {
		o.err = nil
		emit(event.Event{Kind: event.StoreBack, Took: time.Since(o.since).Round(time.Second), Note: "the run by hand that asked the store is over"})
	}
}

// now returns why the store is out of reach, and whether it has ever answered.
func (o *outage) now() (unreachable error, reached bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err, o.answers > 0
}

const (
	// startsCheck is how often it is looked whether runs still start. A claim that gets no answer
	// keeps outcomes for that long, and startsMost is for how long they are kept in all.
	startsCheck = 50 * time.Millisecond
	startsMost  = time.Second

	// Once all runs of this replica have started, other replicas' may have not: they share the
	// store, and perhaps the machine. They take about as long as these did.
	startsShortest = 5 * time.Millisecond
	startsLongest  = 25 * time.Millisecond
)

// Starts are the runs of a replica that are about to start. Outcomes wait for them: at a tick of
// many jobs they would take the processors and the store from the claims of those that have not
// started yet, and a late start is worse than a late outcome.
type starts struct {
	mu  sync.Mutex
	now *rush // nil: outcomes do not wait
}

// A rush is a time in which runs are about to start.
type rush struct {
	over  chan struct{} // closed when it ends
	timer *time.Timer   // has it looked at
	begun time.Time
	first time.Time // when the first run had started
	ahead int       // runs that are about to start
	made  int       // runs that have started, or will not
	seen  int       // of these, at the last look
}

// add counts a run that is about to start. The caller calls done, once, when it has, or will not.
func (s *starts) add() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.now
	if r == nil {
		r = &rush{over: make(chan struct{}), begun: time.Now()}
		r.timer = time.AfterFunc(startsCheck, func() { s.look(r) })
		s.now = r
	}
	r.ahead++
	return func() { s.done(r) }
}

func (s *starts) done(r *rush) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.ahead--
	if r.made++; r.made == 1 {
		r.first = time.Now()
	}
	switch {
	case s.now != r || r.ahead > 0:
	case r.made == 1: // a job that is due alone
		s.end(r)
	default:
		s.wakeIn(r, min(max(time.Since(r.first), startsShortest), startsLongest))
	}
}

// look ends a rush if all runs have started, if none has since the last look, or if it takes too
// long.
func (s *starts) look(r *rush) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.now != r:
	case r.ahead == 0, r.made == r.seen:
		s.end(r)
	default:
		r.seen = r.made
		s.wakeIn(r, startsCheck)
	}
}

// wakeIn has a rush looked at after d, or ends it once it has taken too long. The caller holds mu.
func (s *starts) wakeIn(r *rush, d time.Duration) {
	left := startsMost - time.Since(r.begun)
	if left <= 0 {
		s.end(r)
		return
	}
	r.timer.Reset(min(d, left))
}

// end ends a rush: the next start begins another one, whatever has become of the starts of this one.
// The caller holds mu.
func (s *starts) end(r *rush) {
	r.timer.Stop()
	close(r.over)
	s.now = nil
}

// wait returns when no run is about to start, or when that takes too long. A stop, and the loss
// of the lease, end the wait.
func (s *starts) wait(stop, held context.Context) {
	s.mu.Lock()
	r := s.now
	s.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case <-r.over:
	case <-stop.Done():
	case <-held.Done():
	}
}
