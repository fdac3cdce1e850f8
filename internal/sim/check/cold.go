package check

import (
	"time"

	"github.com/soloist-go/soloist"
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
			switch want := w.owes(d); {
			case want.IsZero() && len(ticks) == 0, len(ticks) == 0 && l.mayBePaused(job, w.End):
			case len(ticks) == 0:
				bad(w.End, "%s was started for %s, owes tick %s, and runs nothing", w.Replica, job, TimeOfDay(want))
			case len(ticks) > 1 || !ticks[0].Equal(want):
				bad(w.End, "%s was started for %s, owes tick %s, and runs %d, the first of them %s", w.Replica, job, TimeOfDay(want), len(ticks), TimeOfDay(ticks[0]))
			}
		}
	}
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
