package soloist_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The run that is under way ends, or is let go of, and is neither tried again nor run again. It is no failure.
func TestCancel(t *testing.T) {
	for name, do := range map[string]func(context.Context) error{
		"obeys":         func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"ignores":       func(context.Context) error { time.Sleep(2 * time.Minute); return errors.New("too late") },
		"between tries": func(context.Context) error { return errors.New("boom") },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := rerun(work("@every 1h", 0))
			w.Retry = soloist.Retry{MaxTries: 3, PauseAfter: 1, Backoff: time.Minute}
			w.Do = func(ctx context.Context, _ *soloist.Run) error { return do(ctx) }
			c.startAll(w, "a", "b")
			time.Sleep(time.Hour + 20*time.Second)
			c.order(soloist.Order{Kind: store.OrderCancel, Reason: "wrong data"}, w)
			time.Sleep(9 * time.Second)
			all := c.all()
			c.wrong(name == "obeys" && !errors.Is(all[0].cause, soloist.ErrCancelled), "the context ended so: %v", all[0].cause)
			time.Sleep(10 * time.Minute)
			c.wantRuns(1)
			r := c.record("work")
			f := c.newest()
			c.wrong(f.Status != store.Cancelled || !strings.HasPrefix(f.Reason, "by anna: wrong data"), "got %+v", f)
			c.wrong(r.Failures != 0 || !r.Orders.Paused.At.IsZero(),
				"%d failures, and paused itself at %s", r.Failures, r.Orders.Paused.At)
		})
	}
}

// killHolder has two replicas run a tick of a job that is run again, and kills the holder. It returns the other one.
func (c *cluster) killHolder(w soloist.Job) *replica {
	all := c.startAll(w, "a", "b")
	until(time.Hour + 20*time.Second)
	first := c.all()[0].replica
	all[first].kill()
	return all[map[string]string{"a": "b", "b": "a"}[first]]
}

// leaseEnds is when the lease lasts a moment longer of a holder that killHolder has killed.
func leaseEnds() { until(time.Hour + 29500*time.Millisecond) }

// The reads of the orders fail for a moment, when a further attempt is claimed.
func TestCancelOutlivesFailedReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		other := c.killHolder(w)
		leaseEnds()
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		other.tap.meet(fail(errNetwork, "read document"))
		time.Sleep(5 * time.Second)
		other.tap.meet(nil)
		time.Sleep(30 * time.Minute)
		c.wantRuns(1)
		f := c.newest()
		c.wrong(f.Status != store.Cancelled, "got %+v", f)
	})
}

// The lease ends between the operator's read of the record and the order.
func TestCancelOfAttemptThatBegins(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		c.killHolder(w)
		leaseEnds()
		desk := c.replica("desk", w).meets(onNth("write document", 1, func(apply func() error) error {
			for len(c.all()) < 2 { // until the next attempt has begun
				time.Sleep(100 * time.Millisecond)
			}
			return apply()
		}))
		err := desk.orders(store.OrderCancel)
		time.Sleep(30 * time.Minute)
		f := c.newest()
		c.wrong(err != nil || f.Status != store.Cancelled, "got %+v, %v", f, err)
	})
}

// The claim of the next attempt is on its way while an operator cancels: its replica has read the orders before, and the
// operator sees the attempt before.
func TestCancelOfTickWhoseClaimIsOnItsWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 10*time.Minute))
		a := c.start("a", w)
		until(time.Hour + 20*time.Second)
		a.kill()
		c.launch(c.replica("b", w).meets(onNth("write", 1, func(apply func() error) error {
			time.Sleep(500 * time.Millisecond)
			c.order(soloist.Order{Kind: store.OrderCancel, Reason: "wrong data"}, w)
			time.Sleep(1500 * time.Millisecond)
			return apply()
		})))
		time.Sleep(30 * time.Minute)
		c.wantOutcomes("work", "cancelled 01:00:00 by anna: wrong data")
	})
}

// A tick waits for another attempt until a pause is over, and is given up meanwhile.
func TestCancelOfWaitingAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 5*time.Minute))
		a := c.start("a", w)
		until(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.kill()
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(time.Minute)
		f := c.newest()
		c.wrong(f.Status != store.Cancelled, "got %+v", f)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(1)
	})
}

// A run that has lost its lease returns late, after a manual run of the same replica was claimed.
// The return does not change the state of the newer run: it is not stuck, and can still be cancelled.
func TestRunByHandCanBeCancelledAfterOlderRunReturns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var runs atomic.Int64
		w := work("@hourly", 0)
		w.Do = func(ctx context.Context, _ *soloist.Run) error {
			if runs.Add(1) == 1 {
				time.Sleep(5 * time.Minute) // it does not look at its context
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		a := c.start("a", w)
		until(time.Hour + 10*time.Second)
		if err := a.Unlock(c.t.Context(), "work", true); err != nil {
			c.t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := a.RunNow(c.within(20*time.Minute), "work", "x")
			done <- err
		}()
		until(time.Hour + 8*time.Minute)
		c.wantRuns(2)
		h := a.Health()
		c.wrong(len(h.Running) != 1 || len(h.Stuck) > 0, "Health: %+v", h)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(30 * time.Second)
		got := c.newest()
		c.wrong(got.Status != store.Cancelled || got.Request != "x", "got %+v, want that the manual run is cancelled", got)
		c.ok(<-done)
	})
}
