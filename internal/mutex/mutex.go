// Package mutex lets any code run under a lease of its own: one caller of all replicas at a time, or
// as many as there are slots. Each slot has an entry as a job has one, and a caller takes it by the
// acquisition, the record and the token of a manual run: see runner.Take. What is new here is
// only how a caller waits for its turn.
package mutex

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/store"
)

// A Mutex is one lock as one process sees it. Its methods may be called by many goroutines.
type Mutex struct {
	shared

	over   func() error // why nothing new is taken: work goes on without its lease; nil: it is taken
	jitter *lease.Jitter

	room chan struct{} // has room for as many callers of this process as there are slots
	turn chan struct{} // has room for one: the caller that looks for a free slot
}

// The shared are what all calls of one lock have in common.
type shared struct {
	slots  []*runner.Runner
	clock  *lease.Clock
	length time.Duration // of a lease
	stint  stint
	seen   seen
}

// New returns the lock that has these slots, of one replica.
func New(r *runner.Replica, slots []*runner.Runner, length time.Duration) *Mutex {
	return &Mutex{shared: shared{slots: slots, clock: r.Clock, length: length, seen: seen{elapsed: r.Clock.Elapsed, length: length}},
		over: r.Degraded, jitter: lease.NewJitter(r.Name + slots[0].Name()), room: make(chan struct{}, len(slots)), turn: make(chan struct{}, 1)}
}

// forEver is for a caller that waits until its context ends.
const forEver = math.MaxInt64

// Do waits for a slot until ctx ends, does work under its lease, and returns the error of work.
func (m *Mutex) Do(ctx context.Context, work Work) error { return m.DoWithin(ctx, forEver, work) }

// DoWithin is Do, but it waits for other holders no longer than patience, and not at all for a store
// that fails: see runner.Passing. A slot that is being taken by then is still taken.
func (m *Mutex) DoWithin(ctx context.Context, patience time.Duration, work Work) error {
	if err := m.over(); err != nil {
		return err
	}
	begin := m.clock.Elapsed()
	entering, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	waited, err := m.enter(entering, m.room)
	if err != nil {
		return err
	}
	defer leave(m.room)
	waitedMore, err := m.enter(entering, m.turn)
	if err != nil {
		return err
	}
	t := m.newTry(work, sync.OnceFunc(func() { leave(m.turn) }))
	defer t.endTurn()
	t.brief = t.brief || patience < forEver
	t.late = func(d time.Duration) bool { return m.clock.Elapsed()-begin-d >= patience }
	var last error
	if waited || waitedMore {
		last = m.seen.why()
	}
	return m.until(ctx, patience, t, last)
}

// until makes rounds until the work is done, ctx ends, or patience is over. Last is why it was not begun
// so far; ctx may end in a look that sees no holder.
func (m *Mutex) until(ctx context.Context, patience time.Duration, t *try, last error) error {
	waits := pace{clock: m.clock, jitter: m.jitter, longest: m.length / 6}
	lease.Sleep(ctx, m.stint.pause(m.clock.Elapsed(), waits.longest))
	for {
		held, err := t.round(ctx, m.drawn())
		m.seen.look(len(held) > 0, ctx.Err() == nil)
		switch {
		case t.began:
			return err
		case len(held) > 0:
			last = held[0]
			m.stint.end()
		case errors.Is(err, runner.ErrNotBegun), errors.Is(err, runner.ErrTrying):
			last = err
		case ctx.Err() == nil && (patience < forEver || !runner.Passing(err)):
			return err
		}
		wait := waits.next(held)
		if err != nil { // a caller that leases a slot and cannot use it must not keep it from others
			wait = waits.longest
		}
		if ctx.Err() == nil && t.late(0) {
			return last
		}
		if lease.Sleep(ctx, wait); ctx.Err() != nil {
			return ended(ctx, last, err)
		}
	}
}

// ended is the error of a wait that ctx has ended: who had the lock, what the store has failed with,
// and why ctx has ended.
func ended(ctx context.Context, last, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, cause) {
		cause = nil
	}
	if errors.Is(last, err) {
		err = nil
	}
	return errors.Join(last, err, cause)
}

// TryDo does work if a slot is free, and returns store.ErrHeld otherwise. It does not wait for other calls
// of this process that only try: it looks at the slots itself.
func (m *Mutex) TryDo(ctx context.Context, work Work) error {
	if err := m.over(); err != nil {
		return err
	}
	if int(m.seen.works.Load()) >= len(m.slots) {
		return store.ErrHeld
	}
	t := m.newTry(work, func() {})
	for {
		held, err := t.round(ctx, m.drawn())
		if len(held) > 0 {
			return errors.Join(held[0], err)
		}
		if t.began || !runner.Passing(err) {
			return err
		}
		if lease.Sleep(ctx, m.length/6); ctx.Err() != nil {
			return ended(ctx, nil, err)
		}
	}
}

// newTry returns a call that has not begun.
func (m *Mutex) newTry(work Work, endTurn func()) *try {
	return &try{shared: &m.shared, work: work, endTurn: endTurn, brief: len(m.slots) > 1, late: func(time.Duration) bool { return false }}
}

// drawn returns the slot that is tried first.
func (m *Mutex) drawn() int { return int(m.jitter.UpTo(time.Duration(len(m.slots) - 1))) }

// enter waits for room until ctx ends, and reports whether it had to wait.
func (m *Mutex) enter(ctx context.Context, room chan struct{}) (waited bool, err error) {
	select {
	case room <- struct{}{}:
		return false, nil
	default:
	}
	select {
	case room <- struct{}{}:
		return true, nil
	case <-ctx.Done():
		return true, errors.Join(cmp.Or(m.over(), m.seen.why()), context.Cause(ctx))
	}
}

func leave(room chan struct{}) { <-room }
