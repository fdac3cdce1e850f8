package soloist_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// fourAtOnce is lastHour with four ticks at a time.
func fourAtOnce(n int) soloist.Backfill {
	b := lastHour(n)
	b.Parallel = 4
	return b
}

// wantFilledBeside checks that a backfill of n ticks is over with so many of each outcome, that all its ticks were run, up to
// four at once, and that no run of another tick was beside them.
func (c *cluster) wantFilledBeside(o store.Order, w soloist.Work, counts map[store.Status]int64) {
	c.t.Helper()
	c.wantCounted(o, w, counts)
	if most := atOnce(c.filled()); most != 4 {
		c.t.Errorf("%d ticks at once", most)
	}
	first := map[time.Time]int{}
	for _, r := range c.filled() {
		first[r.Tick]++
		for _, other := range c.all() {
			if other.Backfill == 0 && other.start.Before(r.end) && other.end.After(r.start) {
				c.t.Errorf("the run of %s is beside that of %s", r.Tick, other.Tick)
			}
			if other.Tick.Before(r.Tick) && other.Token > r.Token && other.Attempt == 1 && r.Attempt == 1 && other.Backfill != 0 && counts[store.Cancelled] == 0 {
				c.t.Errorf("%s is claimed after %s", other.Tick, r.Tick)
			}
		}
	}
	if len(first) != o.Backfill.Ticks {
		c.t.Errorf("%d ticks were run", len(first))
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
	if err != nil || !st.Backfill.Over || !st.Backfill.Tick.IsZero() || st.Backfill.Beside != 0 || done.Seq != o.Seq || len(done.Open) != 0 || done.Done() != sum {
		c.t.Errorf("got %+v, %v", st.Backfill, err)
	}
}

func TestBackfillInParallel(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 10*time.Second)
		all := c.startAll(w, "a", "b", "c")
		time.Sleep(90 * time.Second)
		o := c.fills(fourAtOnce(30), w)
		c.awaitFilled(4)
		if st, err := c.replica("desk", w).StatusOf(c.t.Context(), "work"); err != nil || st.Backfill.Tick.IsZero() || st.Backfill.Beside != 3 || st.Backfill.Over {
			t.Errorf("got %+v, %v", st.Backfill, err)
		}
		time.Sleep(4 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 30})
		c.wantPunctual(11 * time.Second)
		tokens, told := map[int64]int{}, 0
		for _, r := range c.filled() {
			tokens[r.Token]++
		}
		for _, r := range all {
			told += len(r.log.lines("run ended", "request=backfill/"))
		}
		if len(tokens) != 8 || told != 30 {
			t.Errorf("%d tokens, and %d ends are told", len(tokens), told)
		}
	})
}

// A tick of the job that comes due waits for the runs of one claim, and is not skipped for them.
func TestBackfillInParallelGivesWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 25*time.Second)
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		o := c.fills(fourAtOnce(20), w)
		time.Sleep(20 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 20})
		c.wantPunctual(26 * time.Second)
	})
}

// Replicas die again and again. Each tick of the backfill has one outcome.
func TestBackfillInParallelOutlivesReplicas(t *testing.T) {
	for name, policy := range map[string]soloist.InterruptedPolicy{"rerun": soloist.Rerun, "abandon": soloist.Abandon} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 5*time.Second)
			w.Interrupted = policy
			c.start("first", w)
			time.Sleep(90 * time.Second)
			o := c.fills(fourAtOnce(60), w)
			for _, name := range []string{"a", "b", "c", "last"} {
				c.awaitFilled(6)
				c.started[len(c.started)-1].kill()
				c.start(name, w)
			}
			time.Sleep(30 * time.Minute)
			died := c.record("work").Backfill.Counts[store.Abandoned]
			if policy == soloist.Rerun && died > 0 || policy == soloist.Abandon && (died < 4 || died > 16) {
				t.Errorf("%d ticks are abandoned", died)
			}
			counts := map[store.Status]int64{store.Succeeded: 60 - died}
			if died > 0 {
				counts[store.Abandoned] = died
			}
			c.wantFilledBeside(o, w, counts)
			if n := len(c.filled()); n < 60 || n > 76 || policy == soloist.Abandon && n != 60 {
				t.Errorf("%d runs", n)
			}
		})
	}
}

// A tick whose run has returned has its outcome though those beside it go on, and their runner dies.
func TestBackfillInParallelKeepsOutcomes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 21 {
				return pause(ctx, time.Hour)
			}
			return pause(ctx, time.Second)
		})
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		at := time.Now().Truncate(time.Hour)
		o := c.fills(soloist.Backfill{From: at.Add(-5 * time.Hour), To: at.Add(-time.Hour), All: true, Parallel: 4}, w)
		time.Sleep(10 * time.Second)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 3 || len(got.Open) != 1 {
			t.Errorf("got %+v", got)
		}
		a.kill()
		c.start("b", w)
		time.Sleep(5 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 4, store.Abandoned: 1})
	})
}

