package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
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

// wantFilledRuns checks how many runs of backfills there were.
func (c *cluster) wantFilledRuns(want int) {
	c.t.Helper()
	got := c.filled()
	c.wrong(len(got) != want, "%d runs of the backfill, want %d: %+v", len(got), want, got)
}

// fills orders a backfill of the job "work".
func (c *cluster) fills(b soloist.Backfill, w ...soloist.Work) soloist.Order {
	c.t.Helper()
	return c.order(soloist.Order{Kind: soloist.OrderBackfill, Backfill: b}, w...)
}

// awaitFilled waits until n more runs of backfills have begun, and for two minutes at most.
func (c *cluster) awaitFilled(n int) {
	n += len(c.filled())
	for end := time.Now().Add(2 * time.Minute); len(c.filled()) < n && time.Now().Before(end); {
		time.Sleep(time.Second)
	}
}

// wantCounted checks that a backfill is over, with so many ticks of each outcome.
func (c *cluster) wantCounted(o soloist.Order, w soloist.Work, counts map[event.Status]int64) {
	c.t.Helper()
	st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work")
	done, sum, all := &st.Backfill, int64(0), int64(0)
	for status, n := range counts {
		sum += n
		c.wrong(done.Counts[status] != n, "got %v, want %v", done.Counts, counts)
	}
	for _, n := range done.Counts {
		all += n
	}
	over := done.Over && done.Tick.IsZero() && done.Parallel == 0
	c.wrong(err != nil || !over || done.Order.Seq != o.Seq || all != sum,
		"got %+v, %v", st.Backfill, err)
}

// wantFilled checks that a backfill is over with so many of each outcome, that its ticks ran in their order, as many
// at a time as were ordered, and that no other tick ran meanwhile.
func (c *cluster) wantFilled(o soloist.Order, w soloist.Work, counts map[event.Status]int64) {
	c.t.Helper()
	c.wantCounted(o, w, counts)
	runs, ticks := c.filled(), map[time.Time]bool{}
	most := atOnce(runs)
	c.wrong(most != max(1, o.Backfill.Parallel), "%d ticks at once", most)
	for _, r := range runs {
		ticks[r.Tick] = true
		c.wrong(r.ID() != "work@"+r.Tick.Format(time.RFC3339) || r.Request != "" || r.Backfill != o.Seq,
			"got %+v with the ID %s", r.Run, r.ID())
		period := r.Next.Sub(r.Tick)
		c.wrong(period <= 0 || !r.Previous.Equal(r.Tick.Add(-period)), "tick %s is given %s and %s", r.Tick, r.Previous, r.Next)
		for _, other := range c.all() {
			switch {
			case other.Backfill == 0:
				c.wrong(other.start.Before(r.end) && other.end.After(r.start),
					"the run of %s is beside that of %s", r.Tick, other.Tick)
			case other.Tick.Before(r.Tick) && other.Token > r.Token && other.Attempt == 1 && r.Attempt == 1:
				c.t.Errorf("%s is claimed after %s", other.Tick, r.Tick)
			}
		}
	}
	c.wrong(len(ticks) != o.Ticks, "%d ticks were run", len(ticks))
}

// filling starts replicas, and orders a backfill 90 seconds later.
func (c *cluster) filling(w soloist.Job, b soloist.Backfill, names ...string) soloist.Order {
	c.t.Helper()
	c.startAll(w, names...)
	time.Sleep(90 * time.Second)
	return c.fills(b, w)
}

