package cluster_test

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
		all = append(all, grouped(named(fmt.Sprintf("import-%d", i), work(schedule, d))))
	}
	return all
}

// inLimit makes a replica whose group has n slots, and that is not started.
func (c *cluster) inLimit(name string, n int, work ...soloist.Work) *replica {
	r := c.replica(name, work...)
	r.Groups = map[string]int{"imports": n}
	return r
}

// limited starts such a replica.
func (c *cluster) limited(name string, n int, work ...soloist.Work) *replica {
	return c.launch(c.inLimit(name, n, work...))
}

// replicaOf returns another replica with the same work, not started.
func (c *cluster) replicaOf(r *replica, name string) *replica {
	n := c.replica(name)
	n.Jobs, n.Groups = r.Jobs, r.Groups
	return n
}

// faulty starts a replica whose group has n slots, over a store that meets faults.
func (c *cluster) faulty(n int, work ...soloist.Work) *faultyStore {
	s := &faultyStore{Store: c.store}
	r := c.inLimit("a", n, work...)
	r.Store = s
	c.launch(r)
	return s
}

// breakSlot ends the lease of the first slot of the group at once.
func (c *cluster) breakSlot() {
	c.t.Helper()
	c.ok(c.store.Break(c.t.Context(), "soloist/0-group-imports", 0))
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

// wantAtOnce checks how many runs there were at once at most, and that each tick ran once.
func (c *cluster) wantAtOnce(want int) {
	c.t.Helper()
	c.wrong(atOnce(c.all()) != want, "%d runs at once, want %d", atOnce(c.all()), want)
	seen := map[string]bool{}
	for _, r := range c.all() {
		c.wrong(seen[r.ID()], "%s ran twice", r.ID())
		seen[r.ID()] = true
	}
}

// Runs of a group share its slots.
func TestGroup(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"three imports at once, over all jobs and replicas, and each import has its run": func(c *cluster) {
			for _, name := range letters(3) {
				c.limited(name, 3, inGroup(8, "0 * * * *", time.Minute)...)
			}
			time.Sleep(2*time.Hour + 30*time.Minute)
			c.wantRuns(16)
			c.wantAtOnce(3)
			for i := range 8 {
				c.wantOutcomes(fmt.Sprintf("import-%d", i), "succeeded 01:00:00", "succeeded 02:00:00")
			}
			c.wantInTime(4 * time.Minute)
		},
		"a run whose slot is lost, and not its own lease, ends too": func(c *cluster) {
			// The slot is used again.
			c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
			until(time.Hour + time.Minute)
			c.breakSlot()
			time.Sleep(D)
			c.wantIs(c.all()[0].cause, soloist.ErrLost)
			until(6*time.Hour + 30*time.Minute)
			c.wantRuns(6)
		},
		"a call waits for a slot, and a run by hand does not": func(c *cluster) {
			r := c.inLimit("a", 1, inGroup(3, "0 * * * *", time.Minute)...)
			r.wake() // makes the entries
			time.Sleep(time.Hour)
			time.AfterFunc(30*time.Second, func() {
				_, err := c.replicaOf(r, "b").RunNow(c.t.Context(), "import-0", "by-hand")
				c.wantIs(err, store.ErrHeld)
				wantError(c.t, err, "the group imports has no free slot")
			})
			r.wake() // waits for its slots
			c.wantRuns(3)
			c.wantAtOnce(1)
			r.byHand("import-0", "by-hand-2")
		},
		"the slot of a run whose outcome cannot be written is free all the same": func(c *cluster) {
			s := c.faulty(1, grouped(named("x", work("0 1 * * *", time.Minute))), grouped(named("y", work("30 * * * *", time.Second))))
			until(time.Hour + 30*time.Second)
			s.meets(of("x", errors.New("500")), nil)
			until(6 * time.Hour)
			c.wantRunsOf("y", 6)
			s.meets(nil, nil)
			time.Sleep(time.Minute)
		},
		"calls take so long that a slot cannot be had within the time for which others are waited for": func(c *cluster) {
			job := func(name, schedule string) soloist.Job {
				return grouped(named(name, leased(30*time.Second, work(schedule, time.Second))))
			}
			s := c.faulty(1, job("x", "0 * * * *"), job("y", "30 * * * *"))
			s.meets(func(string, string) error { time.Sleep(2 * time.Second); return nil }, nil)
			until(6*time.Hour + 15*time.Minute)
			c.wantRunsOf("x", 6)
			c.wantRunsOf("y", 6)
			s.meets(nil, nil)
		},
		"a slot is lost after the lease of the job is acquired, and before the tick is claimed": func(c *cluster) {
			// Then no replica has to wait for the end of the lease.
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
		},
		"the entry of a slot alone fails": func(c *cluster) {
			// That is the trouble of the jobs that need it, which are not stuck.
			s := c.faulty(1, grouped(named("in", work("0 * * * *", time.Second))), named("free", work("@every 10s", time.Second)))
			s.meets(slotsFail(errors.New("500")), nil)
			until(time.Hour + 20*time.Minute)
			r := c.started[0]
			h := r.Health()
			c.wrong(h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 1, "while the slot fails: %+v", h)
			wantError(c.t, h.Broken["in"], "imports")
			r.wantLines(1, "call to the store failed", "group=imports")
			s.meets(nil, nil)
			time.Sleep(time.Minute)
			r.wantWell()
			c.wantRunsOf("in", 1)
			r.wantLines(1, "answers again", "group=imports")
		},
		"no slot answers, and each job waits behind the one that tries": func(c *cluster) {
			// No job is known to have a slot.
			s := c.faulty(4, inGroup(2, "* * * * *", 0)...)
			s.meets(func(op, name string) error {
				err := slotsFail(errNetwork)(op, name)
				if err != nil {
					time.Sleep(2 * time.Second)
				}
				return err
			}, nil)
			until(time.Minute + time.Second)
			for i := range 5 {
				_, err := c.started[0].RunNow(c.within(30*time.Second), "import-1", fmt.Sprint("now-", i))
				wantError(c.t, err, "no slot of the group imports can be used")
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
		},
		"a call ends in the hold-off of its slot": func(c *cluster) {
			// The next one waits until the lease of that has expired, with few looks.
			a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
			until(time.Hour + time.Minute)
			a.kill()
			c.breakSlot()
			b := c.inLimit("b", 1, grouped(named("other", work("2 * * * *", time.Second))))
			until(2*time.Hour + time.Minute)
			b.wake()
			until(2*time.Hour + 2*time.Minute)
			_, err := b.RunDue(c.within(5*time.Second), soloist.Wake{})
			wantError(c.t, err, "no slot of the group imports", "did not expire by itself", "deadline")
			_, err = b.RunDue(c.within(time.Minute), soloist.Wake{})
			c.ok(err)
			n := b.tap.counts()["read"]
			c.wantRunsOf("other", 1)
			c.wrong(n > 40, "%d reads", n)
		},
	})
}

