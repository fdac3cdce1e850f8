package soloist_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The second call with a request returns the outcome that the first one did.
func TestTheSecondCallOfARequestTellsTheSameFate(t *testing.T) {
	long := strings.Repeat("why ", 60)
	for name, tt := range map[string]struct {
		do     func(context.Context, *soloist.Run) error
		status store.Status
		reason string
	}{
		"skipped":   {func(context.Context, *soloist.Run) error { return soloist.Skip("nothing to do") }, store.Skipped, "nothing to do"},
		"failed":    {func(context.Context, *soloist.Run) error { return errors.New(long) }, store.Failed, long},
		"stopped":   {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }, store.Abandoned, "out of time, stopped"},
		"succeeded": {nil, store.Succeeded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("@hourly", 0)
				job.Do = tt.do
				a := c.replica("a", job)
				ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
				defer cancel()
				for call, ctx := range []context.Context{ctx, c.t.Context()} {
					f, err := a.RunNow(ctx, "work", "x")
					if err != nil || f.Status != tt.status || f.Reason != tt.reason {
						t.Errorf("call %d: got %s %q, %v", call+1, f.Status, f.Reason, err)
					}
				}
			})
		})
	}
}

// A run by hand that stalled has that outcome, also once its lease has expired and
// it has not returned.
func TestARequestThatStalledHasStalled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.HeartbeatTimeout = 2 * time.Second
		job.Do = func(context.Context, *soloist.Run) error { time.Sleep(20 * time.Minute); return nil }
		a, b := c.replica("a", job), c.replica("b", job)
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(5 * time.Minute)
		f, err := b.RunNow(c.t.Context(), "work", "x")
		if err != nil || f.Status != store.Stalled || !strings.Contains(f.Reason, "no heartbeat") {
			t.Errorf("got %s %q, %v: want that it stalled", f.Status, f.Reason, err)
		}
		<-done
	})
}

// A run by hand whose lease is lost before it begins has not run: the call says
// so, and does not return the outcome of a run that goes on.
func TestRunNowTellsOfAClaimThatDidNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		a := c.replica("a", work("@hourly", time.Second))
		a.Elapsed = machine.elapsed
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() { machine.slept.Add(int64(2 * D)) }})
		f, err := a.RunNow(c.t.Context(), "work", "x")
		if len(c.all()) != 0 {
			t.Fatal("it ran")
		}
		if !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "claimed and not run") {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// The store refuses the outcome: the call says that the run is over.
func TestRunNowTellsOfAnOutcomeThatWasRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 30*time.Second))
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
		defer cancel()
		time.AfterFunc(20*time.Second, a.kill)
		_, err := a.RunNow(ctx, "work", "x")
		if err == nil || !strings.Contains(err.Error(), "has run, and the outcome, ") || !strings.Contains(err.Error(), "not confirmed") {
			t.Errorf("after %d runs the error is %v", len(c.all()), err)
		}
	})
}

// Where each claim fails until the call ends, the call says why.
func TestRunNowTellsOfClaimsThatFailed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		full := errors.New("no space left on device")
		a := c.replica("a", work("@hourly", 0))
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" {
				return full
			}
			return apply()
		})
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
		defer cancel()
		_, err := a.RunNow(ctx, "work", "x")
		if !errors.Is(err, full) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

// The runner of a request is cut off for longer than its lease, and then writes its
// outcome: another call with the request is not told another one meanwhile.
func TestARequestHasOneOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.Lease = D
		job.Do = func(ctx context.Context, _ *soloist.Run) error {
			select {
			case <-ctx.Done(): // cut off, it still ends well
			case <-time.After(40 * time.Second):
			}
			return nil
		}
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Minute)
		done := make(chan struct{})
		var told, first store.Outcome
		go func() {
			defer close(done)
			var err error
			if first, err = a.RunNow(c.t.Context(), "work", "x"); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(2 * time.Second)
		a.tap.meet(func(string, func() error) error { return errors.New("connection reset") })
		time.Sleep(23 * time.Second) // the lease has ended, and nobody has taken it
		b.tap.meet(func(op string, apply func() error) error {
			if op == "acquire" {
				return errors.New("connection reset")
			}
			return apply()
		})
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		defer cancel()
		if f, err := b.RunNow(ctx, "work", "x"); err == nil {
			told = f
		}
		b.tap.meet(nil)
		a.tap.meet(nil)
		<-done
		history := c.record("work").History
		if len(history) != 1 || history[0].Status != first.Status || told.Status != "" && told.Status != first.Status {
			t.Errorf("told %q and %q, recorded %+v", told.Status, first.Status, history)
		}
	})
}

// The runner of a request is gone: a call with the same request writes the outcome,
// and does not run it again.
func TestARequestWhoseRunnerDiedIsNotRunAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.Lease = D
		job.Do = func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
		a := c.replica("a", job)
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(2 * time.Second)
		a.tap.meet(func(string, func() error) error { return errors.New("connection reset") })
		time.Sleep(time.Minute)
		job.Do = nil
		b := c.replica("b", job)
		for range 2 {
			f, err := b.RunNow(c.t.Context(), "work", "x")
			if err != nil || f.Status != store.Abandoned || f.Reason != "its runner died" {
				t.Errorf("got %s %q, %v", f.Status, f.Reason, err)
			}
		}
		<-done
		if r := c.record("work"); len(r.History) != 1 || r.History[0].Request != "x" || len(c.all()) != 1 {
			t.Errorf("recorded %+v, %d runs", r.History, len(c.all()))
		}
	})
}
