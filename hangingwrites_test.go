package soloist_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A muteStore answers no write while it is mute.
type muteStore struct {
	*local.Memory
	mute atomic.Bool
}

func (s *muteStore) Lease(name, id string) store.Lease { return muteLease{s.Memory.Lease(name, id), s} }

type muteLease struct {
	store.Lease
	of *muteStore
}

func (l muteLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if l.of.mute.Load() {
		<-ctx.Done()
		return store.Revision{}, ctx.Err()
	}
	return l.Lease.Write(ctx, etag, record)
}

// unheard launches a replica whose writes get no answer.
func (c *cluster) unheard(name string, work ...soloist.Work) *muteStore {
	r, s := c.replica(name, work...), &muteStore{Memory: c.store}
	r.Store = s
	s.mute.Store(true)
	c.launch(r)
	return s
}

// A replica whose writes hang costs the others no tick: they come first until one of its
// own has succeeded.
func TestHangingWritesCostNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 0)
		job.Lease, job.StartingDeadline = time.Minute, 10*time.Second
		c.start("b", job)
		c.unheard("a", job)
		time.Sleep(4*time.Hour + time.Second)
		if n := c.record("work").Counts[store.Succeeded]; n < 239 { // a may be first once, before it knows
			t.Errorf("%d of 240 ticks succeeded", n)
		}
	})
}

// So do they where one that runs most jobs would leave some ticks to it.
func TestHangingWritesCostNoTickOfMany(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprintf("ahead=%t", ahead), func(t *testing.T, c *cluster) {
			jobs := crowd(8, "@every 1m")
			for i, w := range jobs {
				job := w.(soloist.Job)
				job.ClaimAhead = ahead
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
		t.Run(every, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				jobs := crowd(8, every)
				c.start("b", jobs...)
				a := c.unheard("a", jobs...)
				time.Sleep(5 * time.Minute)
				a.mute.Store(false)
				time.Sleep(25 * time.Minute)
				before := len(c.all())
				time.Sleep(6 * time.Minute)
				ran := map[string]int{}
				for _, run := range c.all()[before:] {
					ran[run.replica]++
				}
				if ran["a"] < ran["b"]/4 {
					t.Errorf("of the ticks 25 minutes later it runs %d, and the other replica %d", ran["a"], ran["b"])
				}
			})
		})
	}
}

// So do they where nobody looks before the tick: here a pause ends with each tick.
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
