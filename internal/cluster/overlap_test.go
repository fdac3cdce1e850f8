package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
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
	if disjoint(c.t, runs); once(c.t, runs) != n {
		c.t.Fatalf("%d runs, want %d: %+v", len(runs), n, runs)
	}
	return runs
}

// The run of a tick is ended for a newer one, which starts once it has returned, and has given its slot of a group back.
func TestReplace(t *testing.T) {
	for name, change := range map[string]func(*soloist.Job){
		"claimed at the tick": func(*soloist.Job) {},
		"claimed ahead":       func(j *soloist.Job) { j.ClaimAhead = true },
		"in a group":          func(j *soloist.Job) { j.Group = "imports" },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.Replace, "@every 1m", 10*time.Minute)
			job.Retry, job.Interrupted = soloist.Retry{MaxTries: 3, PauseAfter: 1}, soloist.Rerun
			change(&job)
			for _, name := range []string{"a", "b"} {
				r := c.replica(name, job)
				if job.Group != "" {
					r.Groups = map[string]int{job.Group: 1}
				}
				c.launch(r)
			}
			until(3*time.Minute + 30*time.Second)
			c.wantOutcomes("work", "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:02:00Z",
				"cancelled 00:02:00 replaced by the tick of 2000-01-01T00:03:00Z")
			for i, r := range c.replaced(3) {
				if i < 2 && !errors.Is(r.cause, soloist.ErrReplaced) {
					t.Errorf("the context of tick %s ended so: %v", r.Tick, r.cause)
				}
			}
			c.wantInTime(1500 * time.Millisecond)
			if r := c.record("work"); r.Failures != 0 || !r.Orders.Paused.At.IsZero() || r.Counts[event.Cancelled] != 2 {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// A run that ignores the end of its context keeps its lease, and the newer tick waits. One that waits for its next try is
// replaced as well.
func TestOutcomeOfReplacedRun(t *testing.T) {
	const replaced = "replaced by the tick of 2000-01-01T00:02:00Z"
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		takes time.Duration // whatever becomes of its context
		err   error
		want  []string
	}{
		"goes on and fails": {150 * time.Second, boom,
			[]string{"cancelled 00:01:00 " + replaced + ": boom", "skipped 00:02:00 overlap", "succeeded 00:03:00"}},
		"goes on and succeeds": {150 * time.Second, nil,
			[]string{"succeeded 00:01:00 after the end of its context: " + replaced, "skipped 00:02:00 overlap", "succeeded 00:03:00"}},
		"waits for its next try": {0, boom,
			[]string{"cancelled 00:01:00 " + replaced + " after try 1: boom", "succeeded 00:02:00", "succeeded 00:03:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(soloist.Replace, "@every 1m", 0)
			job.Retry = soloist.Retry{MaxTries: 3, Backoff: 4 * time.Minute}
			job.Do = func(_ context.Context, run *soloist.Run) error {
				if run.Tick.Minute() > 1 {
					return nil
				}
				time.Sleep(tt.takes)
				return tt.err
			}
			all := c.startAll(job, "a", "b")
			until(3*time.Minute - time.Second)
			if h := all[c.all()[0].replica].Health(); len(h.Overrun) == 0 && tt.takes > 0 {
				t.Errorf("nobody is told that the run goes on: %+v", h)
			}
			until(3*time.Minute + 40*time.Second)
			c.wantOutcomes("work", tt.want...)
			c.replaced(len(c.outcomes("work")) - strings.Count(fmt.Sprint(tt.want), "skipped"))
		})
	}
}

// A tick that its replica would not start ends no run: one that a pause keeps from being run, that waits for the orders of
// operators, that comes due within the grace of a stop, or while a run of another job goes on after its lease. An operator's
// cancellation comes before a replacement that follows it.
func TestTickThatReplacesNothing(t *testing.T) {
	job := overlapping(soloist.Replace, "@every 5m", 8*time.Minute)
	inCase(t, "paused", func(t *testing.T, c *cluster) {
		c.start("a", job)
		until(6 * time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderPause}, job)
		until(14 * time.Minute)
		c.wantOutcomes("work", "succeeded 00:05:00")
	})
	inCase(t, "cancelled", func(t *testing.T, c *cluster) {
		c.start("a", job)
		until(9*time.Minute + 50*time.Second)
		c.order(soloist.Order{Kind: soloist.OrderCancel}, job)
		until(11 * time.Minute)
		c.wantOutcomes("work", "cancelled 00:05:00 by anna")
	})
	inCase(t, "orders unknown", func(t *testing.T, c *cluster) {
		c.launch(c.replica("a", job).meets(func(op string, apply func() error) error {
			if op == "read document" && sinceMidnight() > 9*time.Minute && sinceMidnight() < 11*time.Minute {
				return errors.New("503")
			}
			return apply()
		}))
		until(14 * time.Minute)
		runs := c.replaced(2)
		known := time.Date(2000, 1, 1, 0, 11, 0, 0, time.UTC)
		if r := runs[0]; r.end.Before(known) || runs[1].start.Sub(r.end) > 2*time.Second || !errors.Is(r.cause, soloist.ErrReplaced) {
			t.Errorf("got %+v", runs)
		}
	})
	inCase(t, "stopped", func(t *testing.T, c *cluster) {
		all := c.graceful(10*time.Minute, job, "a")
		until(9*time.Minute + 50*time.Second)
		all["a"].stop()
		c.wantOutcomes("work", "succeeded 00:05:00")
	})
	inCase(t, "degraded", func(t *testing.T, c *cluster) {
		stuck := named("stuck", deaf(20*time.Minute))
		stuck.Schedule, stuck.Timeout = "@every 6m", time.Minute
		c.start("a", job, stuck)
		until(14 * time.Minute)
		c.wantOutcomes("work", "succeeded 00:05:00")
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

// A call of RunDue runs the tick that has waited for its run, also if that was for more than a minute, and leaves the one that
// waits for that. A tick for which it has no time waits for the next call, and ends no run; nor does one after the tick that has
// replaced another.
func TestRunDueUnderOverlap(t *testing.T) {
	const queue, replace, m = soloist.QueueOne, soloist.Replace, time.Minute
	for name, tt := range map[string]struct {
		policy         soloist.OverlapPolicy
		every, takes   time.Duration
		everywhere     bool
		limit, timeout time.Duration // of the call and of a run
		want           string
	}{
		"queued":                      {queue, m, 3 * m / 2, false, time.Hour, 0, "[succeeded 1 succeeded 2]"},
		"queued on each replica":      {queue, m, 3 * m / 2, true, time.Hour, 0, "[succeeded 1 succeeded 2]"},
		"long queued on each replica": {queue, 5 * m, 7 * m, true, time.Hour, 0, "[succeeded 5 succeeded 10]"},
		"queued, no time":             {queue, m, 3 * m / 2, false, 3 * m, 2 * m, "[succeeded 1]"},
		"replaces, no time":           {replace, m, 5 * m / 2, false, 7 * m / 2, 3 * m, "[succeeded 1]"},
		"replaces one":                {replace, m, 5 * m / 2, false, time.Hour, 10 * m, "[cancelled 1 succeeded 2]"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := overlapping(tt.policy, "@every "+tt.every.String(), tt.takes)
			if job.Timeout = tt.timeout; tt.everywhere {
				job.Lease, job.EveryReplica = 0, true
			}
			a := c.replica("a", job)
			if !tt.everywhere { // a new process of the other kind owes the tick of the last minute
				a.wake()
			}
			until(tt.every + time.Second)
			report, err := a.RunDue(c.within(tt.limit), soloist.Wake{Tick: time.Now().Truncate(m)})
			var got []string
			for _, o := range report.Jobs[0].Ran {
				got = append(got, fmt.Sprint(o.Status, " ", o.Tick.Minute()))
			}
			if short := strings.HasSuffix(name, "no time"); fmt.Sprint(got) != tt.want || (err != nil) != short {
				t.Errorf("got %q, want %q: %v", got, tt.want, err)
			}
			if want := time.Date(2000, 1, 1, 0, 4, 0, 0, time.UTC); name == "queued" && !report.Jobs[0].Next.Equal(want) {
				t.Errorf("the next tick is %s, want %s", report.Jobs[0].Next, want)
			}
			if !tt.everywhere {
				c.replaced(len(got))
			}
			if name == "queued, no time" {
				a.wake()
				c.wantOutcomes("work", "succeeded 00:01:00", "succeeded 00:02:00", "skipped 00:03:00 overlap", "succeeded 00:04:00")
			}
		})
	}
}

// Ticks of a job that is paused by its settings are skipped. A pause is on purpose: they are no warnings.
func TestPausedJobDoesNotWarn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", time.Second)
		job.Paused = true
		a := c.start("a", job)
		time.Sleep(25 * time.Second)
		c.wantOutcomes("work", "skipped 00:00:10 paused", "skipped 00:00:20 paused")
		c.wantRuns(0)
		a.wantLines(0, "level=WARN")
		if len(a.log.lines("level=INFO", "paused")) == 0 {
			t.Error("the log does not say that ticks are skipped")
		}
	})
}

