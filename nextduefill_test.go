package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// filledJobs are two jobs whose ticks are run again: of "work" one at a time, of "other" four at a time.
func filledJobs(interrupted soloist.InterruptedPolicy, d time.Duration) []soloist.Work {
	w, other := work("@hourly", d), named("other", work("@daily", d))
	w.Interrupted, other.Interrupted = interrupted, interrupted
	return []soloist.Work{w, other}
}

// fillBoth orders ten ticks of each.
func (c *cluster) fillBoth(jobs []soloist.Work) {
	c.t.Helper()
	hour, today := time.Now().Truncate(time.Hour), time.Now().Truncate(24*time.Hour)
	c.fills(soloist.Backfill{From: hour.Add(-10 * time.Hour), To: hour.Add(-time.Hour), All: true}, jobs...)
	c.order(soloist.Order{Kind: store.OrderBackfill, Job: "other",
		Backfill: soloist.Backfill{From: today.AddDate(0, 0, -10), To: today.AddDate(0, 0, -1), All: true, Parallel: 4}}, jobs...)
}

// toFill returns how many ticks of both backfills have no outcome yet.
func (c *cluster) toFill() int64 { return c.toFillOf("work") + c.toFillOf("other") }

func (c *cluster) toFillOf(job string) int64 {
	c.t.Helper()
	r := c.record(job)
	return 10 - r.Backfill.Done()
}

// wakeUntilFilled wakes replicas up for a short time each, as long as NextDue says now. It has to say so as long as a tick
// is left, and no longer. It returns how often it did.
func (c *cluster) wakeUntilFilled(then string, jobs ...soloist.Work) (wakes int) {
	c.t.Helper()
	for ; wakes < 40; wakes++ {
		r := c.replica("woken", jobs...)
		at, err := r.NextDue(c.t.Context())
		if now, left := time.Now(), c.toFill(); err != nil || at.After(now) == (left > 0) {
			c.t.Fatalf("%d ticks are left at %s, and a replica is wanted at %s, %v", left, now.Format(time.TimeOnly), at.Format(time.TimeOnly), err)
		}
		if at.After(time.Now()) {
			r.wanted(then)
			break
		}
		r.wakeFor(50 * time.Second)
	}
	return wakes
}

// wakeFor has a replica run what is due, for so long.
func (r *replica) wakeFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(r.tap.t.Context(), d)
	defer cancel()
	r.RunDue(ctx, soloist.Wake{}) // that its time is over is an error
}

// A replica is wanted at once as long as a backfill of any job has a tick without an outcome, also between two calls that
// had too little time for all of them.
func TestReplicaIsWantedUntilBackfillsAreOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Abandon, 10*time.Second)
		c.replica("first", jobs...).wake()
		until(5 * time.Minute)
		c.wanted("01:00:00", jobs...)
		c.fillBoth(jobs)
		if n := c.wakeUntilFilled("01:00:00", jobs...); n < 3 {
			t.Errorf("%d calls did it all", n)
		}
		for _, job := range []string{"work", "other"} {
			if got := c.record(job).Backfill.Counts[store.Succeeded]; got != 10 {
				t.Errorf("%d ticks of %s have succeeded", got, job)
			}
		}
	})
}

// The only replica dies in the runs of two backfills. Another one is wanted when the leases end, and until both are over.
func TestReplicaIsWantedToTakeBackfillsOver(t *testing.T) {
	for _, interrupted := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCase(t, string(interrupted), func(t *testing.T, c *cluster) {
			jobs := filledJobs(interrupted, 20*time.Second)
			a := c.start("a", jobs...)
			until(5 * time.Minute)
			c.fillBoth(jobs)
			for len(c.filled()) < 6 { // the second claim of one
				time.Sleep(time.Second)
			}
			a.wanted(time.Now().Add(D).Format(time.TimeOnly))
			a.kill()
			a.stop()
			dead := time.Now()
			for c.toFill() > 0 {
				at, err := c.replica("asks", jobs...).NextDue(c.t.Context())
				if err != nil || at.After(dead.Add(2*D)) && at.After(time.Now()) {
					t.Fatalf("at %s a replica is wanted at %s, %v", time.Now(), at, err)
				}
				if !at.After(time.Now()) {
					break
				}
				time.Sleep(time.Second)
			}
			if time.Since(dead) > D+2*time.Second {
				t.Errorf("a replica is wanted %s after the death", time.Since(dead))
			}
			c.wakeUntilFilled("01:00:00", jobs...)
		})
	}
}

// A backfill waits for the end of a pause, and that of another job does not.
func TestReplicaIsWantedForBackfillsBesidePause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Rerun, 10*time.Second)
		c.replica("first", jobs...).wake()
		until(5 * time.Minute)
		c.fillBoth(jobs)
		c.replica("some", jobs...).wakeFor(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "other", Until: time.Now().Add(20 * time.Minute)}, jobs...)
		for range 20 {
			r := c.replica("woken", jobs...)
			if at, _ := r.NextDue(c.t.Context()); at.After(time.Now()) {
				break
			}
			r.wakeFor(50 * time.Second)
		}
		if left := c.toFillOf("work"); left != 0 || c.toFill() == 0 {
			t.Errorf("%d ticks of the job that is not paused are left, and %d of both", left, c.toFill())
		}
		doc, _ := c.replica("desk", jobs...).Control(c.t.Context())
		ends := doc.Jobs["other"].Pause.Until
		c.wanted(ends.UTC().Format(time.TimeOnly), jobs...)
		time.Sleep(time.Until(ends))
		c.wakeUntilFilled("01:00:00", jobs...)
	})
}

// Backfills are cancelled between two attempts: a replica is wanted to write that, and then no more.
func TestCancelledBackfillWantsReplicaOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Rerun, 20*time.Second)
		a := c.start("a", jobs...)
		until(5 * time.Minute)
		c.fillBoth(jobs)
		for len(c.filled()) < 6 {
			time.Sleep(time.Second)
		}
		a.stop()
		for _, job := range []string{"work", "other"} {
			c.order(soloist.Order{Kind: store.OrderCancelBackfill, Job: job}, jobs...)
		}
		c.wanted("now", jobs...)
		if _, err := c.replica("b", jobs...).RunDue(context.Background(), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		c.wanted("01:00:00", jobs...)
		if n := len(c.record("other").Backfill.Open); n > 0 {
			t.Errorf("%d ticks are open", n)
		}
	})
}
