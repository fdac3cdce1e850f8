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

// overlapping returns a job of a policy that takes d, or ends with its context.
func overlapping(o soloist.OverlapPolicy, schedule string, d time.Duration) soloist.Job {
	job := work(schedule, d)
	job.Overlap = o
	return job
}

// replaced returns the runs, which have to be n, one after the other, and the last may go on.
func (c *cluster) replaced(n int) []ran {
	c.t.Helper()
	runs := c.all()
	if len(runs) != n {
		c.t.Fatalf("%d runs, want %d: %+v", len(runs), n, runs)
	}
	disjoint(c.t, runs)
	once(c.t, runs)
	return runs
}

// Of the ticks that come due under a run, the newest waits for its end.
func TestQueueOne(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.startAll(overlapping(soloist.QueueOne, "@every 10s", 24*time.Second), "a", "b", "c")
		until(90 * time.Second)
		c.wantOutcomes("work", "succeeded 00:00:10", "skipped 00:00:20 overlap", "succeeded 00:00:30",
			"skipped 00:00:40 overlap", "succeeded 00:00:50", "skipped 00:00:50-00:01:10 overlap")
		for i, r := range c.replaced(4) {
			if i > 0 && r.start.Sub(c.all()[i-1].end) > 2*time.Second {
				t.Errorf("tick %s starts at %s", r.Tick, r.start)
			}
		}
	})
}

// A tick that has waited longer than its starting deadline is not run.
func TestQueuedTickHasStartingDeadline(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.QueueOne, "@every 1m", 70*time.Second)
		job.StartingDeadline = 8 * time.Second
		c.startAll(job, "a", "b")
		until(3*time.Minute + 30*time.Second)
		c.wantOutcomes("work", "succeeded 00:01:00", "missed 00:02:00 past the starting deadline")
	})
}

// A tick waits for the end of a run by hand too, and never ends it.
func TestRunByHandIsNotReplaced(t *testing.T) {
	for name, tt := range map[string]struct {
		policy  soloist.OverlapPolicy
		ordered bool
	}{"a tick waits": {policy: soloist.QueueOne}, "a call": {policy: soloist.Replace}, "an order": {soloist.Replace, true}} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(tt.policy, "@every 1h", 0)
			job.Do = func(ctx context.Context, run *soloist.Run) error {
				if run.Request == "" {
					return nil
				}
				return pause(ctx, 10*time.Minute)
			}
			a := c.start("a", job)
			c.start("b", job)
			until(55 * time.Minute)
			if tt.ordered {
				c.order(soloist.Order{Kind: store.OrderRun, Request: "hand"}, job)
			} else if outcome, err := a.RunNow(t.Context(), "work", "hand"); err != nil || outcome.Status != store.Succeeded {
				t.Errorf("got %+v, %v", outcome, err)
			}
			until(time.Hour + 6*time.Minute)
			if got := c.outcomes("work"); len(got) != 2 || !strings.HasPrefix(got[0], "succeeded 00:55:0") || got[1] != "succeeded 01:00:00" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// The run of a tick is ended for a newer one, which starts once it has returned.
func TestReplace(t *testing.T) {
	for name, ahead := range map[string]bool{"claimed at the tick": false, "claimed ahead": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.Replace, "@every 1m", 10*time.Minute)
			job.ClaimAhead, job.Retry = ahead, soloist.Retry{MaxTries: 3, PauseAfter: 1}
			job.Interrupted = soloist.Rerun
			c.startAll(job, "a", "b")
			until(3*time.Minute + 30*time.Second)
			c.wantOutcomes("work", "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z",
				"cancelled 00:02:00 replaced by the tick of 2000-01-01T00:03:00Z")
			for i, r := range c.replaced(3) {
				if i < 2 && !errors.Is(r.cause, soloist.ErrReplaced) {
					t.Errorf("the context of tick %s ended so: %v", r.Tick, r.cause)
				}
			}
			c.wantInTime(1500 * time.Millisecond)
			if r := c.record("work"); r.Failures != 0 || !r.Orders.Paused.At.IsZero() || r.Counts[store.Cancelled] != 2 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A run that ignores the end of its context keeps its lease, and the newer tick waits.
func TestReplacedRunThatGoesOn(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"fails":    {errors.New("boom"), "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z: boom"},
		"succeeds": {nil, "succeeded 00:01:00 after the end of its context: replaced by the tick of 2000-01-01T00:02:00Z"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.Replace, "@every 1m", 0)
			job.Do = func(_ context.Context, run *soloist.Run) error {
				if run.Tick.Minute() > 1 {
					return nil
				}
				time.Sleep(150 * time.Second)
				return tt.err
			}
			all := c.startAll(job, "a", "b")
			until(3 * time.Minute)
			for _, r := range all {
				if ran := ranBy(c, r.Replica, time.Time{}); len(ran) > 0 && len(r.Health().Overrun) == 0 {
					t.Errorf("nobody is told that the run goes on: %+v", r.Health())
				}
			}
			until(3*time.Minute + 40*time.Second)
			c.wantOutcomes("work", tt.want, "skipped 00:02:00 overlap", "succeeded 00:03:00")
			c.replaced(2)
		})
	}
}