// A tick that kills its runner costs those beside it one attempt.
func TestBackfillInParallelIsolatesDeaths(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(doing("@hourly", nil))
		w.Do = func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 22 {
				c.mu.Lock()
				last := c.started[len(c.started)-1]
				c.mu.Unlock()
				last.kill()
			}
			return pause(ctx, 5*time.Second)
		}
		c.start("a", w)
		time.Sleep(90 * time.Second)
		at := time.Now().Truncate(time.Hour)
		o := c.fills(soloist.Backfill{From: at.Add(-5 * time.Hour), To: at.Add(-time.Hour), All: true, Parallel: 4}, w)
		for _, name := range []string{"b", "c", "d", "e", "f", "g"} {
			time.Sleep(2 * time.Minute)
			r := c.replica(name, w)
			c.mu.Lock()
			c.launch(r)
			c.mu.Unlock()
		}
		time.Sleep(2 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 4, store.Abandoned: 1})
		if n := len(c.filled()); n != 4+3+4+1 {
			t.Errorf("%d runs", n)
		}
	})
}

// A stop gives the ticks of a claim to another replica, under Rerun.
func TestBackfillInParallelOutlivesStops(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1m", 20*time.Second))
		a := c.start("a", w)
		time.Sleep(70 * time.Second)
		o := c.fills(fourAtOnce(10), w)
		time.Sleep(25 * time.Second)
		c.start("b", w)
		a.stop()
		time.Sleep(10 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 10})
	})
}

// Whoever cancels the backfill, or the run that is under way, cancels all runs of the claim.
func TestBackfillInParallelIsCancelled(t *testing.T) {
	for kind, counts := range map[store.OrderKind]map[store.Status]int64{
		store.OrderCancelBackfill: {store.Cancelled: 4},
		store.OrderCancel:         {store.Cancelled: 4, store.Succeeded: 4},
	} {
		inCase(t, string(kind), func(t *testing.T, c *cluster) {
			w := work("@every 1m", 20*time.Second)
			c.startAll(w, "a", "b")
			time.Sleep(90 * time.Second)
			o := c.fills(fourAtOnce(8), w)
			time.Sleep(10 * time.Second)
			c.order(soloist.Order{Kind: kind}, w)
			time.Sleep(5 * time.Minute)
			c.wantCounted(o, w, counts)
			ended := 0
			for _, r := range c.filled() {
				if errors.Is(r.cause, soloist.ErrCancelled) {
					ended++
				}
			}
			if ended != 4 {
				t.Errorf("%d runs were cancelled", ended)
			}
		})
	}
}

// Ticks that wait for another attempt have their outcome when their backfill is cancelled.
func TestBackfillInParallelIsCancelledBetweenAttempts(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@every 1m", 20*time.Second))
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(fourAtOnce(8), w)
		time.Sleep(10 * time.Second)
		a.stop()
		c.order(soloist.Order{Kind: store.OrderCancelBackfill}, w)
		c.start("b", w)
		time.Sleep(time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Cancelled: 4})
		if n := len(c.filled()); n != 4 {
			t.Errorf("%d runs", n)
		}
	})
}

// A claim that was given up before its runs began costs no tick, and no attempt.
func TestBackfillInParallelIsGivenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		c.replica("first", w).wake()
		o := c.fills(fourAtOnce(6), w)
		c.stopDuringAClaim(w)
		time.Sleep(30 * time.Second)
		c.wantRuns(0)
		c.start("other", w)
		time.Sleep(2 * time.Minute)
		c.wantFilledBeside(o, w, map[store.Status]int64{store.Succeeded: 6})
		for _, r := range c.filled() {
			if r.Attempt != 1 {
				t.Errorf("got %+v", r.Run)
			}
		}
	})
}

// Each run has tries, and an end, of its own.
func TestBackfillInParallelGoesOnAfterFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
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
		w.Retry.MaxTries, w.Timeout = 2, 10*time.Second
		c.start("a", w)
		time.Sleep(90 * time.Second)
		o := c.fills(fourAtOnce(12), w)
		time.Sleep(10 * time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Succeeded: 4, store.Failed: 8})
		if r := c.record("work"); r.Failures != 0 || len(c.filled()) != 24 || !r.Backfill.Failed.Equal(o.Backfill.From.Add(10*time.Minute)) {
			t.Errorf("got %+v after %d runs", r, len(c.filled()))
		}
	})
}

