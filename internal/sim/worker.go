package sim

import (
	"cmp"
	"context"
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

// noReturn is the note of a run that panicked or ended its goroutine.
const noReturn = "did not return"

func (w *worker) sleep(ctx context.Context, d time.Duration) bool {
	return w.Machine.Sleep(ctx, d, w.roll)
}

// beat notes that the run has told its progress, unless that did not count.
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
		if e.Time, e.Note, e.Result = time.Now(), "accepted", trace.Well; !ok {
			e.Note, e.Result = "refused", trace.Refused
		}
	})
	m.Sleep(context.Background(), r.Latency(), r)
}
