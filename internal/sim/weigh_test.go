package sim_test

import (
	"context"
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A leader that saves ten times a second keeps no more after 9,000 saves than
// after 1,000, whether all answers come or some are lost.
func TestMemoryDoesNotGrowWithSaves(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of CPU: run it without -short")
	}
	for name, every := range map[string]int{"all answers come": 0, "some answers are lost": 50} {
		t.Run(name, func(t *testing.T) {
			var heap []int64
			synctest.Test(t, func(*testing.T) { heap = weighLeader(every) })
			if len(heap) != 2 {
				t.Fatalf("it was weighed %d times", len(heap))
			}
			const most = 20 // bytes a save, since the heap is not the same twice
			if heap[1]-heap[0] > most*8000 {
				t.Errorf("it uses %d bytes more after 8000 saves", heap[1]-heap[0])
			}
		})
	}
}

// weighLeader has one leader save, and loses the answer to each so many of its requests that save; zero: to none. It returns how
// much memory is in use after 1,000 saves and after 9,000. The log of the simulation keeps nothing.
func weighLeader(every int) (heap []int64) {
	script, requests := sim.NewScript(), 0
	script.Watch(func(*trace.Event) {})
	script.Direct = func(ctx context.Context, p *sim.RPC) (*http.Response, error) {
		resp, err := p.There(ctx)
		if err != nil {
			return nil, err
		}
		if requests++; every > 0 && p.Op() == "save" && requests%every == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return p.Back(ctx, resp)
	}
	act := func(ctx context.Context, s *sim.RunContext) error {
		for n := 1; n <= 9000; n++ {
			if err := s.Save(ctx, n); err != nil {
				return err
			}
			if n == 1000 || n == 9000 {
				runtime.GC()
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				heap = append(heap, int64(m.HeapAlloc))
			}
			if err := s.Sleep(ctx, 100*time.Millisecond); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}
	script.Start(sim.Part{Name: "a", Work: []sim.Work{{Definition: trace.Definition{Job: soloist.Job{Name: "leader", Lease: 30 * time.Second}}, Act: act}}})
	time.Sleep(2 * time.Hour)
	script.End()
	return heap
}
