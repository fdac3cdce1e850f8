package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// renewAgain renews the lease, unless ctx has ended, and returns when to do so again. It is a
// chore, but Check and settle may call Renew at the same time.
func (s *Session) renewAgain(ctx context.Context) (pause time.Duration, again bool) {
	if err := s.renewInTime(ctx); err != nil {
		s.lose(err)
	}
	return s.untilRenewal(), ctx.Err() == nil
}

// untilRenewal returns how long it takes until the next third of the lease since the
// claim, by the service's clock. By this replica's own clock, a slow one would renew later
// and later, and after hours just after the followers have looked whether the lease is
// still renewed. The latest reading of the service's clock is used, so that the renewal is
// early rather than late.
func (s *Session) untilRenewal() time.Duration {
	third := s.Length / 3
	s.mu.Lock()
	claimed := s.claimed
	s.mu.Unlock()
	gone := s.client.Clock.Elapsed() - s.start
	if _, hi, ok := s.client.Clock.Now(); ok && !claimed.IsZero() {
		gone = hi.Sub(claimed)
	}
	wait := third - gone%third
	if wait < third/5 { // the reading went back a little, so this third is already renewed
		wait += third
	}
	// A wrong date must not postpone a renewal.
	return min(wait, third+third/5)
}

// renewInTime renews, and repeats the call after a transient error. It returns nil after
// a success, or if ctx has ended. It returns an error once the store has said that the
// lease is gone, or the lease can no longer be trusted. The pause is constant: there is
// room for few tries before the trust ends.
func (s *Session) renewInTime(ctx context.Context) error {
	for try := 1; ctx.Err() == nil; try++ {
		if s.Left() <= 0 {
			return ErrNotRenewed
		}
		err := s.Renew(ctx)
		if ctx.Err() == nil {
			s.tell(try, err)
		}
		if err == nil {
			return nil
		}
		if Definite(err) {
			return fmt.Errorf("%w: %w", store.ErrLost, err)
		}
		Sleep(ctx, s.Length/30)
	}
	return nil
}

// Renew asks the service for the lease once more, and moves the deadline if it succeeds.
// One call is in flight at a time: the answers of two could arrive in the wrong order.
func (s *Session) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.client.CallTimeout())
	defer cancel()
	select {
	case s.renewing <- struct{}{}:
		defer func() { <-s.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	// The time is kept on the stack of this very call. The deadline may only count from
	// the sending of the request that was answered.
	sent := s.client.Clock.Elapsed()
	stamp, err := Stamped(s.lease.Renew(ctx))
	if err != nil {
		return err
	}
	s.client.Clock.Observe(sent, stamp.Date)
	s.extend(sent)
	s.news.emit(event.Event{Kind: event.Renewed, Took: s.client.Clock.Elapsed() - sent})
	return nil
}

// extend moves the end of the trust.
func (s *Session) extend(sent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trust.extend(s.client.Clock.Elapsed(), sent, s.Length)
}
