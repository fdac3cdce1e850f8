package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The answer to "stalled" is lost, and the run saves on its way out: the
// watermark must not go back, or whoever saw it leaves the job alone.
func TestASaveDoesNotTakeBackAStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 15s", Lease: D, HeartbeatTimeout: silence,
			Do: func(ctx context.Context, run *soloist.Run) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				_ = run.Save(context.WithoutCancel(ctx), "where I was") // on the way out
				time.Sleep(time.Hour)
				return nil
			}}
		a := c.start("a", job)
		time.Sleep(25 * time.Second)
		job.Do = nil
		b := c.start("b", job)
		var through time.Time
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && c.record("work").Status == store.Stalled {
				through = c.record("work").Watermark
				a.tap.meet(nil)
				return errNetwork
			}
			return err
		})
		time.Sleep(11500 * time.Millisecond)
		if now := c.record("work").Watermark; now.Before(through) {
			t.Errorf("the watermark went back from %s to %s", through, now)
		}
		a.kill() // its host exits, since it overran
		time.Sleep(6 * time.Hour)
		if n := len(c.all()); n < 1000 {
			t.Errorf("b ran %d ticks in six hours: %v", n-1, b.Health().Broken)
		}
	})
}

// Later progress is written all the same.
func TestALostAnswerOfProgress(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(time.Second, 3*time.Hour, true))
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(time.Hour)
		if p := c.record("lead").Progress; time.Since(p.At) > 3*time.Minute {
			t.Errorf("progress is of %s, an hour after one lost answer: %d failures", p.At, len(a.log.lines("not brought up to date")))
		}
	})
}

// It is taken back all the same.
func TestALostAnswerToStopping(t *testing.T) {
	inCluster(t, func(c *cluster) {
		n := 0
		lead := beating(time.Second, time.Hour, true)
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			for ctx.Err() == nil {
				n++
				_ = run.Heartbeat("")
				if n == 1 {
					time.Sleep(15 * time.Second)
				}
				time.Sleep(time.Second)
			}
			return nil
		}
		a := c.start("a", lead)
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(time.Hour)
		if r := c.record("lead"); r.Stopping {
			t.Errorf("the record says that it is stopping, an hour later")
		}
	})
}

// The run has its lease, and goes on.
func TestALostAnswerOfProgressBeforeALoad(t *testing.T) {
	inCluster(t, func(c *cluster) {
		loaded := make(chan error, 9)
		lead := beating(time.Second, time.Hour, true)
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			for range 70 {
				_ = run.Heartbeat("")
				time.Sleep(time.Second)
			}
			var n int
			loaded <- run.Load(ctx, &n)
			<-ctx.Done()
			return nil
		}
		a := c.start("a", lead)
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(72 * time.Second)
		if err := <-loaded; err != nil {
			t.Errorf("Load says %v, and the run ended for %v", err, c.all()[0].cause)
		}
	})
}
