package soloist_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// tries calls Do n times, each for at most d, and returns how often the function was called.
func (c *cluster) tries(l *soloist.Lock, n int, d time.Duration) (begun int) {
	for range n {
		ctx, cancel := context.WithTimeout(c.t.Context(), d)
		_ = l.Do(ctx, func(context.Context, *soloist.Run) error { begun++; return nil })
		cancel()
	}
	return begun
}

// holderDies has a replica hold a lock for a minute and die. The test has to wait for it at its end.
func (c *cluster) holderDies(lock string) *sync.WaitGroup {
	a := c.replica("a")
	holding := &sync.WaitGroup{}
	holding.Go(func() { c.holds(a, lock, time.Hour) })
	time.Sleep(time.Minute)
	a.kill()
	return holding
}

// The first holder of a lock waits for its token. Callers that have less time than that must not all
// begin to wait anew.
func TestNewLockOfCallersWithLittleTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").Lock("new")
		l.Lease = D
		if begun := c.tries(l, 100, time.Second); begun < 98 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// The lease of a dead holder is broken, so that its successor holds off for longer than its callers
// wait.
func TestBrokenLockOfCallersWithLittleTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defer c.holderDies("x").Wait()
		if err := c.store.Break(c.t.Context(), "soloist/0-lock-x", 0); err != nil {
			t.Fatal(err)
		}
		l := c.replica("b").Lock("x")
		l.Lease = D
		if begun := c.tries(l, 100, 10*time.Second); begun < 95 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// The context of a caller ends between its acquisition and its claim, under the record of a dead holder.
func TestLockIsNotReleasedUnderDeadHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		defer c.holderDies("x").Wait()
		time.Sleep(time.Minute)
		ctx, cancel := context.WithCancel(c.t.Context())
		s := &faultyStore{Store: c.store}
		s.meets(nil, func(op, _ string) error {
			if op == "acquire" {
				cancel()
			}
			return nil
		})
		l := &soloist.Lock{Name: "x", Store: s, Lease: D}
		if err := l.Do(ctx, func(context.Context, *soloist.Run) error { return nil }); err == nil {
			t.Error("a call whose context has ended has done its work")
		}
		s.meets(nil, nil)
		if begun := c.tries(l, 100, 10*time.Second); begun < 95 {
			t.Errorf("%d of 100 calls were begun", begun)
		}
	})
}

// The entry of one slot fails, and the other slot is free.
func TestSlotThatFailsIsPassedOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(of("0-lock-x", errors.New("500")), nil)
		l := &soloist.Lock{Name: "x", Store: s, Lease: D, Slots: 2}
		if begun := c.tries(l, 20, 5*time.Minute); begun != 20 {
			t.Errorf("%d of 20 calls were begun", begun)
		}
	})
}

// The lease of a holder that is cut off is broken. It trusts its lease for a while, and nobody else begins
// before that trust has ended.
func TestBrokenLockIsHeldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		var holding sync.WaitGroup
		var lost time.Time
		holding.Go(func() {
			l := a.Lock("x")
			l.Lease = D
			_ = l.Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
				<-ctx.Done()
				lost = time.Now()
				return nil
			})
		})
		time.Sleep(time.Minute)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/0-lock-x", 0); err != nil {
			t.Fatal(err)
		}
		l := b.Lock("x")
		l.Lease = D
		var begun time.Time
		if err := l.Do(c.t.Context(), func(context.Context, *soloist.Run) error { begun = time.Now(); return nil }); err != nil {
			t.Error(err)
		}
		holding.Wait()
		if begun.Before(lost) {
			t.Errorf("begun %s before the trust of the last holder ended", lost.Sub(begun))
		}
	})
}
