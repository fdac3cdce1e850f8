package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

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
		if r.Unlocked.By != "ann@desk" || r.Unlocked.At.Sub(unlocked).Abs() > time.Second {
			t.Errorf("the record tells %+v", r.Unlocked)
		}
		if r.Status != store.Running || r.Token != before.Token || r.Replica != before.Replica {
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
		if r := c.record("work"); !r.Unlocked.At.IsZero() || r.Status == store.Running {
			t.Errorf("at the time that status told no replica has followed: %+v", r)
		}
		want := []string{"abandoned 01:00:00 unlocked by ann@desk"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(a.log.lines("reason=\"unlocked by ann@desk\"")) + len(b.log.lines("reason=\"unlocked by ann@desk\"")); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// The next holder waits for one lease after the unlock, as without the
// annotation: here the last one is cut off, and trusts its lease meanwhile.
func TestHoldOffAfterAnUnlock(t *testing.T) {
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
		runs := c.all()
		if len(runs) != 2 || runs[1].start.Before(unlocked.Add(D)) {
			t.Fatalf("got %+v", runs)
		}
		disjoint(t, runs)
		if got := c.record("lead").History[0].Reason; got != "unlocked by ann" {
			t.Errorf("the reason is %q", got)
		}
		for _, r := range c.started {
			if got := r.log.lines("0001-01-01"); len(got) > 0 {
				t.Errorf("a singleton has no tick: %q", got)
			}
		}
	})
}

// A lease that was ended without the annotation: at its end, or by a tool.
func TestABrokenLeaseIsNoDeath(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCluster(t, func(c *cluster) {
			job := work("@hourly", 50*time.Minute)
			job.Interrupted = policy
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Minute)
			a.kill()
			if err := c.store.Break(t.Context(), "soloist/work", 0); err != nil {
				t.Fatal(err)
			}
			b := c.start("b", work("@hourly", 0))
			time.Sleep(2 * time.Minute)
			if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 01:00:00 unlocked"}) {
				t.Errorf("got %q", got)
			}
			b.stop()
		})
	}
}

// Under Rerun the next attempt clears what the unlock has told.
func TestAnAttemptAfterAnUnlock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 20*time.Minute)
		job.Interrupted = soloist.Rerun
		c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		c.start("b", job)
		time.Sleep(2 * time.Second)
		if err := c.replica("ann", job).Unlock(c.t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if r := c.record("work"); r.Attempt != 2 || r.Status != store.Running || !r.Unlocked.At.IsZero() {
			t.Errorf("got %+v", r)
		}
	})
}

// A run by hand that was unlocked.
func TestARunByHandThatWasUnlocked(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute))
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(12 * time.Second)
		if err := b.Unlock(c.t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		<-done
		if f, err := b.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Abandoned || f.Reason != "unlocked by b" {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// Where the annotation fails, the lease is ended all the same, and the caller
// learns of both.
func TestAnUnlockThatIsNotTold(t *testing.T) {
	for _, op := range []string{"read", "acquire", "write"} {
		inCluster(t, func(c *cluster) {
			c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 2*time.Second) // between two renewals
			operator := c.replica("ann", work("@hourly", 0))
			operator.tap.meet(func(got string, apply func() error) error {
				if got == op {
					return errNetwork
				}
				return apply()
			})
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
func TestAnUnlockOfAnIdleJob(t *testing.T) {
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
func TestAnUnlockerThatDies(t *testing.T) {
	for _, op := range []string{"acquire", "write"} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", work("@hourly", 50*time.Minute))
			time.Sleep(time.Hour + 10*time.Second + 100*time.Millisecond) // just renewed
			job := work("@hourly", time.Second)
			job.Interrupted = soloist.Rerun
			c.start("b", job)
			a.kill()
			operator := c.replica("ann", work("@hourly", 0))
			operator.tap.meet(func(got string, apply func() error) error {
				err := apply()
				if got == op {
					operator.kill()
				}
				return err
			})
			_ = operator.Unlock(c.t.Context(), "work", true)
			time.Sleep(3 * time.Minute)
			runs := c.all()
			if len(runs) != 2 || runs[1].replica != "b" {
				t.Fatalf("%s: got %d runs", op, len(runs))
			}
			disjoint(t, runs)
		})
	}
}
