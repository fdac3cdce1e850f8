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

func TestBrokenLeaseEndsRun(t *testing.T) {
	for name, period := range map[string]time.Duration{"at once": 0, "naturally": -1} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.start("a", work("@every 1m", 50*time.Second))
			c.start("b", work("@every 1m", 50*time.Second))
			time.Sleep(67 * time.Second)
			if err := c.store.Break(t.Context(), "soloist/work", period); err != nil {
				t.Fatal(err)
			}
			broken := time.Now()
			time.Sleep(3 * time.Minute)
			runs := c.all()
			if !errors.Is(runs[0].cause, store.ErrLost) || runs[0].end.Sub(broken) > D/3+time.Second {
				t.Errorf("ended %s after the break with %v", runs[0].end.Sub(broken), runs[0].cause)
			}
			if len(runs) < 2 {
				t.Fatalf("got %+v", runs)
			}
			if wait := runs[1].start.Sub(broken); wait < D {
				t.Errorf("the next run began %s after the break, within the lease of the old one", wait)
			}
		})
	}
}

// Nobody may run before the old runner must have given up, even if it does not
// notice: here it is cut off before the lease is broken.
func TestHoldOffAfterBreak(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", 50*time.Minute))
		time.Sleep(61 * time.Second)
		c.start("b", work("@every 1m", time.Second))
		time.Sleep(time.Minute + 700*time.Millisecond) // just renewed
		a.kill()
		c.breakLease()
		time.Sleep(2 * time.Minute)
		runs := c.all()
		if len(runs) < 2 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %+v", runs)
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("the old run ended at %s, the next began at %s", runs[0].end, runs[1].start)
		}
	})
}

// orphaned has a replica run an hourly job, cuts it off a second into the run, and breaks
// its lease of a minute: it trusts that until 01:00:49.
func (c *cluster) orphaned(job soloist.Job) {
	c.t.Helper()
	a := c.start("a", job)
	time.Sleep(time.Hour + time.Second)
	a.kill()
	c.breakLease()
}

// A replica with a shorter lease holds off after a break, and dies: its lease,
// which has run out, does not speak for the longer one before it.
func TestHoldOffSurvivesSecondDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		short := rerun(work("@every 1h", time.Second))
		c.orphaned(leased(time.Minute, rerun(work("@every 1h", 50*time.Minute))))
		b := c.start("b", short) // acquires, holds off, and dies
		time.Sleep(time.Second)
		b.kill()
		c.start("c", short)
		time.Sleep(3 * time.Minute)
		c.succession(2)
	})
}

func TestRecreatedEntryRunsOn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("@every 10s", time.Second))
		c.start("b", work("@every 10s", time.Second))
		time.Sleep(55 * time.Second)
		c.deleteEntry()
		time.Sleep(time.Minute)
		if got := once(t, c.all()); got < 8 {
			t.Errorf("%d ticks ran: %q", got, c.outcomes("work"))
		}
		disjoint(t, c.all())
	})
}

// The old runner may not know that its entry is gone: here it is cut off.
func TestHoldOffAfterDeletion(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1s", 50*time.Minute))
		time.Sleep(1500 * time.Millisecond)
		c.start("b", work("@every 1s", time.Second))
		time.Sleep(time.Minute)
		a.kill()
		c.breakLease()
		c.deleteEntry()
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) < 10 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %d runs", len(runs))
		}
		disjoint(t, runs)
	})
}

// A hold-off that is cut short is not started anew by the next call, also if that is another process: its lease expires, after
// which nobody has to hold off. The error says why nothing runs.
func TestHoldOffIsNotRestarted(t *testing.T) {
	for _, same := range []bool{true, false} {
		inCase(t, fmt.Sprint("the same process: ", same), func(t *testing.T, c *cluster) {
			job := leased(time.Minute, rerun(work("@every 1h", 50*time.Minute)))
			c.orphaned(job)
			job.Do = nil
			b := c.replica("b", job)
			for i := range 2 {
				if !same {
					b = c.replica(fmt.Sprint("b", i), job)
				}
				_, err := b.RunDue(c.within(50*time.Second), soloist.Wake{})
				if got := fmt.Sprint(err); strings.Contains(got, "did not expire by itself") != (i == 0) {
					t.Errorf("call %d: %v", i+1, err)
				}
				time.Sleep(time.Minute)
			}
			c.succession(2)
		})
	}
}