// A pause while a claim is written keeps the run from beginning, and gives the tick back. No log says that the run has started,
// and a call that has kept to the pause returns no error.
func TestPauseDuringClaim(t *testing.T) {
	for _, name := range []string{"up", "woken"} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			a := c.replica("a", w)
			a.tap.meet(onNth("write", 1, func(apply func() error) error {
				err := apply()
				return errors.Join(err, a.orders(soloist.OrderPause))
			}))
			if name == "up" {
				c.launch(a)
			} else {
				a.wake()
				until(time.Minute)
				a.wake()
			}
			until(3*time.Minute + 30*time.Second)
			c.wantRuns(0)
			a.wantLines(0, "run started")
			c.order(soloist.Order{Kind: soloist.OrderResume}, w)
			until(4*time.Minute + time.Second)
			if name == "woken" {
				a.wake()
			}
			time.Sleep(10 * time.Second)
			c.wantOutcomes("work", "missed 00:01:00 a newer one was due", "skipped 00:01:00-00:03:00 paused", "succeeded 00:04:00")
		})
	}
}

// The store answers each read of the orders just within its time, and no tick waits for one. A
// pause is confirmed just after one was served.
func TestPauseEverywhereWithSlowReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, served := here("* * * * * *", nil), make(chan struct{})
		c.launch(c.replica("a", w).meets(after("read document", func() {
			select {
			case served <- struct{}{}:
			default:
			}
			time.Sleep(2900 * time.Millisecond)
		})))
		time.Sleep(time.Minute)
		<-served
		c.order(soloist.Order{Kind: soloist.OrderPause, Job: "here"}, w)
		paused := time.Now()
		time.Sleep(time.Minute)
		for _, r := range c.all() {
			if late := r.start.Sub(paused); late > 8*time.Second {
				t.Errorf("a run starts %s after the pause was confirmed", late)
			}
			if late := r.start.Sub(r.Tick); late > 100*time.Millisecond && r.Tick.After(paused.Add(-30*time.Second)) {
				t.Errorf("%s starts %s late", r.ID(), late)
			}
		}
	})
}

