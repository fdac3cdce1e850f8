package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// count counts an event of the scheduler. It does not wait for anything.
func (c *counters) count(e event.Event) {
	ctx, job := context.Background(), of(e.Job)
	if event.BackfillOf(e.Run.Request) != 0 && (e.Kind == event.Ended || e.Kind == event.Settled) {
		return // ticks that were counted when they were due
	}
	switch e.Kind {
	case event.Started:
		if e.Run.Try <= 1 && e.Run.Request == "" && !e.Run.Tick.IsZero() {
			c.delay.Record(ctx, e.Late().Seconds(), job)
		}
	case event.Ended:
		c.runs.Add(ctx, 1, outcome(e.Job, e.Outcome.Status))
		c.duration.Record(ctx, e.Took.Seconds(), job)
	case event.Settled:
		c.settled.Add(ctx, ticks(&e.Outcome), outcome(e.Job, e.Outcome.Status))
	case event.Late:
		c.late.Add(ctx, int64(e.Count), job)
	case event.Renewed:
		c.renewals.Record(ctx, e.Took.Seconds(), job)
	case event.Lost:
		c.lost.Add(ctx, 1, job)
	case event.TookOver:
		c.takeovers.Add(ctx, 1, because(e.Job, reason(e.Note)))
	case event.Dropped:
		c.dropped.Add(ctx, int64(e.Count))
	}
}

// startAtZero makes the series that alerts look at. Prometheus sees no increase in a
// series that begins with its first count.
func (c *counters) startAtZero(scheduler *soloist.Scheduler) {
	ctx := context.Background()
	for _, name := range names(scheduler) {
		for _, s := range []event.Status{event.Succeeded, event.Failed, event.Stalled, event.Abandoned} {
			c.runs.Add(ctx, 0, outcome(name, s))
		}
		c.lost.Add(ctx, 0, of(name))
	}
	for _, s := range scheduler.Singletons {
		for _, name := range soloist.ShardNames(s.Name, s.Shards) {
			c.takeovers.Add(ctx, 0, because(name, "stalled"))
		}
	}
	for _, j := range scheduler.Jobs {
		if j.EveryReplica {
			continue
		}
		for _, name := range soloist.ShardNames(j.Name, j.Shards) {
			c.takeovers.Add(ctx, 0, because(name, "stalled"))
			c.settled.Add(ctx, 0, outcome(name, event.Missed))
			c.settled.Add(ctx, 0, outcome(name, event.Abandoned))
			if j.Late.Finish > 0 {
				c.late.Add(ctx, 0, of(name))
			}
		}
	}
	c.dropped.Add(ctx, 0)
}

// ticks is how many ticks an outcome is about, as far as known.
func ticks(f *event.Outcome) int64 {
	if f.From.IsZero() {
		return 1
	}
	return int64(max(f.Count, 1))
}

func outcome(job string, s event.Status) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(jobLabel, job), attribute.String("outcome", string(s))))
}

func because(job, reason string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(jobLabel, job), attribute.String("reason", reason))
}

// reason is the variant of a take-over if it is a known one: a label has few values.
func reason(note string) string {
	switch note {
	case "died", "stalled", "unlocked":
		return note
	}
	return "other"
}
