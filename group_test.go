package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// inGroup is jobs of one group, each of which takes d.
func inGroup(n int, schedule string, d time.Duration) (all []soloist.Work) {
	for i := range n {
		job := named(fmt.Sprintf("import-%d", i), work(schedule, d))
		job.Group = "imports"
		all = append(all, job)
	}
	return all
}

// limited starts a replica whose group has n slots.
func (c *cluster) limited(name string, n int, work ...soloist.Work) *replica {
	r := c.replica(name, work...)
	r.Groups = map[string]int{"imports": n}
	return c.launch(r)
}

// replicaOf returns another replica with the same work, not started.
func (c *cluster) replicaOf(r *replica, name string) *replica {
	n := c.replica(name)
	n.Jobs, n.Groups = r.Jobs, r.Groups
	return n
}

// pair starts two jobs of one group on one replica, over a store that meets faults.
func (c *cluster) pair(first, second soloist.Job) *faultyStore {
	first.Group, second.Group = "imports", "imports"
	return c.faulty(1, first, second)
}

// faulty starts a replica whose group has n slots, over a store that meets faults.
func (c *cluster) faulty(n int, work ...soloist.Work) *faultyStore {
	s := &faultyStore{Store: c.store}
	r := c.replica("a", work...)
	r.Groups, r.Store = map[string]int{"imports": n}, s
	c.launch(r)
	return s
}

// breakSlot ends the lease of the first slot of the group at once.
func (c *cluster) breakSlot() {
	c.t.Helper()
	if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
		c.t.Fatal(err)
	}
}

// atOnce returns how many runs there were at once at most.
func atOnce(runs []ran) (most int) {
	for _, r := range runs {
		n := 0
		for _, o := range runs {
			if !o.start.After(r.start) && (o.end.IsZero() || o.end.After(r.start)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// oneByOne checks that the runs of all jobs were one after the other, and that each tick ran once.
func (c *cluster) oneByOne() {
	c.t.Helper()
	got := atOnce(c.all())
	c.wrong(got != 1, "%d runs at once", got)
	seen := map[string]bool{}
	for _, r := range c.all() {
		c.wrong(seen[r.ID()], "%s ran twice", r.ID())
		seen[r.ID()] = true
	}
}

// Three imports at once, over all jobs and replicas, and each import has its run.
func TestGroupLimitsRuns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.limited(name, 3, inGroup(8, "0 * * * *", time.Minute)...)
		}
		time.Sleep(2*time.Hour + 30*time.Minute)
		c.wantRuns(16)
		got := atOnce(c.all())
		c.wrong(got != 3, "%d runs at once, want 3", got)
		for i := range 8 {
			c.wantOutcomes(fmt.Sprintf("import-%d", i), "succeeded 01:00:00", "succeeded 02:00:00")
		}
		for _, r := range c.all() {
			late := r.start.Sub(r.Tick)
			c.wrong(late > 4*time.Minute, "%s started %s late", r.Job, late)
		}
	})
}

// A tick that gets no slot in its time is skipped, and its outcome says why.
func TestGroupWithoutFreeSlotSkips(t *testing.T) {
	for name, deadline := range map[string]time.Duration{"deadline": time.Minute, "next tick": 0} {
		skipped := "skipped 02:30:00 group imports"
		if deadline == 0 {
			skipped = "skipped 01:30:00-03:30:00 group imports"
		}
		inCase(t, name, func(t *testing.T, c *cluster) {
			long := named("long", work("0 2 * * *", 150*time.Minute))
			short := named("short", work("30 * * * *", time.Second))
			long.Group, short.Group, short.StartingDeadline = "imports", "imports", deadline
			c.limited("a", 1, long, short)
			c.limited("b", 1, long, short)
			until(6 * time.Hour)
			text := strings.Join(c.outcomes("short"), "\n")
			for _, want := range []string{skipped, "succeeded 05:30:00"} {
				c.wrong(!strings.Contains(text, want), "no %q in\n%s", want, text)
			}
			c.wrong(strings.Contains(text, "missed"), "missed, though a replica was up:\n%s", text)
			got := atOnce(c.all())
			c.wrong(got != 1, "%d runs at once", got)
		})
	}
}

