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

// orphaned has a replica run an hourly job, cuts it off a second into the run, and breaks
// its lease of a minute: it trusts that until 01:00:49.
func (c *cluster) orphaned(job soloist.Job) {
	c.t.Helper()
	a := c.start("a", job)
	time.Sleep(time.Hour + time.Second)
	a.kill()
	c.breakLease()
}

// lasting runs for most of an hour, with a lease of a minute, and again if its runner dies.
func lasting(schedule string) soloist.Job {
	return leased(time.Minute, rerun(work(schedule, 50*time.Minute)))
}

// No replica begins before the last holder, which is cut off, must have given up: for the longest lease that was seen,
// also if the record that the next holder makes names a shorter one. The history says how the lease has ended; the
// record of another attempt says no more of that.
func TestHoldOff(t *testing.T) {
	for how, tt := range map[string]struct {
		follower soloist.Job
		want     string // the first outcome
	}{
		"broken":          {work("@every 10s", time.Hour), "abandoned 00:00:10 unlocked"},
		"unlocked":        {work("@every 10s", time.Hour), "abandoned 00:00:10 unlocked by ann"},
		"unlocked, rerun": {rerun(work("@every 10s", time.Hour)), ""},
		"deleted":         {work("@every 10s", time.Hour), ""},
	} {
		inCase(t, how, func(t *testing.T, c *cluster) {
			a := c.start("a", lasting("@every 10s"))
			time.Sleep(15 * time.Second)
			c.start("b", tt.follower)
			time.Sleep(16 * time.Second) // a has just renewed
			a.kill()
			killed := time.Now()
			switch how {
			case "broken":
				c.breakLease()
			case "deleted":
				c.breakLease()
				c.deleteEntry()
			default:
				c.ok(c.replica("ann", tt.follower).Unlock(c.t.Context(), "work", true))
			}
			time.Sleep(3 * time.Minute)
			first, next := c.successor(killed, D, 2*time.Minute)
			c.wrong(first.end.Sub(killed) < 30*time.Second, "the first one ended at %s", first.end)
			run, again := c.record("work").Run, next.Attempt == 2
			c.wrong(run.Status != store.Running || !run.Unlocked.At.IsZero() || again != (how == "unlocked, rerun"),
				"attempt %d: %+v", next.Attempt, run)
			got := append(c.outcomes("work"), "")
			c.wrong(tt.want != "" && got[0] != tt.want, "the outcomes %q", got)
		})
	}
}

// A replica with a shorter lease holds off after a break, and dies: its lease,
// which has run out, does not speak for the longer one before it.
func TestHoldOffSurvivesSecondDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		short := rerun(work("@every 1h", time.Second))
		c.orphaned(lasting("@every 1h"))
		b := c.start("b", short) // acquires, holds off, and dies
		time.Sleep(time.Second)
		b.kill()
		c.start("c", short)
		time.Sleep(3 * time.Minute)
		c.succession(2)
	})
}

// A hold-off that is cut short is not started again by the next call, also if that is another process: its lease expires, after
// which no replica has to hold off. The error says why nothing runs.
func TestHoldOffIsNotRestarted(t *testing.T) {
	for _, same := range []bool{true, false} {
		inCase(t, fmt.Sprint("the same process: ", same), func(t *testing.T, c *cluster) {
			job := lasting("@every 1h")
			c.orphaned(job)
			job.Do = nil
			b := c.replica("b", job)
			for i := range 2 {
				if !same {
					b = c.replica(fmt.Sprint("b", i), job)
				}
				_, err := b.RunDue(c.within(50*time.Second), soloist.Wake{})
				got := fmt.Sprint(err)
				c.wrong(strings.Contains(got, "did not expire by itself") != (i == 0), "call %d: %v", i+1, err)
				time.Sleep(time.Minute)
			}
			c.succession(2)
		})
	}
}

