package runner

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/store"
)

// stuckAfter is how long a loop that never sleeps longer than maxSleep, and
// whose calls to the store are bounded by a lease, may take to come round.
const stuckAfter = 3 * time.Minute

// A state is what others may see of a job on this replica: of its loop and of
// runs by hand beside it.
type state struct {
	job          string
	everyReplica bool

	mu  sync.Mutex
	now snapshot
}

func (s *state) get() snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *state) set(f func(*snapshot)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.now)
}

type snapshot struct {
	running int       // calls of the user's function under way here
	busy    bool      // under a lease, which takes as long as the run
	byHand  int       // runs by hand, beside the loop
	looping bool      // in Loop
	beat    time.Time // when its loop last came round
	broken  error     // why this job is left alone
	storage error     // why the store could not be used for it
	overrun []overrun // runs that go on though their context has ended; never changed in place

	entry entryHistory
	hand  *handover // what runs here; nil: nothing does
}

// An entryHistory is what this process has seen of the entry, for ticks and by
// hand.
type entryHistory struct {
	created   time.Time     // of the entry as it was last seen; zero: it was not
	recreated time.Time     // when it was seen made again after a deletion, of which its last holder may not know
	lease     time.Duration // of the last holder seen
}

// recall notes the record of an entry that was read, and whether the entry is
// another one than this process has seen before.
func (h *entryHistory) recall(r *store.Record) {
	if !h.created.IsZero() && !r.Created.Equal(h.created) {
		h.recreated = time.Now()
	}
	h.created, h.lease = r.Created, max(h.lease, time.Duration(r.Lease))
}

// A handover is how to end what runs here under a lease.
type handover struct {
	stop func()
	over chan struct{} // closed when that is done
}

// An origin is where runs come from: the loop of a job, or a request by hand.
type origin struct {
	byHand string // the request; empty: the loop
}

// A source is one origin of a job's runs on this replica.
type source struct {
	*origin
	state *state
}

// An overrun is the run of one origin that goes on though its context has ended,
// and why that has ended.
type overrun struct {
	of    *origin
	cause error
}

// overruns is why a run of the job goes on though its context has ended, nil if
// none does.
func (s *snapshot) overruns() error {
	if len(s.overrun) == 0 {
		return nil
	}
	return s.overrun[0].cause
}

func (s *source) beat() { s.state.set(func(n *snapshot) { n.beat = time.Now() }) }

func (s *source) setLooping(b bool) {
	s.state.set(func(n *snapshot) { n.looping, n.beat = b, time.Now() })
}

// setRunning counts, since a run by hand of a job that runs on each replica may be
// beside a tick.
func (s *source) setRunning(b bool) {
	s.state.set(func(n *snapshot) { n.running += change(b) })
}

// setBusy says that a time under a lease begins or ends. That of a run by hand
// tells nothing of the loop.
func (s *source) setBusy(b bool) {
	s.state.set(func(n *snapshot) {
		if s.byHand != "" {
			n.byHand += change(b)
			return
		}
		n.busy, n.beat = b, time.Now()
	})
}

// change is what a begin or an end makes of a count.
func change(begins bool) int {
	if begins {
		return 1
	}
	return -1
}

// setOverrun keeps why the context of the run of this source ended that has not
// returned since, nil once it has. Of a job that runs on each replica it is the
// trouble of this job alone: all replicas run it at once, and would all take
// nothing new.
func (s *source) setOverrun(cause error) {
	switch {
	case cause == nil || !s.state.everyReplica:
	case s.byHand != "":
		cause = fmt.Errorf("its run by hand %s goes on though its context has ended (%w)", s.byHand, cause)
	default:
		cause = fmt.Errorf("its run goes on though its context has ended (%w): no tick of this job runs on this replica until it returns", cause)
	}
	s.state.set(func(n *snapshot) {
		n.overrun = slices.DeleteFunc(slices.Clone(n.overrun), func(o overrun) bool { return o.of == s.origin })
		if cause != nil {
			n.overrun = append(n.overrun, overrun{s.origin, cause})
		}
	})
}

// lastErr is why this job could not be looked after, if so.
func (s *state) lastErr() error {
	n := s.get()
	if s.everyReplica {
		return errors.Join(n.broken, n.overruns())
	}
	return errors.Join(n.broken, n.storage)
}
