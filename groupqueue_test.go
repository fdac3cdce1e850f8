package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// queuing returns the jobs of a group under QueueOne: "work" on the hour, which takes 70 minutes, and "other", which
// takes 30.
func queuing(other string, deadline time.Duration) []soloist.Work {
	long := overlapping(soloist.QueueOne, "@hourly", 70*time.Minute)
	short := named("other", work(other, 30*time.Minute))
	long.Group, long.StartingDeadline = "imports", deadline
	short.Group, short.Overlap = "imports", soloist.QueueOne
	return []soloist.Work{long, short}
}

// oneByOne checks that the runs of all jobs were one after the other, and that each tick ran once.
func (c *cluster) oneByOne() {
	c.t.Helper()
	if got := atOnce(c.all()); got != 1 {
		c.t.Errorf("%d runs at once", got)
	}
	seen := map[string]bool{}
	for _, r := range c.all() {
		tick := r.Job + r.Tick.Format(" 15:04:05")
		if seen[tick] {
			c.t.Errorf("%s ran twice", tick)
		}
		seen[tick] = true
	}
}

// A tick that has waited for the end of a run waits for a slot of the group then, which another job may have before it.
func TestQueuedTickWaitsForSlot(t *testing.T) {
	for name, tt := range map[string]struct {
		other    string
		deadline time.Duration
		want     []string
	}{
		"free":                    {"0 30 12 * * *", 0, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"taken by the other":      {"0 9,10 2 * * *", 0, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"past its deadline there": {"0 9,10 2 * * *", 20 * time.Minute, []string{"succeeded 01:00:00", "skipped 02:00:00 group imports", "succeeded 03:00:00"}},
		"past its deadline":       {"0 9,10 2 * * *", 5 * time.Minute, []string{"succeeded 01:00:00", "missed 02:00:00 past the starting deadline", "succeeded 03:00:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			for _, name := range []string{"a", "b", "c"} {
				c.limited(name, 1, queuing(tt.other, tt.deadline)...)
			}
			until(6 * time.Hour)
			if got := c.outcomes("work"); !slices.Equal(got[:min(len(got), 3)], tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			c.oneByOne()
			if next := c.all()[1]; next.Job == "other" != (name != "free") {
				t.Errorf("%s has the slot after the first run", next.Job)
			}
		})
	}
}

// The runner dies while a tick waits for its run, and another job has the slot after it.
func TestQueuedTickOutlivesDeathInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := map[string]*replica{}
		for _, name := range []string{"a", "b", "c"} {
			all[name] = c.limited(name, 1, queuing("0 5 2 * * *", 0)...)
		}
		until(2*time.Hour + 6*time.Minute)
		all[c.all()[0].replica].kill()
		until(2*time.Hour + 50*time.Minute)
		runs := c.all()
		if len(runs) != 3 || runs[1].start.After(time.Date(2000, 1, 1, 2, 7, 30, 0, time.UTC)) || runs[2].start.Sub(runs[1].end) > 10*time.Second && runs[1].Job == "other" {
			t.Errorf("got %+v", runs)
		}
		until(6 * time.Hour)
		got := c.outcomes("work")
		if want := []string{"abandoned 01:00:00 its runner died", "succeeded 02:00:00"}; !slices.Equal(got[:min(len(got), 2)], want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.oneByOne()
	})
}

// Four jobs share one slot, which has room for a third of their ticks. Each job has its turn, and the slot is never free for
// long.
func TestQueuedTicksShareSlot(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var jobs []soloist.Work
		for _, w := range inGroup(4, "@every 1m", 50*time.Second) {
			job := w.(soloist.Job)
			job.Overlap = soloist.QueueOne
			jobs = append(jobs, job)
		}
		for _, name := range []string{"a", "b"} {
			c.limited(name, 1, jobs...)
		}
		until(40 * time.Minute)
		runs := c.all()
		c.oneByOne()
		if len(runs) < 40 {
			t.Errorf("%d runs in 40 minutes: the slot was free in between", len(runs))
		}
		for _, w := range jobs {
			name := w.(soloist.Job).Name
			n := 0
			for _, r := range runs {
				if r.Job == name {
					n++
				}
			}
			if n < 2 {
				t.Errorf("%s had %d of %d runs", name, n, len(runs))
			}
			for _, o := range c.outcomes(name) {
				if !strings.HasPrefix(o, "succeeded") && !strings.HasPrefix(o, "skipped") && !strings.Contains(o, "a newer one was due") {
					t.Errorf("%s: %s", name, o)
				}
			}
		}
	})
}

