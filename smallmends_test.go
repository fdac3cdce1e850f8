package soloist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A note that comes while a checkpoint is saved is kept.
func TestANoteDuringASave(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 0)
		job.Do = func(ctx context.Context, run *soloist.Run) error {
			_ = run.Heartbeat("page 6")
			go func() {
				time.Sleep(time.Second)
				_ = run.Heartbeat("page 7")
			}()
			_ = run.Save(ctx, 7)
			time.Sleep(3 * time.Minute)
			return nil
		}
		a := c.replica("a", job)
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "save" {
				time.Sleep(2 * time.Second)
			}
			return err
		})
		c.launch(a)
		time.Sleep(time.Hour + 150*time.Second)
		if got := c.record("work").Progress.Note; got != "page 7" {
			t.Errorf("the note is %q", got)
		}
	})
}

// A pause is on purpose: its ticks are no warnings.
func TestAPausedJobDoesNotWarn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("* * * * *", 0)
		job.Paused = true
		a := c.start("a", job)
		time.Sleep(10 * time.Minute)
		if n := len(a.log.lines("level=WARN")); n != 0 {
			t.Errorf("%d warnings", n)
		}
		if n := len(a.log.lines("level=INFO", "paused")); n == 0 {
			t.Error("the log does not say that ticks are skipped")
		}
	})
}

// A Scheduler that runs again owes no tick everywhere from the time between.
func TestASecondRunOwesNothingEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("0 * * * *", nil))
		for range 2 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
			_ = a.Run(ctx)
			cancel()
			time.Sleep(150 * time.Minute)
		}
		if n := len(c.all()); n != 0 {
			t.Errorf("%d runs", n)
		}
	})
}

// The error of a run that a stop has ended is kept.
func TestAStopKeepsTheErrorOfTheRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 0)
		job.Do = func(ctx context.Context, _ *soloist.Run) error {
			<-ctx.Done()
			return soloist.Permanent(errors.New("the ledger is corrupt"))
		}
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		if f := c.outcomes("work"); len(f) != 1 || !strings.Contains(f[0], "abandoned 01:00:00 stopped: the ledger is corrupt") {
			t.Errorf("outcomes: %q", f)
		}
		if len(a.log.lines("run ended", "the ledger is corrupt")) != 1 {
			t.Error("the log does not have the error")
		}
	})
}
