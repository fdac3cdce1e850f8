package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// lastHour is the range from an hour before now, with n ticks of a minute, some of them at a time.
func lastHour(n, parallel int) soloist.Backfill {
	from := time.Now().Truncate(time.Hour).Add(-time.Hour)
	return soloist.Backfill{From: from, To: from.Add(time.Duration(n-1) * time.Minute), All: true, Parallel: parallel}
}

// lastHours is the range of n ticks of an hour up to now.
func lastHours(n, parallel int) soloist.Backfill {
	to := time.Now().Truncate(time.Hour).Add(-time.Hour)
	return soloist.Backfill{From: to.Add(time.Duration(1-n) * time.Hour), To: to, All: true, Parallel: parallel}
}

// bothWays has a test of backfills run one tick at a time, and four.
func bothWays(t *testing.T, f func(t *testing.T, c *cluster, parallel int)) {
	for _, parallel := range []int{1, 4} {
		inCase(t, fmt.Sprint(parallel), func(t *testing.T, c *cluster) { f(t, c, parallel) })
	}
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

// awaitFilled waits until n more runs of backfills have begun, and for two minutes at most.
func (c *cluster) awaitFilled(n int) {
	n += len(c.filled())
	for end := time.Now().Add(2 * time.Minute); len(c.filled()) < n && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
}

// wantCounted checks that a backfill is over, with so many ticks of each outcome.
func (c *cluster) wantCounted(o store.Order, w soloist.Work, counts map[store.Status]int64) {
	c.t.Helper()
	st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work")
	done, sum := st.Backfill.Done, int64(0)
	for status, n := range counts {
		if sum += n; done.Counts[status] != n {
			c.t.Errorf("got %v, want %v", done.Counts, counts)
		}
	}
	over := st.Backfill.Over && st.Backfill.Tick.IsZero() && st.Backfill.Beside == 0
	if err != nil || !over || done.Seq != o.Seq || len(done.Open) != 0 || done.Done() != sum {
		c.t.Errorf("got %+v, %v", st.Backfill, err)
	}
}

// wantFilled checks that a backfill is over with so many of each outcome, that its ticks ran in their order, as many
// at a time as were ordered, and that no other tick ran meanwhile.
func (c *cluster) wantFilled(o store.Order, w soloist.Work, counts map[store.Status]int64) {
	c.t.Helper()
	c.wantCounted(o, w, counts)
	runs, ticks := c.filled(), map[time.Time]bool{}
	if most := atOnce(runs); most != max(1, o.Backfill.Parallel) {
		c.t.Errorf("%d ticks at once", most)
	}
	for _, r := range runs {
		ticks[r.Tick] = true
		if r.ID() != "work@"+r.Tick.Format(time.RFC3339) || r.Request != "" || r.Backfill != o.Seq {
			c.t.Errorf("got %+v with the ID %s", r.Run, r.ID())
		}
		if period := r.Next.Sub(r.Tick); period <= 0 || !r.Previous.Equal(r.Tick.Add(-period)) {
			c.t.Errorf("tick %s is given %s and %s", r.Tick, r.Previous, r.Next)
		}
		for _, other := range c.all() {
			switch {
			case other.Backfill == 0:
				if other.start.Before(r.end) && other.end.After(r.start) {
					c.t.Errorf("the run of %s is beside that of %s", r.Tick, other.Tick)
				}
			case other.Tick.Before(r.Tick) && other.Token > r.Token && other.Attempt == 1 && r.Attempt == 1:
				c.t.Errorf("%s is claimed after %s", other.Tick, r.Tick)
			}
		}
	}
	if len(ticks) != o.Backfill.Ticks {
		c.t.Errorf("%d ticks were run", len(ticks))
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
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := work("@every 1m", 10*time.Second)
		all := c.startAll(w, "a", "b", "c")
		until(90 * time.Second)
		b := lastHour(30, parallel)
		plan, err := c.replica("desk", w).PlanBackfill(c.t.Context(), "work", b)
		if err != nil || plan.Ticks != 30 || !plan.First.Equal(b.From) || !plan.Last.Equal(b.To) {
			t.Errorf("got %+v, %v", plan, err)
		}
		o := c.fills(b, w)
		c.awaitFilled(parallel)
		st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work")
		if err != nil || st.Backfill.Tick.IsZero() || st.Backfill.Beside != parallel-1 || st.Backfill.Over {
			t.Errorf("got %+v, %v", st.Backfill, err)
		}
		until(11*time.Minute + 30*time.Second)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 30})
		c.wantPunctual(11 * time.Second)
		if n := c.record("work").Counts[store.Succeeded]; n != 11 {
			t.Errorf("the record counts %d ticks", n)
		}
		tokens, ends := map[int64]bool{}, 0
		for _, r := range c.filled() {
			tokens[r.Token] = true
		}
		for _, r := range all {
			ends += len(r.log.lines("run ended", "request=backfill/"))
		}
		if claims := (30 + parallel - 1) / parallel; len(tokens) != claims || ends != 30 {
			t.Errorf("%d tokens, want %d, and %d ends in the logs", len(tokens), claims, ends)
		}
		for range 2 { // each caller gets counts and ranges of its own
			st, err := all["a"].StatusOf(c.t.Context(), "work")
			if b := &st.Backfill; err != nil || b.Done.Counts[store.Succeeded] != 30 || !b.Order.Spans[0].To.Equal(o.Backfill.To) {
				t.Fatalf("got %+v, %v", b, err)
			}
			st.Backfill.Done.Counts[store.Succeeded], st.Backfill.Order.Spans[0].To = 999, time.Now()
		}
	})
}