// A call of RunDue runs the tick that has waited for its run and then for the slot.
func TestRunDueRunsQueuedTickInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", queuing("0 30 1 * * *", 0)...)
		r.Groups = map[string]int{"imports": 1}
		r.wake()
		until(time.Hour)
		if _, err := r.RunDue(context.Background(), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		r.wake()
		c.oneByOne()
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00", "succeeded 02:00:00"}; !slices.Equal(got[:min(2, len(got))], want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := c.outcomes("other"); !slices.Contains(got, "succeeded 01:30:00") {
			t.Errorf("got %q", got)
		}
	})
}

// slotsFail fails all calls for the slots of groups.
func slotsFail(err error) func(op, name string) error {
	return func(_, name string) error {
		if strings.Contains(name, "-group-") {
			return err
		}
		return nil
	}
}

// busyGroup has one replica run a job of a group of one slot for hours, and another replica wait for
// the slot.
func (c *cluster) busyGroup() (waiting *replica) {
	long, short := named("long", work("0 1 * * *", 5*time.Hour)), named("short", work("30 1 * * *", time.Second))
	long.Group, short.Group = "imports", "imports"
	c.limited("a", 1, long)
	until(time.Hour + 10*time.Second)
	b := c.limited("b", 1, short)
	until(time.Hour + 31*time.Minute)
	return b
}

// A job that waits for a slot is not stuck while the store is out of reach.
func TestGroupWaitsInOutage(t *testing.T) {
	for name, d := range map[string]time.Duration{"fails": 0, "fails late": time.Second} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			b := c.busyGroup()
			if h := b.Health(); h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("while it waits: %+v", h)
			}
			b.meets(func(string, func() error) error { time.Sleep(d); return errNetwork })
			time.Sleep(10 * time.Minute)
			if h := b.Health(); !errors.Is(h.Storage, errNetwork) || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("in the outage: %+v", h)
			}
			b.meets(nil)
			time.Sleep(time.Minute)
			if h := b.Health(); h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("after the outage: %+v", h)
			}
		})
	}
}

// The entry of a slot alone fails: that is the trouble of the jobs that need it, which are not stuck.
func TestGroupWaitsForSlotThatFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		in, free := named("in", work("0 * * * *", time.Second)), named("free", work("@every 10s", time.Second))
		in.Group = "imports"
		s := &faultyStore{Store: c.store}
		s.meets(slotsFail(errors.New("500")), nil)
		r := c.replica("a", in, free)
		r.Groups, r.Store = map[string]int{"imports": 1}, s
		c.launch(r)
		until(time.Hour + 20*time.Minute)
		h := r.Health()
		if h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 1 || !strings.Contains(fmt.Sprint(h.Broken["in"]), "imports") {
			t.Errorf("while the slot fails: %+v", h)
		}
		r.wantLines(1, "call to the store failed", "group=imports")
		s.meets(nil, nil)
		time.Sleep(time.Minute)
		if h := r.Health(); len(h.Broken) != 0 || c.countOf("in") != 1 {
			t.Errorf("afterwards: %+v, after %d runs", h, c.countOf("in"))
		}
		r.wantLines(1, "answers again", "group=imports")
	})
}

// A call returns and tells of slots that fail, or do not answer, however many there are.
func TestRunDueTellsSlotsThatFail(t *testing.T) {
	for what, fails := range map[string]func(ctx context.Context) error{
		"fail": func(context.Context) error { return errors.New("500") },
		"hang": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for _, slots := range []int{1, 2, 100} {
			inCase(t, fmt.Sprint(slots, " ", what), func(t *testing.T, c *cluster) {
				r := c.replica("a", inGroup(2, "0 * * * *", time.Second)...)
				r.Groups = map[string]int{"imports": slots}
				r.wake() // makes the entries
				until(time.Hour)
				r.Store = &slotless{c.store, fails}
				again := c.replicaOf(r, "b")
				again.Store = r.Store
				begin := time.Now()
				_, err := again.RunDue(c.within(10*time.Hour), soloist.Wake{})
				if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "imports") || took > time.Minute {
					t.Errorf("RunDue returned %v after %s", err, took)
				}
				begin = time.Now()
				_, err = again.RunNow(c.within(10*time.Hour), "import-0", "by-hand")
				if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "imports") || took > time.Minute {
					t.Errorf("RunNow returned %v after %s", err, took)
				}
			})
		}
	}
}

// A slotless store fails the reads of the slots of groups.
type slotless struct {
	store.Store
	fails func(context.Context) error
}