// A tick that gets no slot in its time is skipped, and its outcome says why.
func TestGroupWithoutFreeSlotSkips(t *testing.T) {
	for skipped, deadline := range map[string]time.Duration{
		"skipped 02:30:00 group imports":          time.Minute,
		"skipped 01:30:00-03:30:00 group imports": 0, // in time is before the next tick
	} {
		inCase(t, skipped, func(t *testing.T, c *cluster) {
			long := grouped(named("long", work("0 2 * * *", 150*time.Minute)))
			short := grouped(named("short", work("30 * * * *", time.Second)))
			short.Late.Start = deadline
			c.limited("a", 1, long, short)
			c.limited("b", 1, long, short)
			until(6 * time.Hour)
			got := c.outcomes("short")
			c.wrong(!slices.Contains(got, skipped) || !slices.Contains(got, "succeeded 05:30:00"), "got %q", got)
			c.wrong(strings.Contains(fmt.Sprint(got), "missed"), "missed, though a replica was up: %q", got)
			c.wantAtOnce(1)
		})
	}
}

// The run of a replica that is cut off from the store ends before its slot is free again, which takes a lease. If an
// operator breaks that, who takes the slot holds off, for longer than a tick waits for a slot. It is used all the same.
func TestGroupAfterDeath(t *testing.T) {
	lates := map[string]time.Duration{"expires": time.Minute, "broken": 90 * time.Second}
	inRows(t, lates, func(c *cluster, name string, late time.Duration) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		c.limited("b", 1, grouped(named("other", work("2 * * * *", time.Second))))
		a.kill()
		if name == "broken" {
			c.breakSlot()
		}
		until(time.Hour + 11*time.Minute)
		runs := c.succession(2)
		c.wantIs(runs[0].cause, soloist.ErrLost)
		c.wrong(runs[1].start.Sub(runs[1].Tick) > late, "the next run began at %s", runs[1].start)
	})
}

// Each mistake in a group is refused, with what is allowed.
func TestGroupIsRefused(t *testing.T) {
	job := soloist.Job{Name: "work", Schedule: "@hourly", Group: "imports", Do: nothing}
	alone, everywhere, ahead, other := job, job, job, named("other", job)
	alone.Group, everywhere.EveryReplica, ahead.ClaimAhead, other.Group = "", true, true, "Ümläute/x"
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
		"every replica": {map[string]int{"imports": 1}, everywhere, "Group is"},
		"no job":        {map[string]int{"imports": 1, "import": 3}, job, `Groups["import"] is 3, and no job has the Group "import": the groups of jobs are "imports"`},
		"no group":      {map[string]int{"import": 3}, alone, `no job has the Group "import": no job has a group`},
		"ahead":         {map[string]int{"imports": 1}, ahead, "ClaimAhead"},
	} {
		t.Run(what, func(t *testing.T) {
			wantError(t, (&soloist.Scheduler{Jobs: []soloist.Job{c.job}, Groups: c.groups, Store: &local.Memory{}}).Validate(), c.want)
		})
	}
	s := &soloist.Scheduler{Jobs: []soloist.Job{job, other}, Groups: map[string]int{"imports": 100, "Ümläute/x": 1}, Store: &local.Memory{}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

// queuing returns the jobs of a group under QueueOne: "work" on the hour, which takes 70 minutes, and "other", which
// takes 30.
func queuing(other string, deadline time.Duration) []soloist.Work {
	long := grouped(overlapping(soloist.QueueOne, "@hourly", 70*time.Minute))
	long.Late.Start = deadline
	return []soloist.Work{long, grouped(named("other", overlapping(soloist.QueueOne, other, 30*time.Minute)))}
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
			c.wantAtOnce(1)
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
				r := c.inLimit("a", slots, inGroup(2, "0 * * * *", time.Second)...)
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

// Calls of a lock wait for the end of an outage, however many slots it has. The error of one whose context ends in it says
// what the store has answered.
func TestLockOfSlotsInOutage(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		for what, by := range doers {
			inCase(t, fmt.Sprint(what, " of ", slots), func(t *testing.T, c *cluster) {
				a := c.replica("a").meets(fail(errNetwork))
				err := by(a.pool(slots), c.within(20*time.Minute), c.watch("a", nil))
				c.wantIs(err, errNetwork)
				c.wantIs(err, context.DeadlineExceeded)
				c.wrong(errors.Is(err, context.Canceled), "its context ends: %v", err)
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
