package lease

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
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
// Its parts: the grant asks the service, the trust knows the time that is left, the ledger what was written, and the writes
// put that into the store.
//
// The order of use is Hold or HoldWith, writes, Stop, Release; for a single write, Acquire, the write,
// Release. Whatever Hold starts has ended when Stop returns.
type Session struct {
	*writes

	trusted context.Context         // ends with the trust
	lose    context.CancelCauseFunc // ends trusted
	stop    func()                  // ends the renewals and the watch of the deadline, and waits for both
}

// newSession returns a session that has not acquired its lease yet.
func newSession(c *Client, l store.Lease, etag string, rec *record.Record, length time.Duration) *Session {
	g := &grant{Length: length, Brief: c.briefly(c.CallTimeout()), client: c, lease: l, trust: &trust{clock: c.Clock},
		renewing: make(chan struct{}, 1), news: news{func(error) {}, func(event.Event) {}}}
	return &Session{writes: &writes{g, newLedger(etag, rec)}}
}

// Acquire takes the lease if the entry still has etag, whose record is rec. So the store
// itself refuses a decision that was made from an old record. If the outcome is unclear it
// repeats the call once under the same id, which is safe; if that is unclear too, it
// releases what it may have got, unless that must expire. The first call is a short one if rec has a run that beats; see
// Client.Haste.
func Acquire(ctx context.Context, c *Client, etag string, rec *record.Record, length time.Duration) (*Session, error) {
	s := newSession(c, c.Store.Lease(c.Name, uuid.NewString()), etag, rec, length)
	err := s.acquire(ctx, etag, c.Haste(rec))
	if err != nil && !Definite(err) {
		err = s.acquire(ctx, etag, c.CallTimeout())
	}
	if err != nil && !Definite(err) && !s.MustExpire() {
		s.Release(ctx)
	}
	return s, err
}

// Context returns a context that ends, with ErrLost as its cause, once the lease can no
// longer be trusted. Runs hang on it.
func (s *Session) Context() context.Context { return s.trusted }

// Stop ends the renewals and waits until none is in flight: a renewal that arrived after
// the release would fail, and would look like a loss.
func (s *Session) Stop() { s.stop() }

// Lose ends the trust in the lease, and with it the contexts of its run. A nil cause says
// that the lease is given up in order.
func (s *Session) Lose(cause error) { s.lose(cause) }

// Expired reports whether the lease can no longer be trusted. If so it also ends the
// context of the session: the timer of the deadline may be late.
func (s *Session) Expired() bool {
	if s.Left() <= 0 {
		s.lose(ErrNotRenewed)
	}
	return s.trusted.Err() != nil
}

// Reusable reports whether another run may follow under this lease: its last write is
// known, and its renewals go on. Only the goroutine that writes claim and outcome may call it.
func (s *Session) Reusable() bool {
	return !s.MustExpire() && !s.gaveUp && !s.unclear && !s.doubt && s.renewals.Err() == nil && !s.leaving.Load() && !s.Expired()
}

// WaitPast waits until the service's clock is certainly past t, and returns the earliest
// time that it can show then. It returns false if a stop or the loss of the lease comes
// first. The lease is renewed meanwhile.
func (s *Session) WaitPast(stop context.Context, t time.Time) (now time.Time, ok bool) {
	for {
		now = s.client.Clock.Now().Earliest
		left := t.Sub(now)
		if left < 0 {
			return now, true
		}
		left += left/(Drift-1) + time.Millisecond // the earliest reading advances more slowly than the service's clock, by Drift
		if !WaitFor(stop, s.trusted, left) {
			return now, false
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