func (s *slotless) Read(ctx context.Context, name string) (store.Entry, error) {
	if strings.Contains(name, "-group-") {
		return store.Entry{}, s.fails(ctx)
	}
	return s.Store.Read(ctx, name)
}

// No slot answers, and each job waits behind the one that tries: nobody is known to have a slot.
func TestGroupOfSlotsThatHang(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(func(op, name string) error {
			err := slotsFail(errNetwork)(op, name)
			if err != nil {
				time.Sleep(2 * time.Second)
			}
			return err
		}, nil)
		r := c.replica("a", inGroup(2, "* * * * *", 0)...)
		r.Groups, r.Store = map[string]int{"imports": 4}, s
		c.launch(r)
		until(time.Minute + time.Second)
		for i := range 5 {
			_, err := r.RunNow(c.within(30*time.Second), "import-1", fmt.Sprint("now-", i))
			if wantError(t, err, "no slot of the group imports can be used"); errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: %v", sinceMidnight(), err)
			}
			time.Sleep(1300 * time.Millisecond)
		}
		until(4*time.Minute + 30*time.Second)
		s.meets(nil, nil)
		until(6*time.Minute + 30*time.Second)
		for _, job := range []string{"import-0", "import-1"} {
			if got := fmt.Sprint(c.outcomes(job)); !strings.Contains(got, "missed") || strings.Contains(got, "imports") {
				t.Errorf("%s: %s", job, got)
			}
		}
	})
}

// A call ends in the hold-off of its slot. The next one waits until the lease of that has expired, with few looks.
func TestGroupAfterCallThatHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		a.kill()
		if err := c.store.Break(t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		other := named("other", work("2 * * * *", time.Second))
		other.Group = "imports"
		b := c.replica("b", other)
		b.Groups = map[string]int{"imports": 1}
		until(2*time.Hour + time.Minute)
		b.wake()
		until(2*time.Hour + 2*time.Minute)
		_, err := b.RunDue(c.within(5*time.Second), soloist.Wake{})
		wantError(t, err, "no slot of the group imports", "did not expire by itself", "deadline")
		if _, err := b.RunDue(c.within(time.Minute), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		if n := b.tap.counts()["read"]; c.countOf("other") != 1 || n > 40 {
			t.Errorf("%d runs after %d reads", c.countOf("other"), n)
		}
	})
}

// One of two slots fails, and no job waits for it.
func TestGroupPassesOverSlotThatFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(of("1-group-imports", errors.New("500")), nil)
		r := c.replica("a", inGroup(1, "0 * * * *", time.Second)...)
		r.Groups, r.Store = map[string]int{"imports": 2}, s
		for hour := range 20 {
			until(time.Duration(hour) * time.Hour)
			r.wake()
		}
		c.wantRuns(19)
		for _, run := range c.all() {
			if late := run.start.Sub(run.Tick); late > 5*time.Second {
				t.Errorf("%s was run %s late", run.ID(), late)
			}
		}
	})
}

// Calls of a lock of several slots wait for the end of an outage, as those of a lock of one do.
func TestLockOfSlotsWaitsForStore(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(fail(errNetwork))
			begin, ctx := time.Now(), c.within(time.Hour)
			time.AfterFunc(20*time.Minute, func() { a.meets(nil) })
			var all sync.WaitGroup
			for what, by := range map[string]func(*soloist.Lock) error{
				"Do":    func(l *soloist.Lock) error { return l.Do(ctx, c.watch("a", nil)) },
				"TryDo": func(l *soloist.Lock) error { return l.TryDo(ctx, c.watch("a", nil)) },
			} {
				l := a.pool(slots)
				l.Name = what
				all.Go(func() {
					if err := by(l); err != nil || time.Since(begin) < 20*time.Minute || time.Since(begin) > 21*time.Minute {
						t.Errorf("%s returned %v after %s", what, err, time.Since(begin))
					}
				})
			}
			all.Wait()
			c.wantRuns(2)
		})
	}
}

// The error of a call whose context ends in an outage says what the store has answered.
func TestLockOfSlotsTellsOutage(t *testing.T) {
	for _, slots := range []int{1, 3} {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(fail(errNetwork))
			for _, by := range []func(*soloist.Lock) error{
				func(l *soloist.Lock) error { return l.Do(c.within(20*time.Minute), c.watch("a", nil)) },
				func(l *soloist.Lock) error { return l.TryDo(c.within(20*time.Minute), c.watch("a", nil)) },
			} {
				err := by(a.pool(slots))
				if !errors.Is(err, errNetwork) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
