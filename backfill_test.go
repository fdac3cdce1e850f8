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

// lastHour is the range from an hour before now, with n ticks of a minute.
func lastHour(n int) soloist.Backfill {
	from := time.Now().Truncate(time.Hour).Add(-time.Hour)
	return soloist.Backfill{From: from, To: from.Add(time.Duration(n-1) * time.Minute), All: true}
}

// filled are the runs of backfills.
func (c *cluster) filled() (runs []ran) {
	for _, r := range c.all() {
		if r.Backfill != 0 {
			runs = append(runs, r)
		}
	}
	return runs
}

// fills orders a backfill of the job "work".
func (c *cluster) fills(b soloist.Backfill, w ...soloist.Work) store.Order {
	c.t.Helper()
	return c.order(soloist.Order{Kind: store.OrderBackfill, Backfill: b}, w...)
}

// wantFilled checks that a backfill is over, with so many ticks of each outcome, and that its ticks
// were run in their order, from first on.
func (c *cluster) wantFilled(o store.Order, w soloist.Work, counts map[store.Status]int64) {
	c.t.Helper()
	st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work")
	if err != nil || !st.Backfill.Over || st.Backfill.Order.Seq != o.Seq || !st.Backfill.Tick.IsZero() {
		c.t.Errorf("the backfill is not over: %+v, %v", st.Backfill, err)
	}
	sum := int64(0)
	for status, n := range counts {
		if sum += n; st.Backfill.Done.Counts[status] != n {
			c.t.Errorf("got %v, want %v", st.Backfill.Done.Counts, counts)
		}
	}
	if st.Backfill.Done.Done() != sum {
		c.t.Errorf("got %v, want %v", st.Backfill.Done.Counts, counts)
	}
	next := o.Backfill.From
	for _, r := range c.filled() {
		if r.Attempt == 1 && r.Try == 1 {
			if !r.Tick.Equal(next) {
				c.t.Errorf("the tick %s is run, and %s is the next", r.Tick, next)
			}
			next = next.Add(time.Minute)
		}
		if r.ID() != "work@"+r.Tick.Format(time.RFC3339) || r.Request != "" || r.Backfill != o.Seq {
			c.t.Errorf("got %+v with the ID %s", r.Run, r.ID())
		}
	}
}

// wantPunctual checks that each tick of a minute had its run, late by no more than d.
func (c *cluster) wantPunctual(d time.Duration) {
	c.t.Helper()
	last := time.Time{}
	for _, r := range c.all() {
		if r.Backfill != 0 {
			continue
		}
		if late := r.start.Sub(r.Tick); late > d {
			c.t.Errorf("the tick %s was late by %s", r.Tick, late)
		}
		if !last.IsZero() && r.Tick.Sub(last) != time.Minute {
			c.t.Errorf("the tick after %s is %s", last, r.Tick)
		}
		last = r.Tick
	}
	for _, f := range c.record("work").History {
		if f.Request != "" || f.Status != store.Succeeded {
			c.t.Errorf("the history has %+v", f)
		}
	}
}

func TestBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 10*time.Second)
		c.startAll(w, "a", "b", "c")
		time.Sleep(90 * time.Second)
		b := lastHour(30)
		plan, err := c.replica("desk", w).PlanBackfill(c.t.Context(), "work", b)
		if err != nil || plan.Ticks != 30 || !plan.First.Equal(b.From) || !plan.Last.Equal(b.To) {
			t.Errorf("got %+v, %v", plan, err)
		}
		o := c.fills(b, w)
		time.Sleep(10 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 30})
		c.wantPunctual(11 * time.Second)
		if n := c.record("work").Counts[store.Succeeded]; n != 11 {
			t.Errorf("the record counts %d ticks", n)
		}
	})
}

// A tick that is due waits for one run of the backfill, and is never skipped for it.
func TestBackfillGivesWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 25*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(20), w)
		time.Sleep(40 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 20})
		c.wantPunctual(26 * time.Second)
	})
}

// A run that is ordered by hand comes before the next tick of a backfill, and is not skipped for
// the run under which it was ordered.
func TestOrderedRunInBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 25*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		c.fills(soloist.Backfill{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(-time.Hour), All: true}, w)
		time.Sleep(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		time.Sleep(30 * time.Second)
		c.wantOnce("please")
	})
}

