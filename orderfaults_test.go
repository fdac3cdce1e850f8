package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// hangDocs lets each read of the document take the whole time of its call, and fail.
func hangDocs() fault {
	return func(op string, apply func() error) error {
		if op == "read document" {
			time.Sleep(3 * time.Second)
			return errNetwork
		}
		return apply()
	}
}

func manyJobs(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, named(fmt.Sprintf("job%d", i), work("@every 1h", time.Second)))
	}
	return all
}

// A loop waits for the failed reads of all others: Health says that it is stuck.
func TestOutageOfOrdersSticksNoJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", manyJobs(80)...)
		c.launch(a)
		time.Sleep(time.Minute)
		a.tap.meet(hangDocs())
		worst := 0
		for range 600 {
			time.Sleep(time.Second)
			worst = max(worst, len(a.Health().Stuck))
		}
		if worst > 0 {
			t.Errorf("%d loops are stuck by Health", worst)
		}
	})
}

// Calls in an outage of the document that fails at once.
func TestOutageOfOrdersIsCheap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", manyJobs(100)...)
		c.launch(a)
		time.Sleep(time.Minute)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "read document" {
				time.Sleep(20 * time.Millisecond)
				return errNetwork
			}
			return apply()
		})
		a.tap.countsAndOrders()
		time.Sleep(time.Minute)
		_, n := a.tap.countsAndOrders()
		if n > 70 {
			t.Errorf("%d reads of the document in a minute", n)
		}
	})
}

// A call of RunDue: the jobs of EveryReplica, which need no store, wait for the failed reads of the others.
func TestOutageOfOrdersKeepsEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := manyJobs(40)
		for i := range 3 {
			all = append(all, named(fmt.Sprintf("here%d", i), here("@every 1h", nil)))
		}
		until(30 * time.Minute)
		a := c.replica("a", all...)
		a.wake()
		until(time.Hour)
		a.tap.meet(hangDocs())
		begin := time.Now()
		_, _ = a.RunDue(c.within(time.Minute), soloist.Wake{})
		t.Log("the call took", time.Since(begin))
		for _, r := range c.all() {
			t.Log(r.Job, "started after", r.start.Sub(begin))
			if r.start.Sub(begin) > 5*time.Second {
				t.Error("late")
			}
		}
		c.wantRuns(3)
	})
}

// A job of EveryReplica that has been paused for an hour runs on a replica that starts.
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

// An operator's machine has a slow clock.
func TestOrderWithSlowClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w).skewed(-2 * time.Hour)
		o, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "please"})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("at", o.At, "until", o.Until)
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Succeeded {
			t.Errorf("got %+v", f)
		}
	})
}

// An operator's machine has a fast clock.
func TestOrderWithFastClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w).skewed(2 * time.Hour)
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Error(err)
		}
	})
}

// A further attempt after a pause makes paused ticks missed.
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
		for _, f := range c.record("work").History {
			t.Logf("%s %s-%s %s n=%d", f.Status, f.From.Format("15:04:05"), f.Tick.Format("15:04:05"), f.Reason, f.Count)
			if f.Status == store.Missed {
				t.Error("ticks of a pause are missed")
			}
		}
	})
}

// A deploy with another schedule during a pause.
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
		for _, f := range c.record("work").History {
			t.Logf("%s %s-%s %s n=%d", f.Status, f.From.Format("15:04:05"), f.Tick.Format("15:04:05"), f.Reason, f.Count)
			if f.Status == store.Missed {
				t.Error("ticks of a pause are missed")
			}
		}
	})
}

// A pause until the time of a tick.
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
		for _, f := range c.record("work").History {
			t.Logf("%s %s %s", f.Status, f.Tick.Format("15:04:05"), f.Reason)
		}
	})
}

