package telemetry

import (
	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// count counts an event of the scheduler. It does not wait for anything.
func (t *Telemetry) count(e event.Event) {
	job := of(e.Job)
	if event.BackfillOf(e.Run.Request) != 0 && (e.Kind == event.Ended || e.Kind == event.Settled) {
		return // ticks that were counted when they were due
	}
	switch e.Kind {
	case event.Started:
		if e.Run.Try <= 1 && e.Run.Request == "" && !e.Run.Tick.IsZero() {
			t.record(delay, e.Late().Seconds(), job)
		}
	case event.Ended:
		t.add(runs, 1, outcome(e.Job, e.Outcome.Status))
		t.record(duration, e.Took.Seconds(), job)
	case event.Settled:
		t.add(settled, ticks(&e.Outcome), outcome(e.Job, e.Outcome.Status))
	case event.Late:
		t.add(late, int64(e.Count), job)
	case event.Renewed:
		t.record(renewals, e.Took.Seconds(), job)
	case event.Lost:
		t.add(lost, 1, job)
	case event.TookOver:
		t.add(takeovers, 1, because(e.Job, reason(e.Note)))
	case event.Dropped:
		t.add(dropped, int64(e.Count), Labels{})
	}
}

// startAtZero makes the series that alerts look at. Prometheus sees no increase in a
// series that begins with its first count.
func (t *Telemetry) startAtZero(scheduler *soloist.Scheduler) {
	for _, name := range names(scheduler) {
		for _, s := range []event.Status{event.Succeeded, event.Failed, event.Stalled, event.Abandoned} {
			t.add(runs, 0, outcome(name, s))
		}
		t.add(lost, 0, of(name))
	}
	for _, s := range scheduler.Singletons {
		for _, name := range soloist.ShardNames(s.Name, s.Shards) {
			t.add(takeovers, 0, because(name, "stalled"))
		}
	}
	for _, j := range scheduler.Jobs {
		if j.EveryReplica {
			continue
		}
		for _, name := range soloist.ShardNames(j.Name, j.Shards) {
			t.add(takeovers, 0, because(name, "stalled"))
			t.add(settled, 0, outcome(name, event.Missed))
			t.add(settled, 0, outcome(name, event.Abandoned))
			if j.Late.Finish > 0 {
				t.add(late, 0, of(name))
			}
		}
	}
	t.add(dropped, 0, Labels{})
}

// ticks is how many ticks an outcome is about, as far as known.
func ticks(f *event.Outcome) int64 {
	if f.From.IsZero() {
		return 1
	}
	return int64(max(f.Count, 1))
}

func outcome(job string, s event.Status) Labels {
	return Labels{{jobLabel, job}, {"outcome", string(s)}}
}

func because(job, reason string) Labels { return Labels{{jobLabel, job}, {"reason", reason}} }

// reason is the variant of a take-over if it is a known one: a label has few values.
func reason(note string) string {
	switch note {
	case "died", "stalled", "unlocked":
		return note
	}
	return "other"
}
