package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A Session is one acquisition of a lease, under an id that is used once. The lease can
// be trusted until it could have expired at the service:
//
//	until = when the last successful renewal was sent + length
//	        - length/100 (the clocks' rates) - length/6 (time to stop)
//
// The time is counted from the sending, since the service may have counted from any later
// moment. All three are elapsed time: a step of the wall clock ends no session, and a
// suspension of the machine does end it, where the replica's clock counts suspensions.
//
// The order of use is Hold, writes, Stop, Release; for a single write, Acquire, the write,
// Release. Whatever Hold starts has ended when Stop returns.
type Session struct {
	Length time.Duration
	Dated  time.Time // the service's date in the answer to the acquisition; zero: the store gives none

	client  *Client
	lease   store.Lease
	start   time.Duration // elapsed: when the acquisition was sent
	ledger  ledger
	trusted context.Context         // ends with the trust
	lose    context.CancelCauseFunc // ends trusted
	stop    func()                  // ends the renewals and the watch of the deadline, and waits for both
	giveUp  context.CancelFunc      // ends the renewals alone: the lease expires, and the trust before it

	renewing chan struct{} // has room for one renewal in flight
	news     news

	mu      sync.Mutex
	trust   trust
	claimed time.Time // as the record says: renewals come at thirds of the lease after it
}

// A news is where a session reports what happens to it; see Hold.
type news struct {
	trouble func(error)
	emit    func(event.Event)
}

// Acquire takes the lease if the entry still has etag, whose record is rec. So the store
// itself refuses a decision that was made from an old record. If the outcome is unclear it
// repeats the call once under the same id, which is safe; if that is unclear too, it
// releases what it may have got, unless that must expire. The first call is a short one if rec has a run that beats; see
// Client.Haste.
func Acquire(ctx context.Context, c *Client, etag string, rec *store.Record, length time.Duration) (*Session, error) {
	s := &Session{client: c, lease: c.Store.Lease(c.Name, uuid.NewString()), Length: length,
		ledger: newLedger(etag, rec), renewing: make(chan struct{}, 1), news: news{func(error) {}, func(event.Event) {}}}
	err := s.acquire(ctx, c.Haste(rec))
	if err != nil && !Definite(err) {
		err = s.acquire(ctx, c.CallTimeout())
	}
	if err != nil && !Definite(err) && !s.MustExpire() {
		s.Release(ctx)
	}
	return s, err
}

// acquire makes one call. The trust counts from the sending of the call that was answered.
func (s *Session) acquire(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.start = s.client.Clock.Elapsed()
	stamp, err := Stamped(s.lease.Acquire(ctx, s.Length, s.ledger.etag))
	if err != nil {
		return err
	}
	s.client.Clock.Observe(s.start, stamp.Date)
	s.trust.until, s.Dated = s.start+trusted(s.Length), stamp.Date
	return nil
}

// CallTimeout is how long one call to the store may take.
func (s *Session) CallTimeout() time.Duration {
	if s.client.Beat > 0 {
		return min(s.client.CallTimeout(), s.client.Beat/6)
	}
	return s.client.CallTimeout()
}

// Context returns a context that ends, with ErrLost as its cause, once the lease can no
// longer be trusted. Runs hang on it.
func (s *Session) Context() context.Context { return s.trusted }

// Stop ends the renewals and waits until none is in flight: a renewal that arrived after
// the release would fail, and would look like a loss.
func (s *Session) Stop() { s.stop() }

// GiveUp ends the renewals and returns at once. The lease then expires, although its run
// may still go on.
func (s *Session) GiveUp() { s.giveUp() }

// Lose ends the trust in the lease, and with it the contexts of its run. A nil cause says
// that the lease is given up in order.
func (s *Session) Lose(cause error) { s.lose(cause) }

// lookAgain is how often the deadline is compared with elapsed time: timers stand still
// while a machine is suspended, and the first beat of a run moves the deadline backwards.
func (s *Session) lookAgain() time.Duration {
	if s.client.Beat > 0 {
		return min(time.Second, s.client.Beat/6)
	}
	return time.Second
}

// watchDeadline ends the trust in time, however long a renewal hangs. It is a chore.
func (s *Session) watchDeadline() (pause time.Duration, again bool) {
	left := s.Left()
	if left <= 0 {
		s.lose(ErrNotRenewed)
	}
	return min(left, s.lookAgain()), s.trusted.Err() == nil
}

// ErrNotRenewed ends the trust in a lease that could not be renewed in time. It may still
// be ours at the service, but that cannot be known.
var ErrNotRenewed = fmt.Errorf("%w: no renewal in time", store.ErrLost)

// Left returns how long the lease can still be trusted.
func (s *Session) Left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trust.end() - s.client.Clock.Elapsed()
}

// Expired reports whether the lease can no longer be trusted. If so it also ends the
// context of the session: the timer of the deadline may be late.
func (s *Session) Expired() bool {
	if s.Left() <= 0 {
		s.lose(ErrNotRenewed)
	}
	return s.trusted.Err() != nil
}

// Age returns for how long the lease is held.
func (s *Session) Age() time.Duration { return s.client.Clock.Elapsed() - s.start }

// Reusable reports whether another run may follow under this lease: its last write is
// known, and its renewals go on. Only the goroutine that writes claim and outcome may call it.
func (s *Session) Reusable() bool {
	return !s.MustExpire() && !s.ledger.gaveUp && !s.ledger.unclear && !s.ledger.doubt && !s.Expired()
}

// MustExpire reports whether the lease has to expire and must not be released: the entry may show a run that may
// be under way. A follower that sees the lease expired knows that the trust of all its holders has ended. A follower that
// sees it free has to believe the record, and holds off for the length of a lease. Only the goroutine that writes claim and
// outcome may call it, after Stop.
func (s *Session) MustExpire() bool { return s.ledger.mayRun() }

// WaitPast waits until the service's clock is certainly past t, and returns the earliest
// time that it can show then. It returns false if a stop or the loss of the lease comes
// first. The lease is renewed meanwhile.
func (s *Session) WaitPast(stop context.Context, t time.Time) (now time.Time, ok bool) {
	for {
		lo, _, _ := s.client.Clock.Now()
		left := t.Sub(lo)
		if left < 0 {
			return lo, true
		}
		left += left/(Drift-1) + time.Millisecond // the earliest reading advances more slowly than the service's clock, by Drift
		if !WaitFor(stop, s.trusted, left) {
			return lo, false
		}
	}
}

// WaitFor waits for d and returns true. It returns false if either context has ended by
// then.
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

// Release releases the lease, so that another replica can acquire it at once; without it
// the lease would expire. A call of unclear outcome is repeated: no later session has the
// same id, so the second call can release nothing else.
func (s *Session) Release(ctx context.Context) error {
	err := s.release(ctx)
	if err != nil && !Definite(err) {
		err = s.release(ctx)
	}
	return err
}

// release makes one call, also for a session whose context has ended.
func (s *Session) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.client.CallTimeout())
	defer cancel()
	return s.lease.Release(ctx)
}

// tell reports the outcome of the nth try of a call to trouble. One failure is no trouble
// yet, and a definite answer is none: the store works.
func (s *Session) tell(try int, err error) {
	if try > 1 && !Definite(err) {
		s.news.trouble(err)
	}
}