// A step-down does not wait for the end of a hold-off. Others have the first go then, as after a run.
func TestStepDownEndsHoldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.orphaned(lasting("@every 1h"))
		b := c.start("b", lasting("@every 1h"))
		time.Sleep(5 * time.Second)
		b.wantLines(1, "did not run out by itself")
		b.tap.counts()
		begin := time.Now()
		err := b.StepDown(c.t.Context(), "work")
		c.wrong(err != nil || time.Since(begin) > time.Second, "stepped down after %s: %v", time.Since(begin), err)
		time.Sleep(20 * time.Second)
		n := b.tap.counts()["acquire"]
		c.wrong(n > 0, "acquired %d times within a third of the lease of StepDown", n)
	})
}

// A replica that holds off for long does not count as one that occupies the job.
func TestHoldOffIsNoOccupation(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.orphaned(lasting("@every 1h"))
		b, d := c.start("b", lasting("@every 1h")), c.start("d", lasting("@every 1h"))
		for range 100 {
			time.Sleep(time.Second)
			b.wantWell()
			d.wantWell()
		}
		c.wantRuns(2)
	})
}

// A hold-off takes half of a call: what is left is too short for the run.
func TestHoldOffLeavesCallTooShort(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(30*time.Second, rerun(work("@every 1m", 40*time.Second)))
		job.Timeout = 45 * time.Second
		a := c.start("a", job)
		time.Sleep(time.Minute + time.Second)
		a.kill()
		c.breakLease()
		time.Sleep(2 * time.Minute)
		call := func(name string) error {
			_, err := c.replica(name, job).RunDue(c.within(time.Minute), soloist.Wake{})
			return err
		}
		wantError(t, call("b"), "not started")
		c.wantRuns(1)
		time.Sleep(job.Lease + time.Second)
		if err := call("c"); len(c.all()) < 2 {
			t.Errorf("the next call: %d runs, %v", len(c.all()), err)
		}
	})
}

// A call ends in its hold-off and leaves its lease to expire. The next one waits for that, and does not say that the dead replica
// runs the job.
func TestRunDueAfterCallThatHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("@hourly", 10*time.Second))
		a := c.start("a", job)
		until(time.Hour + time.Second)
		a.kill()
		c.breakLease()
		b := c.replica("b", job)
		_, err := b.RunDue(c.within(5*time.Second), soloist.Wake{})
		wantError(t, err, "did not expire by itself")
		got, err := b.RunDue(c.within(5*time.Second), soloist.Wake{})
		wantError(t, err, "its lease has yet to expire", "deadline")
		c.wrong(got.Jobs[0].Replica != "", "got %+v", got)
		got, err = b.RunDue(c.within(time.Minute), soloist.Wake{})
		c.wrong(err != nil || got.Jobs[0].Replica != "" || len(got.Jobs[0].Ran) != 1, "got %+v, %v", got, err)
	})
}

func TestUnlockEndsRun(t *testing.T) {
	for _, now := range []bool{true, false} {
		inCase(t, fmt.Sprint("now=", now), func(t *testing.T, c *cluster) {
			all := c.startAll(leader(), "a", "b")
			time.Sleep(time.Minute + 7*time.Second)
			c.ok(all["b"].Unlock(c.t.Context(), "lead", now))
			unlocked, least := time.Now(), D
			if !now { // it is still the old one's, which can give it back
				least = 0
			}
			time.Sleep(3 * D)
			first, _ := c.successor(unlocked, least, 2*D+D/3+time.Second)
			if took := first.end.Sub(unlocked); took > D/3+time.Second || !errors.Is(first.cause, store.ErrLost) {
				t.Errorf("the old one went on for %s, and ended for %v", took, first.cause)
			}
			err := all["b"].Unlock(c.t.Context(), "nobody", now)
			c.wrong(err == nil, "an unknown job is unlocked")
			for _, r := range all {
				r.wantLines(0, "0001-01-01")
			}
		})
	}
}