func TestBackfill(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := work("@every 1m", 10*time.Second)
		all := c.startAll(w, "a", "b", "c")
		until(90 * time.Second)
		b := lastHour(30, parallel)
		plan, err := c.replica("desk", w).PlanBackfill(c.t.Context(), "work", b)
		c.wrong(err != nil || plan.Ticks != 30 || !plan.First.Equal(b.From) || !plan.Last.Equal(b.To), "got %+v, %v", plan, err)
		o := c.fills(b, w)
		c.awaitFilled(parallel)
		st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work")
		c.wrong(err != nil || st.Backfill.Tick.IsZero() || st.Backfill.Parallel != parallel-1 || st.Backfill.Over,
			"got %+v, %v", st.Backfill, err)
		until(11*time.Minute + 30*time.Second)
		c.wantFilled(o, w, map[event.Status]int64{event.Succeeded: 30})
		c.wantAllSucceeded()
		n := c.record("work").Counts[event.Succeeded]
		c.wrong(n != 11, "the record counts %d ticks", n)
		tokens, ends := map[int64]bool{}, 0
		for _, r := range c.all() {
			if r.Backfill != 0 {
				tokens[r.Token] = true
			} else {
				c.wrong(r.start.Sub(r.Tick) > 11*time.Second, "the tick %s began at %s", r.Tick, r.start)
			}
		}
		for _, r := range all {
			ends += len(r.log.lines("run ended", "request=backfill/"))
		}
		claims := (30 + parallel - 1) / parallel
		c.wrong(len(tokens) != claims || ends != 30, "%d tokens, want %d, and %d ends in the logs", len(tokens), claims, ends)
		for range 2 { // each caller gets counts of its own
			st, err := all["a"].StatusOf(c.t.Context(), "work")
			if b := &st.Backfill; err != nil || b.Counts[event.Succeeded] != 30 || !b.Order.Backfill.To.Equal(o.Backfill.To) {
				t.Fatalf("got %+v, %v", b, err)
			}
			st.Backfill.Counts[event.Succeeded] = 999
		}
	})
}

// What a backfill runs, and what it leaves.
func TestBackfills(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a run that is ordered comes before its next tick": func(c *cluster) {
			// The run is not skipped for the one under which it was ordered.
			w := work("@hourly", 25*time.Second)
			c.filling(w, lastHours(24, 1), "a", "b")
			time.Sleep(30 * time.Second)
			c.order(soloist.Order{Kind: soloist.OrderRun, Request: "please"}, w)
			time.Sleep(30 * time.Second)
			c.wantOnce("please")
		},
		"a tick whose run has returned has its outcome": func(c *cluster) {
			// It has that also if the other runs of its claim go on and their runner dies.
			w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
				if r.Backfill != 0 && r.Tick.Hour() == 21 {
					return pause(ctx, time.Hour)
				}
				return pause(ctx, time.Second)
			})
			o := c.filling(w, lastHours(5, 4), "a")
			time.Sleep(10 * time.Second)
			got := c.record("work").Backfill
			c.wrong(got.Counts[event.Succeeded] != 3 || len(got.Open) != 1, "got %+v", got)
			c.started[0].kill()
			c.start("b", w)
			time.Sleep(5 * time.Minute)
			c.wantFilled(o, w, map[event.Status]int64{event.Succeeded: 4, event.Abandoned: 1})
		},
		"without All it has the ticks that the history shows as missed": func(c *cluster) {
			// Of those it has the ticks that no backfill has run since.
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
			c.wrong(o.Ticks != 9, "the newest of ten was run: got %+v", o.Backfill)
			c.wantFilled(o, w, map[event.Status]int64{event.Succeeded: 9})
			for _, r := range []*replica{up, c.replica("desk", w)} { // the desk has not read the orders yet
				_, err := r.PlanBackfill(c.t.Context(), "work", b)
				wantError(c.t, err, "has made up for it")
				c.wantIs(err, soloist.ErrRefused)
			}
			time.Sleep(time.Hour)
			_, err := up.PlanBackfill(c.t.Context(), "work", b)
			wantError(c.t, err, "of none before") // the history does not reach back
		},
		"a call goes on with it while it has time for a run, and it is no error if it has none": func(c *cluster) {
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
				c.wrong(err != nil || len(got.Jobs[0].Ran) != call.runs, "in %s, got %+v, %v", call.d, got, err)
			}
			c.wantFilled(o, w, map[event.Status]int64{event.Succeeded: 6})
		},
		"runs in parallel cannot share the one checkpoint of the entry": func(c *cluster) {
			w := doing("@every 1m", func(ctx context.Context, r *soloist.Run) error {
				if r.Backfill == 0 {
					return r.Save(ctx, "of the job")
				}
				var got string
				for _, err := range []error{r.Save(ctx, "lost"), r.Load(ctx, &got)} {
					wantError(c.t, err, "without parallel")
				}
				return nil
			})
			o := c.filling(w, lastHour(3, 4), "a")
			time.Sleep(time.Minute)
			c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 3})
		},
		"the log has each of its outcomes": func(c *cluster) {
			// The record only counts them.
			w := work("@every 10m", time.Second)
			a := c.replica("a", w)
			defer c.keepHistory(a)()
			c.launch(a)
			time.Sleep(65 * time.Minute)
			c.fills(soloist.Backfill{From: time.Now().Add(-time.Hour), To: time.Now(), All: true}, w)
			time.Sleep(3 * time.Hour)
			filled, lines := 0, c.logged("work")
			for _, l := range lines {
				if event.BackfillOf(l.Request) != 0 {
					filled++
				}
			}
			c.wrong(filled != 6, "%d of %d outcomes are of the backfill, want 6", filled, len(lines))
		},
	})
}

