package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// failsUntil is a job that fails in the first part of the day.
func failsUntil(end time.Duration) func(context.Context, *soloist.Run) error {
	return func(context.Context, *soloist.Run) error {
		if sinceMidnight() < end {
			return errors.New("boom")
		}
		return nil
	}
}

func TestPauseAfterFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, bad := work("@every 1m", time.Second), true
		w.Retry.PauseAfter = 3
		w.Do = func(context.Context, *soloist.Run) error {
			if bad {
				return errors.New("boom")
			}
			return nil
		}
		c.startAll(w, "a", "b")
		time.Sleep(10*time.Minute + 30*time.Second)
		c.wantRuns(3)
		if r := c.record("work"); r.Orders.Paused.At.IsZero() || r.Failures != 3 {
			t.Errorf("paused %+v after %d failures", r.Orders.Paused, r.Failures)
		}
		// Three more failures pause it again, though it has six in a row by then.
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(6)
		bad = false
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(2 * time.Minute)
		c.wantRuns(8)
		if r := c.record("work"); !r.Orders.Paused.At.IsZero() || r.Failures != 0 || r.Orders.Spared != 0 {
			t.Errorf("paused %+v, %d failures, %d spared", r.Orders.Paused, r.Failures, r.Orders.Spared)
		}
	})
}

// A resume that comes while the run is under way which then is one failure too many does not
// resume what that failure pauses.
func TestResumeDuringFailure(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 1
		w.Do = func(ctx context.Context, _ *soloist.Run) error {
			return errors.Join(pause(ctx, 30*time.Second), errors.New("boom"))
		}
		c.start("a", w)
		time.Sleep(70 * time.Second)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(5 * time.Minute)
		c.wantRuns(1)
	})
}

// A second resume does not move the end of a pause that is over.
func TestSecondResumeChangesNothing(t *testing.T) {
	for name, tt := range map[string]struct{ twice, byHand bool }{
		"once":                               {},
		"twice":                              {twice: true},
		"twice, and a manual run in between": {twice: true, byHand: true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 24h", time.Second)
			w.Retry.PauseAfter = 1
			w.Do = failsUntil(30 * time.Hour)
			a := c.start("a", w)
			until(24*time.Hour + time.Minute)
			a.stop() // scaled to zero, or a deploy that fails
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			until(48*time.Hour + 10*time.Minute)
			if tt.byHand {
				if _, err := c.replica("hand", w).RunNow(c.t.Context(), "work", "x"); err != nil {
					t.Error(err)
				}
			}
			if tt.twice { // "why has it not run?"
				c.order(soloist.Order{Kind: store.OrderResume}, w)
			}
			until(48*time.Hour + 20*time.Minute)
			c.start("b", w)
			time.Sleep(time.Minute)
			got := c.outcomes("work")
			if last := got[len(got)-1]; got[0] != "failed 00:00:00 boom" || last != "succeeded 00:00:00" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// plainStore hides all but the contract.
type plainStore struct{ store.Store }

// Over a store without documents a job with PauseAfter is refused, since it could never be resumed.
func TestPauseAfterNeedsOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 1
		w.Do = failsUntil(5 * time.Minute)
		a := c.replica("a", w)
		a.Store = plainStore{a.tap}
		if err := a.Validate(); err != nil {
			t.Log("refused: ", err)
			return
		}
		c.launch(a)
		until(10 * time.Minute)
		_, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderResume, Job: "work"})
		t.Log("resume:", err)
		until(30 * time.Minute)
		if n := len(c.all()); n < 2 {
			t.Errorf("%d runs: it stops for ever", n)
		}
	})
}

// A tick that has stalled and is past its starting deadline counts for PauseAfter.
func TestPauseAfterStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 10m", 0))
		w.Retry.PauseAfter, w.StartingDeadline, w.HeartbeatTimeout = 1, 10*time.Second, 20*time.Second
		w.Do = func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
		c.start("a", w)
		until(65 * time.Minute)
		c.wantRuns(1)
	})
}

// A job with old failures, for which PauseAfter is new, does not pause itself after a run that is no failure.
func TestPauseAfterCountsFailuresAlone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Do = func(context.Context, *soloist.Run) error { return errors.New("boom") }
		a := c.start("a", w)
		until(5*time.Minute + 30*time.Second)
		a.stop()
		w.Retry.PauseAfter = 3
		w.Do = func(_ context.Context, r *soloist.Run) error { return soloist.Skip("nothing to do") }
		c.start("b", w)
		until(10*time.Minute + 30*time.Second)
		if p := c.record("work").Orders.Paused; !p.At.IsZero() {
			t.Errorf("paused itself after a run that did not fail: %v", c.outcomes("work"))
		}
	})
}

// A deleted document does not pause a job again that was resumed: the first replica that reads
// the resume notes it in the record.
func TestResumeOutlivesDocument(t *testing.T) {
	for name, after := range map[string]time.Duration{"in the pause": 10 * time.Minute, "after its ticks": 130 * time.Minute} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", 0)
			w.Retry.PauseAfter = 1
			w.Do = failsUntil(90 * time.Minute)
			c.startAll(w, "a", "b")
			until(time.Hour + after)
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			time.Sleep(10 * time.Second)
			if err := c.store.Delete(c.t.Context(), store.ControlName("soloist")); err != nil {
				t.Fatal(err)
			}
			until(5*time.Hour + time.Minute)
			want := []string{"failed 01:00:00 boom", "succeeded 02:00:00", "succeeded 03:00:00", "succeeded 04:00:00", "succeeded 05:00:00"}
			if after > time.Hour {
				want = append([]string{want[0], "skipped 01:00:00-03:00:00 paused"}, want[3:]...)
			}
			c.wantOutcomes("work", want...)
		})
	}
}

// A run that is settled by another replica as one failure too many pauses the job before its
// next tick, which is due by then.
func TestPauseAfterStallThatAnotherReplicaSettles(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 10m", 0))
		w.Retry.PauseAfter, w.StartingDeadline, w.HeartbeatTimeout = 1, 10*time.Second, 20*time.Second
		w.Do = func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
		a := c.start("a", w)
		until(10*time.Minute + 15*time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && c.record("work").Run.Status == store.Stalled {
				a.kill()
			}
			return err
		})
		until(20*time.Minute + 5*time.Second)
		a.stop()
		c.start("b", w)
		until(45 * time.Minute)
		c.wantRuns(1)
		c.wantOutcomes("work", "stalled 00:10:00 not run again: the starting deadline has passed")
	})
}