// After an unlock at once the record tells who did it and when another replica
// can follow; the history then tells the same, and not that the runner died.
func TestUnlockIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		both := c.startAll(work("@hourly", 50*time.Minute), "a", "b")
		time.Sleep(time.Hour + 10*time.Minute + 2*time.Second) // between two renewals
		before := c.record("work")
		operator := c.replica("ann@desk", work("@hourly", 0))
		unlocked := time.Now()
		c.ok(operator.Unlock(c.t.Context(), "work", true))
		r := c.record("work")
		c.wrong(r.Run.Unlocked.By != "ann@desk" || r.Run.Unlocked.At.Sub(unlocked).Abs() > time.Second,
			"the record tells %+v", r.Run.Unlocked)
		c.wrong(r.Run.Status != store.Running || r.Token != before.Token || r.Run.Replica != before.Run.Replica,
			"the annotation changed the run: %+v", r)
		if e, err := c.store.Read(t.Context(), "soloist/work"); err != nil || e.State != store.Available {
			t.Errorf("the lease is %s, %v", e.State, err)
		}
		st, err := operator.Status(c.t.Context())
		if err != nil || st[0].Waits.Before(unlocked.Add(D)) {
			t.Fatalf("status is %+v, %v", st, err)
		}
		time.Sleep(time.Until(st[0].Waits))
		if r := c.record("work"); !r.Run.Unlocked.At.IsZero() || r.Run.Status == store.Running {
			t.Errorf("at the time that status told no replica has followed: %+v", r)
		}
		c.wantOutcomes("work", "abandoned 01:00:00 unlocked by ann@desk")
		logged := 0
		for _, r := range both {
			logged += len(r.log.lines("reason=\"unlocked by ann@desk\""))
		}
		c.wrong(logged != 1, "logged %d times", logged)
	})
}

// Where the annotation fails, the lease is ended all the same, and the caller
// learns of both.
func TestUnlockWithoutNoteIsToldToCaller(t *testing.T) {
	for _, op := range []string{"read", "acquire", "write"} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 2*time.Second) // between two renewals
			err := c.replica("ann", work("@hourly", 0)).meets(fail(errNetwork, op)).Unlock(c.t.Context(), "work", true)
			c.wrong(!errors.Is(err, soloist.ErrUntold) || !strings.Contains(err.Error(), errNetwork.Error()), "got %v", err)
			if e, err := c.store.Read(context.Background(), "soloist/work"); err != nil || e.State == store.Leased {
				t.Errorf("the lease is %s, %v", e.State, err)
			}
		})
	}
}

// A holder that has claimed nothing leaves nothing to tell.
func TestUnlockOfIdleJobChangesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.wake()
		before := c.raw("work")
		e, _ := c.store.Read(c.t.Context(), "soloist/work")
		_, err := c.store.Lease("soloist/work", "5f1f3b6e-0b1c-4d2e-8f3a-9b7c6d5e4f30").Acquire(c.t.Context(), D, e.ETag)
		c.ok(errors.Join(err, a.Unlock(c.t.Context(), "work", true)))
		got := c.raw("work")
		c.wrong(string(got) != string(before), "the record became %s", got)
	})
}

// The operator's process dies before it releases the lease that it took for the
// annotation. That lease expires by itself, and by then the last holder, which
// is cut off, has ended its run.
func TestUnlockerThatDiesFreesJob(t *testing.T) {
	for _, op := range []string{"acquire", "write"} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			a := c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 10*time.Second + 100*time.Millisecond) // just renewed
			c.start("b", rerun(work("@hourly", time.Second)))
			a.kill()
			operator := c.replica("ann", work("@hourly", 0))
			_ = operator.meets(after(op, operator.kill)).Unlock(c.t.Context(), "work", true)
			time.Sleep(3 * time.Minute)
			runs := c.succession(2)
			c.wrong(runs[1].replica != "b", "%s follows", runs[1].replica)
		})
	}
}