// Replicas die again and again, or are stopped. Each tick of the backfill has one outcome.
func TestBackfillOutlivesReplicas(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Rerun, soloist.Abandon} {
		t.Run(string(policy), func(t *testing.T) {
			bothWays(t, func(t *testing.T, c *cluster, parallel int) {
				w := work("@every 1m", 5*time.Second)
				w.Interrupted = policy
				n, most := 30+5*parallel, 4*parallel
				o := c.filling(w, lastHour(n, parallel), "first")
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
				died := c.record("work").Backfill.Counts[event.Abandoned]
				c.wrong(policy == soloist.Rerun && died > 0 || policy == soloist.Abandon && (died < 3 || died > int64(most)),
					"%d ticks are abandoned", died)
				counts := map[event.Status]int64{event.Succeeded: int64(n) - died}
				if died > 0 {
					counts[event.Abandoned] = died
				}
				c.wantFilled(o, w, counts)
				runs := c.filled()
				c.wrong(len(runs) < n || len(runs) > n+most || policy == soloist.Abandon && len(runs) != n, "%d runs", len(runs))
				for i := 1; i < len(runs); i++ {
					gap := runs[i].start.Sub(runs[i-1].start)
					c.wrong(gap > 2*D, "the backfill stood still for %s after %s", gap, runs[i-1].Tick)
				}
			})
		})
	}
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
		o := c.filling(w, lastHour(12, parallel), "a")
		time.Sleep(20 * time.Minute)
		c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 4, event.Failed: 8})
		r, failed := c.record("work"), o.Backfill.From.Add(10*time.Minute)
		c.wrong(r.Failures != 0 || len(c.filled()) != 24 || !r.Backfill.Failed.Equal(failed),
			"got %+v after %d runs", r, len(c.filled()))
	})
}

// An order to cancel the run that is under way is about the ticks of its claim alone. A cancelled backfill ends that run and
// begins no other, and another backfill may follow.
func TestBackfillIsCancelled(t *testing.T) {
	for _, kind := range []soloist.OrderKind{soloist.OrderCancelBackfill, soloist.OrderCancel} {
		t.Run(string(kind), func(t *testing.T) {
			bothWays(t, func(t *testing.T, c *cluster, parallel int) {
				w := work("@every 1m", 20*time.Second)
				fill := soloist.Order{Kind: soloist.OrderBackfill, Job: "work", Backfill: lastHour(8, parallel)}
				o := c.filling(w, fill.Backfill, "a", "b")
				a, b := c.started[0], c.started[1]
				time.Sleep(10 * time.Second)
				_, err := a.Order(c.t.Context(), fill)
				c.wantIs(err, soloist.ErrRefused)
				c.order(soloist.Order{Kind: kind}, w)
				time.Sleep(10 * time.Minute)
				counts := map[event.Status]int64{event.Cancelled: int64(parallel)}
				if kind == soloist.OrderCancel {
					counts[event.Succeeded] = int64(8 - parallel)
				}
				c.wantCounted(o, w, counts)
				ended := 0
				for _, r := range c.filled() {
					if errors.Is(r.cause, soloist.ErrCancelled) {
						ended++
					}
				}
				c.wrong(ended != parallel, "%d runs were cancelled", ended)
				c.wantIs(a.orders(soloist.OrderCancelBackfill), soloist.ErrNotRunning)
				o = c.order(fill, w)
				time.Sleep(10 * time.Minute)
				c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 8})
				_, err = a.Order(c.t.Context(), fill)
				c.ok(err)
				c.ok(b.orders(soloist.OrderCancelBackfill)) // it has not read of that one
			})
		})
	}
}