// The run of a replica that is cut off from the store ends before its slot is free again, which takes a lease. If an
// operator breaks that, who takes the slot holds off, for longer than a tick waits for a slot. It is used all the same.
func TestGroupAfterDeath(t *testing.T) {
	for name, late := range map[string]time.Duration{"expires": time.Minute, "broken": 90 * time.Second} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
			until(time.Hour + time.Minute)
			other := named("other", work("2 * * * *", time.Second))
			other.Group = "imports"
			c.limited("b", 1, other)
			a.kill()
			if name == "broken" {
				c.breakSlot()
			}
			until(time.Hour + 11*time.Minute)
			runs := c.succession(2)
			c.wrong(!errors.Is(runs[0].cause, soloist.ErrLost), "the first run ended for %v", runs[0].cause)
			got := runs[1].start.Sub(runs[1].Tick)
			c.wrong(got > late, "the next run began %s late", got)
		})
	}
}

// A run whose slot is lost, and not its own lease, ends too. The slot is used again.
func TestGroupSlotIsLost(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		c.breakSlot()
		time.Sleep(D)
		r := c.all()[0]
		c.wrong(!errors.Is(r.cause, soloist.ErrLost), "the run goes on, or ended for %v", r.cause)
		until(6*time.Hour + 30*time.Minute)
		c.wantRuns(6)
	})
}

func TestGroupByHandAndByCall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", inGroup(3, "0 * * * *", time.Minute)...)
		r.Groups = map[string]int{"imports": 1}
		r.wake() // makes the entries
		time.Sleep(time.Hour)
		go func() {
			time.Sleep(30 * time.Second)
			if _, err := c.replicaOf(r, "b").RunNow(c.t.Context(), "import-0", "by-hand"); !errors.Is(err, store.ErrHeld) || err.Error() != "the group imports has no free slot" {
				t.Errorf("by hand: %v", err)
			}
		}()
		r.wake() // waits for its slots
		c.wantRuns(3)
		got := atOnce(c.all())
		c.wrong(got != 1, "%d runs at once", got)
		if o, err := r.RunNow(c.t.Context(), "import-0", "by-hand-2"); err != nil || o.Status != store.Succeeded {
			t.Errorf("by hand: %v, %v", o, err)
		}
	})
}

func TestGroupIsRefused(t *testing.T) {
	do := func(context.Context, *soloist.Run) error { return nil }
	job := soloist.Job{Name: "work", Schedule: "@hourly", Group: "imports", Do: do}
	for what, c := range map[string]struct {
		groups map[string]int
		job    soloist.Job
		want   string
	}{
		"no limit":      {nil, job, `Group is "imports", which has no limit`},
		"zero":          {map[string]int{"imports": 0}, job, `Groups["imports"] is 0`},
		"negative":      {map[string]int{"imports": -1}, job, `Groups["imports"] is -1`},
		"huge":          {map[string]int{"imports": 1e6}, job, `1 to 100`},
		"a name":        {map[string]int{"imports": 1, strings.Repeat("ü", 299): 1}, job, "allowed are 512"},
		"every replica": {map[string]int{"imports": 1}, soloist.Job{Name: "work", Schedule: "@hourly", Group: "imports", EveryReplica: true, Do: do}, "Group is"},
		"no job":        {map[string]int{"imports": 1, "import": 3}, job, `Groups["import"] is 3, and no job has the Group "import": the groups of jobs are "imports"`},
		"no group":      {map[string]int{"import": 3}, soloist.Job{Name: "work", Schedule: "@hourly", Do: do}, `no job has the Group "import": no job has a group`},
		"ahead":         {map[string]int{"imports": 1}, soloist.Job{Name: "work", Schedule: "@hourly", Group: "imports", ClaimAhead: true, Do: do}, "ClaimAhead"},
	} {
		s := &soloist.Scheduler{Jobs: []soloist.Job{c.job}, Groups: c.groups, Store: &local.Memory{}}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	other := job
	other.Name, other.Group = "other", "Ümläute/x"
	s := &soloist.Scheduler{Jobs: []soloist.Job{job, other}, Groups: map[string]int{"imports": 100, "Ümläute/x": 1}, Store: &local.Memory{}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// The outcome of a run cannot be written. Its slot is free all the same.
func TestGroupDoesNotWaitForOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(named("x", work("0 1 * * *", time.Minute)), named("y", work("30 * * * *", time.Second)))
		until(time.Hour + 30*time.Second)
		s.meets(of("x", errors.New("500")), nil)
		until(6 * time.Hour)
		n := len(c.runsOf("y"))
		c.wrong(n != 6, "y was run %d times, want 6", n)
		s.meets(nil, nil)
		time.Sleep(time.Minute)
	})
}

