package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/store"
)

// groupPatience is how long a step waits for a slot. Then it looks at the entry and the orders again.
const groupPatience = 5 * time.Second

// acquireInGroup acquires a slot of the group of the job, and then the lease. The slot comes first: a
// tick that waits for a slot is not claimed, so that any replica may have it. What needs no run needs
// no slot.
func (r *Runner) acquireInGroup(ctx context.Context, c *call, length time.Duration) (rest time.Duration) {
	c.slot = slot{}
	next, _ := r.job.Policy.Claim(r.decideBy(c))
	if !next.Run {
		c.slot = slot{held: context.WithoutCancel(ctx), none: true}
		defer func() { c.slot = slot{} }()
		return r.acquire(ctx, c, length)
	}
	// A stop ends the wait for the slot, and not the slot: the run has its grace.
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopped := context.AfterFunc(ctx, cancel)
	patience := time.AfterFunc(r.groupPatience(c), cancel)
	err := r.job.Group.Do(waiting, func(held context.Context) {
		// If the wait has ended just now, so will this context, and it could not tell the loss of
		// the slot any more.
		if over := !stopped(); !patience.Stop() || over {
			return
		}
		c.slot.held = held
		rest = r.acquire(ctx, c, length)
		context.AfterFunc(ctx, cancel)
	})
	patience.Stop()
	switch held := c.slot.held; {
	case held != nil:
		c.slot = slot{}
		return rest
	case ctx.Err() != nil:
		return r.readAgain(0)
	case err == nil || errors.Is(err, store.ErrHeld):
		r.waits(c, next.Record.Run.Tick)
		return r.readAgain(0)
	}
	return r.unusable(false, err)
}

// groupPatience returns how long this call waits for a slot before it looks again. A run by hand waits
// no longer than for a lease.
func (r *Runner) groupPatience(c *call) time.Duration {
	if c.request != "" {
		return r.client.CallTimeout()
	}
	return groupPatience
}

// waits notes that the group had no free slot for a tick, or for a run by hand.
func (r *Runner) waits(c *call, tick time.Time) {
	c.again = true
	c.slot.full = fmt.Errorf("%w: the group %s has no free slot", store.ErrHeld, r.job.Policy.Group)
	r.detail("the group of the job has no free slot", nil)
	if c.request != "" {
		return
	}
	w := &r.view.waited
	if !w.From.After(r.view.rec.Watermark) { // those before it have their outcome
		w.From = tick.Add(-1)
	}
	w.To = tick
}
