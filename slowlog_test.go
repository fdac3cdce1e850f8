package soloist_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A slowLog calls block before it writes the line with a message.
type slowLog struct {
	slog.Handler
	message string
	block   func()
}

func (l slowLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == l.message {
		l.block()
	}
	return l.Handler.Handle(ctx, r)
}

func (l slowLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slowLog{l.Handler.WithAttrs(attrs), l.message, l.block}
}

// The log blocks just before a further try, on a replica that has lost the store:
// the wait for the log comes before the look at the deadline, so that the try
// does not start once the lease is lost, and starts if it lasts.
func TestALogThatBlocksDelaysTheLookAtTheDeadline(t *testing.T) {
	for first, want := range map[time.Duration][]string{
		11 * time.Second: {"a", "b"},
		6 * time.Second:  {"a", "a", "b"},
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 0)
			job.Interrupted, job.MaxTries, job.Backoff = soloist.Rerun, 2, time.Millisecond
			var a *replica
			job.Do = func(ctx context.Context, run *soloist.Run) error {
				switch {
				case run.Attempt > 1:
					return nil
				case run.Try > 1:
					<-ctx.Done()
					return ctx.Err()
				}
				a.kill()
				time.Sleep(first)
				return errors.New("not yet")
			}
			a = c.replica("a", job)
			lines := 0
			a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() {
				if lines++; lines == 2 {
					time.Sleep(2 * D)
				}
			}})
			c.launch(a)
			time.Sleep(time.Hour + 500*time.Millisecond) // a claims the tick
			c.start("b", job)
			time.Sleep(10 * time.Minute)
			var got []string
			for _, r := range c.all() {
				got = append(got, r.replica)
			}
			if !slices.Equal(got, want) {
				t.Errorf("a first try of %s: runs of %q, want %q", first, got, want)
			}
			if all := c.all(); len(all) > 1 && all[len(all)-1].start.Before(all[len(all)-2].end) {
				t.Errorf("a first try of %s: b starts beside a", first)
			}
			if n := len(a.log.lines("the lease was lost before the run began")); n != 3-len(want) {
				t.Errorf("a first try of %s: the log says %q", first, a.log.lines("work"))
			}
		})
	}
}
