package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// replacing ends the run of rec once a newer tick is due that takes its place, and that can start: why
// returns what keeps it from that. Both replica and tick are known here, so this asks no store.
func (r *Runner) replacing(rec *store.Record, now func() time.Time, why func() error, end context.CancelCauseFunc) (done func()) {
	p := &r.job.Policy
	if p.Overlap != plan.Replace || rec.Run.Request != "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	of := rec.Clone() // the runner goes on with its own
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			v := plan.View{Record: &of, Now: now(), Control: r.orders()}
			wait := p.UntilReplaced(v)
			if tick := p.ReplacedBy(v); !tick.IsZero() {
				if why() == nil {
					end(supervise.Replaced(tick))
					return
				}
				wait = min(wait, control.Again)
			}
			lease.Sleep(ctx, wait)
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// cannotFollow returns why a tick that is due under the run of a call would not start after it.
func (r *Runner) cannotFollow(stop context.Context, c *call) error {
	if stop.Err() != nil {
		return context.Cause(stop)
	}
	if c.bounded && !c.queuesNext() {
		return errLeft
	}
	if err := r.replica.degraded(); err != nil {
		return err
	}
	if err := r.fits(stop, c); err != nil || r.job.EveryReplica {
		return err
	}
	return r.replica.Orders.Stale()
}

// errLeft keeps a tick from taking the place of a run.
var errLeft = errors.New("the tick is left to the next call")

// obeyingHere is obeying for a run without a record, which no operator can end.
func (r *Runner) obeyingHere(stop context.Context, c *call, a *supervise.Attempt) (done func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.Under.Cancelled = ctx
	rec := store.Record{Run: store.Run{Tick: a.Info.Tick, Request: a.Info.Request}}
	replaced := r.replacing(&rec, r.replica.Wall, func() error { return r.cannotFollow(stop, c) }, cancel)
	return func() {
		replaced()
		cancel(nil)
	}
}
