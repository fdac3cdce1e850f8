package watch_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/internal/watch"
)

// A wrong clock is warned of once, and right again only if the store says so.
func TestClockIsWatched(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var skew, proved time.Duration
	answers, asked := true, 0
	clock := watch.NewClock(log, func() time.Duration { return skew }, func(context.Context) bool {
		asked++
		if answers {
			skew = proved
		}
		return answers
	})
	const (
		ahead  = "level=WARN msg=\"this machine's clock is 5.1s ahead of the store's, by which ticks are run: put it right\" skew=5.1s\n"
		behind = "level=WARN msg=\"this machine's clock is 1m0s behind the store's, by which ticks are run: put it right\" skew=-1m0s\n"
		right  = "level=INFO msg=\"this machine's clock is right again\"\n"
	)
	for i, step := range []struct {
		skew, proved time.Duration
		answers      bool
		asked        int
		want         string
	}{
		{0, 0, true, 0, ""},
		{5 * time.Second, 0, true, 0, ""},
		{5100 * time.Millisecond, 0, true, 0, ahead},
		{7 * time.Second, 0, true, 0, ""},
		{4 * time.Second, 0, true, 0, ""},                       // not as wrong, and not right
		{time.Second, 5100 * time.Millisecond, true, 1, ""},     // the old proof has faded
		{0, 0, false, 2, ""},                                    // nobody knows
		{0, 0, true, 3, right},                                  //
		{0, 0, true, 3, ""},                                     //
		{-time.Minute, 0, true, 3, behind},                      //
		{-900 * time.Millisecond, -time.Second, true, 4, right}, //
	} {
		skew, proved, answers = step.skew, step.proved, step.answers
		out.Reset()
		clock.Look(t.Context())
		if out.String() != step.want || asked != step.asked {
			t.Errorf("step %d: got %q, asked %d times, want %q and %d", i, out.String(), asked, step.want, step.asked)
		}
	}
}
