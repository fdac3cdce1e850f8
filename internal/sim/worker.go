package sim

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// turns reports whether a single fault has the run behave in another way from now on.
func (w *worker) turns() bool {
	b, ok := w.c.turned.LoadAndDelete(w.Definition.Name)
	if ok {
		w.behavior = b.(trace.Behavior)
	}
	return ok
}

// turn is the rest of a run that does: it waits for the end of its context, and obeys it or goes on for three leases.
func (w *worker) turn(ctx context.Context) error {
	for ctx.Err() == nil && !w.Gone() {
		w.sleep(ctx, time.Second+time.Duration(w.roll.Below(1e6)))
		if w.behavior == trace.Deaf && ctx.Err() == nil {
			w.beat(w.run.Heartbeat("on my way"))
		}
	}
	if w.behavior == trace.Silent {
		return ctx.Err()
	}
	for end := time.Now().Add(3 * w.Lease); time.Now().Before(end) && !w.Gone(); {
		w.sleep(context.Background(), time.Second+time.Duration(w.roll.Below(1e6)))
	}
	return ctx.Err()
}

// A worker is one run of one job on one machine.
type worker struct {
	*world.Machine
	*trace.Definition
	c        *Cluster
	run      *soloist.Run
	roll     *draw.Roll
	rough    bool // it began before the cluster was healed
	event    *trace.Event
	behavior trace.Behavior
}

func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	return w.Machine.Sleep(ctx, d, w.roll)
}

// beat logs that the run has reported its progress, unless the report did not count.
func (w *worker) beat(err error) error {
	if err == nil {
		w.c.log.Edit(func() { w.event.Beat = time.Now() })
	}
	return err
}

// effect writes to the resource.
func (w *worker) effect() {
	if w.EveryReplica || !w.sleep(context.Background(), 0) {
		return
	}
	w.c.effect(w.Machine, trace.Event{Job: w.Definition.Name, Token: w.run.Token, Tick: w.run.Tick}, w.roll)
}

// effect writes to the resource of a job, or of a lock.
func (c *Cluster) effect(m *world.Machine, what trace.Event, r *draw.Roll) {
	what.What, what.Replica, what.Sent = trace.Effect, m.Name, time.Now()
	e := c.log.Add(what)
	time.Sleep(r.Latency())
	ok := c.sink.take(cmp.Or(what.Job, what.Lock), what.Token)
	c.log.Edit(func() {
		if e.Time, e.Result = time.Now(), trace.Well; !ok {
			e.Result = trace.Refused
		}
	})
	m.Sleep(context.Background(), r.Latency(), r)
}

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
