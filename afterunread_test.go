package soloist_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A lamed store fails the reads of an entry while bad is set.
type lamed struct {
	*local.Memory
	entry string
	bad   atomic.Bool
}

func (s *lamed) Read(ctx context.Context, name string) (store.Entry, error) {
	if name == s.entry && s.bad.Load() {
		return store.Entry{}, errors.New("no route")
	}
	return s.Memory.Read(ctx, name)
}

func (s *lamed) Lease(name, id string) store.Lease {
	if name == s.entry {
		return heldLease{s.Memory.Lease(name, id)}
	}
	return s.Memory.Lease(name, id)
}

// That a predecessor cannot be read is told once, and so is its end.
func TestUnreadablePredecessorIsToldOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("0 1 * * *", 10*time.Minute)
		c.start("a", imports)
		until(time.Minute)
		s := &lamed{Memory: c.store, entry: "soloist/import"}
		b := c.replica("b", imports, following("report", "import", time.Second), following("mail", "import", time.Second))
		b.tap.Store = s
		var mu sync.Mutex
		told := map[event.Kind]int{}
		b.Events = func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			told[e.Kind]++
		}
		c.launch(b)
		until(time.Hour + 30*time.Second)
		s.bad.Store(true)
		until(time.Hour + 5*time.Minute)
		s.bad.Store(false)
		until(time.Hour + 12*time.Minute)
		c.wantOutcomes("report", "succeeded 01:00:00")
		mu.Lock()
		defer mu.Unlock()
		if begins, ends := told[event.StoreTrouble], told[event.StoreBack]; begins != 1 || ends != 1 {
			t.Errorf("the trouble was told %d times, and its end %d times", begins, ends)
		}
	})
}

// A run of the predecessor has stalled and does not return: its outcome is known at once all the same.
func TestFollowerOfStalledRunOfItsOwnReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("0 1 * * *", func(context.Context, *soloist.Run) error {
			time.Sleep(20 * time.Minute)
			return nil
		}))
		imports.HeartbeatTimeout = time.Minute
		always := following("always", "import", time.Second)
		always.AfterAny = true
		c.start("a", imports, always)
		until(time.Hour + 2*time.Minute)
		if runs := c.runsOf("always"); len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 61*time.Second {
			t.Errorf("got %d runs, want one after the stall: %+v", len(runs), runs)
		}
	})
}
