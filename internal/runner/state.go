package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
)

// stuckAfter is how long a loop may take for one step without a lease. It never sleeps
// for longer than maxSleep, and a sixth of a lease bounds each call to the store.
const stuckAfter = 3 * time.Minute

// A state is what other goroutines may see of a job on this replica: Health, StepDown,
// and manual runs in parallel with the loop. The runners of the job write it.
type state struct {
	job          string
	place        int // among the jobs of the replica
	everyReplica bool
	degradation  *degradation                                            // of the replica
	followed     []func(rec *record.Record, settles bool, now time.Time) // by jobs: this replica has written the record

	sighting atomic.Pointer[plan.Sighting] // of the last Take; nil: there was none
	left     atomic.Pointer[leftover]      // the last one; nil: there was none
	unbegun  atomic.Pointer[unbegun]       // the last one; nil: there is none
	shown    atomic.Pointer[decoded]       // of Statuses; nil: it was not called yet

	returning sync.Mutex // of the unbegun claim

	mu  sync.Mutex
	now snapshot
}

// get returns a copy. Nothing that a snapshot points to is changed in place.
func (s *state) get() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// set changes the state. f runs under the lock, so it must be short and call nothing.
func (s *state) set(f func(*snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

// A snapshot is the content of a state.
type snapshot struct {
	running int       // calls of the user's function under way here
	byHand  int       // manual runs that are under a lease, in parallel with the loop
	busy    bool      // the loop is under a lease, for as long as the run takes
	looping bool      // Loop is running
	beat    time.Time // when the loop last began a step
	told    time.Time // when a heartbeat of a run was last reported
	broken  error     // why this job is skipped; nil: it is not
	writes  int       // writes of this process that have succeeded, without renewals and notes of runs
	storage error     // why the store could not be used for this job; nil: it could
	overrun []overrun // runs that go on though their context has ended; never changed in place

	succeeded time.Time // of an EveryReplica job: the newest tick that has succeeded here

	entry entryHistory
	hand  *handover // how to end what runs here under a lease; nil: nothing does
	run   claimed   // the run that is under way here; zero: none is

	unconfirmed []unconfirmed // writes of outcomes that no read has shown yet
}

// A leftover is a lease that this process has left, to expire or since its release got no answer: nothing runs under it here.
type leftover struct {
	etag  string        // of the entry, unless a write was applied that is one of
	sent  []string      // the nonces of records
	until time.Duration // elapsed time by which it has expired
}

// leaves notes a lease that ends without a release, for the next call of this process.
func (b *base) leaves(s *lease.Session) {
	b.source.state.left.Store(&leftover{s.Revision().ETag, s.Sent(), b.clock.Elapsed() + s.Length})
}

// An unbegun is a claim of this process that may be in the record, and whose run was not begun.
type unbegun struct {
	session *lease.Session
	before  record.Record // the claim; see hold
	sent    []string      // the nonces of records that the entry may hold
}

// An unconfirmed is a write of outcomes that got no clear answer. The next read of the record shows
// whether it was applied, whichever runner of the job in this process reads it.
type unconfirmed struct {
	session *lease.Session
	writer  string        // of the record that was sent
	run     event.Outcome // of the run that the write claims or ends; zero: of none
	report  func()        // emits the outcomes
	etag    string        // of an entry without a lease to which it may be applied: it acquires the lease too; empty: it does not
}

// A claimed is a run with a claim, as an operator's order names it.
type claimed struct {
	token    int64
	about    record.About
	backfill int64 // that it is of; zero: of none
	known    int64 // the last order to end a run that was known when it was claimed
	cancel   context.CancelCauseFunc
}

// An entryHistory is what this process has seen of the entry. The loop and the runs by
// hand share it: each of them has to know of an entry that was replaced.
type entryHistory struct {
	created   time.Time     // of the entry that was last seen; zero: none was
	looked    time.Time     // when it was last read or written here, by the service's clock; see swept
	recreated time.Time     // when another entry was first seen in its place: the holder of the deleted one may not know
	lease     time.Duration // the longest lease of a holder seen since the last claim here: the holder of a deleted entry may trust its lease that long
}

// replacedBy reports whether the entry of a record has replaced the last one: it has another date of creation.
func (h *entryHistory) replacedBy(r *record.Record) bool {
	return !h.created.IsZero() && !r.Created.Equal(h.created)
}

// recall takes in a record that was read.
func (h *entryHistory) recall(r *record.Record) {
	if h.replacedBy(r) {
		h.recreated = time.Now()
	}
	h.created, h.lease = r.Created, max(h.lease, time.Duration(r.Run.Lease))
}

// An origin is where runs come from: the loop of a job, or a manual request. Its
// address is its identity.
type origin struct {
	byHand string // the request; empty: the loop
}

// A source is one origin of a job's runs on this replica, with the state of the job.
type source struct {
	*origin
	state *state
	lists bool // it only lists, so its trouble says nothing about other calls
}

// An overrun is the run of one origin that goes on though its context has ended, and
// why the context has ended.
type overrun struct {
	of    *origin
	cause error
}

// overruns returns why a run of the job goes on though its context has ended, nil if
// none does.
func (s *snapshot) overruns() error {
	if len(s.overrun) == 0 {
		return nil
	}
	return s.overrun[0].cause
}

// beat notes that the loop begins a step; see stuckAfter.
func (s *source) beat() { s.state.set(func(n *snapshot) { n.beat = time.Now() }) }

// setLooping notes that Loop begins or ends: a job that no loop drives cannot be stuck.
func (s *source) setLooping(b bool) {
	s.state.set(func(n *snapshot) { n.looping, n.beat = b, time.Now() })
}

// setRunning counts calls of the user's function: a manual run of an EveryReplica job
// may be under way in parallel with a tick.
func (s *source) setRunning(b bool) {
	s.state.set(func(n *snapshot) { n.running += change(b) })
}

// setBusy notes that a time under a lease begins or ends. The time of a manual run says
// nothing about the loop, so it is counted apart.
func (s *source) setBusy(b bool) {
	s.state.set(func(n *snapshot) {
		if s.byHand != "" {
			n.byHand += change(b)
			return
		}
		n.busy, n.beat = b, time.Now()
	})
}

// change is what a begin or an end adds to a count.
func change(begins bool) int {
	if begins {
		return 1
	}
	return -1
}

// setOverrun keeps why the context of a run of this source ended that has not returned
// since; nil says that it has. The text of an EveryReplica job says that only this job is
// affected: all replicas run it at once, and otherwise all of them would start nothing new.
func (s *source) setOverrun(cause error) {
	switch {
	case cause == nil || !s.state.everyReplica:
	case s.byHand != "":
		cause = fmt.Errorf("its run by hand %s goes on though its context has ended (%w)", s.byHand, cause)
	default:
		cause = fmt.Errorf("its run goes on though its context has ended (%w): no tick of this job runs on this replica until it returns", cause)
	}
	changed := false // nearly always there is none, before and after
	s.state.set(func(n *snapshot) {
		if changed = cause != nil || len(n.overrun) > 0; !changed {
			return
		}
		// A copy, since snapshots that were taken before share the slice.
		n.overrun = slices.DeleteFunc(slices.Clone(n.overrun), func(o overrun) bool { return o.of == s.origin })
		if cause != nil {
			n.overrun = append(n.overrun, overrun{s.origin, cause})
		}
	})
	if changed && !s.state.everyReplica {
		s.state.degradation.set(stray{overrun{s.origin, cause}, s.state.job, s.state.place})
	}
}

// lastErr returns why this job could not be run when it was last tried, nil if it could.
func (s *state) lastErr() error {
	n := s.get()
	if s.everyReplica {
		return errors.Join(n.broken, n.overruns())
	}
	return errors.Join(n.broken, n.storage)
}
