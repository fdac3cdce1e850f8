package soloist_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// pool returns a lock with slots.
func (r *replica) pool(slots int) *soloist.Lock {
	l := r.guard()
	l.Slots = slots
	return l
}

// most returns how many of the runs were under way at once.
func most(runs []ran) (n int) {
	for _, r := range runs {
		at := 0
		for _, other := range runs {
			if !other.start.After(r.start) && other.end.After(r.start) {
				at++
			}
		}
		n = max(n, at)
	}
	return n
}

// As many callers as there are slots hold the lock, and no more. Under replicas with different numbers
// the largest counts, whichever of them comes first, and each replica keeps to its own.
func TestSlotsLimitHolders(t *testing.T) {
	for name, slots := range map[string]map[string]int{
		"equal":             {"a": 3, "b": 3, "c": 3},
		"one has more":      {"a": 2, "b": 2, "c": 5},
		"one has fewer":     {"a": 4, "b": 4, "c": 1},
		"a single one":      {"a": 4},
		"the most possible": {"a": 100},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var all sync.WaitGroup
			largest := 0
			for name, n := range slots {
				largest = max(largest, n)
				r := c.replica(name)
				l := r.pool(n)
				for range 2 * n {
					all.Go(func() {
						for range 3 {
							if err := c.hold(t.Context(), r, l, 10*time.Second); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
			all.Wait()
			if n := most(c.all()); n != largest {
				t.Errorf("%d hold it at once, want %d", n, largest)
			}
			for name, n := range slots {
				if got := most(ranBy(c, name, time.Time{})); got > n {
					t.Errorf("%s holds it %d times at once, and has %d slots", name, got, n)
				}
			}
		})
	}
}

// A slot whose holder has died is free again after a lease; the other slots work on.
func TestSlotOfDeadHolderIsFreeAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		dead := c.held(a, a.pool(2), time.Hour)
		pool := b.pool(2)
		end := c.held(b, pool, time.Hour)
		if err := b.pool(2).TryDo(c.t.Context(), c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) {
			t.Errorf("got %v with both slots held", err)
		}
		a.kill()
		killed := time.Now()
		if err := c.hold(c.within(D+time.Second), b, pool, 0); err != nil {
			t.Error(err)
		}
		t.Logf("free after %s", time.Since(killed))
		if err := <-dead; !errors.Is(err, soloist.ErrLost) {
			t.Error(err)
		}
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}

// The tokens of one slot grow; those of two slots have no order.
func TestTokensOfSlotGrow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			r := c.replica(name)
			l := r.pool(1)
			all.Go(func() {
				for range 10 {
					if err := c.hold(c.t.Context(), r, l, 0); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		tokens := []int64{}
		for _, r := range c.all() {
			tokens = append(tokens, r.Token)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != 20 {
			t.Errorf("tokens %v", tokens)
		}
	})
}

// A lock of slots inside itself may wait for itself as well.
func TestSlotsInsideThemselvesAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		err := a.pool(2).Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			return cmp.Or(a.pool(2).TryDo(ctx, c.watch("a", nil)), errors.New("it is held twice"))
		})
		wantError(t, err, "held by the caller already")
	})
}