// Calls take so long that a slot cannot be had within the time for which others are waited for.
func TestGroupOverSlowStore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(leased(30*time.Second, named("x", work("0 * * * *", time.Second))), leased(30*time.Second, named("y", work("30 * * * *", time.Second))))
		s.meets(func(string, string) error { time.Sleep(2 * time.Second); return nil }, nil)
		until(6*time.Hour + 15*time.Minute)
		x, y := len(c.runsOf("x")), len(c.runsOf("y"))
		c.wrong(x != 6 || y != 6, "%d and %d runs, want 6 and 6", x, y)
		s.meets(nil, nil)
	})
}

// A slot is lost after the lease of the job is acquired, and before the tick is claimed: then no replica has to wait for
// the end of the lease.
func TestGroupSlotLostBeforeClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.faulty(1, inGroup(1, "0 1 * * *", time.Second)...)
		until(time.Hour - time.Second)
		s.meets(nil, func(op, name string) error {
			if op == "acquire" && strings.HasSuffix(name, "/import-0") {
				s.meets(nil, nil)
				c.breakSlot()
				time.Sleep(D / 2) // the slot is found broken by its renewal
			}
			return nil
		})
		until(time.Hour + 10*time.Minute)
		c.wantOutcomes("import-0", "succeeded 01:00:00")
		c.wantInTime(D/2 + D + 3*time.Second) // who takes the slot holds off
	})
}

// queuing returns the jobs of a group under QueueOne: "work" on the hour, which takes 70 minutes, and "other", which
// takes 30.
func queuing(other string, deadline time.Duration) []soloist.Work {
	long := overlapping(soloist.QueueOne, "@hourly", 70*time.Minute)
	short := named("other", work(other, 30*time.Minute))
	long.Group, long.StartingDeadline = "imports", deadline
	short.Group, short.Overlap = "imports", soloist.QueueOne
	return []soloist.Work{long, short}
}

// A tick that has waited for the end of a run, or for the death of its runner, waits for a slot of the group then, which
// another job may have before it.
func TestQueuedTickWaitsForSlot(t *testing.T) {
	for name, tt := range map[string]struct {
		other    string
		deadline time.Duration
		dies     bool // the first runner does
		want     []string
	}{
		"free":                    {"0 30 12 * * *", 0, false, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"taken by the other":      {"0 9,10 2 * * *", 0, false, []string{"succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00"}},
		"past its deadline there": {"0 9,10 2 * * *", 20 * time.Minute, false, []string{"succeeded 01:00:00", "skipped 02:00:00 group imports", "succeeded 03:00:00"}},
		"past its deadline":       {"0 9,10 2 * * *", 5 * time.Minute, false, []string{"succeeded 01:00:00", "missed 02:00:00 past the starting deadline", "succeeded 03:00:00"}},
		"of a runner that dies":   {"0 5 2 * * *", 0, true, []string{"abandoned 01:00:00 its runner died", "succeeded 02:00:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			all := map[string]*replica{}
			for _, name := range letters(3) {
				all[name] = c.limited(name, 1, queuing(tt.other, tt.deadline)...)
			}
			if tt.dies {
				until(2*time.Hour + 6*time.Minute)
				all[c.all()[0].replica].kill()
			}
			until(6 * time.Hour)
			got := c.outcomes("work")
			c.wrong(!slices.Equal(got[:min(len(got), len(tt.want))], tt.want), "got %q, want %q", got, tt.want)
			c.oneByOne()
			next := c.all()[1]
			c.wrong(!tt.dies && next.Job == "other" != (name != "free"), "%s has the slot after the first run", next.Job)
			c.wrong(tt.dies && next.start.After(time.Date(2000, 1, 1, 2, 7, 30, 0, time.UTC)),
				"%s has the slot only at %s", next.Job, next.start)
		})
	}
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
		if h := r.Health(); len(h.Broken) != 0 || len(c.runsOf("in")) != 1 {
			t.Errorf("afterwards: %+v, after %d runs", h, len(c.runsOf("in")))
		}
		r.wantLines(1, "answers again", "group=imports")
	})
}

