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

// A process ends while its stalled run goes on, as Overrun is for, and each later
// wake-up is a new process with a short starting deadline. A write that claims
// nothing closes that run: without it each process would hold off until its tick
// is too late.
func TestStalledRunIsClosedByNextWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		wakes := 0
		wake := func(hang bool) {
			wakes++
			job := soloist.Job{Name: "work", Schedule: "@hourly", Lease: D, StartingDeadline: 10 * time.Second, HeartbeatTimeout: 5 * time.Second}
			if hang {
				job.Do = func(ctx context.Context, _ *soloist.Run) error { time.Sleep(40 * time.Second); return nil }
			}
			r := c.replica(fmt.Sprint("p", wakes), job)
			ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
			defer cancel()
			if hang {
				r.Overrun = func(string, error) { r.kill(); cancel() }
			}
			_, err := r.RunDue(ctx, soloist.Wake{})
			if err != nil && !hang {
				t.Errorf("wake-up %d: %v", wakes, err)
			}
		}
		wake(false)
		midnight := time.Now().Truncate(time.Hour)
		at := func(d time.Duration) { time.Sleep(time.Until(midnight.Add(d))) }
		at(time.Hour + time.Second)
		wake(true)
		at(2*time.Hour + 10*time.Minute) // too late for its tick
		wake(false)
		at(3*time.Hour + time.Second)
		wake(false)
		if r := c.record("work"); r.Status != store.Succeeded || !r.Tick.Equal(midnight.Add(3*time.Hour)) {
			t.Errorf("the record says %s, tick %s: %+v", r.Status, r.Tick, r.History)
		}
	})
}

type faulty struct{ text string }

func (f *faulty) Error() string { return f.text }

// The methods of an error that Do returns may panic: it is the run that fails.
func TestErrorThatPanicsFailsItsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job, here := work("@every 1m", 0), work("@every 1m", 0)
		job.MaxTries, job.Backoff = 2, time.Second
		job.Do = func(context.Context, *soloist.Run) error { var f *faulty; return f }
		here.Name, here.EveryReplica, here.Lease, here.Do = "here", true, 0, job.Do
		a := c.start("a", job, here)
		time.Sleep(90 * time.Second)
		if r := c.record("work"); r.Status != store.Failed || !strings.Contains(r.Error, "panic") {
			t.Errorf("the record says %s %q", r.Status, r.Error)
		}
		if len(a.log.lines("run ended", "job=here", "outcome=failed")) == 0 {
			t.Error("the job that runs everywhere has not failed")
		}
	})
}

// The process knows the entry that was deleted, though RunNow does not begin from
// its loop: the last holder may still run.
func TestRunNowHoldsOffAfterDeletion(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 10*time.Minute)
		both := map[string]*replica{"a": c.start("a", job), "b": c.start("b", job)}
		time.Sleep(time.Hour + 7*time.Second)
		holder := both[c.all()[0].replica]
		delete(both, c.all()[0].replica)
		if err := errors.Join(c.store.Break(c.t.Context(), "soloist/work", 0), c.store.Delete(c.t.Context(), "soloist/work")); err != nil {
			t.Fatal(err)
		}
		holder.kill()
		for _, other := range both {
			_, _ = other.RunNow(c.t.Context(), "work", "me")
		}
		runs := c.all()
		if len(runs) < 2 || runs[0].end.IsZero() && len(runs) > 1 || runs[0].end.After(runs[1].start) {
			t.Errorf("the first run ends at %s, the next starts at %s", runs[0].end, runs[len(runs)-1].start)
		}
	})
}

// A hold-off takes half of a call: what is left is too short for the run.
func TestCallTooShortAfterHoldOffStartsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 40*time.Second)
		job.Lease, job.Timeout, job.Interrupted = 30*time.Second, 45*time.Second, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(time.Minute + time.Second)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		call := func(name string) error {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
			defer cancel()
			_, err := c.replica(name, job).RunDue(ctx, soloist.Wake{})
			return err
		}
		if err := call("b"); err == nil || !strings.Contains(err.Error(), "not started") || len(c.all()) != 1 {
			t.Errorf("%d runs, and the call says %v", len(c.all()), err)
		}
		time.Sleep(job.Lease + time.Second)
		if err := call("c"); len(c.all()) < 2 {
			t.Errorf("the next call: %d runs, %v", len(c.all()), err)
		}
	})
}
