package mutex

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A wish is what work that has failed says of its next try. All replicas keep to it, so it is in the
// record: as for a job that has paused itself, and is due later.
type wish struct {
	permanent bool          // there is to be none
	pause     time.Duration // until then, at least
}

// hears returns the work, which leaves its wish.
func (w *wish) hears(work func(context.Context, *supervise.Handle) error) func(context.Context, *supervise.Handle) error {
	return func(ctx context.Context, h *supervise.Handle) error {
		err := work(ctx, h)
		w.permanent = supervise.IsPermanent(err)
		w.pause, _ = supervise.AskedPause(err)
		return err
	}
}

// add puts the wish into the record of an outcome. A run that was stopped or has lost its lease has none.
// The next claim takes away the pause.
func (w *wish) add(rec *store.Record) {
	if rec.Run.Status != store.Failed {
		return
	}
	if w.permanent {
		rec.Orders.Paused = store.SelfPause{At: rec.Run.Claimed, Token: rec.Token}
	}
	if w.pause > 0 {
		rec.Due = rec.Run.Finished.Add(w.pause)
	}
}

// forGood reports whether work has said that there is to be no further try.
func forGood(rec *store.Record) bool { return !rec.Orders.Paused.At.IsZero() }
