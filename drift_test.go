package soloist_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A mortal store cuts off whoever has it.
type mortal struct {
	store.Store
	dead    atomic.Bool
	renewed atomic.Pointer[time.Time]
}

func (m *mortal) Lease(name, id string) store.Lease { return mortalLease{m.Store.Lease(name, id), m} }

type mortalLease struct {
	store.Lease
	*mortal
}

var errCut = errors.New("cut off")

func (l mortalLease) Renew(ctx context.Context) (store.Revision, error) {
	if l.dead.Load() {
		return store.Revision{}, errCut
	}
	now := time.Now()
	l.renewed.Store(&now)
	return l.Lease.Renew(ctx)
}

func (l mortalLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if l.dead.Load() {
		return store.Revision{}, errCut
	}
	return l.Lease.Write(ctx, etag, record)
}

func (l mortalLease) Release(ctx context.Context) error {
	if l.dead.Load() {
		return errCut
	}
	return l.Lease.Release(ctx)
}

// A leader's clock may be slower than the service's: its renewals must not
// drift behind the looks of the others.
func TestALeaderWithASlowClockIsReplacedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := &local.Memory{}
		starts := make(chan string, 9)
		leader := &mortal{Store: memory}
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		run := func(name string, backend store.Store, slow time.Duration) {
			s := &soloist.Scheduler{Store: backend, Replica: name, Elapsed: func() time.Duration {
				gone := time.Since(begin)
				return gone - gone/slow
			}, Singletons: []soloist.Singleton{{Name: "work", Lease: 15 * time.Second, Do: func(ctx context.Context, _ *soloist.Run) error {
				starts <- name
				<-ctx.Done()
				return nil
			}}}}
			all.Go(func() { s.Run(ctx) })
		}
		run("slow", leader, 5000) // 200 ppm
		<-starts
		run("other", memory, 1<<40)
		time.Sleep(2 * time.Hour) // 1.44 s less by its clock
		leader.dead.Store(true)
		<-starts
		if took := time.Since(*leader.renewed.Load()); took > 17*time.Second {
			t.Errorf("replaced %s after the last renewal, want at most 17s", took)
		}
		leader.dead.Store(false)
		cancel()
		all.Wait()
	})
}
