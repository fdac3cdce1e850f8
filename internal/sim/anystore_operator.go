package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// deleter is a store in which an operator can delete an entry that nobody holds.
type deleter interface {
	Delete(ctx context.Context, name string) error
}

// operateOn is operate on [Config.Store], with the powers that it has.
func (c *Cluster) operateOn(backend store.Store, d plannedFault) {
	switch d.what {
	case "break":
		c.breakLease(backend, d.job, -1)
	case "break now":
		c.breakLease(backend, d.job, 0)
	case "delete":
		one, ok := backend.(deleter)
		if !ok || d.job == trace.Foreign {
			return
		}
		c.breakLease(backend, d.job, 0)
		e := c.byOperator(errand{Event: trace.Event{Op: "delete", Job: d.job},
			do: func(ctx context.Context, got *result) { got.err = one.Delete(ctx, "sim/"+d.job) }})
		if e.OK() {
			c.log.Add(trace.Event{What: trace.Deleted, Job: d.job})
		}
	}
}

func (c *Cluster) breakLease(backend store.Store, job string, period time.Duration) {
	if b, ok := backend.(store.LeaseBreaker); ok {
		c.byOperator(errand{Event: trace.Event{Op: "break", Job: job, Span: period},
			do: func(ctx context.Context, got *result) { got.err = b.Break(ctx, "sim/"+job, period) }})
	}
}

// plantForeignIn is plantForeign in such a store.
func (c *Cluster) plantForeignIn(backend store.Store) {
	c.byOperator(creation(backend, "sim/"+trace.Foreign, []byte(foreignRecord)))
}

// byOperator has the store do something at once: an operator has no network.
func (c *Cluster) byOperator(x errand) *trace.Event {
	x.What, x.Replica, x.Sent, x.Time = trace.Request, trace.Operator, time.Now(), time.Now()
	e := c.log.Add(x.Event)
	c.net.serve(e, x)
	return e
}