// Ticks that wait for another attempt have their outcome when their backfill is cancelled; there is no run to cancel alone.
func TestBackfillIsCancelledBetweenAttempts(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := rerun(work("@hourly", 20*time.Second))
		o := c.filling(w, lastHours(24, parallel), "a")
		time.Sleep(10 * time.Second)
		c.started[0].stop()
		err := c.replica("desk", w).orders(soloist.OrderCancel)
		wantError(t, err, "cancel the backfill")
		c.wantIs(err, soloist.ErrNotRunning)
		c.order(soloist.Order{Kind: soloist.OrderCancelBackfill}, w)
		c.start("b", w)
		time.Sleep(time.Minute)
		c.wantCounted(o, w, map[event.Status]int64{event.Cancelled: int64(parallel)})
		c.wantRuns(parallel)
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
		c.wantFilled(o, w, map[event.Status]int64{event.Succeeded: 6})
		for _, r := range c.filled() {
			c.wrong(r.Attempt != 1, "got %+v", r.Run)
		}
	})
}

// A run of a backfill hangs for good. As host.Main does, its process ends when Overrun is called. Each outcome that the record
// counts has its event, from whichever replica.
func TestHungRunOfBackfillIsTold(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		hung := make(chan struct{})
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 22 {
				<-hung
				return nil
			}
			return pause(ctx, 5*time.Second)
		})
		w.HeartbeatTimeout = 20 * time.Second
		var mu sync.Mutex
		told := map[event.Status]int64{}
		hear := func(dead *bool) func(event.Event) {
			return func(e event.Event) {
				mu.Lock()
				defer mu.Unlock()
				if !*dead && e.Outcome.Status != "" && event.BackfillOf(e.Run.Request) != 0 {
					told[e.Outcome.Status]++
				}
			}
		}
		aDead, bDead := false, false
		a := c.replica("a", w)
		a.Scheduler.Events = hear(&aDead)
		a.Overrun = func(string, error) { mu.Lock(); aDead = true; mu.Unlock(); a.kill() } // the process ends
		c.launch(a)
		time.Sleep(90 * time.Second)
		o := c.fills(lastHours(4, parallel), w)
		time.Sleep(10 * time.Second)
		b := c.replica("b", w)
		b.Scheduler.Events = hear(&bDead)
		c.launch(b)
		time.Sleep(20 * time.Minute)
		counts := c.record("work").Backfill.Counts
		mu.Lock()
		for status, n := range counts {
			if told[status] != n {
				t.Errorf("order %d: the record counts %d outcomes %q, and %d were told", o.Seq, n, status, told[status])
			}
		}
		mu.Unlock()
		close(hung)
	})
}

// A call of RunDue reports what it has run of a backfill, however many at a time.
func TestBackfillIsInReport(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := doing("@every 1h", func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, time.Second) })
		r := c.replica("a", w)
		r.wake()
		o := c.fills(lastHours(8, parallel), w)
		time.Sleep(time.Minute)
		report, err := r.RunDue(t.Context(), soloist.Wake{})
		c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 8})
		if n := len(report.Jobs[0].Ran); err != nil || n != 8 {
			t.Errorf("the report has %d outcomes, want 8: %v", n, err)
		}
	})
}

// After a stall the other replicas get the first chance, also at a tick of a backfill.
func TestHeadStartAfterStallOfBackfill(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		hung := false
		w := doing("@every 1h", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && !hung {
				hung = true
				<-ctx.Done()
				return ctx.Err()
			}
			return pause(ctx, time.Second)
		})
		w.HeartbeatTimeout, w.Interrupted = 10*time.Second, soloist.Rerun
		c.start("a", w)
		time.Sleep(2 * time.Minute)
		c.fills(lastHours(9, parallel), w)
		time.Sleep(2 * time.Minute)
		var end time.Time
		all := c.filled()
		for _, r := range all {
			if r.Token == all[0].Token && r.end.After(end) {
				end = r.end
			}
		}
		for _, r := range all {
			if d := r.start.Sub(end); r.Token != all[0].Token && d < 1500*time.Millisecond {
				t.Errorf("the next run began %s after the stalled one", d)
			}
		}
	})
}

// A stalled run of a backfill has ended when it stalled, as far as its outcome says, also over a store that gives no dates.
func TestStalledRunOfBackfillHasAnEnd(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		w.HeartbeatTimeout = 20 * time.Second
		c.replica("first", w).wake()
		time.Sleep(2 * time.Minute)
		c.fills(lastHours(1, parallel), w)
		a := c.replica("a", w)
		a.tap.date = noDate
		book := a.tells()
		c.launch(a)
		time.Sleep(5 * time.Minute)
		for _, e := range book.of("work", event.Ended) {
			if e.Took < 0 || e.Outcome.End.Year() < 1999 {
				t.Errorf("it took %s, and ended at %s", e.Took, e.Outcome.End)
			}
		}
	})
}
