package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/soloist-go/soloist/store"
)

// A Session is one acquisition of a lease, from acquire to release. It may be
// trusted until the lease could run out at the service:
//
//	until = when the last successful renewal was sent + length
//	        - length/100 (the clocks' rates) - length/6 (time to stop)
//
// All three are elapsed time: a step of the wall clock ends no session, a
// suspension of the machine does, where the replica's clock counts it.
type Session struct {
	Length time.Duration
	Dated  time.Time // the service's date in the answer to the acquisition; zero: the store tells none

	// Trouble is told why calls fail again and again, nil once they do not.
	Trouble func(error)

	client  *Client
	lease   store.Lease
	start   time.Duration // elapsed: when the acquisition was sent
	ledger  ledger
	trusted context.Context // ends with the trust
	lose    context.CancelCauseFunc
	stop    func()             // ends the renewals, and waits for that
	giveUp  context.CancelFunc // ends the renewals: the lease runs out

	renewing chan struct{} // has room for one renewal in flight

	mu      sync.Mutex
	until   time.Duration
	claimed time.Time // as the record tells it
}

// Acquire takes the lease if the entry still has etag, whose record is rec. A
// call of unclear outcome is repeated once under the same id, then undone as
// far as possible.
func Acquire(ctx context.Context, c *Client, etag string, rec *store.Record, length time.Duration) (*Session, error) {
	s := &Session{client: c, lease: c.Store.Lease(c.Name, uuid.NewString()), Length: length,
		ledger: newLedger(etag, rec), renewing: make(chan struct{}, 1), Trouble: func(error) {}}
	err := s.acquire(ctx)
	if err != nil && !Definite(err) {
		err = s.acquire(ctx)
	}
	if err != nil && !Definite(err) {
		s.Release(ctx)
	}
	return s, err
}

func (s *Session) acquire(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.client.CallTimeout())
	defer cancel()
	s.start = s.client.Clock.Elapsed()
	stamp, err := stamped(s.lease.Acquire(ctx, s.Length, s.ledger.etag))
	if err != nil {
		return err
	}
	s.client.Clock.Observe(s.start, stamp.Date)
	s.until, s.Dated = s.start+s.trust(), stamp.Date
	return nil
}

// CallTimeout is how long one call to the store may take.
func (s *Session) CallTimeout() time.Duration { return s.client.CallTimeout() }

// trust is how long an answer of the service may be trusted, from when its
// request was sent.
func (s *Session) trust() time.Duration { return s.Length - s.Length/Drift - s.Length/6 }

// Keep renews the lease at each third of its length until Stop or GiveUp.
func (s *Session) Keep(ctx context.Context) {
	s.trusted, s.lose = context.WithCancelCause(ctx)
	watch, cancel := context.WithCancel(s.trusted)
	renewals, giveUp := context.WithCancel(watch)
	s.giveUp = giveUp
	var both sync.WaitGroup
	both.Go(func() { s.watchDeadline(watch) })
	both.Go(func() { s.renewals(renewals) })
	s.stop = sync.OnceFunc(func() {
		cancel()
		both.Wait()
	})
}

// Context ends, with ErrLost, once the lease cannot be trusted any more.
func (s *Session) Context() context.Context { return s.trusted }

// Stop ends the renewals, and waits for that.
func (s *Session) Stop() { s.stop() }

// GiveUp ends the renewals: the lease runs out.
func (s *Session) GiveUp() { s.giveUp() }

// Lose ends the trust in the lease.
func (s *Session) Lose(cause error) { s.lose(cause) }

// lookAgain is how often the deadline is compared with elapsed time, since
// timers stand still while a machine is suspended.
const lookAgain = time.Second

func (s *Session) watchDeadline(ctx context.Context) {
	for ctx.Err() == nil {
		left := s.Left()
		if left <= 0 {
			s.lose(ErrNotRenewed)
			return
		}
		Sleep(ctx, min(left, lookAgain))
	}
}

// ErrNotRenewed ends the trust in a lease that could not be renewed in time.
var ErrNotRenewed = fmt.Errorf("%w: no renewal in time", store.ErrLost)

// Until is the instant, in elapsed time, up to which the lease can be trusted.
func (s *Session) Until() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until
}

// Left is how long the lease can still be trusted.
func (s *Session) Left() time.Duration { return s.Until() - s.client.Clock.Elapsed() }

// Expired reports whether the lease cannot be trusted any more. It ends the
// context of the session then: the goroutine that watches the deadline may be late.
func (s *Session) Expired() bool {
	if s.Left() <= 0 {
		s.lose(ErrNotRenewed)
	}
	return s.trusted.Err() != nil
}

// WaitPast waits until the service's clock is past t for certain, and returns its
// earliest reading then. It returns false if a stop or the loss of the lease comes
// first.
func (s *Session) WaitPast(stop context.Context, t time.Time) (now time.Time, ok bool) {
	for {
		lo, _, _ := s.client.Clock.Now()
		left := t.Sub(lo)
		if left < 0 {
			return lo, true
		}
		left += left/(Drift-1) + time.Millisecond // the earliest reading is slow on purpose
		if !WaitFor(stop, s.trusted, left) {
			return lo, false
		}
	}
}

// WaitFor returns false if the end of either context comes before the end of d.
func WaitFor(ctx, other context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return other.Err() == nil && ctx.Err() == nil
	case <-ctx.Done():
	case <-other.Done():
	}
	return false
}

// Release is a courtesy: without it the lease runs out. The id was never used
// before and never will be again, so a second call can do no harm.
func (s *Session) Release(ctx context.Context) error {
	err := s.release(ctx)
	if err != nil && !Definite(err) {
		err = s.release(ctx)
	}
	return err
}

func (s *Session) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.client.CallTimeout())
	defer cancel()
	return s.lease.Release(ctx)
}

// tell passes on the outcome of the nth try of a call: one failure is no
// trouble yet.
func (s *Session) tell(try int, err error) {
	if try > 1 && !Definite(err) {
		s.Trouble(err)
	}
}