// While a job is paused, its status and the report of a call have its next tick in the future, so that a caller who waits for it
// rests.
func TestNextOfPausedJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderPause}, w)
		until(5*time.Hour + time.Minute)
		all, err := a.Status(c.t.Context())
		if err != nil || !all[0].Next.After(time.Now()) {
			t.Errorf("the status at %s: %+v, %v", time.Now(), all, err)
		}
		if r, err := c.replica("woken", w).RunDue(c.t.Context(), soloist.Wake{}); err != nil || !r.Next.After(time.Now()) {
			t.Errorf("the report at %s: %+v, %v", time.Now(), r, err)
		}
	})
}

// A job pauses itself after failures in a row, counted from the last resume on.
func TestPauseAfterFailures(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 3
		w.Do = func(context.Context, *soloist.Run) error {
			if sinceMidnight() < 20*time.Minute {
				return errors.New("boom")
			}
			return nil
		}
		c.startAll(w, "a", "b")
		until(10*time.Minute + 30*time.Second)
		c.wantRuns(3)
		if r := c.record("work"); r.Orders.Paused.At.IsZero() || r.Failures != 3 {
			t.Errorf("paused %+v after %d failures", r.Orders.Paused, r.Failures)
		}
		c.order(soloist.Order{Kind: soloist.OrderResume}, w)
		until(20*time.Minute + 30*time.Second)
		c.wantRuns(6) // it has six failures in a row by then
		c.order(soloist.Order{Kind: soloist.OrderResume}, w)
		time.Sleep(2 * time.Minute)
		c.wantRuns(8)
		if r := c.record("work"); !r.Orders.Paused.At.IsZero() || r.Failures != 0 || r.Orders.Spared != 0 {
			t.Errorf("paused %+v, %d failures, %d spared", r.Orders.Paused, r.Failures, r.Orders.Spared)
		}
	})
}

// plainStore hides all but the contract.
type plainStore struct{ store.Store }

// Over a store without documents a job with PauseAfter is refused, since it could never be resumed, and so is each order.
func TestPauseAfterNeedsOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Retry.PauseAfter = 1
		a := c.replica("a", w)
		a.Store = plainStore{a.tap}
		wantError(t, a.Validate(), "Retry.PauseAfter: ", "nothing could resume the job")
		b := c.replica("b", work("@every 1m", 0))
		b.Store = plainStore{b.tap}
		if err := b.orders(soloist.OrderPause); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("an order: got %v", err)
		}
		_, err := b.Orders(t.Context())
		wantError(t, err, "keeps no orders")
	})
}
