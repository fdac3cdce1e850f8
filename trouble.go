package soloist

import (
	"log/slog"
	"slices"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/logqueue"
	"github.com/soloist-go/soloist/internal/runner"
)

// troubles are the events of a lock that are logged. A lock may be taken many times a second, so what
// goes well is not.
var troubles = []event.Kind{event.Panicked, event.Overrun, event.Unrecorded, event.Settled, event.NotClaimed, event.HoldOff,
	event.LeftAlone, event.TakenUp, event.StoreTrouble, event.StoreBack}

// hearTrouble has a replica that only takes locks log its trouble, and returns a logger of the same
// queue: a log that blocks must not delay who waits for a lock.
func hearTrouble(r *runner.Replica, log *slog.Logger) *slog.Logger {
	lines := &logqueue.Queue{Root: log.Handler()}
	queued := lines.Logger(log)
	r.Events, r.Flush = func(e event.Event) {
		if slices.Contains(troubles, e.Kind) {
			writeLine(&e, queued, queued)
		}
	}, lines.Wait
	return queued
}