// A run that is ordered comes before the next tick of a backfill, and is not skipped for the run under which it was ordered.
func TestOrderedRunInBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 25*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		c.fills(lastHours(24, 1), w)
		time.Sleep(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		time.Sleep(30 * time.Second)
		c.wantOnce("please")
	})
}

// Replicas die again and again, or are stopped. Each tick of the backfill has one outcome.
func TestBackfillOutlivesReplicas(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Rerun, soloist.Abandon} {
		t.Run(string(policy), func(t *testing.T) {
			bothWays(t, func(t *testing.T, c *cluster, parallel int) {
				w := work("@every 1m", 5*time.Second)
				w.Interrupted = policy
				c.start("first", w)
				time.Sleep(90 * time.Second)
				n := 30 + 5*parallel
				o := c.fills(lastHour(n, parallel), w)
				for i := range 4 {
					c.awaitFilled(2 + parallel)
					if last := c.started[len(c.started)-1]; i%2 == 0 {
						last.kill()
					} else {
						last.stop()
					}
					c.start(fmt.Sprint("next", i), w)
				}
				time.Sleep(30 * time.Minute)
				died := c.record("work").Backfill.Counts[store.Abandoned]
				most := 4 * parallel
				if policy == soloist.Rerun && died > 0 || policy == soloist.Abandon && (died < 3 || died > int64(most)) {
					t.Errorf("%d ticks are abandoned", died)
				}
				counts := map[store.Status]int64{store.Succeeded: int64(n) - died}
				if died > 0 {
					counts[store.Abandoned] = died
				}
				c.wantFilled(o, w, counts)
				runs := c.filled()
				if len(runs) < n || len(runs) > n+most || policy == soloist.Abandon && len(runs) != n {
					t.Errorf("%d runs", len(runs))
				}
				for i := 1; i < len(runs); i++ {
					if gap := runs[i].start.Sub(runs[i-1].start); gap > 2*D {
						t.Errorf("the backfill stood still for %s after %s", gap, runs[i-1].Tick)
					}
				}
			})
		})
	}
}

// A tick whose run has returned has its outcome, also if the other runs of its claim go on and their runner dies.
func TestBackfillKeepsOutcomes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 21 {
				return pause(ctx, time.Hour)
			}
			return pause(ctx, time.Second)
		})
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHours(5, 4), w)
		time.Sleep(10 * time.Second)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 3 || len(got.Open) != 1 {
			t.Errorf("got %+v", got)
		}
		a.kill()
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 4, store.Abandoned: 1})
	})
}

// A run that stalls ends its lease, and so the other runs of its claim. Each tick still has one outcome.
func TestBackfillOutlivesAStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 22 {
				time.Sleep(5 * time.Minute)
				return nil
			}
			for range 10 {
				if err := errors.Join(r.Heartbeat(""), pause(ctx, 10*time.Second)); err != nil {
					return err
				}
			}
			return nil
		})
		w.HeartbeatTimeout = 20 * time.Second
		c.startAll(w, "a", "b")
		time.Sleep(2 * time.Minute)
		o := c.fills(lastHours(5, 4), w)
		time.Sleep(20 * time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Stalled: 1, store.Abandoned: 3, store.Succeeded: 1})
	})
}

// Failures are counted, and the backfill goes on. They pause no job. Each run has tries, and an end, of its own.
func TestBackfillGoesOnAfterFailures(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := doing("@every 1m", func(ctx context.Context, r *soloist.Run) error {
			switch {
			case r.Backfill == 0:
			case r.Tick.Minute()%3 == 0:
				return errors.New("oh")
			case r.Tick.Minute()%3 == 1:
				panic("ah")
			case r.Try == 1:
				return errors.New("try again")
			}
			return pause(ctx, time.Second)
		})
		w.Retry.MaxTries, w.Retry.PauseAfter, w.Timeout = 2, 2, 10*time.Second
		c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(12, parallel), w)
		time.Sleep(20 * time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Succeeded: 4, store.Failed: 8})
		r, failed := c.record("work"), o.Backfill.From.Add(10*time.Minute)
		if r.Failures != 0 || len(c.filled()) != 24 || !r.Backfill.Failed.Equal(failed) {
			t.Errorf("got %+v after %d runs", r, len(c.filled()))
		}
	})
}