// A step-down does not wait for the end of a hold-off.
func TestStepDownEndsHoldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(time.Minute, rerun(work("@every 1h", 50*time.Minute)))
		c.orphaned(job)
		b := c.start("b", job)
		time.Sleep(5 * time.Second)
		if len(b.log.lines("did not run out by itself")) != 1 {
			t.Fatalf("b does not hold off: %q", b.log.lines(""))
		}
		begin := time.Now()
		if err := b.StepDown(c.t.Context(), "work"); err != nil || time.Since(begin) > time.Second {
			t.Errorf("stepped down after %s: %v", time.Since(begin), err)
		}
	})
}

// After a deletion the next holder holds off for the longest lease that it has
// seen, though the record that it makes names a shorter one.
func TestHoldOffUsesLongestLeaseSeen(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, short := work("@every 10s", 50*time.Minute), work("@every 10s", time.Second)
		long.Lease, long.Interrupted, short.Interrupted = time.Minute, soloist.Rerun, soloist.Rerun
		a := c.start("a", long)
		time.Sleep(15 * time.Second)
		c.start("b", short)
		time.Sleep(16 * time.Second) // a has just renewed
		a.kill()
		c.breakLease()
		c.deleteEntry()
		time.Sleep(3 * time.Minute)
		runs := c.all()
		if len(runs) < 2 || runs[0].end.IsZero() || runs[0].end.Before(runs[0].start.Add(time.Minute)) {
			t.Fatalf("got %d runs, of which the first ended at %s", len(runs), runs[0].end)
		}
		if runs[1].start.Before(runs[0].end) {
			t.Errorf("%s runs until %s, %s from %s", runs[0].replica, runs[0].end, runs[1].replica, runs[1].start)
		}
	})
}

// Others have the first go, as after a run.
func TestStepDownInHoldOffLetsOthersFirst(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(time.Minute)
		a.kill()
		_ = c.store.Break(c.t.Context(), "soloist/lead", 0)
		b := c.start("b", leader())
		time.Sleep(5 * time.Second)
		before := b.tap.counts()["acquire"]
		if err := b.StepDown(c.t.Context(), "lead"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(D / 3)
		if n := b.tap.counts()["acquire"]; n > 0 {
			t.Errorf("acquired %d times, then %d times within a third of the lease of StepDown", before, n)
		}
	})
}

// A replica that holds off for long is none of those.
func TestHoldOffIsNoOccupation(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := leased(time.Minute, rerun(work("@every 1h", 30*time.Minute)))
		c.orphaned(job)
		b, d := c.start("b", job), c.start("d", job)
		for range 100 {
			time.Sleep(time.Second)
			if len(b.Health().Broken)+len(d.Health().Broken) > 0 {
				t.Fatalf("health: %v, %v", b.Health().Broken, d.Health().Broken)
			}
		}
		c.wantRuns(2)
	})
}

