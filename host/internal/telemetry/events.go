package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// Event counts an event of the scheduler. It does not wait for anything.
func (t *Telemetry) Event(e event.Event) {
	t.traces.event(e)
	ctx, m, job := context.Background(), t.metrics, of(e.Job)
	switch e.Kind {
	case event.Started:
		if e.Run.Try <= 1 && e.Run.Request == "" && !e.Run.Tick.IsZero() {
			m.delay.Record(ctx, e.Late().Seconds(), job)
		}
	case event.Ended:
		m.runs.Add(ctx, 1, outcome(e.Job, e.Outcome.Status))
		m.duration.Record(ctx, e.Took.Seconds(), job)
	case event.Settled:
		m.settled.Add(ctx, ticks(&e.Outcome), outcome(e.Job, e.Outcome.Status))
	case event.Renewed:
		m.renewals.Record(ctx, e.Took.Seconds(), job)
	case event.Lost:
		m.lost.Add(ctx, 1, job)
	case event.TookOver:
		m.takeovers.Add(ctx, 1, metric.WithAttributes(attribute.String(jobLabel, e.Job), attribute.String("reason", reason(e.Note))))
	case event.Dropped:
		m.dropped.Add(ctx, int64(e.Count))
	}
}

// startAtZero makes the series that alerts look at. Prometheus sees no increase in a
// series that begins with its first count.
func (t *Telemetry) startAtZero() {
	ctx, m := context.Background(), t.metrics
	for _, name := range t.names() {
		for _, s := range []store.Status{store.Succeeded, store.Failed, store.Stalled, store.Abandoned} {
			m.runs.Add(ctx, 0, outcome(name, s))
		}
		m.lost.Add(ctx, 0, of(name))
	}
	for _, j := range t.scheduler.Jobs {
		if !j.EveryReplica {
			m.settled.Add(ctx, 0, outcome(j.Name, store.Missed))
			m.settled.Add(ctx, 0, outcome(j.Name, store.Abandoned))
		}
	}
	m.dropped.Add(ctx, 0)
}

// ticks is how many ticks an outcome is about, as far as known.
func ticks(f *store.Outcome) int64 {
	if f.From.IsZero() {
		return 1
	}
	return int64(max(f.Count, 1))
}

func outcome(job string, s store.Status) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(jobLabel, job), attribute.String("outcome", string(s))))
}

// reason is the variant of a take-over if it is a known one: a label has few values.
func reason(note string) string {
	switch note {
	case "died", "stalled", "unlocked":
		return note
	}
	return "other"
}