// A run that stalls ends its lease, and with it the trust of those beside it. Each has one outcome all the same.
func TestBackfillInParallelOutlivesAStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(ctx context.Context, r *soloist.Run) error {
			if r.Backfill != 0 && r.Tick.Hour() == 22 {
				time.Sleep(5 * time.Minute)
				return nil
			}
			for range 10 {
				if err := r.Heartbeat(""); err != nil {
					return err
				}
				if err := pause(ctx, 10*time.Second); err != nil {
					return err
				}
			}
			return nil
		})
		w.HeartbeatTimeout = 20 * time.Second
		c.startAll(w, "a", "b")
		time.Sleep(2 * time.Minute)
		at := time.Now().Truncate(time.Hour)
		o := c.fills(soloist.Backfill{From: at.Add(-5 * time.Hour), To: at.Add(-time.Hour), All: true, Parallel: 4}, w)
		time.Sleep(20 * time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Stalled: 1, store.Abandoned: 3, store.Succeeded: 1})
	})
}

// The entry has one checkpoint, which runs beside each other cannot share.
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
		o := c.fills(fourAtOnce(3), w)
		time.Sleep(time.Minute)
		c.wantCounted(o, w, map[store.Status]int64{store.Succeeded: 3})
	})
}

func TestBackfillsInParallelThatAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, grouped := work("@every 1m", time.Second), named("grouped", work("@every 1m", time.Second))
		grouped.Group = "imports"
		c.limited("a", 2, w, grouped)
		time.Sleep(90 * time.Second)
		desk := c.replica("desk", w, grouped)
		desk.Groups = map[string]int{"imports": 2}
		b := lastHour(3)
		for n, text := range map[int]string{-1: "want 1 to 16", 17: "want 1 to 16"} {
			b.Parallel = n
			if _, err := desk.PlanBackfill(c.t.Context(), "work", b); !errors.Is(err, soloist.ErrRefused) || !strings.Contains(err.Error(), text) {
				t.Errorf("%d: %v", n, err)
			}
		}
		b.Parallel = 2
		if _, err := desk.PlanBackfill(c.t.Context(), "grouped", b); !errors.Is(err, soloist.ErrRefused) || !strings.Contains(err.Error(), "the group imports") {
			t.Errorf("of a group: %v", err)
		}
	})
}

// keepHistory has replicas that are not started yet write the log of outcomes until stop.
func (c *cluster) keepHistory(replicas ...*replica) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var done sync.WaitGroup
	for _, r := range replicas {
		h := &history.Writer{Store: c.store, App: "soloist", Failed: func(job string, err error) { c.t.Error(job, err) }}
		r.Events = h.Take
		done.Go(func() { h.Run(ctx) })
	}
	return func() { cancel(); done.Wait() }
}

// logged returns the outcomes of a job in its log and in its record.
func (c *cluster) logged(job string) []history.Line {
	rec := c.record(job)
	lines, err := history.Read(c.t.Context(), c.store, "soloist/"+job, time.Time{}, &rec)
	if err != nil {
		c.t.Error(err)
	}
	return lines
}

// The log of outcomes has those of a backfill, which the record only counts.
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

// Each shard has a backfill of its own.
func TestBackfillOfShards(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		w.Shards = 2
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		for _, name := range []string{"work-0", "work-1"} {
			c.order(soloist.Order{Kind: store.OrderBackfill, Job: name, Backfill: lastHour(5)}, w)
		}
		time.Sleep(2 * time.Minute)
		for _, name := range []string{"work-0", "work-1"} {
			if got := c.record(name).Backfill; got.Counts[store.Succeeded] != 5 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	})
}

// A run of a backfill takes a slot of the group of its job, and a tick that waits for one has that as its reason.
func TestBackfillInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		one, other := work("@every 1m", 5*time.Second), named("other", work("@every 1m", 20*time.Second))
		one.Group, other.Group = "imports", "imports"
		for _, name := range []string{"a", "b"} {
			c.limited(name, 1, one, other)
		}
		time.Sleep(90 * time.Second)
		r := c.replica("desk", one, other)
		r.Groups = map[string]int{"imports": 1}
		if _, err := r.Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: lastHour(10)}); err != nil {
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

// The ticks of a follower are run again whatever became of the jobs before it.
func TestBackfillOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		before, w := importing("@every 1m", 10*time.Second), following("work", "import", 5*time.Second)
		for _, name := range []string{"a", "b"} {
			c.start(name, before, w)
		}
		time.Sleep(90 * time.Second)
		c.order(soloist.Order{Kind: store.OrderBackfill, Backfill: lastHour(10)}, before, w)
		time.Sleep(10 * time.Minute)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 10 {
			t.Errorf("got %+v", got)
		}
		for _, f := range c.record("work").History {
			if f.Status != store.Succeeded {
				t.Errorf("got %+v", f)
			}
		}
	})
}
