package soloist_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// Paused are its ticks.
func TestRunNowOfAPausedJobEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "@hourly", EveryReplica: true, Paused: true})
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v", p)
			}
		}()
		f, err := a.RunNow(c.t.Context(), "here", "me")
		t.Log(f, err)
	})
}

// A tick that was due before is no overlap: it is run.
func TestRunNowLeavesADueTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("30 0 * * *", 2*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(31 * time.Minute) // asleep when the tick came due
		b := c.replica("b", work("30 0 * * *", 2*time.Second))
		if f, err := b.RunNow(c.t.Context(), "work", "operator"); err != nil {
			t.Fatal(f, err)
		}
		rep, err := b.RunDue(c.t.Context(), soloist.Wake{})
		t.Logf("%+v %v", rep, err)
		if got := c.outcomes("work"); len(got) != 2 || got[1] != "succeeded 00:30:00" {
			t.Errorf("got %q", got)
		}
	})
}

// The request is not running any more.
func TestRunNowWhoseRunnerDied(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", time.Minute))
		ctx, cancel := context.WithCancel(c.t.Context())
		go a.RunNow(ctx, "work", "x")
		defer func() { cancel(); time.Sleep(time.Hour) }()
		time.Sleep(10 * time.Second)
		a.kill()
		time.Sleep(30 * time.Minute)
		b := c.replica("b", work("@hourly", time.Minute))
		f, err := b.RunNow(c.t.Context(), "work", "x")
		if f.Status == store.Running && err == nil {
			t.Errorf("half an hour after its runner died the request has the outcome %s: %+v", f.Status, f)
		}
	})
}

// Its ticks are due by the new time.
func TestAClockPutBackUnderAJobEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var off atomic.Int64
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "* * * * *", EveryReplica: true})
		a.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		off.Store(int64(24 * time.Hour)) // wrong at the start, then put right
		c.launch(a)
		time.Sleep(10 * time.Minute)
		off.Store(0)
		n := len(c.all())
		time.Sleep(10 * time.Hour)
		if got := len(c.all()) - n; got < 500 {
			t.Errorf("%d runs in the ten hours after the clock was put right by a day", got)
		}
	})
}

// The second call of a request that is under way does not call it abandoned.
func TestRunNowOfARequestThatIsUnderWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute))
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(10 * time.Second)
		for _, r := range []*replica{a, b} {
			if f, err := r.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Running || f.Replica != "a" {
				t.Errorf("%s: got %+v, %v, want that a runs it", r.Replica, f, err)
			}
		}
		<-done
		if f, err := b.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Succeeded || len(c.all()) != 1 {
			t.Errorf("after its end: got %+v, %v after %d runs", f, err, len(c.all()))
		}
	})
}

// A call that ends in an outage leaves no trouble behind: no call would ever
// learn that it is over.
func TestRunNowInAnOutageLeavesNoTrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.kill()
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(50 * time.Second)
			if h := a.Health(); h.Storage == nil {
				t.Errorf("during the call health is %+v", h)
			}
		}()
		if _, err := a.RunNow(ctx, "work", "x"); err == nil {
			t.Error("it ran")
		}
		if h := a.Health(); h.Storage != nil || len(h.Broken) > 0 {
			t.Errorf("after the call health is %+v", h)
		}
	})
}

// A replica that is stopping begins nothing, by hand neither.
func TestRunNowOfAJobEverywhereAfterAStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var ran atomic.Bool
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "@hourly", EveryReplica: true, Do: func(context.Context, *soloist.Run) error {
			ran.Store(true)
			return nil
		}})
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		if _, err := a.RunNow(ctx, "here", "me"); !errors.Is(err, context.Canceled) || ran.Load() {
			t.Errorf("it ran: %t, and the error is %v", ran.Load(), err)
		}
	})
}

// The run is over when its outcome is refused. The caller gets that error, not the outcome
// that others make up for a runner that looks dead.
func TestRunNowTellsThatTheOutcomeWasRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		a := c.replica("a", job)
		a.Jobs[0].Do = func(ctx context.Context, _ *soloist.Run) error {
			return a.Unlock(context.WithoutCancel(ctx), "work", true)
		}
		outcome, err := a.RunNow(c.t.Context(), "work", "x")
		if err == nil || !strings.Contains(err.Error(), "has run, and the outcome, succeeded, was refused") {
			t.Errorf("got %+v, %v, want that the outcome was refused", outcome, err)
		}
	})
}

// The end of a run by hand leaves the state of a tick alone that the loop has
// started meanwhile: nothing is stuck, and the tick can be handed over.
func TestTheEndOfARunByHandLeavesATickAlone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 20*time.Minute)
		job.Missed = soloist.RunAll
		a := c.replica("a", job)
		c.launch(a)
		time.Sleep(2*time.Hour - 5*time.Minute)
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "release" {
				time.Sleep(2 * time.Second)
			}
			return err
		})
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
		defer cancel()
		_, _ = a.RunNow(ctx, "work", "now")
		time.Sleep(5 * time.Minute)
		if h := a.Health(); len(h.Running) != 1 || len(h.Stuck) > 0 {
			t.Errorf("Health: %+v", h)
		}
		if err := a.StepDown(c.t.Context(), "work"); err != nil {
			t.Error(err)
		}
	})
}