// A run that waits for its next try is replaced as well.
func TestReplaceBetweenTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.Replace, "@every 1m", 0)
		job.Retry = soloist.Retry{MaxTries: 3, Backoff: 4 * time.Minute}
		job.Do = func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Minute() > 1 {
				return nil
			}
			return errors.New("boom")
		}
		c.start("a", job)
		until(150 * time.Second)
		c.wantOutcomes("work", "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z after try 1: boom", "succeeded 00:02:00")
	})
}

// A tick whose runner has died is repeated under Rerun only as long as it is the newest.
func TestReplacedTickIsNotRunAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		dies    time.Duration // after the tick
		want    string
		attempt int
		tick    int // minute of the second run
	}{
		"soon": {5 * time.Second, "cancelled 00:01:00 replaced by", 2, 1},
		"late": {50 * time.Second, "abandoned 00:01:00 its runner died, and a newer tick was due", 1, 2},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(overlapping(soloist.Replace, "@every 1m", 10*time.Minute))
			all := c.startAll(job, "a", "b")
			until(time.Minute + tt.dies)
			all[c.all()[0].replica].kill()
			until(2*time.Minute + 40*time.Second)
			runs := c.all()
			if len(runs) < 2 || runs[1].Attempt != tt.attempt || runs[1].Tick.Minute() != tt.tick {
				t.Fatalf("got %+v", runs)
			}
			if got := c.outcomes("work"); len(got) == 0 || !strings.HasPrefix(got[0], tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A tick that a pause keeps from being run ends no run.
func TestPausedTickReplacesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.Replace, "@every 1m", 170*time.Second)
		c.start("a", job)
		until(90 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, job)
		until(150 * time.Second)
		if all := c.all(); len(all) != 1 || !all[0].end.IsZero() {
			t.Errorf("the run does not go on: %+v", all)
		}
		c.order(soloist.Order{Kind: store.OrderResume}, job)
		until(200 * time.Second)
		if all := c.all(); len(all) != 2 || all[1].Tick.Minute() != 3 || !errors.Is(all[0].cause, soloist.ErrReplaced) {
			t.Errorf("got %+v", all)
		}
	})
}

// An operator's cancellation comes before a replacement that follows it.
func TestCancelBeforeReplace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.Replace, "@every 1m", 10*time.Minute)
		c.start("a", job)
		until(80 * time.Second)
		c.order(soloist.Order{Kind: store.OrderCancel}, job)
		until(130 * time.Second)
		c.wantOutcomes("work", "cancelled 00:01:00 by anna")
		c.wantRuns(2)
	})
}

// A tick that waits for a slot of its group has the starting deadline. The run that it has replaced
// gives its slot back.
func TestReplaceInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", func() soloist.Job {
			job := overlapping(soloist.Replace, "@every 1m", 10*time.Minute)
			job.Group = "imports"
			return job
		}())
		r.Groups = map[string]int{"imports": 1}
		c.launch(r)
		until(3*time.Minute + 30*time.Second)
		c.wantOutcomes("work", "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z",
			"cancelled 00:02:00 replaced by the tick of 2000-01-01T00:03:00Z")
		c.replaced(3)
	})
}

