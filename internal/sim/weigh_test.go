package sim_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

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
			var l *trace.Log
			synctest.Test(t, func(*testing.T) { l = weighLeader(every) })
			var weighed []*trace.Event
			for _, e := range l.Events {
				if e.What == trace.Weighed {
					weighed = append(weighed, e)
				}
			}
			if len(weighed) != 2 {
				t.Fatalf("it was weighed %d times", len(weighed))
			}
			const most = 20 // bytes a save, since the heap is not the same twice
			first, last := weighed[0], weighed[1]
			if saves := int64(last.Saves - first.Saves); last.Size-first.Size > most*saves {
				t.Errorf("it uses %d bytes more after %d saves", last.Size-first.Size, saves)
			}
		})
	}
}

// weighLeader has one leader save, and loses the answer to each so many of its
// requests that save; zero: to none.
func weighLeader(every int) *trace.Log {
	script, requests := sim.NewScript(), 0
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
	script.Start(sim.Part{Name: "a", Work: []sim.Work{{Definition: trace.Definition{Name: "leader", Lease: 30 * time.Second}, Act: saveOften}}})
	time.Sleep(2 * time.Hour)
	return script.End()
}

func saveOften(ctx context.Context, s *sim.RunContext) error {
	for n := 1; n <= 9000; n++ {
		if err := s.Save(ctx, n); err != nil {
			return err
		}
		if n == 1000 || n == 9000 {
			s.Weigh(n)
		}
		if err := s.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}
