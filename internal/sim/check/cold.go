package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// woken: a process that a platform starts for a job that runs everywhere runs one
// tick of that: the one that the platform names, where the clock of the process is
// within a minute of it, else the newest of the last minute.
func woken(l *Log, bad report) {
	for job := range l.index.events {
		for _, w := range l.of(job, Woken) {
			d := l.definition(w.Replica, job)
			if d == nil || w.End.IsZero() {
				continue
			}
			var ticks []time.Time
			for _, r := range l.of(job, Ran) {
				if r.Replica == w.Replica && r.Try == 1 {
					ticks = append(ticks, r.Tick)
				}
			}
			if n := len(ticks); n == 2 && d.Overlap != soloist.SkipOverlap && ticks[1].After(ticks[0]) {
				ticks = ticks[:1] // the other has waited for it
			}
			want := w.owes(d)
			if len(ticks) == 1 && ticks[0].After(want) && d.Overlap == soloist.Replace && l.replacedAtOnce(w, job, want) {
				continue
			}
			switch {
			case want.IsZero() && len(ticks) == 0, len(ticks) == 0 && l.mayBePaused(job, w.End):
			case len(ticks) == 0:
				bad(w.End, "%s was started for %s, owes tick %s, and runs nothing", w.Replica, job, TimeOfDay(want))
			case len(ticks) > 1 || !ticks[0].Equal(want):
				bad(w.End, "%s was started for %s, owes tick %s, and runs %d, the first of them %s", w.Replica, job, TimeOfDay(want), len(ticks), TimeOfDay(ticks[0]))
			}
		}
	}
}

// replacedAtOnce reports whether the process told that the run of a tick was cancelled: a newer tick was due before its
// function began.
func (l *Log) replacedAtOnce(w *Event, job string, tick time.Time) bool {
	return slices.ContainsFunc(l.of(job, Emitted), func(e *Event) bool {
		return e.Replica == w.Replica && e.Op == string(event.Ended) && e.Note == string(store.Cancelled) && e.Tick.Equal(tick)
	})
}

// owes is the tick that a process has to run. Sent is what its clock shows as it
// starts.
func (e *Event) owes(d *Definition) time.Time {
	now := e.Sent
	if !e.Tick.IsZero() && now.Sub(e.Tick).Abs() <= time.Minute {
		return e.Tick
	}
	if newest := d.Last(now); now.Sub(newest) <= time.Minute {
		return newest
	}
	return time.Time{}
}
