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

// The log blocks just before a run, or before a further try of it, until the
// lease is lost: the run does not start.
func TestALogThatBlocksDelaysTheLookAtTheDeadline(t *testing.T) {
	for _, tries := range []int{1, 2} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 0)
			job.Interrupted, job.Tries, job.Backoff = soloist.Rerun, 2, time.Second
			job.Do = func(context.Context, *soloist.Run) error {
				if len(c.all()) < tries {
					return errors.New("not yet")
				}
				return nil
			}
			a := c.replica("a", job)
			lines := 0
			a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() {
				if lines++; lines == tries {
					a.kill()
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
			want := slices.Repeat([]string{"a"}, tries-1)
			if !slices.Equal(got, append(want, "b")) {
				t.Errorf("%d tries: runs of %q", tries, got)
			}
			if len(a.log.lines("the lease was lost before the run began")) != 1 {
				t.Errorf("%d tries: the log says %q", tries, a.log.lines("work"))
			}
		})
	}
}
