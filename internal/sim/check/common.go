package check

import (
	"slices"
	"time"
)

// commonTicks: a tick that the old and the new schedule of a job have in common,
// and that comes due while the new one is deployed, is not lost with the old one.
// It is the first tick of the old schedule that has no outcome, and the newest one of
// the new schedule.
func commonTicks(l *Log, bad report) {
	for _, job := range l.index.jobs {
		if len(l.of(job, Corrupted)) > 0 {
			continue // an operator may have written any watermark
		}
		for _, n := range l.index.told[job] {
			if n.outcome.Reason != "the schedule changed" {
				continue
			}
			d, old := l.definition(n.write.Replica, job), l.definitionBefore(job, n.write)
			if d == nil || old == nil || d.Every == 0 || old.Every == 0 {
				continue
			}
			doubt := l.doubt(n.write)
			tick, sure := d.newest(n.write.Sent.Add(-doubt), n.write.Time.Add(doubt))
			if sure && tick.Equal(old.After(n.mark)) && !n.outcome.Tick.Before(tick) {
				bad(n.write.Time, "%s writes that the schedule of %s has changed, and drops tick %s, which both schedules name", n.write.Replica, job, TimeOfDay(tick))
			}
		}
	}
}

// newest is the newest tick at a. It returns false if another comes due until b.
func (d *Definition) newest(a, b time.Time) (tick time.Time, sure bool) {
	tick = d.Last(a)
	return tick, d.After(b).Equal(d.After(a))
}

// definitionBefore is the definition that was in force before a write that changes
// it, nil if it is not known: that of the replica whose write brought it. Others may
// write under it too, to ask whether it is.
func (l *Log) definitionBefore(job string, write *Event) (old *Definition) {
	all := l.writes(job)
	for i, spec := slices.Index(all, write)-1, ""; i >= 0; i-- {
		e := all[i]
		if e.Record == nil || spec != "" && e.Record.Definition.Spec != spec {
			break
		}
		spec = e.Record.Definition.Spec
		if e.Replica != Operator { // an unlock leaves the definition as it is
			old = l.definition(e.Replica, job)
		}
	}
	return old
}
