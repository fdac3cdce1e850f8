package soloist_test

import (
	"context"
	"errors"
	"fmt"
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

// Three imports at once, over all jobs and replicas, and each import has its run.
func TestGroupLimitsRuns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.limited(name, 3, inGroup(8, "0 * * * *", time.Minute)...)
		}
		time.Sleep(2*time.Hour + 30*time.Minute)
		c.wantRuns(16)
		if got := atOnce(c.all()); got != 3 {
			t.Errorf("%d runs at once, want 3", got)
		}
		for i := range 8 {
			c.wantOutcomes(fmt.Sprintf("import-%d", i), "succeeded 01:00:00", "succeeded 02:00:00")
		}
		for _, r := range c.all() {
			if late := r.start.Sub(r.Tick); late > 4*time.Minute {
				t.Errorf("%s started %s late", r.Job, late)
			}
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
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			if strings.Contains(text, "missed") {
				t.Errorf("missed, though a replica was up:\n%s", text)
			}
			if got := atOnce(c.all()); got != 1 {
				t.Errorf("%d runs at once", got)
			}
		})
	}
}

// The slot of a runner that died is free again after a lease, and the run of one that is cut off from
// the store has ended by then.
func TestGroupAfterDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		time.Sleep(time.Hour + time.Minute)
		other := named("other", work("2 * * * *", time.Second))
		other.Group = "imports"
		c.limited("b", 1, other)
		a.kill()
		time.Sleep(10 * time.Minute)
		runs := c.all()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if !errors.Is(runs[0].cause, soloist.ErrLost) || runs[0].end.After(runs[1].start) {
			t.Errorf("the first run ended at %s for %v, and the next began at %s", runs[0].end, runs[0].cause, runs[1].start)
		}
		if late := runs[1].start.Sub(runs[1].Tick); late > time.Minute {
			t.Errorf("the next run began %s late", late)
		}
	})
}

// A run whose slot is lost, and not its own lease, ends too.
func TestGroupSlotIsLost(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		time.Sleep(time.Hour + time.Minute)
		if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(D)
		if r := c.all()[0]; !errors.Is(r.cause, soloist.ErrLost) {
			t.Errorf("the run goes on, or ended for %v", r.cause)
		}
	})
}

// A stop lets the run end within its grace, under its slot.
func TestGroupAndStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", inGroup(2, "0 * * * *", time.Minute)...)
		r.Grace, r.Groups = 2*time.Minute, map[string]int{"imports": 1}
		c.launch(r)
		time.Sleep(time.Hour + 10*time.Second)
		begin := time.Now()
		r.stop()
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		c.wantRuns(1)
		c.wantOutcomes(c.all()[0].Job, "succeeded 01:00:00")
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
		if got := atOnce(c.all()); got != 1 {
			t.Errorf("%d runs at once", got)
		}
		if o, err := r.RunNow(c.t.Context(), "import-0", "by-hand-2"); err != nil || o.Status != store.Succeeded {
			t.Errorf("by hand: %v, %v", o, err)
		}
	})
}

// replicaOf returns another replica with the same work, not started.
func (c *cluster) replicaOf(r *replica, name string) *replica {
	n := c.replica(name)
	n.Jobs, n.Groups = r.Jobs, r.Groups
	return n
}

// Replicas of two versions have different limits for a while.
func TestGroupLimitsDiffer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.limited("a", 2, inGroup(6, "0 * * * *", time.Minute)...)
		c.limited("b", 4, inGroup(6, "0 * * * *", time.Minute)...)
		time.Sleep(150 * time.Minute)
		c.wantRuns(12)
		if got := atOnce(c.all()); got > 4 {
			t.Errorf("%d runs at once, want at most 4", got)
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

// The runner of a group has died, and an operator has broken the lease of its slot: who takes the slot
// holds off, which takes longer than a tick waits for a slot. The slot is used again all the same.
func TestGroupSlotIsBrokenAfterDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		time.Sleep(time.Hour + time.Minute)
		other := named("other", work("2 * * * *", time.Second))
		other.Group = "imports"
		c.limited("b", 1, other)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		runs := c.all()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if late := runs[1].start.Sub(runs[1].Tick); late > 90*time.Second {
			t.Errorf("the next run began %s late", late)
		}
	})
}

// pair starts two jobs of one group on one replica, over a store that meets faults.
func (c *cluster) pair(first, second soloist.Job) *faultyStore {
	s := &faultyStore{Store: c.store}
	first.Group, second.Group = "imports", "imports"
	r := c.replica("a", first, second)
	r.Groups, r.Store = map[string]int{"imports": 1}, s
	c.launch(r)
	return s
}

// countOf is how often a job was run.
func (c *cluster) countOf(job string) (n int) {
	for _, r := range c.all() {
		if r.Job == job {
			n++
		}
	}
	return n
}

// The lease of a slot is broken, and who takes it holds off for longer than a tick waits for a slot.
func TestGroupGoesOnAfterBreak(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		until(6*time.Hour + 30*time.Minute)
		c.wantRuns(6)
	})
}

// The outcome of a run cannot be written. Its slot is free all the same.
func TestGroupDoesNotWaitForOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(named("x", work("0 1 * * *", time.Minute)), named("y", work("30 * * * *", time.Second)))
		until(time.Hour + 30*time.Second)
		s.meets(of("x", errors.New("500")), nil)
		until(6 * time.Hour)
		if n := c.countOf("y"); n != 6 {
			t.Errorf("y was run %d times, want 6", n)
		}
		s.meets(nil, nil)
		time.Sleep(time.Minute)
	})
}

// Calls take so long that a slot cannot be had within the time for which others are waited for.
func TestGroupOverSlowStore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(leased(30*time.Second, named("x", work("0 * * * *", time.Second))), leased(30*time.Second, named("y", work("30 * * * *", time.Second))))
		slow := func(op, _ string) error { time.Sleep(2 * time.Second); return nil }
		s.meets(slow, nil)
		until(6*time.Hour + 15*time.Minute)
		if x, y := c.countOf("x"), c.countOf("y"); x != 6 || y != 6 {
			t.Errorf("%d and %d runs, want 6 and 6", x, y)
		}
		s.meets(nil, nil)
	})
}

// A run by hand does not wait for a slot whose record a person has to correct.
func TestRunNowTellsUnusableSlot(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", inGroup(1, "0 1 * * *", time.Minute)...)
		r.Groups = map[string]int{"imports": 1}
		if _, err := c.store.Create(c.t.Context(), "soloist/0-group-imports", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := r.RunNow(c.within(time.Hour), "import-0", "by-hand")
		if err == nil || !strings.Contains(err.Error(), "imports") || time.Since(begin) > time.Minute {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// A slot is lost after the lease of the job is acquired, and before the tick is claimed: then nobody has
// to wait for the end of the lease.
func TestGroupSlotLostBeforeClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(named("x", work("0 1 * * *", time.Second)), named("y", work("30 2 * * *", time.Second)))
		until(time.Hour - time.Second)
		s.meets(nil, func(op, name string) error {
			if op == "acquire" && strings.HasSuffix(name, "/x") {
				s.meets(nil, nil)
				if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
					t.Error(err)
				}
				time.Sleep(D / 2) // the slot is found broken by its renewal
			}
			return nil
		})
		until(time.Hour + 10*time.Minute)
		c.wantOutcomes("x", "succeeded 01:00:00")
		last := c.all()[len(c.all())-1]
		if late := last.start.Sub(last.Tick); late > D/2+D+3*time.Second { // who takes the slot holds off
			t.Errorf("x was run %s late", late)
		}
	})
}