// A call returns and names the group whose slots fail, do not answer, or have records that a person has to correct,
// however many there are.
func TestRunDueNamesSlotsThatFail(t *testing.T) {
	for what, fails := range map[string]func(ctx context.Context) error{
		"fail":           func(context.Context) error { return errors.New("500") },
		"hang":           func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"cannot be used": func(context.Context) error { return nil },
	} {
		for _, slots := range []int{1, 2, 100} {
			inCase(t, fmt.Sprint(slots, " ", what), func(t *testing.T, c *cluster) {
				r := c.replica("a", inGroup(2, "0 * * * *", time.Second)...)
				r.Groups = map[string]int{"imports": slots}
				r.wake() // makes the entries
				until(time.Hour)
				again := c.replicaOf(r, "b")
				again.Store = &slotless{c.store, fails}
				calls := map[string]func(context.Context) error{
					"RunDue": func(ctx context.Context) error { _, err := again.RunDue(ctx, soloist.Wake{}); return err },
					"RunNow": func(ctx context.Context) error { _, err := again.RunNow(ctx, "import-0", "by-hand"); return err },
				}
				for name, call := range calls {
					begin := time.Now()
					err := call(c.within(10 * time.Hour))
					took := time.Since(begin)
					c.wrong(took > time.Minute, "%s takes %s", name, took)
					wantError(t, err, "imports")
				}
			})
		}
	}
}

// A slotless store has no slots of groups that could be used: their reads fail, or show something else.
type slotless struct {
	store.Store
	fails func(context.Context) error
}

func (s *slotless) Read(ctx context.Context, name string) (store.Entry, error) {
	if strings.Contains(name, "-group-") {
		return store.Entry{Record: []byte("garbage"), State: store.Available, Revision: store.Revision{ETag: "x", Date: time.Now()}}, s.fails(ctx)
	}
	return s.Store.Read(ctx, name)
}

// No slot answers, and each job waits behind the one that tries: no job is known to have a slot.
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
			wantError(t, err, "no slot of the group imports can be used")
			c.wrong(errors.Is(err, store.ErrHeld), "%s: %v", sinceMidnight(), err)
			time.Sleep(1300 * time.Millisecond)
		}
		until(4*time.Minute + 30*time.Second)
		s.meets(nil, nil)
		until(6*time.Minute + 30*time.Second)
		for _, job := range []string{"import-0", "import-1"} {
			got := fmt.Sprint(c.outcomes(job))
			c.wrong(!strings.Contains(got, "missed") || strings.Contains(got, "imports"), "%s: %s", job, got)
		}
	})
}

// A call ends in the hold-off of its slot. The next one waits until the lease of that has expired, with few looks.
func TestGroupAfterCallThatHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		a.kill()
		c.breakSlot()
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
		n := b.tap.counts()["read"]
		c.wrong(len(c.runsOf("other")) != 1 || n > 40, "%d runs after %d reads", len(c.runsOf("other")), n)
	})
}

// Calls of a lock wait for the end of an outage, however many slots it has. The error of one whose context ends in it says
// what the store has answered.
func TestLockOfSlotsInOutage(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		for what, by := range map[string]func(*soloist.Lock, context.Context, func(context.Context, *soloist.Run) error) error{
			"Do": (*soloist.Lock).Do, "TryDo": (*soloist.Lock).TryDo,
		} {
			inCase(t, fmt.Sprint(what, " of ", slots), func(t *testing.T, c *cluster) {
				a := c.replica("a").meets(fail(errNetwork))
				err := by(a.pool(slots), c.within(20*time.Minute), c.watch("a", nil))
				if !errors.Is(err, errNetwork) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("its context ends: %v", err)
				}
				time.AfterFunc(20*time.Minute, func() { a.meets(nil) })
				begin := time.Now()
				err = by(a.pool(slots), c.within(time.Hour), c.watch("a", nil))
				took := time.Since(begin)
				c.wrong(err != nil || took < 20*time.Minute || took > 21*time.Minute, "it returned %v after %s", err, took)
				c.wantRuns(1)
			})
		}
	}
}
