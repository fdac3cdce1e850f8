package sim

import (
	"context"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// healthy is the HealthCheck of a job, nil for none.
func (c *Cluster) healthy(m *world.Machine, d *trace.Definition) func(context.Context) error {
	if d.Pulse == trace.NoPulse {
		return nil
	}
	return func(ctx context.Context) error {
		start := time.Now()
		r := draw.New(c.Seed, 0, "healthy", m.Name, d.Name, trace.TimeOfDay(start))
		m.Sleep(ctx, r.Between(time.Millisecond, 50*time.Millisecond), r)
		if time.Now().Equal(start) { // the run ended at that instant: whether it was asked, nobody can tell
			return ctx.Err()
		}
		e := c.log.Add(trace.Event{What: trace.Asked, Time: start, Replica: m.Name, Job: d.Name, Note: noReturn})
		defer func() { c.log.Edit(func() { e.End = time.Now() }) }()
		err := m.Answer(ctx, d.Pulse, r, c.calm())
		c.log.Edit(func() {
			if e.Note = ""; err != nil {
				e.Note = err.Error()
			}
		})
		return err
	}
}