// A job of EveryReplica has the policies on each replica for itself.
func TestEveryReplicaOverlap(t *testing.T) {
	for policy, want := range map[soloist.OverlapPolicy]string{
		soloist.SkipOverlap: "[10 40 70]",
		soloist.QueueOne:    "[10 30 50]",
		soloist.Replace:     "[10 20 30 40 50 60 70]",
	} {
		inCase(t, "policy "+string(policy), func(t *testing.T, c *cluster) {
			job := overlapping(policy, "@every 10s", 24*time.Second)
			job.Lease, job.EveryReplica = 0, true
			c.start("a", job)
			until(75 * time.Second)
			var got []int
			for _, r := range c.all() {
				got = append(got, int(r.Tick.Sub(r.Tick.Truncate(time.Hour)).Seconds()))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("it ran %d, want %s", got, want)
			}
			if policy == soloist.Replace && !errors.Is(c.all()[0].cause, soloist.ErrReplaced) {
				t.Errorf("the context ended so: %v", c.all()[0].cause)
			}
		})
	}
}

// A call of RunDue runs the tick that has waited for its run, and leaves the one that waits for that.
func TestRunDueRunsQueuedTick(t *testing.T) {
	for name, everywhere := range map[string]bool{"one replica": false, "each replica": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.QueueOne, "@every 1m", 90*time.Second)
			if job.EveryReplica = everywhere; everywhere {
				job.Lease = 0
			}
			a := c.replica("a", job)
			if !everywhere { // a new process of the other kind owes the tick of the last minute
				a.wake()
			}
			until(61 * time.Second)
			report, err := a.RunDue(t.Context(), soloist.Wake{Tick: time.Now().Truncate(time.Minute)})
			ran := report.Jobs[0].Ran
			if err != nil || len(ran) != 2 || ran[0].Tick.Minute() != 1 || ran[1].Tick.Minute() != 2 {
				t.Errorf("got %+v, %v", report, err)
			}
			if want := time.Date(2000, 1, 1, 0, 4, 0, 0, time.UTC); !everywhere && !report.Jobs[0].Next.Equal(want) {
				t.Errorf("the next tick is %s, want %s", report.Jobs[0].Next, want)
			}
		})
	}
}

// The tick that has waited may have come due more than a minute before the end of the run.
func TestRunDueRunsTickThatHasWaitedForLong(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.QueueOne, "@every 5m", 7*time.Minute)
		job.Lease, job.EveryReplica = 0, true
		until(5 * time.Minute)
		report, err := c.replica("a", job).RunDue(c.t.Context(), soloist.Wake{})
		if ran := report.Jobs[0].Ran; err != nil || len(ran) != 2 || ran[0].Tick.Minute() != 5 || ran[1].Tick.Minute() != 10 {
			t.Errorf("got %+v, %v", report, err)
		}
	})
}

// A call whose time is short leaves the tick to the next one.
func TestRunDueLeavesQueuedTickWithoutTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.QueueOne, "@every 1m", 90*time.Second)
		job.Timeout = 2 * time.Minute
		a := c.replica("a", job)
		a.wake()
		until(61 * time.Second)
		report, err := a.RunDue(c.within(3*time.Minute), soloist.Wake{})
		if ran := report.Jobs[0].Ran; len(ran) != 1 || err == nil {
			t.Errorf("got %+v, %v", report, err)
		}
		a.wake()
		c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00", "skipped 00:03:00 overlap", "succeeded 00:04:00")
	})
}

// A newer tick that a call would not start ends no run: the call has no time for it, or has run one that waited.
func TestRunDueReplacesOnlyForATickThatItRuns(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, timeout time.Duration // of the call and of a run
		want           []string
	}{
		"no time": {3*time.Minute + 30*time.Second, 3 * time.Minute, []string{"succeeded 00:01:00"}},
		"one tick": {time.Hour, 10 * time.Minute,
			[]string{"cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z", "succeeded 00:02:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.Replace, "@every 1m", 150*time.Second)
			job.Timeout = tt.timeout
			a := c.replica("a", job)
			a.wake()
			until(61 * time.Second)
			_, _ = a.RunDue(c.within(tt.limit), soloist.Wake{})
			if got := c.outcomes("work"); len(got) < len(tt.want) || fmt.Sprint(got[:len(tt.want)]) != fmt.Sprint(tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			c.replaced(len(tt.want))
		})
	}
}