// The process knows the entry that was deleted, though RunNow does not begin from
// its loop: the last holder may still run.
func TestHoldOffBeforeRunNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 10*time.Minute)
		both := map[string]*replica{"a": c.start("a", job), "b": c.start("b", job)}
		time.Sleep(time.Hour + 7*time.Second)
		holder := both[c.all()[0].replica]
		delete(both, c.all()[0].replica)
		c.breakLease()
		c.deleteEntry()
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
func TestHoldOffLeavesCallTooShort(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 40*time.Second)
		job.Lease, job.Timeout, job.Interrupted = 30*time.Second, 45*time.Second, soloist.Rerun
		a := c.start("a", job)
		time.Sleep(time.Minute + time.Second)
		a.kill()
		c.breakLease()
		time.Sleep(2 * time.Minute)
		call := func(name string) error {
			ctx := c.within(time.Minute)
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
		if got.Jobs[0].Replica != "" {
			t.Errorf("got %+v", got)
		}
		got, err = b.RunDue(c.within(time.Minute), soloist.Wake{})
		if err != nil || got.Jobs[0].Replica != "" || len(got.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

func TestUnlockEndsRun(t *testing.T) {
	for _, now := range []bool{true, false} {
		inCluster(t, func(c *cluster) {
			all := c.graceful(0, leader(), "a", "b")
			time.Sleep(time.Minute + 7*time.Second)
			if err := all["b"].Unlock(c.t.Context(), "lead", now); err != nil {
				c.t.Fatalf("Unlock: %v", err)
			}
			unlocked := time.Now()
			time.Sleep(3 * D)
			runs := c.succession(2)
			if took := runs[0].end.Sub(unlocked); took > D/3+time.Second {
				t.Errorf("now=%t: the old one went on for %s", now, took)
			}
			if !errors.Is(runs[0].cause, store.ErrLost) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
			// Broken naturally it is still the old one's, who can give it back.
			if took := runs[1].start.Sub(unlocked); now && took < D || took > 2*D+D/3+time.Second {
				t.Errorf("now=%t: the new one started after %s", now, took)
			}
			if err := all["b"].Unlock(c.t.Context(), "nobody", now); err == nil {
				t.Error("an unknown job is unlocked")
			}
		})
	}
}

// The next holder waits for one lease after the unlock, as without the
// annotation: here the last one is cut off, and trusts its lease meanwhile.
func TestHoldOffAfterUnlock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(10 * time.Second)
		c.start("b", leader())
		c.start("c", leader())
		time.Sleep(time.Minute + 2*time.Second)
		a.kill()
		unlocked := time.Now()
		if err := c.replica("ann", leader()).Unlock(c.t.Context(), "lead", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(D + D/3 + 2*time.Second)
		if runs := c.succession(2); runs[1].start.Before(unlocked.Add(D)) {
			t.Errorf("got %+v", runs)
		}
		if got := c.record("lead").History[0].Reason; got != "unlocked by ann" {
			t.Errorf("the reason is %q", got)
		}
		for _, r := range c.started {
			r.wantLines(0, "0001-01-01")
		}
	})
}

// After an unlock at once the record tells who did it and when another replica
// can follow; the history then tells the same, and not that the runner died.
func TestUnlockIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@hourly", 50*time.Minute))
		b := c.start("b", work("@hourly", 50*time.Minute))
		time.Sleep(time.Hour + 10*time.Minute + 2*time.Second) // between two renewals
		before := c.record("work")
		operator := c.replica("ann@desk", work("@hourly", 0))
		unlocked := time.Now()
		if err := operator.Unlock(c.t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		r := c.record("work")
		if r.Run.Unlocked.By != "ann@desk" || r.Run.Unlocked.At.Sub(unlocked).Abs() > time.Second {
			t.Errorf("the record tells %+v", r.Run.Unlocked)
		}
		if r.Run.Status != store.Running || r.Token != before.Token || r.Run.Replica != before.Run.Replica {
			t.Errorf("the annotation changed the run: %+v", r)
		}
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
		if n := len(a.log.lines("reason=\"unlocked by ann@desk\"")) + len(b.log.lines("reason=\"unlocked by ann@desk\"")); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// A lease that was ended without the annotation: at its end, or by a tool.
func TestBrokenLeaseIsToldAsUnlocked(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCluster(t, func(c *cluster) {
			job := work("@hourly", 50*time.Minute)
			job.Interrupted = policy
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Minute)
			a.kill()
			c.breakLease()
			b := c.start("b", work("@hourly", 0))
			time.Sleep(2 * time.Minute)
			c.wantOutcomes("work", "abandoned 01:00:00 unlocked")
			b.stop()
		})
	}
}