// Replicas die again and again. Each tick of the backfill has one outcome.
func TestBackfillOutlivesReplicas(t *testing.T) {
	for name, policy := range map[string]soloist.InterruptedPolicy{"rerun": soloist.Rerun, "abandon": soloist.Abandon} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 5*time.Second)
			w.Interrupted = policy
			c.start("first", w)
			time.Sleep(90 * time.Second)
			o := c.fills(lastHour(40), w)
			for _, name := range []string{"a", "b", "c", "d", "last"} {
				c.awaitFilled(3)
				c.started[len(c.started)-1].kill()
				c.start(name, w)
			}
			time.Sleep(30 * time.Minute)
			died := c.record("work").Backfill.Counts[store.Abandoned]
			if policy == soloist.Rerun && died > 0 || policy == soloist.Abandon && (died < 3 || died > 5) {
				t.Errorf("%d ticks are abandoned", died)
			}
			counts := map[store.Status]int64{store.Succeeded: 40 - died}
			if died > 0 {
				counts[store.Abandoned] = died
			}
			c.wantFilled(o, w, counts)
			runs := c.filled()
			if n := len(runs); n < 40 || n > 45 {
				t.Errorf("%d runs", n)
			}
			for i := 1; i < len(runs); i++ {
				if gap := runs[i].start.Sub(runs[i-1].start); gap > 2*D {
					t.Errorf("the backfill stood still for %s after %s", gap, runs[i-1].Tick)
				}
			}
		})
	}
}

// awaitFilled waits until n more runs of backfills have begun, and for two minutes at most.
func (c *cluster) awaitFilled(n int) {
	n += len(c.filled())
	for end := time.Now().Add(2 * time.Minute); len(c.filled()) < n && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
}

// A stop gives a tick of a backfill to another replica, under Rerun.
func TestBackfillOutlivesStops(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 20*time.Second)
		w.Interrupted = soloist.Rerun
		a := c.start("a", w)
		time.Sleep(70 * time.Second)
		o := c.fills(lastHour(10), w)
		time.Sleep(25 * time.Second)
		c.start("b", w)
		a.stop()
		time.Sleep(20 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 10})
	})
}

// Failures are counted, and the backfill goes on. They pause no job.
func TestBackfillGoesOnAfterFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 2
		w.Do = func(_ context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Minute()%2 == 0 {
				return errors.New("oh")
			}
			return nil
		}
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(10), w)
		time.Sleep(20 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 5, store.Failed: 5})
		if r := c.record("work"); r.Failures != 0 || !r.Backfill.Failed.Equal(o.Backfill.From.Add(8*time.Minute)) {
			t.Errorf("got %+v", r)
		}
		if len(a.log.lines("run ended", "request=backfill/")) != 10 {
			t.Error("the log does not name the backfill")
		}
	})
}

// A cancelled backfill ends the run that is under way, and another one may follow.
func TestBackfillIsCancelled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 20*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		b := lastHour(30)
		c.fills(b, w)
		time.Sleep(10 * time.Second)
		desk := c.replica("desk", w)
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: b}); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("a second backfill: %v", err)
		}
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		time.Sleep(10 * time.Minute)
		runs := c.filled()
		if last := runs[len(runs)-1]; len(runs) != 1 || !errors.Is(last.cause, soloist.ErrCancelled) {
			t.Errorf("%d runs, the last ended by %v", len(runs), last.cause)
		}
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderCancelBackfill, Job: "work"}); !errors.Is(err, soloist.ErrNotRunning) {
			t.Errorf("it is cancelled twice: %v", err)
		}
		if got := c.record("work").Backfill.Counts; got[store.Cancelled] != 1 {
			t.Errorf("got %v", got)
		}
		c.mu.Lock()
		c.runs = nil
		c.mu.Unlock()
		o := c.fills(lastHour(3), w)
		time.Sleep(5 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 3})
	})
}

// A tick that waits for another attempt has its outcome when its backfill is cancelled.
func TestBackfillIsCancelledBetweenAttempts(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 20*time.Second)
		w.Interrupted = soloist.Rerun
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		c.fills(soloist.Backfill{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(-time.Hour), All: true}, w)
		time.Sleep(10 * time.Second)
		a.stop()
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		c.start("b", w)
		time.Sleep(time.Minute)
		if got := c.record("work").Backfill; got.Counts[store.Cancelled] != 1 || got.Attempt != 0 || len(c.filled()) != 1 {
			t.Errorf("got %+v after %d runs", got, len(c.filled()))
		}
	})
}

// An order to cancel the run that is under way is about its tick alone.
func TestCancelInBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 20*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(4), w)
		time.Sleep(10 * time.Second)
		c.order(soloist.Order{Kind: store.OrderCancel}, w)
		time.Sleep(10 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 3, store.Cancelled: 1})
	})
}

func TestBackfillWaitsForTheEndOfAPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		time.Sleep(10 * time.Second)
		o := c.fills(lastHour(5), w)
		token := c.record("work").Token
		time.Sleep(5 * time.Minute)
		if n := len(c.filled()); n > 0 || c.record("work").Token != token {
			t.Errorf("%d runs in the pause, and %d claims", n, c.record("work").Token-token)
		}
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 5})
	})
}

// Without All, the ticks are those that were missed, as the history tells.
func TestBackfillOfMissedTicks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		begin := time.Now()
		a := c.start("a", w)
		time.Sleep(5*time.Minute + 30*time.Second)
		a.stop()
		time.Sleep(10 * time.Minute)
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		b := soloist.Backfill{From: begin, To: time.Now().Add(-time.Minute)}
		o := c.fills(b, w)
		time.Sleep(time.Minute)
		if o.Backfill.Ticks != 9 { // the newest of ten was run
			t.Errorf("got %+v", o.Backfill)
		}
		o.Backfill.From = begin.Add(6 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 9})
		time.Sleep(time.Hour)
		desk := c.replica("desk", w)
		if _, err := desk.PlanBackfill(c.t.Context(), "work", b); err == nil || !strings.Contains(err.Error(), "of none before") {
			t.Errorf("the history does not reach back: %v", err)
		}
	})
}

func TestBackfillsThatAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, everywhere := work("@every 1m", time.Second), here("@every 1m", nil)
		c.start("a", w, leader(), everywhere)
		time.Sleep(90 * time.Second)
		now := time.Now()
		desk := c.replica("desk", w, leader(), everywhere)
		for text, b := range map[string]soloist.Backfill{
			"is missing":       {To: now, All: true},
			"before from":      {From: now, To: now.Add(-time.Hour), All: true},
			"in the future":    {From: now, To: now.Add(time.Hour), All: true},
			"more than 100000": {From: now.Add(-24 * 365 * time.Hour), To: now.Add(-time.Hour), All: true},
			"no tick of the":   {From: now.Add(-20 * time.Second), To: now.Add(-10 * time.Second), All: true},
			"was missed":       {From: now.Add(-50 * time.Second), To: now},
			"of none before":   {From: now.Add(-time.Hour), To: now},
		} {
			_, err := desk.PlanBackfill(c.t.Context(), "work", b)
			if text == "of none before" && err != nil && strings.Contains(err.Error(), "was missed") {
				continue // the history has all that ever was
			}
			if !errors.Is(err, soloist.ErrRefused) || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", b, err, text)
			}
		}
		for _, name := range []string{"lead", "here"} {
			o := soloist.Order{Kind: store.OrderBackfill, Job: name, Backfill: lastHour(3)}
			if _, err := desk.Order(c.t.Context(), o); !errors.Is(err, soloist.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := desk.PlanBackfill(c.t.Context(), name, o.Backfill); !errors.Is(err, soloist.ErrRefused) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Backfill: lastHour(3)}); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("a run with a range: %v", err)
		}
	})
}

// A call goes on with a backfill while it has time, and it is no error if it has none.
func TestBackfillByCalls(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"bounded runs": 15 * time.Second, "unbounded": 0} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 5m", 10*time.Second)
			w.Timeout = timeout
			c.replica("first", w).wake()
			time.Sleep(5*time.Minute + time.Second)
			b := lastHour(60)
			o := c.fills(b, w)
			for n := range 3 {
				got, err := c.replica("woken", w).RunDue(c.within(time.Minute), soloist.Wake{})
				if err != nil || len(got.Jobs[0].Ran) < 3 || n == 0 && got.Jobs[0].Ran[0].Request != "" {
					t.Errorf("got %+v, %v", got, err)
				}
			}
			if got, err := c.replica("short", w).RunDue(c.within(5*time.Second), soloist.Wake{}); timeout > 0 && (err != nil || len(got.Jobs[0].Ran) != 0) {
				t.Errorf("without time: got %+v, %v", got, err)
			}
			c.replica("patient", w).wake()
			next := o.Backfill.From
			for _, r := range c.filled() {
				if !r.Tick.Equal(next) || r.cause != nil && timeout > 0 {
					t.Errorf("%s was run, and %s is next; it ended by %v", r.Tick, next, r.cause)
				}
				next = next.Add(5 * time.Minute)
			}
			if len(c.filled()) != 12 {
				t.Errorf("%d runs", len(c.filled()))
			}
		})
	}
}