// An order to cancel the run that is under way is about the ticks of its claim alone. A cancelled backfill ends that run and
// begins no other, and another backfill may follow.
func TestBackfillIsCancelled(t *testing.T) {
	for _, kind := range []store.OrderKind{store.OrderCancelBackfill, store.OrderCancel} {
		t.Run(string(kind), func(t *testing.T) {
			bothWays(t, func(t *testing.T, c *cluster, parallel int) {
				w := work("@every 1m", 20*time.Second)
				all := c.startAll(w, "a", "b")
				time.Sleep(90 * time.Second)
				fill := soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: lastHour(8, parallel)}
				o := c.order(fill, w)
				time.Sleep(10 * time.Second)
				if _, err := all["a"].Order(c.t.Context(), fill); !errors.Is(err, soloist.ErrRefused) {
					t.Errorf("a second backfill: %v", err)
				}
				c.order(soloist.Order{Kind: kind}, w)
				time.Sleep(10 * time.Minute)
				counts := map[store.Status]int64{store.Cancelled: int64(parallel)}
				if kind == store.OrderCancel {
					counts[store.Succeeded] = int64(8 - parallel)
				}
				c.wantCounted(o, w, counts)
				ended := 0
				for _, r := range c.filled() {
					if errors.Is(r.cause, soloist.ErrCancelled) {
						ended++
					}
				}
				if ended != parallel {
					t.Errorf("%d runs were cancelled", ended)
				}
				if err := all["a"].orders(store.OrderCancelBackfill); !errors.Is(err, soloist.ErrNotRunning) {
					t.Errorf("it is cancelled twice: %v", err)
				}
				o = c.order(fill, w)
				time.Sleep(10 * time.Minute)
				c.wantCounted(o, w, map[store.Status]int64{store.Succeeded: 8})
				if _, err := all["a"].Order(c.t.Context(), fill); err != nil {
					t.Error(err)
				}
				if err := all["b"].orders(store.OrderCancelBackfill); err != nil { // it has not read of that one
					t.Error(err)
				}
			})
		})
	}
}

// Ticks that wait for another attempt have their outcome when their backfill is cancelled; there is no run to cancel alone.
func TestBackfillIsCancelledBetweenAttempts(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := rerun(work("@hourly", 20*time.Second))
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHours(24, parallel), w)
		time.Sleep(10 * time.Second)
		a.stop()
		err := c.replica("desk", w).orders(store.OrderCancel)
		if wantError(t, err, "cancel the backfill"); !errors.Is(err, soloist.ErrNotRunning) {
			t.Error(err)
		}
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		c.start("b", w)
		time.Sleep(time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Cancelled: int64(parallel)})
		c.wantRuns(parallel)
	})
}

// A backfill is cancelled, and another one ordered before the replicas have read that: the run of the first one ends.
func TestBackfillIsCancelledForAnother(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 20*time.Minute)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Minute)
		c.fills(lastHours(23, 1), w)
		time.Sleep(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		time.Sleep(time.Second)
		c.fills(lastHours(2, 1), w)
		time.Sleep(4 * time.Hour)
		if first := c.filled()[0]; !errors.Is(first.cause, soloist.ErrCancelled) || first.end.Sub(first.start) > time.Minute {
			t.Errorf("the run of the first one ended after %s, %v", first.end.Sub(first.start), first.cause)
		}
		if n := len(c.filled()); n < 3 { // the other replica may not have read the orders yet, and begin one more
			t.Errorf("%d runs, want one of the first and two of the second", n)
		}
	})
}

// Without All, a backfill has the ticks that the history shows as missed and that no backfill has run since.
func TestBackfillOfMissedTicks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		begin := time.Now()
		a := c.start("a", w)
		time.Sleep(5*time.Minute + 30*time.Second)
		a.stop()
		time.Sleep(10 * time.Minute)
		up := c.start("b", w)
		time.Sleep(5 * time.Minute)
		b := soloist.Backfill{From: begin, To: time.Now().Add(-time.Minute)}
		o := c.fills(b, w)
		time.Sleep(time.Minute)
		if o.Backfill.Ticks != 9 { // the newest of ten was run
			t.Errorf("got %+v", o.Backfill)
		}
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 9})
		for _, r := range []*replica{up, c.replica("desk", w)} { // the desk has not read the orders yet
			_, err := r.PlanBackfill(c.t.Context(), "work", b)
			if wantError(t, err, "has made up for it"); !errors.Is(err, soloist.ErrRefused) {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		_, err := up.PlanBackfill(c.t.Context(), "work", b)
		wantError(t, err, "of none before") // the history does not reach back
	})
}

