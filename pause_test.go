package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The ticks of a pause are skipped whatever Missed is, however the pause ends, and also if no replica is up in it. A pause until
// the time of a tick lets that tick run.
func TestPause(t *testing.T) {
	for name, tt := range map[string]struct {
		missed soloist.MissedPolicy
		ends   bool // by itself: no operator resumes the job
		down   bool // no replica is up in the pause
	}{
		"latest":           {missed: soloist.RunLatest},
		"all":              {missed: soloist.RunAll},
		"skip":             {missed: soloist.SkipMissed},
		"ends by itself":   {ends: true},
		"no replica is up": {down: true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			w.Missed = tt.missed
			c.startAll(w, "a", "b")
			until(90 * time.Second)
			o := soloist.Order{Kind: store.OrderPause, Reason: "wrong data"}
			if tt.ends {
				o.Until = time.Now().Add(4*time.Minute + 30*time.Second)
			}
			c.order(o, w)
			if tt.down {
				c.stopAll()
			}
			until(5*time.Minute + 30*time.Second)
			c.wantRuns(1)
			if !tt.ends {
				c.order(soloist.Order{Kind: store.OrderResume}, w)
			}
			if tt.down {
				c.start("c", w)
			}
			time.Sleep(time.Minute)
			c.wantOutcomes("work", "succeeded 00:01:00", "skipped 00:01:00-00:05:00 paused", "succeeded 00:06:00")
		})
	}
}

// A pause while a claim is written keeps the run from beginning, and gives the tick back. No log says that the run has started,
// and a call that has kept to the pause returns no error.
func TestPauseDuringClaim(t *testing.T) {
	for _, name := range []string{"up", "woken"} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			a := c.replica("a", w)
			a.tap.meet(onNth("write", 1, func(apply func() error) error {
				err := apply()
				return errors.Join(err, a.orders(store.OrderPause))
			}))
			if name == "up" {
				c.launch(a)
			} else {
				a.wake()
				until(time.Minute)
				a.wake()
			}
			until(3*time.Minute + 30*time.Second)
			c.wantRuns(0)
			a.wantLines(0, "run started")
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			until(4*time.Minute + time.Second)
			if name == "woken" {
				a.wake()
			}
			time.Sleep(10 * time.Second)
			c.wantOutcomes("work", "missed 00:01:00 a newer one was due", "skipped 00:01:00-00:03:00 paused", "succeeded 00:04:00")
		})
	}
}

// A job of EveryReplica is paused by the orders that were read last. A replica that starts reads them first. A pause until the
// time of a tick lets that tick run.
func TestPauseEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("* * * * * *", nil)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here", Until: time.Now().Add(time.Hour + 2*time.Minute)}, w)
		until(time.Hour + 500*time.Millisecond)
		a := c.start("a", w)
		time.Sleep(10 * time.Second)
		a.tap.meet(fail(errNetwork))
		time.Sleep(time.Minute)
		a.tap.meet(nil)
		until(time.Hour + 2*time.Minute - 500*time.Millisecond)
		c.wantRuns(0)
		time.Sleep(time.Second)
		c.wantRuns(1)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		time.Sleep(10 * time.Second)
		n := len(c.all())
		time.Sleep(time.Minute)
		c.wantRuns(n)
		c.order(soloist.Order{Kind: store.OrderResume, Job: "here"}, w)
		time.Sleep(10 * time.Second)
		a.tap.meet(fail(errNetwork))
		n = len(c.all())
		time.Sleep(time.Minute)
		c.wantRuns(n + 60)
	})
}

// A machine sleeps while a job of EveryReplica is paused.
func TestPauseEverywhereAfterSleep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, m := here("* * * * * *", nil), &suspended{}
		a := c.replica("a", w).on(m)
		a.Now = func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
		c.launch(a)
		time.Sleep(61500 * time.Millisecond)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		n := len(c.all())
		m.slept.Add(int64(time.Hour))
		time.Sleep(time.Minute)
		c.wantRuns(n)
	})
}

// The store answers each read of the orders just within its time, and no tick waits for one. A
// pause is confirmed just after one was served.
func TestPauseEverywhereWithSlowReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, served := here("* * * * * *", nil), make(chan struct{})
		c.launch(c.replica("a", w).meets(after("read document", func() {
			select {
			case served <- struct{}{}:
			default:
			}
			time.Sleep(2900 * time.Millisecond)
		})))
		time.Sleep(time.Minute)
		<-served
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		paused := time.Now()
		time.Sleep(time.Minute)
		for _, r := range c.all() {
			if late := r.start.Sub(paused); late > 8*time.Second {
				t.Errorf("a run starts %s after the pause was confirmed", late)
			}
			if late := r.start.Sub(r.Tick); late > 100*time.Millisecond && r.Tick.After(paused.Add(-30*time.Second)) {
				t.Errorf("%s starts %s late", r.ID(), late)
			}
		}
	})
}

// While a job is paused, its status and the report of a call have its next tick in the future, so that a caller who waits for it
// rests.
func TestNextOfPausedJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		until(5*time.Hour + time.Minute)
		all, err := a.Status(c.t.Context())
		if err != nil || !all[0].Next.After(time.Now()) {
			t.Errorf("the status at %s: %+v, %v", time.Now(), all, err)
		}
		if r, err := c.replica("woken", w).RunDue(c.t.Context(), soloist.Wake{}); err != nil || !r.Next.After(time.Now()) {
			t.Errorf("the report at %s: %+v, %v", time.Now(), r, err)
		}
	})
}

// failsUntil fails in the first part of the day.
func failsUntil(end time.Duration) func(context.Context, *soloist.Run) error {
	return func(context.Context, *soloist.Run) error {
		if sinceMidnight() < end {
			return errors.New("boom")
		}
		return nil
	}
}

// A job pauses itself after failures in a row, counted from the last resume on.
func TestPauseAfterFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 3
		w.Do = failsUntil(20 * time.Minute)
		c.startAll(w, "a", "b")
		until(10*time.Minute + 30*time.Second)
		c.wantRuns(3)
		if r := c.record("work"); r.Orders.Paused.At.IsZero() || r.Failures != 3 {
			t.Errorf("paused %+v after %d failures", r.Orders.Paused, r.Failures)
		}
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		until(20*time.Minute + 30*time.Second)
		c.wantRuns(6) // it has six failures in a row by then
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

// A second resume does not move the end of a pause that is over: the newest tick since is run.
func TestSecondResumeChangesNothing(t *testing.T) {
	for name, byHand := range map[string]bool{"twice": false, "twice, and a manual run in between": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 24h", time.Second)
			w.Retry.PauseAfter = 1
			w.Do = failsUntil(30 * time.Hour)
			a := c.start("a", w)
			until(24*time.Hour + time.Minute)
			a.stop() // scaled to zero, or a deploy that fails
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			until(48*time.Hour + 10*time.Minute)
			if byHand {
				if _, err := c.replica("hand", w).RunNow(c.t.Context(), "work", "x"); err != nil {
					t.Error(err)
				}
			}
			c.order(soloist.Order{Kind: store.OrderResume}, w) // since the job has not run
			time.Sleep(10 * time.Minute)
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
		a := c.replica("a", w)
		a.Store = plainStore{a.tap}
		wantError(t, a.Validate(), "PauseAfter", "nothing could resume the job")
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
