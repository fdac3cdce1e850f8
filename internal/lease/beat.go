package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A session whose run beats writes the record at each third of the beat's length, from its claim
// to its outcome. Then the trust ends with the earlier of two deadlines: the one of the lease, and
//
//	when the last write that was applied was first sent + length of the beat
//	- length/100 (the clocks' rates) - length/6 (time to stop)
//
// The time counts from the first sending: an earlier one of several may have been applied,
// and a follower counts from when it has seen that. Neither deadline does without the
// other one. Renewals alone do not show followers that the holder is alive, and a lease that is
// not renewed expires whatever is written. See internal/plan/observation.go for what the followers do.

// beatAgain sends a beat if one is due, and returns when the next one is. It is a chore.
func (s *Session) beatAgain(ctx context.Context) (pause time.Duration, again bool) {
	if err := s.beatInTime(ctx); err != nil && ctx.Err() == nil {
		s.lose(err)
	}
	if pause = s.untilBeat(); pause <= 0 {
		pause = s.client.Beat / 30
	}
	return pause, ctx.Err() == nil
}

// untilBeat returns how long it is until a third of the beat has gone by since the last write.
// Any write is a beat: a checkpoint, or news for the followers.
func (s *Session) untilBeat() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trust.beating.length == 0 { // no run is in the record: look soon whether one is
		return s.client.Beat / 12
	}
	return s.trust.beating.sent + s.trust.beating.length/3 - s.client.Clock.Elapsed()
}

// beatInTime sends a beat if one is due, and repeats the call until it is known to be applied.
// It returns an error once the store has said that the lease is gone, or the lease can no longer
// be trusted.
func (s *Session) beatInTime(ctx context.Context) error {
	if s.takeTurn(ctx) != nil { // the outcome is being written, or the renewals have ended
		return nil
	}
	defer s.endTurn()
	rec := s.ledger.rec.Clone()
	if rec.Beats() == 0 || s.untilBeat() > 0 {
		return nil
	}
	rec.Writer = rand.Text()
	b, err := rec.Encode()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotEncoded, err)
	}
	s.draft(rec)
	p := newPage(&rec, b, nil)
	for try := 1; ctx.Err() == nil; try++ {
		if s.Left() <= 0 {
			return ErrNotRenewed
		}
		known, err := s.beatOnce(ctx, p)
		if ctx.Err() == nil {
			s.tell(try, err)
		}
		if known {
			return err
		}
		Sleep(ctx, p.beat/30)
	}
	return nil
}

// beatOnce sends a beat once and finds out what became of it. It takes no longer than two calls
// may.
func (s *Session) beatOnce(ctx context.Context, p *page) (known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.beat/3)
	defer cancel()
	known, err = s.send(ctx, p)
	if known && err != nil && !errors.Is(err, store.ErrLost) {
		err = fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	return known, err
}