// A call goes on with a backfill while it has time for a run, and it is no error if it has none.
func TestBackfillByCalls(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 10*time.Second)
		w.Timeout = 15 * time.Second
		c.replica("first", w).wake()
		until(time.Hour + time.Second)
		o := c.fills(lastHours(6, 1), w)
		for _, call := range []struct {
			d    time.Duration
			runs int
		}{{time.Minute, 1 + 4}, {5 * time.Second, 0}, {time.Minute, 2}} {
			got, err := c.replica("woken", w).RunDue(c.within(call.d), soloist.Wake{})
			if err != nil || len(got.Jobs[0].Ran) != call.runs {
				t.Errorf("in %s, got %+v, %v", call.d, got, err)
			}
		}
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 6})
	})
}

// A claim that was given up before its runs began costs no tick, and no attempt.
func TestBackfillIsGivenBack(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := work("@every 1m", time.Second)
		c.replica("first", w).wake()
		o := c.fills(lastHour(6, parallel), w)
		c.stopDuringAClaim(w)
		time.Sleep(30 * time.Second)
		c.wantRuns(0)
		c.start("other", w)
		time.Sleep(2 * time.Minute)
		c.wantFilled(o, w, map[store.Status]int64{store.Succeeded: 6})
		for _, r := range c.filled() {
			if r.Attempt != 1 {
				t.Errorf("got %+v", r.Run)
			}
		}
	})
}

// The entry has one checkpoint, which runs in parallel cannot share.
func TestBackfillInParallelHasNoCheckpoint(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@every 1m", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill == 0 {
				return r.Save(ctx, "of the job")
			}
			var got string
			for _, err := range []error{r.Save(ctx, "lost"), r.Load(ctx, &got)} {
				if err == nil || !strings.Contains(err.Error(), "without parallel") {
					t.Errorf("got %q, %v", got, err)
				}
			}
			return nil
		})
		c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHour(3, 4), w)
		time.Sleep(time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Succeeded: 3})
	})
}

// The record only counts the outcomes of a backfill. The log has each of them.
func TestBackfillIsInHistory(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		a := c.replica("a", w)
		defer c.keepHistory(a)()
		c.launch(a)
		time.Sleep(65 * time.Minute)
		c.fills(soloist.Backfill{From: time.Now().Add(-time.Hour), To: time.Now(), All: true}, w)
		time.Sleep(3 * time.Hour)
		filled, lines := 0, c.logged("work")
		for _, l := range lines {
			if store.BackfillOf(l.Request) != 0 {
				filled++
			}
		}
		if filled != 6 {
			t.Errorf("%d of %d outcomes are of the backfill, want 6", filled, len(lines))
		}
	})
}

// Each shard has a backfill of its own. The ticks of a follower are run again whatever became of the jobs before it.
func TestBackfillOfShardsAndFollowers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		first, f := importing("@every 1m", 10*time.Second), following("work", "import", 5*time.Second)
		sharded := named("part", work("@every 1m", time.Second))
		sharded.Shards = 2
		for _, name := range []string{"a", "b"} {
			c.start(name, first, f, sharded)
		}
		time.Sleep(90 * time.Second)
		for _, job := range []string{"work", "part-0", "part-1"} {
			c.order(soloist.Order{Kind: store.OrderBackfill, Job: job, Backfill: lastHour(10, 1)}, first, f, sharded)
		}
		time.Sleep(10 * time.Minute)
		for _, job := range []string{"work", "part-0", "part-1"} {
			if got := c.record(job).Backfill; got.Counts[store.Succeeded] != 10 {
				t.Errorf("%s: got %+v", job, got)
			}
		}
		c.wantAllSucceeded()
	})
}

// A run of a backfill takes a slot of the group of its job, and a tick that waits for one has that as its reason.
func TestBackfillInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		one, other := work("@every 1m", 5*time.Second), named("other", work("@every 1m", 20*time.Second))
		one.Group, other.Group = "imports", "imports"
		a := c.limited("a", 1, one, other)
		c.limited("b", 1, one, other)
		time.Sleep(90 * time.Second)
		fill := soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: lastHour(10, 1)}
		if _, err := a.Order(c.t.Context(), fill); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 10 {
			t.Errorf("got %+v", got)
		}
		if most := atOnce(c.all()); most != 1 {
			t.Errorf("%d runs of the group at once", most)
		}
	})
}
