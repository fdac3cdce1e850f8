package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A job that makes up for all its ticks has some from before it paused itself. Those of the
// pause are skipped all the same.
func TestSelfPauseBindsBacklog(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		w.Missed, w.Retry.PauseAfter = soloist.RunAll, 1
		w.Do = func(ctx context.Context, _ *soloist.Run) error {
			if sinceMidnight() < 10*time.Minute {
				return errors.Join(pause(ctx, 150*time.Second), errors.New("boom"))
			}
			return nil
		}
		c.start("a", w)
		until(10*time.Minute + 30*time.Second)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		until(12*time.Minute + 30*time.Second)
		t.Log(c.outcomes("work"))
		for _, r := range c.all() {
			if r.Tick.After(c.all()[0].end) && r.Tick.Sub(c.all()[0].Tick) < 9*time.Minute {
				t.Errorf("%s runs, and it came due in a pause", r.ID())
			}
		}
	})
}

// The store answers each read of the orders just within its time, and no tick waits for one. A
// pause is confirmed just after one was served.
func TestPauseEverywhereWithSlowReads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("* * * * * *", nil)
		a, served := c.replica("a", w), make(chan struct{})
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "read document" {
				select {
				case served <- struct{}{}:
				default:
				}
				time.Sleep(2900 * time.Millisecond)
			}
			return err
		})
		c.launch(a)
		time.Sleep(time.Minute)
		<-served
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
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

// A machine sleeps while a job of EveryReplica is paused.
func TestPauseEverywhereAfterSleep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, m := here("* * * * * *", nil), &suspended{}
		a := c.replica("a", w).on(m)
		a.Now = func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
		c.launch(a)
		time.Sleep(61500 * time.Millisecond)
		// The machine sleeps for an hour.
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here"}, w)
		n := len(c.all())
		m.slept.Add(int64(time.Hour))
		time.Sleep(time.Minute)
		if late := len(c.all()) - n; late > 0 {
			t.Errorf("%d runs", late)
		}
	})
}

// A tick of a paused job waits for another attempt, and other things are written meanwhile. The
// outcome of the attempt before still says who unlocked it.
func TestPausedTickKeepsWhoUnlockedIt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@hourly", 10*time.Minute))
		w.StartingDeadline = 5 * time.Minute
		a := c.start("a", w)
		until(time.Hour + 10*time.Second)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		time.Sleep(10 * time.Second)
		if err := c.replica("ann", w).Unlock(c.t.Context(), "work", true); err != nil {
			c.t.Fatal(err)
		}
		c.order(soloist.Order{Kind: store.OrderRun, Request: "x"}, w)
		time.Sleep(10 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderResume}, w)
		time.Sleep(15 * time.Minute)
		a.stop()
		c.wantOutcomes("work", "abandoned 01:00:00 unlocked by ann, and a run was ordered in the pause", "succeeded 01:00:35")
	})
}