// A stop while the claim of a tick of a backfill is written gives the tick back.
func TestBackfillIsGivenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		c.replica("first", w).wake()
		at := time.Now().Truncate(time.Hour)
		c.fills(soloist.Backfill{From: at.Add(-2 * time.Hour), To: at.Add(-time.Hour), All: true}, w)
		c.stopDuringAClaim(w)
		time.Sleep(time.Minute)
		c.wantRuns(0)
		c.start("other", w)
		time.Sleep(time.Minute)
		if got := c.record("work").Backfill; len(c.filled()) != 2 || got.Counts[store.Succeeded] != 2 {
			t.Errorf("got %+v after %d runs", got, len(c.filled()))
		}
	})
}

// A backfill is cancelled, and another one ordered before the replicas have read that: the run of the first one ends.
func TestBackfillIsCancelledForAnother(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 20*time.Minute)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Minute)
		now := time.Now().Truncate(time.Hour)
		c.fills(soloist.Backfill{From: now.Add(-24 * time.Hour), To: now.Add(-2 * time.Hour), All: true}, w)
		time.Sleep(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		time.Sleep(time.Second)
		c.fills(soloist.Backfill{From: now.Add(-3 * time.Hour), To: now.Add(-2 * time.Hour), All: true}, w)
		time.Sleep(4 * time.Hour)
		if first := c.filled()[0]; !errors.Is(first.cause, soloist.ErrCancelled) || first.end.Sub(first.start) > time.Minute {
			t.Errorf("the run of the first one ended after %s, %v", first.end.Sub(first.start), first.cause)
		}
		if n := len(c.filled()); n < 3 { // the other replica may not have read the orders yet, and begin one more
			t.Errorf("%d runs, want one of the first and two of the second", n)
		}
	})
}

// A backfill that is done stays done when the schedule changes: its range may have ticks of the new one.
func TestBackfillStaysDone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		a := c.start("a", w)
		until(time.Hour + 90*time.Second)
		to := time.Date(1999, 12, 30, 12, 30, 0, 0, time.UTC)
		c.fills(soloist.Backfill{From: to.Add(-2 * time.Hour), To: to, All: true}, w)
		until(30 * time.Hour)
		n := len(c.filled())
		a.stop()
		c.start("b", work("30 * * * *", time.Second))
		until(32 * time.Hour)
		if all := c.filled(); n != 2 || len(all) != n {
			t.Errorf("got %d runs, and %d after the change: %+v", n, len(all)-n, all)
		}
	})
}

// A backfill that was ordered on one replica can be cancelled at once on another, which has not read of it.
func TestBackfillIsCancelledOnAnotherReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Minute)
		all := c.startAll(w, "a", "b")
		time.Sleep(90*time.Second + 2500*time.Millisecond)
		if _, err := all["a"].Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: lastHour(30)}); err != nil {
			t.Fatal(err)
		}
		if _, err := all["b"].Order(c.t.Context(), soloist.Order{Kind: store.OrderCancelBackfill, Job: "work"}); err != nil {
			t.Error(err)
		}
	})
}

// Who asks for the status gets counts and ranges of his own.
func TestStatusOfBackfillIsNotShared(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(3), w)
		time.Sleep(time.Minute)
		for range 2 {
			st, err := a.StatusOf(c.t.Context(), "work")
			b := &st.Backfill
			if err != nil || b.Done.Counts[store.Succeeded] != 3 || !b.Order.Spans[0].To.Equal(o.Backfill.To) {
				t.Fatalf("got %+v, %v", b, err)
			}
			b.Done.Counts[store.Succeeded], b.Order.Spans[0].To = 999, time.Now()
		}
	})
}

// Who asks for what was missed twice has it run once.
func TestBackfillOfMissedTicksIsNotRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		a := c.start("a", w)
		until(11 * time.Minute)
		a.stop()
		until(70 * time.Minute)
		c.start("b", w)
		until(81 * time.Minute)
		b := soloist.Backfill{From: time.Date(2000, 1, 1, 0, 1, 0, 0, time.UTC), To: time.Now().Add(-5 * time.Minute)}
		c.fills(b, w)
		time.Sleep(time.Minute)
		n := len(c.filled())
		_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: b})
		time.Sleep(time.Minute)
		if !errors.Is(err, soloist.ErrRefused) || n == 0 || len(c.filled()) != n {
			t.Errorf("%d runs, then %d: %v", n, len(c.filled())-n, err)
		}
	})
}
