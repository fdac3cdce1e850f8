package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Every step of a tick, on whichever replica it comes first, is applied and its
// reply lost, or applied when the caller has long given up.
func TestLostReplies(t *testing.T) {
	for _, op := range []string{"container", "create", "read", "acquire", "claim", "renew", "finish", "release"} {
		for how, f := range map[string]network{
			"lost at once":          dropped,
			"never told":            mute,
			"of a request 3 s late": late(3 * time.Second),
			"of a request D late":   late(D + time.Second),
			"of a request 3 D late": late(3 * D),
		} {
			for _, n := range fewer(t, 1, 2) {
				for _, names := range fewer(t, []string{"a", "b", "c"}, []string{"a"}) {
					name := fmt.Sprintf("%s, %s, %d times, among %d", op, how, n, len(names))
					beside(t, name, job{30 * time.Second, 8 * time.Second, soloist.Abandon}, func(w *world) {
						w.meet(first(n, op, f))
						w.start(names...)
						time.Sleep(4*time.Minute + 12*time.Second)
						// A step is done twice before a lease is left to run out.
						if n == 1 || n == 2 && !strings.HasSuffix(how, "late") {
							w.succeeded(8, D/2+2*time.Second) // with a head start for the others
						} else if n := len(w.runs()); n < 6 {
							w.Errorf("%d of 8 ticks ran", n)
						}
						if !w.struck(op) {
							w.Error("nothing was lost")
						}
					})
				}
			}
		}
	}
}

// succeeded checks that all ticks did, none of them later than late.
func (w *world) succeeded(ticks int, late time.Duration) {
	w.Helper()
	for _, r := range w.runs() {
		if got := r.Time.Sub(r.Tick); got > late {
			w.Errorf("tick %s began %s late", r.Tick.Format(time.TimeOnly), got)
		}
	}
	if got := w.record().Counts; got[event.Succeeded] != int64(ticks) {
		w.Errorf("want %d ticks that succeeded, got %v", ticks, got)
	}
}

// struck reports whether a request of that kind had no answer.
func (w *world) struck(op string) bool {
	return slices.ContainsFunc(w.events(trace.Request, ""), func(e trace.Event) bool { return e.Op == op && !e.Done.IsZero() && e.Heard.IsZero() })
}