// Under Rerun the next attempt clears what the unlock has told.
func TestAttemptClearsUnlock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("@hourly", 20*time.Minute))
		c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		c.start("b", job)
		time.Sleep(2 * time.Second)
		if err := c.replica("ann", job).Unlock(c.t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if r := c.record("work"); r.Run.Attempt != 2 || r.Run.Status != store.Running || !r.Run.Unlocked.At.IsZero() {
			t.Errorf("got %+v", r)
		}
	})
}

// Where the annotation fails, the lease is ended all the same, and the caller
// learns of both.
func TestUnlockWithoutNoteIsToldToCaller(t *testing.T) {
	for _, op := range []string{"read", "acquire", "write"} {
		inCluster(t, func(c *cluster) {
			c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 2*time.Second) // between two renewals
			operator := c.replica("ann", work("@hourly", 0))
			operator.tap.meet(fail(errNetwork, op))
			err := operator.Unlock(c.t.Context(), "work", true)
			if !errors.Is(err, soloist.ErrUntold) || !strings.Contains(err.Error(), errNetwork.Error()) {
				t.Errorf("%s: got %v", op, err)
			}
			if e, err := c.store.Read(context.Background(), "soloist/work"); err != nil || e.State == store.Leased {
				t.Errorf("%s: the lease is %s, %v", op, e.State, err)
			}
		})
	}
}

// A holder that has claimed nothing leaves nothing to tell.
func TestUnlockOfIdleJobChangesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.RunDue(c.t.Context(), soloist.Wake{})
		before := c.raw("work")
		e, _ := c.store.Read(c.t.Context(), "soloist/work")
		if _, err := c.store.Lease("soloist/work", "5f1f3b6e-0b1c-4d2e-8f3a-9b7c6d5e4f30").Acquire(c.t.Context(), D, e.ETag); err != nil {
			t.Fatal(err)
		}
		if err := a.Unlock(c.t.Context(), "work", true); err != nil {
			t.Errorf("got %v", err)
		}
		if got := c.raw("work"); string(got) != string(before) {
			t.Errorf("the record became %s", got)
		}
	})
}

// The one that unlocks dies before it releases the lease that it took for the
// annotation. That lease expires by itself, and by then the last holder, which
// is cut off, has ended its run.
func TestUnlockerThatDiesFreesJob(t *testing.T) {
	for _, op := range []string{"acquire", "write"} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 10*time.Second + 100*time.Millisecond) // just renewed
			job := rerun(work("@hourly", time.Second))
			c.start("b", job)
			a.kill()
			operator := c.replica("ann", work("@hourly", 0))
			operator.tap.meet(after(op, operator.kill))
			_ = operator.Unlock(c.t.Context(), "work", true)
			time.Sleep(3 * time.Minute)
			if runs := c.succession(2); runs[1].replica != "b" {
				t.Errorf("%s: %s follows", op, runs[1].replica)
			}
		})
	}
}

// After an expired lease the next one has the length that this replica is set to, also if
// the last runner's was longer: else a length that was once set would last for as long as
// each holder dies.
func TestShorterLeaseComesIntoForceAfterDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long := leader()
		long.Lease = time.Minute
		a := c.start("a", long)
		time.Sleep(time.Minute)
		first, second := c.start("b", leader()), c.start("c", leader())
		a.kill()
		time.Sleep(2 * time.Minute)
		if len(first.Health().Running) == 0 {
			first, second = second, first
		}
		killed := time.Now()
		first.kill()
		time.Sleep(time.Minute)
		runs := c.all()
		last := runs[len(runs)-1]
		if took := last.start.Sub(killed); last.replica != second.Replica || took > D+2*time.Second {
			t.Errorf("%s follows after %s, want %s within %s and two seconds", last.replica, took, second.Replica, D)
		}
	})
}
