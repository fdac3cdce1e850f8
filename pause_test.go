package soloist_test

import (
	"context"
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
