package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A goroutine that was left behind saves, which the store refuses.
func TestASaveThatIsRefusedDoesNotHoldUpTheOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 1m", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			go func() { _ = run.Save(context.Background(), "x") }()
			time.Sleep(time.Second)
			return nil
		}}
		a := c.start("a", job)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "save" {
				return errors.New("413 too large for the proxy")
			}
			return apply()
		})
		time.Sleep(time.Hour)
		if n := len(c.all()); n < 50 {
			t.Errorf("%d runs in an hour; the record says %s", n, c.record("work").Status)
		}
	})
}

// A last save on the way out, refused for another reason than the lease.
func TestASaveThatIsRefusedDoesNotHoldUpAStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			<-ctx.Done()
			return run.Save(context.WithoutCancel(ctx), "where I was")
		}}
		a := c.start("a", job)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "save" {
				return errors.New("403 this request is not authorized to perform this operation using this permission")
			}
			return apply()
		})
		time.Sleep(2 * time.Minute)
		go a.stop()
		time.Sleep(6 * time.Hour)
		select {
		case <-a.done:
		default:
			t.Errorf("six hours after the stop it goes on; the log says %q", a.log.lines("level=WARN"))
			a.tap.meet(nil)
		}
	})
}

// The lease is held all the while, so health has to tell.
func TestAnOutcomeThatIsRefusedIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 1 0 * * *", time.Second))
		n := 0
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" {
				if n++; n > 1 {
					return errors.New("403 this request is not authorized to perform this operation using this permission")
				}
			}
			return apply()
		})
		time.Sleep(6 * time.Hour)
		if h := a.Health(); h.Storage == nil && len(h.Broken) == 0 {
			t.Errorf("%d refused writes in six hours, the lease held all the while; health %+v, log %q", n, h, a.log.lines("level=WARN"))
		}
	})
}

// A leader that is cut off writes its outcome for as long as it takes.
func TestAnOutageAtTheEndIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(time.Minute)
		n := len(a.log.lines("level=WARN"))
		a.tap.cut.Store(true)
		time.Sleep(time.Hour)
		h := a.Health()
		t.Logf("%+v", h)
		if h.Storage == nil && len(h.Broken) == 0 {
			t.Errorf("an hour without the store, and Health tells nothing; warnings: %q", a.log.lines("level=WARN")[n:])
		}
	})
}
