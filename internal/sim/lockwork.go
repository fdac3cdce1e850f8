package sim

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A lockWork is what one function does while it holds a lock, or does once: how long, and how it
// behaves.
type lockWork struct {
	c        *Cluster
	m        *world.Machine
	lease    time.Duration
	takes    time.Duration
	roll     *draw.Roll
	behavior trace.Behavior
	effects  bool // it writes to a resource that fences
}

// lockBehaviors are drawn from. After all faults each function is fine.
var lockBehaviors = []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine,
	trace.Fails, trace.Panics, trace.Exits, trace.Deaf, trace.Nothing}

func newLockWork(c *Cluster, m *world.Machine, longest, lease time.Duration, r *draw.Roll) *lockWork {
	w := &lockWork{c: c, m: m, lease: lease, takes: r.Between(time.Millisecond, longest), roll: r, behavior: draw.Pick(r, lockBehaviors...)}
	if r.Chance(0.05) {
		w.takes = r.Between(0, 4*lease)
	}
	return w
}

// do is the function. E says what it is called for.
func (w *lockWork) do(ctx context.Context, run *soloist.Run, e trace.Event) error {
	if !w.m.Sleep(ctx, 0, w.roll) {
		return world.ErrGone
	}
	if w.c.calm() {
		w.behavior, w.takes = trace.Fine, min(w.takes, time.Second)
	}
	return w.hold(ctx, run, e)
}

// hold does the work, and notes that.
func (w *lockWork) hold(ctx context.Context, run *soloist.Run, e trace.Event) error {
	e.What, e.Replica, e.Token, e.Attempt, e.Try, e.ID, e.Slot = trace.Ran, w.m.Name, run.Token, run.Attempt, run.Try, run.ID(), slotIn(run.ID())
	return w.c.observed(ctx, w.m, w.c.log.Add(e), func() error { return w.behave(ctx, run, e) })
}

// slotIn is the slot of a lock that the ID of a run names. The first slot's ID has no number.
func slotIn(id string) (n int) {
	if _, number, found := strings.Cut(id[strings.LastIndexByte(id, '@')+1:], "/"); found {
		n, _ = strconv.Atoi(number)
	}
	return n
}

func (w *lockWork) behave(ctx context.Context, run *soloist.Run, e trace.Event) error {
	w.effect(run, e)
	defer time.AfterFunc(w.roll.Between(0, w.takes), func() { w.m.At(draw.OfLock + "running") }).Stop()
	err := w.labour(ctx, run, w.takes)
	if err != nil && w.behavior == trace.Deaf {
		_ = w.labour(context.Background(), run, w.roll.Between(0, 2*w.lease))
	}
	w.effect(run, e)
	switch {
	case w.m.Gone():
		return world.ErrGone
	case w.behavior == trace.Fails:
		return errors.New("failed")
	case w.behavior == trace.Nothing:
		return soloist.Skip("nothing to do")
	case w.behavior == trace.Panics:
		panic("out of order")
	case w.behavior == trace.Exits:
		runtime.Goexit()
	case w.behavior == trace.Deaf:
		return nil
	}
	return err
}

// labour takes its time and obeys ctx.
func (w *lockWork) labour(ctx context.Context, run *soloist.Run, takes time.Duration) error {
	rough := !w.c.calm()
	for end := time.Now().Add(takes); time.Now().Before(end) && rough != w.c.calm() && !w.m.Gone(); {
		w.m.Sleep(ctx, min(5*time.Second, time.Until(end))+time.Duration(w.roll.Below(1e6)), w.roll)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.roll.Chance(0.1) {
			_ = run.Check(ctx) // it also reports a loss by ending ctx
		}
	}
	return nil
}

// effect writes to the resource of the lock.
func (w *lockWork) effect(run *soloist.Run, e trace.Event) {
	if w.effects && w.m.Sleep(context.Background(), 0, w.roll) {
		w.c.effect(w.m, trace.Event{Lock: e.Lock, Call: e.Call, Token: run.Token}, w.roll)
	}
}
