package lease

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

func (s *Session) renewals(ctx context.Context) {
	for ctx.Err() == nil {
		Sleep(ctx, s.untilRenewal())
		if err := s.renewInTime(ctx); err != nil {
			s.lose(err)
			return
		}
	}
}

// untilRenewal is the time to the next third of the lease since the claim, by
// the service's clock: by its own, one that is slow would, after hours, renew
// just after the others have looked whether it still does. The latest reading,
// so that the renewal is never late.
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
	if wait < third/5 { // the reading went back a little: this one is done
		wait += third
	}
	return min(wait, third+third/5)
}

// renewInTime renews, again and again after a transient error, until it knows,
// the lease can no longer be trusted, or ctx ends.
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

// Renew asks the service for the lease once more.
func (s *Session) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.client.CallTimeout())
	defer cancel()
	select {
	case s.renewing <- struct{}{}:
		defer func() { <-s.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	sent := s.client.Clock.Elapsed()
	stamp, err := stamped(s.lease.Renew(ctx))
	if err != nil {
		return err
	}
	s.client.Clock.Observe(sent, stamp.Date)
	s.extend(sent)
	return nil
}

// extend moves the deadline forward, counted from when the renewal was sent. An
// answer that is processed after the deadline extends nothing: the lease may have
// expired before the renewal revived it, and a follower may have seen that.
func (s *Session) extend(sent time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client.Clock.Elapsed() < s.until {
		s.until = max(s.until, sent+s.trust())
	}
}
