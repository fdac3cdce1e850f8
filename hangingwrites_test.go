package soloist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// hanging returns what has calls of op wait until their caller gives up, while on is set.
func hanging(op string, on *atomic.Bool) func(context.Context, string) error {
	return func(ctx context.Context, got string) error {
		if got != op || !on.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// unheard launches a replica whose writes get no answer while mute is set.
func (c *cluster) unheard(name string, work ...soloist.Work) (mute *atomic.Bool) {
	r, mute := c.replica(name, work...), &atomic.Bool{}
	mute.Store(true)
	r.tap.before = hanging("write", mute)
	c.launch(r)
	return mute
}

// A replica whose writes hang costs the others no tick, also if it runs most jobs and would leave some ticks to it: they
// come first until a write of its own has succeeded.
func TestHangingWritesCostNoTick(t *testing.T) {
	for _, tt := range []struct {
		jobs  int
		ahead bool
	}{{1, false}, {8, false}, {8, true}} {
		inCase(t, fmt.Sprint(tt), func(t *testing.T, c *cluster) {
			jobs := crowd(tt.jobs, "@every 1m")
			for i, w := range jobs {
				job := w.(soloist.Job)
				job.ClaimAhead = tt.ahead
				jobs[i] = job
			}
			c.start("b", jobs...)
			c.unheard("a", jobs...)
			time.Sleep(time.Hour + 30*time.Second)
			prompt := map[string]int{}
			for _, run := range c.all() {
				if run.start.Sub(run.Tick) <= 100*time.Millisecond {
					prompt[run.Job]++
				}
			}
			for i := range jobs {
				if n := prompt[fmt.Sprintf("job-%d", i)]; n < 59 { // a may be first once, before it knows
					t.Errorf("%d of 60 ticks of job-%d began on time", n, i)
				}
			}
		})
	}
}

// Once its writes arrive again it runs its part of the ticks.
func TestReplicaThatWritesAgainRunsTicks(t *testing.T) {
	crowded(t)
	for _, every := range []string{"@every 1m", "@every 5s"} {
		inCase(t, every, func(t *testing.T, c *cluster) {
			jobs := crowd(8, every)
			c.start("b", jobs...)
			mute := c.unheard("a", jobs...)
			time.Sleep(5 * time.Minute)
			mute.Store(false)
			time.Sleep(25 * time.Minute)
			since := time.Now()
			time.Sleep(6 * time.Minute)
			a, b := len(ranBy(c, "a", since)), len(ranBy(c, "b", since))
			c.wrong(a < b/4, "of the ticks 25 minutes later it runs %d, and the other replica %d", a, b)
		})
	}
}

// Nor does it cost one where no replica looks before the tick: here a pause ends with each tick.
func TestHangingWritesDelayNoTickAfterPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1h", time.Second)
		c.start("b", job)
		c.unheard("a", job)
		time.Sleep(30 * time.Minute)
		slow := 0
		for range 24 {
			tick := time.Now().Add(30 * time.Minute)
			c.order(soloist.Order{Kind: store.OrderPause, Until: tick}, job)
			time.Sleep(time.Hour)
			if late := c.newest().Start.Sub(tick); late < 0 || late > time.Second {
				slow++
			}
		}
		if slow > 1 { // a may be first once, before it knows
			t.Errorf("%d of 24 ticks were late", slow)
		}
	})
}
