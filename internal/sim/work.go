package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// do is what a job does.
func (c *Cluster) do(m *world.Machine, whole *trace.Definition) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		d := draw.ShardOf(whole, run)
		which := fmt.Sprint(run.Token)
		if _, beside := c.beside.Load(run.Backfill); beside { // others have the token too
			which += run.Tick.String()
		}
		r := draw.New(c.Seed, run.Try, "run", m.Name, d.Name, which)
		if !m.Sleep(ctx, 0, r) {
			return world.ErrGone
		}
		request := run.Request
		if run.Backfill != 0 {
			request = record.BackfillRequest(run.Backfill)
		}
		e := c.log.Add(trace.Event{What: trace.Ran, Replica: m.Name, Job: d.Name, Token: run.Token, Tick: run.Tick, Previous: run.Previous,
			Request: request, Attempt: run.Attempt, Try: run.Try})
		w := &worker{m, d, c, run, r, !c.calm(), e, ""}
		return c.observed(ctx, m, e, func() error { return w.behave(ctx) })
	}
}

// observed calls what a run does, and notes in its event how that ended, and its context.
func (c *Cluster) observed(ctx context.Context, m *world.Machine, e *trace.Event, behave func() error) error {
	stop := context.AfterFunc(ctx, func() {
		c.log.Edit(func() {
			if e.End.IsZero() {
				e.Cancelled, e.Why = time.Now(), kindOf(context.Cause(ctx))
			}
		})
	})
	returned := false
	defer func() {
		stop()
		c.log.Edit(func() {
			if !returned {
				e.Result = trace.Failed
			}
			if e.End = time.Now(); e.End.Equal(e.Cancelled) { // their order is unknown
				e.Cancelled, e.Why = time.Time{}, ""
			}
		})
	}()
	err := behave()
	returned = true
	if !m.Gone() {
		c.log.Edit(func() { e.Result = kindOf(err) })
	}
	return err
}

// kindOf is what an error says of a run or a call.
func kindOf(err error) trace.Result {
	kinds := []struct {
		err  error
		kind trace.Result
	}{{store.ErrHeld, trace.Held}, {store.ErrLost, trace.Lost}, {soloist.ErrStalled, trace.Stalled}, {soloist.ErrTimeout, trace.TimedOut},
		{soloist.ErrCancelled, trace.Cancelled}, {soloist.ErrReplaced, trace.Replaced}, {soloist.ErrStopped, trace.Stopped}}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	switch {
	case err == nil:
		return trace.Well
	case supervise.Skips(err):
		return trace.Skipped
	}
	return trace.Failed
}

// behave does the work as this run is to behave.
func (w *worker) behave(ctx context.Context) error {
	acts, _ := w.c.acts.Load(w.Machine.Name)
	if acts, _ := acts.(map[string]Act); acts[w.Definition.Name] != nil {
		act := acts[w.Definition.Name]
		return act(ctx, &RunContext{w.run, w})
	}
	takes := w.roll.Between(w.Least, w.Most)
	w.behavior = trace.Fine
	if len(w.Behaviors) > 0 && w.rough {
		w.behavior = w.Behaviors[w.roll.Below(len(w.Behaviors))]
	}
	if !w.rough {
		takes = max(min(takes, 5*time.Second), w.Lengthy)
	}
	w.effect()
	defer time.AfterFunc(w.roll.Between(0, takes), func() { w.At("running") }).Stop()
	if w.Saves {
		return w.count(ctx, takes)
	}
	switch w.behavior {
	case trace.Hangs:
		takes = time.Hour
	case trace.Stubborn:
		takes = 2*w.Timeout + time.Minute
	case trace.Silent:
		w.sleep(ctx, 3*w.HeartbeatTimeout)
		return ctx.Err()
	case trace.Hasty:
		w.hurry(ctx)
	case trace.Nothing:
		return soloist.Skip("nothing to do")
	}
	err := w.labour(ctx, takes)
	if err == nil && w.roll.Chance(0.3) {
		err = w.run.Check(ctx)
	}
	if err != nil && w.behavior == trace.Deaf {
		w.goOn(w.roll.Between(0, 2*w.Lease))
	} else if err != nil && w.behavior == trace.Stubborn {
		w.goOn(w.roll.Between(w.Lease, 3*time.Minute))
	}
	w.effect()
	switch w.behavior {
	case trace.Fails:
		return errors.New("failed")
	case trace.Forever:
		return soloist.Permanent(errors.New("failed for good"))
	case trace.Later:
		return soloist.RetryAfter(errors.New("throttled"), w.roll.Between(0, w.Lease))
	case trace.Panics:
		panic("out of order")
	case trace.Exits:
		runtime.Goexit()
	}
	return err
}