// A second resume moves the end of a pause that was over.
func TestSecondResumeChangesNothing(t *testing.T) {
	for name, twice := range map[string]bool{"once": false, "twice": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 24h", time.Second)
			w.Retry.PauseAfter = 1
			w.Do = func(context.Context, *soloist.Run) error {
				if sinceMidnight() < 30*time.Hour {
					return errors.New("boom")
				}
				return nil
			}
			a := c.start("a", w)
			until(24*time.Hour + time.Minute)
			a.stop() // scaled to zero, or a deploy that fails
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			until(48*time.Hour + 10*time.Minute)
			if twice { // "why has it not run?"
				c.order(soloist.Order{Kind: store.OrderResume}, w)
			}
			until(48*time.Hour + 20*time.Minute)
			c.start("b", w)
			time.Sleep(time.Minute)
			c.wantOutcomes("work", "failed 00:00:00 boom", "succeeded 00:00:00")
		})
	}
}

// A step-down after a cancellation, before the holder has read it.
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

// One request, by hand and by order.
func TestRequestRunsOnceByHandOrOrder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute)
		if _, err := a.RunNow(c.t.Context(), "work", "please"); err != nil {
			t.Fatal(err)
		}
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "please"})
		t.Log(err)
		time.Sleep(time.Minute)
		all := c.all()
		for _, r := range all {
			t.Log(r.ID())
		}
		c.wantRuns(1)
	})
}

// plainStore hides all but the contract.
type plainStore struct{ store.Store }

// A job that pauses itself over a store without documents.
func TestPauseAfterNeedsOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 1
		w.Do = func(context.Context, *soloist.Run) error {
			if sinceMidnight() < 5*time.Minute {
				return errors.New("boom")
			}
			return nil
		}
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

// One failed read of the document costs a whole call.
func TestFailedReadOfOrdersIsRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.replica("a", w)
		a.wake()
		until(time.Hour)
		a.tap.meet(drop("read document", 1))
		r, err := a.RunDue(c.within(10*time.Minute), soloist.Wake{})
		t.Log(r, err)
		c.wantRuns(1)
	})
}

// Who follows Report.Next calls without end while a job is paused.
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

// A run whose cancellation was confirmed, and whose replica dies before it has read it, runs again.
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
		t.Logf("%+v", c.newest())
	})
}

// A cancelled run that ignores its context, until somebody kills its process.
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
		t.Logf("%+v", c.newest())
		first.stop()
	})
}

// PauseAfter: 1 under Rerun with a starting deadline.
func TestPauseAfterStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 10m", 0))
		w.Retry.PauseAfter, w.StartingDeadline, w.HeartbeatTimeout = 1, 10*time.Second, 20*time.Second
		w.Do = func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }
		c.start("a", w)
		until(65 * time.Minute)
		c.wantRuns(1)
		t.Log(c.outcomes("work"))
	})
}

// Two runs in one millisecond, without names.
func TestTwoRunsOrderedAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: store.OrderRun}, w)
		c.order(soloist.Order{Kind: store.OrderRun}, w)
	})
}

// RunDue tells an error of a pause that was kept.
func TestPauseDuringClaimIsNoError(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.replica("a", w)
		a.wake()
		until(time.Hour)
		ordered := false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && !ordered {
				ordered = true
				_, _ = a.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"})
			}
			return err
		})
		if r, err := a.RunDue(c.within(time.Minute), soloist.Wake{}); err != nil {
			t.Error(r, err)
		}
	})
}

// A cancellation, and a stop of the holder before it has read it.
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

// A job with old failures, for which PauseAfter is new, pauses itself at a run that is cancelled.
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

// A pause, a kill, an order to run: while the job is paused the order has neither run nor outcome.
func TestOrderedRunBehindOpenTickIsMissed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1h", 5*time.Minute))
		a := c.start("a", w)
		until(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.kill()
		a.stop()
		c.start("b", w)
		time.Sleep(2 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		until(30 * time.Hour)
		t.Log(c.outcomes("work"))
		for _, f := range c.record("work").History {
			if f.Request != "" {
				return
			}
		}
		t.Error("no outcome after 29 hours")
	})
}

// The same for an ordinary pause and a page that polls: the status says a tick is due.
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

// Paused in the middle of a claim: an event says that the run has started.
func TestBarredRunIsNotTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a, ordered := c.replica("a", w), false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && !ordered {
				ordered = true
				_, _ = a.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"})
			}
			return err
		})
		c.launch(a)
		until(90 * time.Second)
		if l := a.log.lines("run started"); len(l) > 0 {
			t.Errorf("%q", l)
		}
	})
}
