package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// doOnces has a replica see to it that what is to be done once for a version is done.
func (r *replica) doOnces(version int) {
	for _, p := range r.c.onces {
		key := fmt.Sprint("v", version)
		r.byHand.Go(func() { r.doOnce(p, key) })
	}
}

// doOnce asks until it is done, and now and then after that.
func (r *replica) doOnce(p draw.OncePlan, key string) {
	name := entry.OfKey(p.Name, key)
	id := fmt.Sprintf("%s/%s", r.Machine.Name, name)
	var dice *draw.Roll
	var ask int
	o := &soloist.Once{Name: p.Name, Key: key, Lease: p.Lease, Retry: p.Retry,
		Overrun: func(string, error) { r.overranLock(name) },
		Do: func(ctx context.Context, run *soloist.Run) error {
			w := newLockWork(r.c, r.Machine, p.Longest, p.Lease, draw.New(r.c.Seed, int(run.Token), "once work", id))
			w.effects = true
			return w.do(ctx, run, trace.Event{Job: name, Call: fmt.Sprint(id, "/", ask)})
		}}
	r.Bind(o)
	r.c.log.Edit(func() {
		r.c.log.Onces[name] = trace.Once{Lease: max(p.Lease, draw.Fence), MaxTries: p.Retry.MaxTries, Backoff: p.Retry.Backoff}
	})
	for ask = 1; r.ctx.Err() == nil; ask++ {
		dice = draw.New(r.c.Seed, ask, "once call", id)
		if !r.Machine.Sleep(r.ctx, dice.Between(0, time.Second), dice) || r.ctx.Err() != nil {
			return
		}
		last, err := r.c.calm(), r.askOnce(o, trace.Event{Op: "once", Job: name, Call: fmt.Sprint(id, "/", ask)}, dice)
		if last {
			return
		}
		pause := dice.Around(5 * time.Minute)
		if err != nil {
			pause = dice.Around(30 * time.Second)
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
		case <-r.c.healed:
		}
	}
}

// askOnce makes one call of Run. Some do not wait for long.
func (r *replica) askOnce(o *soloist.Once, e trace.Event, dice *draw.Roll) error {
	ctx, cancel := r.ctx, context.CancelFunc(func() {})
	if dice.Chance(0.2) && !r.c.calm() {
		ctx, cancel = context.WithTimeout(r.ctx, dice.Between(10*time.Millisecond, time.Minute))
	}
	defer cancel()
	return r.c.called(ctx, r.Machine, e, func() error { return o.Run(ctx) })
}