// goOn works for d, whatever has ended the context.
func (w *worker) goOn(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !w.c.calm() && !w.Gone(); {
		w.sleep(context.Background(), min(5*time.Second, time.Until(end))+time.Duration(w.roll.Below(1e6)))
	}
}

// labour takes its time, reports its progress and obeys its context.
func (w *worker) labour(ctx context.Context, takes time.Duration) error {
	step := 5 * time.Second
	if w.HeartbeatTimeout > 0 {
		step = w.HeartbeatTimeout / 3
	}
	if w.HeartbeatTimeout > 0 && w.behavior == trace.Tardy {
		step = w.HeartbeatTimeout * 4 / 5
	}
	for end := time.Now().Add(takes); w.goesOn(end); {
		pace := step
		if left := time.Until(end); left > 0 {
			pace = min(step, left)
		}
		w.sleep(ctx, pace+time.Duration(w.roll.Below(1e6)))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if w.Gone() {
			return world.ErrGone
		}
		if w.turns() {
			return w.turn(ctx)
		}
		w.beat(w.run.Heartbeat("on my way"))
		if w.roll.Chance(0.1) {
			w.run.Check(ctx)
		}
	}
	return nil
}

// goesOn reports whether a run that takes until end does. After all faults a shard of a singleton goes on
// until it has to end: if all shards were acquired again then, no replica would have to hand one over.
func (w *worker) goesOn(end time.Time) bool {
	calm := w.c.calm()
	return calm && w.Spread() || time.Now().Before(end) && w.rough != calm
}

// A savings is a checkpoint: a counter and some bytes.
type savings struct {
	N       int    `json:"n"`
	Padding string `json:"padding,omitempty"`
}

// count goes on from the counter that is the checkpoint, and saves it at each
// step.
func (w *worker) count(ctx context.Context, takes time.Duration) error {
	var kept savings
	if err := w.run.Load(ctx, &kept); err != nil {
		return err
	}
	w.c.log.Add(trace.Event{What: trace.Loaded, Replica: w.Machine.Name, Job: w.Definition.Name, Token: w.run.Token, Note: kept.note()})
	w.saveTooMuch(ctx)
	for end := time.Now().Add(takes); time.Now().Before(end) && w.rough != w.c.calm(); {
		if err := w.labour(ctx, min(w.roll.Between(2*time.Second, 9*time.Second), time.Until(end))); err != nil {
			return err
		}
		kept = savings{kept.N + 1, strings.Repeat("x", w.Padding)}
		if err := w.beat(w.run.Save(ctx, kept)); err != nil {
			return err
		}
	}
	w.effect()
	return nil
}

// saveTooMuch tries to save more than is allowed, which has to be refused.
func (w *worker) saveTooMuch(ctx context.Context) {
	if w.MaxCheckpoint > 0 && w.roll.Chance(0.2) {
		_ = w.run.Save(ctx, strings.Repeat("x", w.MaxCheckpoint))
	}
}

// note is how a log shows a checkpoint: zero for none.
func (s savings) note() string {
	if s.N == 0 {
		return "0"
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return world.Brief(string(b))
}
