package soloist_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestCancel(t *testing.T) {
	for name, do := range map[string]func(context.Context) error{
		"obeys":   func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"ignores": func(context.Context) error { time.Sleep(2 * time.Minute); return errors.New("too late") },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", 0)
			w.Interrupted, w.Retry.MaxTries, w.Retry.PauseAfter = soloist.Rerun, 3, 1
			w.Do = func(ctx context.Context, _ *soloist.Run) error { return do(ctx) }
			c.startAll(w, "a", "b")
			time.Sleep(time.Hour + 20*time.Second)
			c.order(soloist.Order{Kind: store.OrderCancel, Reason: "wrong data"}, w)
			time.Sleep(9 * time.Second)
			all := c.all()
			if name == "obeys" && !errors.Is(all[0].cause, soloist.ErrCancelled) {
				t.Errorf("the context ended so: %v", all[0].cause)
			}
			time.Sleep(10 * time.Minute)
			c.wantRuns(1)
			r := c.record("work")
			if f := c.newest(); f.Status != store.Cancelled || !strings.HasPrefix(f.Reason, "by anna: wrong data") || r.Failures != 0 || !r.Orders.Paused.At.IsZero() {
				t.Errorf("got %+v, %d failures", f, r.Failures)
			}
		})
	}
}

// A cancellation comes between two tries too.
func TestCancelBetweenTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		w.Retry = soloist.Retry{MaxTries: 3, Backoff: time.Minute}
		w.Do = func(context.Context, *soloist.Run) error { return errors.New("boom") }
		c.start("a", w)
		time.Sleep(time.Hour + 10*time.Second)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(1)
		if f := c.newest(); f.Status != store.Cancelled {
			t.Errorf("got %+v", f)
		}
	})
}

func TestOrderedStepDown(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.startAll(leader(), "a", "b")
		time.Sleep(time.Minute)
		first := c.all()[0].replica
		c.order(soloist.Order{Kind: store.OrderStepDown, Job: "lead"}, leader())
		time.Sleep(time.Minute)
		all := c.all()
		if len(all) != 2 || all[1].replica == first || !errors.Is(all[0].cause, soloist.ErrStopped) {
			t.Errorf("got %+v", all)
		}
	})
}

// A cancellation is for one run: the next tick runs on.
func TestCancelIsForOneRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 40*time.Second)
		c.start("a", w)
		time.Sleep(65 * time.Second)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(2 * time.Minute)
		c.wantOutcomes("work", "cancelled 00:01:00 by anna", "succeeded 00:02:00")
	})
}

// A step-down does not hide a cancellation that the holder has not read yet.
func TestStepDownHidesNoCancel(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		c.startAll(w, "a", "b")
		until(time.Hour + 22*time.Second) // between two reads of the holder
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderStepDown, Job: "work"})
		t.Log(err) // a refusal is as good as an order that changes nothing
		time.Sleep(30 * time.Minute)
		c.wantRuns(1)
		if f := c.newest(); f.Status != store.Cancelled {
			t.Errorf("got %+v", f)
		}
	})
}

// Nor one that another attempt has to read which has begun since.
func TestStepDownOfNextAttemptHidesNoCancel(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		a := c.start("a", w)
		until(time.Hour + 20*time.Second)
		a.kill()
		c.launch(c.replica("b", w).meets(c.cancelledMeanwhile("wrong data", w)))
		for len(c.all()) < 2 {
			time.Sleep(100 * time.Millisecond)
		}
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderStepDown, Job: "work"})
		if !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("the step-down: %v", err)
		}
		time.Sleep(30 * time.Minute)
		c.wantOutcomes("work", "cancelled 01:00:00 by anna: wrong data")
	})
}

// A tick whose claim was given up is cancelled, but first a manual run takes place, and is cancelled too.
func TestCancelOfManualRunHidesNoCancel(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 10*time.Minute)
		w.Missed = soloist.RunAll
		c.replica("first", w).wake()
		until(time.Hour - time.Second)
		c.stopDuringAClaim(w)
		time.Sleep(5 * time.Second)
		manual, over := c.replica("manual", w).meets(c.cancelledMeanwhile("the tick", w)), make(chan error)
		go func() {
			_, err := manual.RunNow(c.within(time.Hour), "work", "x")
			over <- err
		}()
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderCancel, Reason: "the run"}, w)
		if err := <-over; err != nil {
			t.Error(err)
		}
		c.replica("next", w).wake()
		c.wantOutcomes("work", "cancelled 01:00:05 by anna: the run", "cancelled 01:00:00 by anna: the tick")
	})
}

// cancelledMeanwhile has an operator cancel a job while the first write of a replica is under way.
func (c *cluster) cancelledMeanwhile(reason string, work ...soloist.Work) fault {
	done := false
	return func(op string, apply func() error) error {
		if op == "write" && !done {
			done = true
			c.order(soloist.Order{Kind: store.OrderCancel, Reason: reason}, work...)
		}
		return apply()
	}
}

// A run whose replica dies before it has read the cancellation is not run again.
func TestCancelOutlivesDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		all := c.startAll(w, "a", "b")
		until(time.Hour + 22*time.Second) // between two reads of the holder
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		first := all[c.all()[0].replica]
		first.kill()
		first.stop()
		time.Sleep(30 * time.Minute)
		c.wantRuns(1)
	})
}

// A cancelled run that ignores its context until its process is killed is not run again.
func TestCancelOutlivesKill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 0))
		w.Do = func(context.Context, *soloist.Run) error { time.Sleep(5 * time.Minute); return errors.New("late") }
		all := c.startAll(w, "a", "b")
		until(time.Hour + 22*time.Second) // between two reads of the holder
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(time.Minute)
		first := all[c.all()[0].replica]
		first.kill()
		time.Sleep(20 * time.Minute)
		c.wantRuns(1)
		first.stop()
	})
}

// A run whose replica is stopped before it has read the cancellation is not run again.
func TestCancelOutlivesStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		all := c.startAll(w, "a", "b")
		until(time.Hour + 22*time.Second) // between two reads of the holder
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		all[c.all()[0].replica].stop()
		time.Sleep(30 * time.Minute)
		c.wantRuns(1)
	})
}
