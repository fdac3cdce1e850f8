package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

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

// Orders that cannot be read for some seconds before a tick cost neither the tick nor its claim,
// if they can again half a second before it, whenever they are read otherwise.
func TestOrdersAreReadAgainBeforeTick(t *testing.T) {
	for after := time.Duration(0); after < 5*time.Second; after += 250 * time.Millisecond {
		inCase(t, after.String(), func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			w.ClaimAhead = true
			time.Sleep(after)
			a := c.start("a", w)
			tick := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
			time.Sleep(time.Until(tick) - 9*time.Second)
			a.tap.meet(fail(errNetwork, "read document"))
			time.Sleep(8400 * time.Millisecond)
			a.tap.meet(nil)
			time.Sleep(time.Until(tick) + 10*time.Second)
			all := c.all()
			if last := all[len(all)-1]; len(all) != 2 || !last.Tick.Equal(tick) || last.Token != all[0].Token+1 {
				t.Errorf("got %+v, want the tick %s, and no claim that was given up", all, tick)
			}
		})
	}
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

// Loops do not wait for each other's failed reads of the orders, so none counts as stuck.
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

// A call of a woken replica reads the orders once more if the first read fails.
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

// A hundred operators order at once, over a store whose calls take a moment.
func TestHundredOrdersAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		done := make(chan error)
		for i := range 100 {
			desk := c.replica(fmt.Sprint("desk", i), w).meets(func(op string, apply func() error) error {
				time.Sleep(10 * time.Millisecond)
				err := apply()
				time.Sleep(10 * time.Millisecond)
				return err
			})
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
				done <- err
			}()
		}
		begin, failed := time.Now(), 0
		for range 100 {
			if err := <-done; err != nil {
				failed++
				t.Log(err)
			}
		}
		t.Log("took", time.Since(begin))
		if failed > 0 {
			t.Errorf("%d of 100 orders were not written", failed)
		}
	})
}

// A document that cannot be understood refuses an order at once.
func TestForeignOrdersRefuseAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte("{")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil || time.Since(begin) > time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// An error that leaves open whether the order was written says so.
func TestOrderInDoubtSaysSo(t *testing.T) {
	for name, last := range map[string]error{"no answer": errNetwork, "refused in the end": fmt.Errorf("no: %w", fs.ErrPermission)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 0)
			c.replica("first", w).wake()
			n := 0
			desk := c.replica("desk", w).meets(func(op string, apply func() error) error {
				if op == "write document" {
					if n++; n > 1 {
						return last
					}
					return errNetwork
				}
				return apply()
			})
			_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
			if err == nil || !strings.Contains(err.Error(), "not known whether") {
				t.Error(err)
			}
		})
	}
}

// If the order may be written, a refusal of a later try is none of the order.
func TestOrderInDoubtIsNotRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		desk := c.replica("desk", w).meets(func(op string, apply func() error) error {
			if op != "write document" {
				return apply()
			}
			_, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte("garbage"))
			return errors.Join(errNetwork, err)
		})
		_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil || errors.Is(err, soloist.ErrRefused) || !strings.Contains(err.Error(), "not known whether") {
			t.Errorf("in doubt: %v", err)
		}
		if _, err = desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"}); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("without a doubt: %v", err)
		}
	})
}

// The largest number of an order that can be read is not exceeded.
func TestOrdersEndAtLargestNumber(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", fmt.Appendf(nil, `{"schema":1,"app":"soloist","seq":%d}`, int64(store.MaxToken))); err != nil {
			t.Fatal(err)
		}
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		if err == nil {
			t.Error("an order was written")
		}
		if _, err := c.replica("desk", w).Control(c.t.Context()); err != nil {
			t.Error(err)
		}
	})
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
