package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// vary draws the fields of some jobs, and adds two jobs: one of which the seed
// draws nearly every field, and one that runs on each replica.
func vary(all []trace.Definition, r *roll) []trace.Definition {
	for i := range all {
		switch d := &all[i]; d.Name {
		case "count":
			d.MaxCheckpoint = pick(r, 0, 200, 3000)
			d.Padding = r.below(max(d.MaxCheckpoint, 200) - 40)
		case "leader":
			d.HeartbeatTimeout = pick(r, 3*time.Second, 10*time.Second, 10*time.Second, 2*time.Minute) + 2*odd
			d.Backoff, d.MaxCheckpoint = pick(r, 0, time.Second, time.Minute), pick(r, 0, 100)
			drawPulse(d, r)
		}
	}
	return append(all, drawn(r), trace.Definition{Name: "here", Every: time.Minute, Schedule: "* * * * *", EveryReplica: true,
		Timeout: pick(r, 0, 20*time.Second+odd), MaxTries: pick(r, 0, 2), Backoff: pick(r, 0, time.Second),
		Least: time.Second, Most: 30 * time.Second, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Panics, trace.Deaf, trace.Stubborn}})
}

// drawStalls has some runs of the most frequent job stall, in half of the seeds.
// The next tick comes due before they do.
func drawStalls(all []trace.Definition, r *roll) {
	d := &all[0]
	if d.Every > 0 && r.chance(0.5) {
		d.HeartbeatTimeout = d.Every + 2*time.Second + 2*odd
		d.Behaviors = append(slices.Repeat(d.Behaviors, 2), trace.Silent)
	}
}

// odd keeps the ends of two times apart: of two timers for one instant nobody can
// tell which is first.
const odd = 137 * time.Microsecond

// drawn is a job with a starting deadline of any kind: none, shorter than its
// lease, a few leases, longer than its period.
func drawn(r *roll) trace.Definition {
	d := trace.Definition{Name: "drawn", Every: pick(r, time.Minute, 2*time.Minute, 3*time.Minute), Lease: pick(r, 15*time.Second, 20*time.Second, 30*time.Second),
		Timeout:          pick(r, 0, 30*time.Second+odd, 2*time.Minute+odd),
		HeartbeatTimeout: pick(r, 0, 0, time.Second+2*odd, 12*time.Second+2*odd, 100*time.Second+2*odd),
		MaxTries:         pick(r, 0, 1, 3), Backoff: pick(r, 0, time.Second, 20*time.Second),
		StartingDeadline: pick(r, 0, 5*time.Second, 70*time.Second, 10*time.Minute),
		Missed:           pick(r, soloist.RunLatest, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed),
		Interrupted:      pick(r, soloist.Abandon, soloist.Rerun, soloist.Rerun), Paused: r.chance(0.05),
		Least: time.Second, Most: pick(r, 10*time.Second, 100*time.Second),
		Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Later, trace.Nothing, trace.Silent, trace.Tardy, trace.Tardy, trace.Deaf, trace.Stubborn}}
	d.Schedule = "@every " + d.Every.String()
	drawPulse(&d, r)
	d.PauseAfter = pick(r, 0, 0, 1, 2, 4)
	return d
}

// drawFinishBy says of some jobs by when their ticks have to have succeeded: before most runs end, or
// long after the history has lost the outcomes.
func drawFinishBy(all []trace.Definition, r *roll) {
	for i := range all {
		if d := &all[i]; r.chance(0.5) && d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			d.FinishBy = max(time.Second, pick(r, d.Every/10, d.Every/2, d.Every, 2*d.Every, 3*d.Every, 30*d.Every)) + 5*odd
		}
	}
}

// pick draws one of some values.
func pick[T any](r *roll, values ...T) T { return values[r.below(len(values))] }

func drawPulse(d *trace.Definition, r *roll) {
	d.Pulse = pick(r, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.Steady, trace.Flaps, trace.Weak, trace.Frozen, trace.Erratic)
	if d.Pulse != trace.NoPulse {
		d.HealthInterval = pick(r, 10*time.Second, 2*time.Second, 20*time.Second) + 3*odd
		d.FailureThreshold = pick(r, 0, 1, 2, 5)
	}
}

// healthy is the HealthCheck of a job, nil for none.
func (c *Cluster) healthy(m *machine, d *trace.Definition) func(context.Context) error {
	if d.Pulse == trace.NoPulse {
		return nil
	}
	return func(ctx context.Context) error {
		start := time.Now()
		r := newRoll(c.Seed, 0, "healthy", m.name, d.Name, trace.TimeOfDay(start))
		m.sleep(ctx, r.between(time.Millisecond, 50*time.Millisecond), r)
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
func (m *machine) answer(ctx context.Context, p trace.Pulse, r *roll, calm bool) error {
	ill := map[trace.Pulse]float64{trace.Flaps: 0.4, trace.Weak: 0.8, trace.Frozen: 0.3, trace.Erratic: 0.3}[p]
	if m.gone() || calm || !r.chance(ill) {
		return nil
	}
	switch p {
	case trace.Frozen:
		<-ctx.Done()
		m.sleep(context.Background(), r.between(time.Millisecond, 3*time.Second), r)
	case trace.Erratic:
		panic("out of order")
	}
	return errIll
}
