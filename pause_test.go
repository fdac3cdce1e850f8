package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestPause(t *testing.T) {
	for name, job := range map[string]func(*soloist.Job){
		"latest": func(*soloist.Job) {},
		"all":    func(j *soloist.Job) { j.Missed = soloist.RunAll },
		"skip":   func(j *soloist.Job) { j.Missed = soloist.SkipMissed },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			job(&w)
			c.startAll(w, "a", "b")
			time.Sleep(90 * time.Second)
			c.order(soloist.Order{Kind: store.OrderPause, Reason: "wrong data"}, w)
			time.Sleep(4 * time.Minute)
			c.wantRuns(1)
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			time.Sleep(time.Minute)
			c.wantOutcomes("work", "succeeded 00:01:00", "skipped 00:01:00-00:05:00 paused", "succeeded 00:06:00")
		})
	}
}

// A pause that began and ended while no replica was up binds its ticks all the same.
func TestPauseWithoutReplicas(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		c.replica("first", w).wake()
		time.Sleep(11 * time.Minute)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		time.Sleep(15 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(time.Minute)
		c.replica("second", w).wake()
		time.Sleep(4 * time.Minute)
		c.replica("third", w).wake()
		c.wantOutcomes("work", "succeeded 00:10:00", "skipped 00:20:00 paused", "succeeded 00:30:00")
	})
}

func TestPauseEndsByItself(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		c.start("a", w)
		time.Sleep(70 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(2 * time.Minute)}, w)
		time.Sleep(3*time.Minute + 10*time.Second)
		c.wantOutcomes("work", "succeeded 00:01:00", "skipped 00:01:00-00:03:00 paused", "succeeded 00:04:00")
	})
}

// A tick that waits for another attempt waits for the end of the pause, and is not given up.
func TestPauseKeepsAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 5*time.Minute)
		w.Interrupted = soloist.Rerun
		a := c.start("a", w)
		time.Sleep(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.kill()
		a.stop()
		c.start("b", w)
		time.Sleep(10 * time.Minute)
		c.wantRuns(1)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(6 * time.Minute)
		if all := c.all(); len(all) != 2 || all[1].Attempt != 2 {
			t.Errorf("got %+v", all)
		}
		c.wantOutcomes("work", "succeeded 01:00:00")
	})
}

// pauseDuringClaim pauses the job when its first claim is written and the answer is under way.
func (r *replica) pauseDuringClaim(t *testing.T) {
	ordered := false
	r.tap.meet(func(op string, apply func() error) error {
		err := apply()
		if op == "write" && !ordered {
			ordered = true
			if _, err := r.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"}); err != nil {
				t.Error(err)
			}
		}
		return err
	})
}

// wantNoneMissed fails the test if the record says of a tick that it was missed.
func (c *cluster) wantNoneMissed() {
	c.t.Helper()
	for _, f := range c.record("work").History {
		if f.Status == store.Missed {
			c.t.Errorf("missed %s-%s: %s", f.From.Format("15:04:05"), f.Tick.Format("15:04:05"), f.Reason)
		}
	}
}

// A pause while a claim is written keeps the run from beginning, and gives the tick back.
func TestPauseDuringClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.replica("a", w)
		a.pauseDuringClaim(t)
		c.launch(a)
		time.Sleep(3*time.Minute + 30*time.Second)
		c.wantRuns(0)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(time.Minute)
		c.wantOutcomes("work", "missed 00:01:00 a newer one was due", "skipped 00:01:00-00:03:00 paused", "succeeded 00:04:00")
	})
}

// A job of EveryReplica is paused by the orders that were read last.
func TestPauseEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("@every 1m", nil)
		a := c.start("a", w)
		time.Sleep(70 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		time.Sleep(10 * time.Second)
		a.tap.meet(fail(errNetwork))
		time.Sleep(2 * time.Minute)
		c.wantRuns(1)
		a.tap.meet(nil)
		c.order(soloist.Order{Kind: store.OrderResume, Job: "here"}, w)
		time.Sleep(time.Minute)
		c.wantRuns(2)
		a.tap.meet(fail(errNetwork))
		time.Sleep(2 * time.Minute)
		c.wantRuns(4)
	})
}

// A replica that starts reads the orders before a job of EveryReplica runs on it.
func TestPauseEverywhereAtStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("* * * * * *", nil)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		time.Sleep(time.Hour + 500*time.Millisecond)
		c.start("a", w)
		time.Sleep(time.Minute)
		c.wantRuns(0)
	})
}

// The ticks of a pause are skipped also if a further attempt of an older tick follows it.
func TestPauseBeforeAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1m", 90*time.Second))
		w.Do = func(ctx context.Context, r *soloist.Run) error { return pause(ctx, 90*time.Second) }
		a := c.start("a", w)
		time.Sleep(65 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.stop()
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(2 * time.Minute)
		c.wantNoneMissed()
	})
}

// The ticks of a pause are skipped also if another schedule is deployed during it.
func TestPauseOutlivesSchedule(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(65 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		time.Sleep(10 * time.Minute)
		a.stop()
		w2 := work("@every 2m", time.Second)
		c.start("b", w2)
		time.Sleep(5 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w2)
		time.Sleep(3 * time.Minute)
		c.wantNoneMissed()
	})
}

// A pause until the time of a tick lets that tick run.
func TestPauseUntilTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, h := work("@every 1h", time.Second), here("@every 1h", nil)
		c.start("a", w, h)
		until(90 * time.Minute)
		end := time.Now().Add(30 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause, Until: end}, w, h)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here", Until: end}, w, h)
		until(150 * time.Minute)
		n := map[string]int{}
		for _, r := range c.all() {
			n[r.Job]++
		}
		if n["work"] != n["here"] {
			t.Errorf("ran %v", n)
		}
	})
}

// Report.Next is in the future while a job is paused, so that a caller who waits for it rests.
func TestNextOfPausedJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.replica("a", w)
		a.wake()
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		until(3 * time.Hour)
		calls := 0
		for sinceMidnight() < 4*time.Hour && calls < 1000 {
			r, _ := a.RunDue(c.t.Context(), soloist.Wake{})
			if calls++; calls == 1 {
				t.Log("next", r.Next, "now", time.Now())
			}
			time.Sleep(time.Until(r.Next))
		}
		if calls > 100 {
			t.Errorf("%d calls in an hour", calls)
		}
	})
}

// A call that has kept to a pause returns no error.
func TestPauseDuringClaimIsNoError(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.replica("a", w)
		a.wake()
		until(time.Hour)
		a.pauseDuringClaim(t)
		if r, err := a.RunDue(c.within(time.Minute), soloist.Wake{}); err != nil {
			t.Error(r, err)
		}
	})
}

// The status of a paused job has its next tick in the future.
func TestStatusOfPausedJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		until(5*time.Hour + time.Minute)
		st, _ := a.Status(c.t.Context())
		if !st[0].Next.After(time.Now()) {
			t.Errorf("next %s at %s", st[0].Next, time.Now())
		}
	})
}

// A run that a pause has kept from beginning is not logged as started.
func TestBarredRunIsNotTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.replica("a", w)
		a.pauseDuringClaim(t)
		c.launch(a)
		until(90 * time.Second)
		if l := a.log.lines("run started"); len(l) > 0 {
			t.Errorf("%q", l)
		}
	})
}

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