// Nor does one that waits for the orders of operators, until they are known.
func TestReplaceWaitsForOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.launch(c.replica("a", overlapping(soloist.Replace, "@every 5m", 8*time.Minute)).meets(func(op string, apply func() error) error {
			if op == "read document" && sinceMidnight() > 9*time.Minute && sinceMidnight() < 11*time.Minute {
				return errors.New("503")
			}
			return apply()
		}))
		until(14 * time.Minute)
		runs := c.replaced(2)
		if wait := runs[1].start.Sub(runs[0].end); runs[0].end.Before(time.Date(2000, 1, 1, 0, 11, 0, 0, time.UTC)) || wait > 2*time.Second || !errors.Is(runs[0].cause, soloist.ErrReplaced) {
			t.Errorf("got %+v", runs)
		}
	})
}

// Nor does one that comes due within the grace of a stop.
func TestStoppedRunIsNotReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := overlapping(soloist.Replace, "@every 5m", 8*time.Minute)
		all := c.graceful(10*time.Minute, job, "a")
		until(9*time.Minute + 50*time.Second)
		all["a"].stop()
		c.wantOutcomes("work", "succeeded 00:05:00")
	})
}

// Nor does one that a replica would not start, since a run of another job goes on after its lease.
func TestDegradedReplicaReplacesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job, stuck := overlapping(soloist.Replace, "@every 5m", 8*time.Minute), named("stuck", deaf(20*time.Minute))
		stuck.Schedule, stuck.Timeout = "@every 6m", time.Minute
		c.start("a", job, stuck)
		until(14 * time.Minute)
		c.wantOutcomes("work", "succeeded 00:05:00")
	})
}

func TestValidateOverlap(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*soloist.Job)
		want   string // empty: it is fine
	}{
		"unknown":      {func(j *soloist.Job) { j.Overlap = "queue" }, `Overlap is "queue": allowed is SkipOverlap, QueueOne or Replace`},
		"all":          {func(j *soloist.Job) { j.Overlap, j.Missed = soloist.QueueOne, soloist.RunAll }, `Overlap is "queue-one": allowed is SkipOverlap beside Missed: RunAll`},
		"replace all":  {func(j *soloist.Job) { j.Overlap, j.Missed = soloist.Replace, soloist.RunAll }, `Overlap is "replace": allowed is SkipOverlap beside Missed: RunAll`},
		"a short wait": {func(j *soloist.Job) { j.Overlap, j.Missed = soloist.QueueOne, soloist.SkipMissed }, `unless StartingDeadline says how long a tick may wait`},
		"a bounded wait": {func(j *soloist.Job) {
			j.Overlap, j.Missed, j.StartingDeadline = soloist.QueueOne, soloist.SkipMissed, time.Hour
		}, ""},
		"replace or skip": {func(j *soloist.Job) { j.Overlap, j.Missed = soloist.Replace, soloist.SkipMissed }, ""},
		"shards, claimed ahead": {func(j *soloist.Job) {
			j.Overlap, j.Shards, j.ClaimAhead, j.Interrupted = soloist.Replace, 3, true, soloist.Rerun
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			job := work("@hourly", 0)
			tt.change(&job)
			err := (&soloist.Scheduler{Store: (&cluster{}).store, App: "app", Jobs: []soloist.Job{job}}).Validate()
			if tt.want != "" {
				wantError(t, err, tt.want)
			} else if err != nil && strings.Contains(err.Error(), "Overlap") {
				t.Error(err)
			}
		})
	}
}

// The ticks of a follower wait for its run in any case, so the field is refused.
func TestFollowerHasNoOverlap(t *testing.T) {
	job := named("after", work("", 0))
	job.After, job.Overlap = "work", soloist.Replace
	err := (&soloist.Scheduler{App: "app", Jobs: []soloist.Job{work("@hourly", 0), job}}).Validate()
	wantError(t, err, `Overlap is "replace": allowed is SkipOverlap beside After`)
}
