package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
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
			c.order(soloist.Order{Kind: soloist.OrderCancel, Reason: "wrong data"}, w)
			time.Sleep(9 * time.Second)
			all := c.all()
			c.wrong(name == "obeys" && !errors.Is(all[0].cause, soloist.ErrCancelled), "the context ended so: %v", all[0].cause)
			time.Sleep(10 * time.Minute)
			c.wantRuns(1)
			r := c.record("work")
			f := c.newest()
			c.wrong(f.Status != event.Cancelled || !strings.HasPrefix(f.Reason, "by anna: wrong data"), "got %+v", f)
			c.wrong(r.Failures != 0 || !r.Orders.Paused.At.IsZero(),
				"%d failures, and paused itself at %s", r.Failures, r.Orders.Paused.At)
		})
	}
}

// killHolder has two replicas run a tick of a job that is run again, and kills the holder, whose lease lasts a moment longer
// then. It returns the other one.
func (c *cluster) killHolder(w soloist.Job) *replica {
	all := c.startAll(w, "a", "b")
	until(time.Hour + 20*time.Second)
	first := c.all()[0].replica
	all[first].kill()
	until(time.Hour + 29500*time.Millisecond)
	return all[map[string]string{"a": "b", "b": "a"}[first]]
}

// The run has died. The order to cancel meets the next attempt, whatever of that is under way.
func TestCancelOfNextAttempt(t *testing.T) {
	w, cancel := rerun(work("@every 1h", 10*time.Minute)), soloist.Order{Kind: soloist.OrderCancel}
	for name, tt := range map[string]struct {
		cancels func(c *cluster)
		runs    int
	}{
		"the reads of the orders fail for a moment, when it is claimed": {func(c *cluster) {
			other := c.killHolder(w)
			c.order(cancel, w)
			other.meets(fail(errNetwork, "read document"))
			time.Sleep(5 * time.Second)
			other.meets(nil)
		}, 1},
		"the lease ends between the operator's read of the record and the order": {func(c *cluster) {
			c.killHolder(w)
			c.ok(c.replica("desk", w).meets(onNth("write document", 1, func(apply func() error) error {
				for len(c.all()) < 2 { // until the next attempt has begun
					time.Sleep(100 * time.Millisecond)
				}
				return apply()
			})).orders(soloist.OrderCancel))
		}, 2},
		// Its replica has read the orders before, and the operator sees the attempt before.
		"its claim is on its way": {func(c *cluster) {
			a := c.start("a", w)
			until(time.Hour + 20*time.Second)
			a.kill()
			c.launch(c.replica("b", w).meets(onNth("write", 1, func(apply func() error) error {
				time.Sleep(500 * time.Millisecond)
				c.order(cancel, w)
				time.Sleep(1500 * time.Millisecond)
				return apply()
			})))
		}, 2},
		"it waits for the end of a pause": {func(c *cluster) {
			a := c.start("a", w)
			until(time.Hour + time.Minute)
			c.order(soloist.Order{Kind: soloist.OrderPause}, w)
			a.kill()
			c.start("b", w)
			time.Sleep(5 * time.Minute)
			c.order(cancel, w)
			time.Sleep(time.Minute)
			c.wantOutcomes("work", "cancelled 01:00:00 by anna")
			c.order(soloist.Order{Kind: soloist.OrderResume}, w)
		}, 1},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			tt.cancels(c)
			time.Sleep(30 * time.Minute)
			c.wrong(c.newest().Status != event.Cancelled, "got %+v", c.newest())
			c.wrong(len(c.all()) > tt.runs, "%d runs, want %d at most", len(c.all()), tt.runs)
		})
	}
}

// A run that has lost its lease returns late, after a manual run of the same replica was claimed.
// The return does not change the state of the newer run: it is not stuck, and can still be cancelled.
func TestRunByHandCanBeCancelledAfterOlderRunReturns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Request == "" {
				time.Sleep(5 * time.Minute) // it does not look at its context
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		a := c.start("a", w)
		until(time.Hour + 10*time.Second)
		c.ok(a.Unlock(c.t.Context(), "work", true))
		done := a.runsNow(c.within(20 * time.Minute))
		until(time.Hour + 8*time.Minute)
		c.wantRuns(2)
		h := a.Health()
		c.wrong(len(h.Running) != 1 || len(h.Stuck) > 0, "Health: %+v", h)
		c.order(soloist.Order{Kind: soloist.OrderCancel}, w)
		time.Sleep(30 * time.Second)
		got := c.newest()
		c.wrong(got.Status != event.Cancelled || got.Request != "x", "got %+v, want that the manual run is cancelled", got)
		<-done
	})
}
