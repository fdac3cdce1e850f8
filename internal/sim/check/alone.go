package check

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// leftAlone: when all faults are over, no shard of a singleton is without a holder for longer than two
// leases while a replica takes part that could run it: one that does not rest, as it does for its Backoff
// after a run of its own that has ended by itself.
func leftAlone(l *Log, bad report) {
	if l.healed().IsZero() {
		return
	}
	from, to := later(l.calmSpread().Add(unrest), l.lastChange()), l.settled().Add(-time.Second)
	for _, shard := range l.index.jobs {
		d := l.latest(shard)
		if d == nil || !d.Spread() || d.brief() {
			continue
		}
		free := from
		check := func(until time.Time) {
			if replica := l.couldRun(d, free, until); replica != "" {
				bad(until, "nobody has held %s for %s, and %s could", shard, until.Sub(free), replica)
			}
		}
		for _, r := range l.runs(shard) {
			if r.Time.Before(to) {
				check(r.Time)
				free = later(free, l.believed(&r))
			}
		}
		check(to)
	}
}

// couldRun is a replica that could have run a shard between two times for longer than two leases, empty
// if there is none.
func (l *Log) couldRun(d *Definition, from, to time.Time) string {
	longest := 2*l.longestSpread(d) + noticed
	for _, u := range l.of("", Up) {
		rested := later(from, l.restsUntil(u.Replica, d.Name, to))
		if to.Sub(rested) > longest && l.takesPart(u, d, from) && l.takesPart(u, d, to) {
			return u.Replica
		}
	}
	return ""
}

// restsUntil is until when a replica leaves a shard alone after its last run before a time. A run that
// was handed over has not ended by itself.
func (l *Log) restsUntil(replica, shard string, before time.Time) (until time.Time) {
	d := l.definition(replica, shard)
	for _, r := range l.runs(shard) {
		if d != nil && r.Replica == replica && !r.End.IsZero() && r.End.Before(before) && l.outcomeOf(&r) != store.Abandoned {
			until = r.End.Add(d.rest())
		}
	}
	return until
}

// outcomeOf is the outcome of a run that is in the record, empty if there is none.
func (l *Log) outcomeOf(r *Event) (status store.Status) {
	for _, e := range l.writes(r.Job) {
		if e.Record != nil && e.Record.Token == r.Token && !e.Record.Run.Finished.IsZero() {
			status = e.Record.Run.Status
		}
	}
	return status
}
