package sim

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// An Act is what a run does in a story.
type Act func(context.Context, *RunContext) error

// A RunContext is one run in a script.
type RunContext struct {
	*soloist.Run
	w *worker
}

// Sleep waits for d, or for the end of ctx, whose cause it then returns; on a
// machine that is suspended meanwhile, until that goes on.
func (s *RunContext) Sleep(ctx context.Context, d time.Duration) error {
	if !s.w.sleep(ctx, d) {
		return world.ErrGone
	}
	return context.Cause(ctx)
}

// Effect writes to a resource that fences.
func (s *RunContext) Effect() { s.w.effect() }

// hurry saves ten times a second for a while, as a leader with much to keep does.
func (w *worker) hurry(ctx context.Context) {
	end := time.Now().Add(w.roll.Between(time.Second, 20*time.Second))
	for n := 0; time.Now().Before(end) && w.rough != w.c.calm(); n++ {
		if w.beat(w.run.Save(ctx, "hurry "+strconv.Itoa(n))) != nil || !w.sleep(ctx, 100*time.Millisecond) || ctx.Err() != nil {
			return
		}
	}
}

// Weigh notes how much memory is in use when a run has saved so often. The log of
// the simulation is dropped before, so nothing grows but what the program keeps.
func (s *RunContext) Weigh(saves int) {
	l := s.w.c.log
	l.Edit(func() {
		l.Events = slices.DeleteFunc(l.Events, func(e *trace.Event) bool { return e.What != trace.Weighed && e.What != trace.Up })
		l.Events = slices.Clone(l.Events)
	})
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	l.Add(trace.Event{What: trace.Weighed, Replica: s.w.Machine.Name, Job: s.w.Definition.Name, Token: s.Token, Saves: saves, Size: int64(m.HeapAlloc)})
}
