package soloist_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// Paused are its ticks.
func TestRunNowOfAPausedJobEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "@hourly", Everywhere: true, Paused: true})
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
		a.RunDue(c.t.Context())
		time.Sleep(31 * time.Minute) // asleep when the tick came due
		b := c.replica("b", work("30 0 * * *", 2*time.Second))
		if f, err := b.RunNow(c.t.Context(), "work", "operator"); err != nil {
			t.Fatal(f, err)
		}
		rep, err := b.RunDue(c.t.Context())
		t.Logf("%+v %v", rep, err)
		if got := c.fates("work"); len(got) != 2 || got[1] != "succeeded 00:30:00" {
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
		if f.Status == soloist.Running && err == nil {
			t.Errorf("half an hour after its runner died the request has the fate %s: %+v", f.Status, f)
		}
	})
}

// Its ticks are due by the new time.
func TestAClockPutBackUnderAJobEverywhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var off atomic.Int64
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "* * * * *", Everywhere: true})
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
