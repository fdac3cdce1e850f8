package sim

import (
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// healthy is the HealthCheck of a job, nil for none.
func (c *Cluster) healthy(m *machine, d *trace.Definition) func(context.Context) error {
	if d.Pulse == trace.NoPulse {
		return nil
	}
	return func(ctx context.Context) error {
		start := time.Now()
		r := draw.New(c.Seed, 0, "healthy", m.name, d.Name, trace.TimeOfDay(start))
		m.sleep(ctx, r.Between(time.Millisecond, 50*time.Millisecond), r)
		if time.Now().Equal(start) { // the run ended at that instant: whether it was asked, nobody can tell
			return ctx.Err()
		}
		e := c.log.Add(trace.Event{What: trace.Asked, Time: start, Replica: m.name, Job: d.Name, Note: noReturn})
		defer func() { c.log.Edit(func() { e.End = time.Now() }) }()
		err := m.answer(ctx, d.Pulse, r, c.calm())
		c.log.Edit(func() {
			if e.Note = ""; err != nil {
				e.Note = err.Error()
			}
		})
		return err
	}
}

var errIll = errors.New("ill")

// answer is one answer of HealthCheck. After all faults it is always a good one.
func (m *machine) answer(ctx context.Context, p trace.Pulse, r *draw.Roll, calm bool) error {
	ill := map[trace.Pulse]float64{trace.Flaps: 0.4, trace.Weak: 0.8, trace.Frozen: 0.3, trace.Erratic: 0.3}[p]
	if m.gone() || calm || !r.Chance(ill) {
		return nil
	}
	switch p {
	case trace.Frozen:
		<-ctx.Done()
		m.sleep(context.Background(), r.Between(time.Millisecond, 3*time.Second), r)
	case trace.Erratic:
		panic("out of order")
	}
	return errIll
}
