package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// order gives an order for the job "work" at a desk: by a program that runs nothing.
func (c *cluster) order(o soloist.Order, work ...soloist.Work) store.Order {
	c.t.Helper()
	if o.Job == "" {
		o.Job = "work"
	}
	o.By = "anna"
	got, err := c.replica("desk", work...).Order(c.t.Context(), o)
	if err != nil {
		c.t.Errorf("%s: %v", o.Kind, err)
	}
	return got
}

// newest returns the newest outcome of the job "work".
func (c *cluster) newest() store.Outcome {
	c.t.Helper()
	h := c.record("work").History
	if len(h) == 0 {
		c.t.Error("there is no outcome")
		return store.Outcome{}
	}
	return h[0]
}

// The orders are read once in a call of a woken replica, however many jobs it has, and also where
// the clock stands still between the begin of the call and the read.
func TestWokenReplicaReadsOrdersOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", named("one", work("@every 1m", 0)), named("two", work("@every 1m", 0)), named("three", work("@every 1m", 0)))
		a.tap.meet(faraway(1))
		for n := range 5 {
			a.wake()
			if _, reads := a.tap.countsAndOrders(); reads != 1 {
				t.Errorf("call %d: %d reads of the orders", n, reads)
			}
			time.Sleep(time.Minute)
		}
	})
}

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

func TestOrderedRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.startAll(w, "a", "b", "c")
		time.Sleep(time.Minute)
		at := time.Now()
		got := c.order(soloist.Order{Kind: store.OrderRun}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "again"}, w)
		time.Sleep(30 * time.Second)
		all := c.all()
		if len(all) != 2 || all[0].Request != got.Name || all[1].Request != "again" || all[0].start.Sub(at) > 6*time.Second {
			t.Errorf("got %+v", all)
		}
		if mark := c.record("work").Watermark; !mark.Before(at) {
			t.Errorf("the watermark has moved to %s", mark)
		}
		time.Sleep(time.Hour)
		c.wantRuns(3)
	})
}

// An order is served by the next process that is woken up, once, also while the job is paused.
func TestOrderedRunWithoutReplicas(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "soon", Until: time.Now().Add(time.Minute)}, w)
		c.replica("first", w).wake()
		c.wantRuns(2)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "late", Until: time.Now().Add(time.Minute)}, w)
		time.Sleep(10 * time.Minute)
		c.replica("second", w).wake()
		c.replica("third", w).wake()
		c.wantRuns(2)
		if f := c.newest(); f.Request != "late" || f.Status != store.Missed {
			t.Errorf("got %+v", f)
		}
	})
}

// A run that is ordered during a run is skipped, as a tick is, unless the job makes up for all.
func TestOrderedRunOverlaps(t *testing.T) {
	for name, missed := range map[string]soloist.MissedPolicy{"skipped": soloist.RunLatest, "succeeded": soloist.RunAll} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", time.Minute)
			w.Missed = missed
			c.startAll(w, "a", "b")
			time.Sleep(time.Hour + 20*time.Second)
			c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
			time.Sleep(2 * time.Minute)
			if f := c.newest(); f.Request != "please" || string(f.Status) != name {
				t.Errorf("got %+v", f)
			}
		})
	}
}

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

// A pause while a claim is written keeps the run from beginning, and gives the tick back.
func TestPauseDuringClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a, ordered := c.replica("a", w), false
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && !ordered { // the claim is written, and its answer is under way
				ordered = true
				if _, oerr := a.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"}); oerr != nil {
					t.Error(oerr)
				}
			}
			return err
		})
		c.launch(a)
		time.Sleep(3*time.Minute + 30*time.Second)
		c.wantRuns(0)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(time.Minute)
		c.wantOutcomes("work", "missed 00:01:00 a newer one was due", "skipped 00:01:00-00:03:00 paused", "succeeded 00:04:00")
	})
}

// A replica that cannot read the orders starts nothing: one of them may be a pause.
func TestUnreadableOrdersStopAll(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		a.tap.meet(fail(errNetwork, "read document"))
		time.Sleep(3 * time.Minute)
		c.wantRuns(1)
		if a.Health().Storage == nil {
			t.Error("Health is silent")
		}
		a.tap.meet(nil)
		time.Sleep(2 * time.Minute)
		if n := len(c.all()); n < 3 {
			t.Errorf("%d runs", n)
		}
	})
}

func TestOrdersThatAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, everywhere := work("@every 1h", time.Second), here("@every 1m", nil)
		c.start("a", w, leader(), everywhere)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w, leader(), everywhere)
		for text, o := range map[string]soloist.Order{
			"no job or singleton": {Kind: store.OrderPause, Job: "other"},
			"kind of the order":   {Kind: "explode", Job: "work"},
			"not run by hand":     {Kind: store.OrderRun, Job: "lead"},
			"runs on each":        {Kind: store.OrderCancel, Job: "here"},
			"nothing runs":        {Kind: store.OrderCancel, Job: "work"},
			"in the future":       {Kind: store.OrderPause, Job: "work", Until: time.Now().Add(-time.Hour)},
			"has no end":          {Kind: store.OrderResume, Job: "work", Until: time.Now().Add(time.Hour)},
			"on one line":         {Kind: store.OrderPause, Job: "work", Reason: "two\nlines"},
			"letter or digit":     {Kind: store.OrderRun, Job: "work", Request: "two words"},
			"has no request":      {Kind: store.OrderPause, Job: "work", Request: "please"},
		} {
			if _, err := desk.Order(c.t.Context(), o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", o, err, text)
			}
		}
		c.order(soloist.Order{Kind: store.OrderRun, Request: "twice"}, w)
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "twice"}); err == nil {
			t.Error("a request is ordered twice")
		}
		_, err := c.replica("new", soloist.Job{Name: "unknown", Schedule: "@hourly", Do: w.Do}).Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "unknown"})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a job without an entry: %v", err)
		}
	})
}

// Several operators order at once: each order is kept.
func TestManyOrder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		done := make(chan error)
		for range 8 {
			go func() {
				_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
				done <- err
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		got, err := c.replica("desk", w).Control(c.t.Context())
		if err != nil || len(got.Audit) != 8 || got.Jobs["work"].Pause.At.IsZero() {
			t.Errorf("got %+v, %v", got, err)
		}
		for i := range 7 {
			if got.Audit[i].Seq <= got.Audit[i+1].Seq {
				t.Errorf("the orders have the numbers %d and %d", got.Audit[i].Seq, got.Audit[i+1].Seq)
			}
		}
	})
}

// An order whose answer is lost is in force once.
func TestOrderWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		desk := c.replica("desk", w)
		lost := false
		desk.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write document" && !lost {
				lost = true
				return errNetwork
			}
			return err
		})
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work"}); err != nil {
			t.Error(err)
		}
		if got, err := desk.Control(c.t.Context()); err != nil || len(got.Audit) != 1 || len(got.Jobs["work"].Requests) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A document that cannot be understood is left alone, and nothing starts by it.
func TestForeignOrders(t *testing.T) {
	for name, text := range map[string]string{
		"garbage":     "{",
		"newer":       `{"schema":99,"app":"soloist","seq":1}`,
		"another app": `{"schema":1,"app":"other","seq":1}`,
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 0)
			if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte(text)); err != nil {
				t.Fatal(err)
			}
			a := c.start("a", w)
			time.Sleep(3 * time.Minute)
			c.wantRuns(0)
			if h := a.Health(); h.Storage == nil && len(h.Broken) == 0 {
				t.Error("Health is silent")
			}
			if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"}); err == nil {
				t.Error("an order was written over it")
			}
		})
	}
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

// A stop while the claim of an ordered run is written gives the request back.
func TestOrderedRunIsGivenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		c.stopDuringAClaim(w)
		time.Sleep(time.Minute)
		c.wantRuns(0)
		c.start("other", w)
		time.Sleep(time.Minute)
		if all := c.all(); len(all) != 1 || all[0].Request != "please" || all[0].replica != "other" {
			t.Errorf("got %+v", all)
		}
	})
}

// A run that is ordered waits for a tick that waits for another attempt: the record has room
// for one of them.
func TestOrderedRunLeavesOpenTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 5*time.Minute)
		w.Interrupted = soloist.Rerun
		a := c.start("a", w)
		time.Sleep(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		a.kill()
		a.stop()
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		c.start("b", w)
		time.Sleep(2 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(15 * time.Minute)
		if all := c.all(); len(all) != 3 || all[1].Attempt != 2 || all[2].Request != "please" {
			t.Errorf("got %+v", all)
		}
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

// A wake-up for a job of EveryReplica reads the orders first. If that takes long, the tick is
// run all the same: one that was due when the call began, or has come due since.
func TestSlowOrdersCostNoTick(t *testing.T) {
	for _, at := range []time.Duration{59 * time.Second, 60 * time.Second, 119 * time.Second} {
		inCase(t, at.String(), func(t *testing.T, c *cluster) {
			w := here("@every 1m", nil)
			time.Sleep(at)
			tick := time.Now().Round(time.Minute)
			if at == 119*time.Second {
				tick = time.Now().Truncate(time.Minute)
			}
			a := c.replica("a", w).meets(slow(2*time.Second, "read document"))
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick}); err != nil {
				t.Error(err)
			}
			if all := c.all(); len(all) != 1 || !all[0].Tick.Equal(tick) {
				t.Errorf("got %+v, want tick %s", all, tick)
			}
		})
	}
}
