package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/record"
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

// untilBeat returns how long it is until a third of the beat has gone by since the last write.
// Any write is a beat: a checkpoint, or news for the followers.
func (g *grant) untilBeat() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.beating.length == 0 { // no run is in the record: look soon whether one is
		return g.client.Beat / 12
	}
	return g.beating.sent + g.beating.length/3 - g.client.Clock.Elapsed()
}

// beatInTime sends a beat if one is due, as inTime does.
func (w *writes) beatInTime(ctx context.Context) error {
	if w.take(ctx) != nil { // the outcome is being written, or the renewals have ended
		return nil
	}
	defer w.end()
	rec := w.rec.Clone()
	if rec.Beats() == 0 || w.untilBeat() > 0 {
		return nil
	}
	p, err := w.page(rec, nil)
	if err != nil {
		return err
	}
	return w.inTime(ctx, p.beat/30, func(ctx context.Context) (known bool, err error) {
		ctx, cancel := context.WithTimeout(ctx, p.beat/3) // two calls may take that long
		defer cancel()
		known, err = w.send(ctx, p)
		if known && err != nil && !errors.Is(err, store.ErrLost) {
			err = fmt.Errorf("%w: %w", store.ErrLost, err)
		}
		return known, err
	})
}

// Shortest returns the shortest lease that a program can ask for: the shortest that the store takes, or less over
// a [store.ConditionalBreaker]. A shorter one is kept by beats: see [record.Record.Beats].
func Shortest(s store.Store) time.Duration {
	shortest, _ := s.Limits()
	if _, breaks := s.(store.ConditionalBreaker); breaks {
		return min(shortest, record.ShortestBeat)
	}
	return shortest
}
