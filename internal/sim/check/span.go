package check

import (
	"slices"

	"github.com/soloist-go/soloist/store"
)

// lifetimes: what a record tells of the start and the end of a run is when the run
// was claimed and when it returned. No later write forgets an end.
func lifetimes(l *Log, bad report) {
	for _, job := range l.index.jobs {
		var last *store.Record
		for _, e := range l.writes(job) {
			if e.Replica == Operator || e.Record == nil {
				last = nil // an operator may write anything
				continue
			}
			if e.Op == "finish" {
				l.span(job, e, bad)
			}
			if last != nil && e.Op != "create" {
				forgotten(last.History, e.Record.History, func(f store.Outcome) {
					bad(e.Time, "%s writes %s, and forgets that the run with token %d ended at %s", e.Replica, job, f.Token, TimeOfDay(f.End))
				})
			}
			last = e.Record
		}
	}
}

// span judges the outcome of a run as the replica that ran it writes it at the end.
// The tick of a run that another replica may repeat has no outcome yet.
func (l *Log) span(job string, e *Event, bad report) {
	t := l.termOf(job, e.Record.Token)
	i := slices.IndexFunc(e.Record.History, func(f store.Outcome) bool { return f.Token == e.Record.Token })
	if i < 0 || t == nil || t.claim.Lease != e.Lease || t.last() == nil || t.last().End.IsZero() || t.last().End.After(e.Time) {
		return
	}
	f, r := e.Record.History[i], t.last()
	doubt, from, last := t.doubt()+e.Time.Sub(t.sent)/50, l.decided(t), e.Time
	if f.Status == store.Succeeded || f.Status == store.Stalled { // else a pause before another try may have come after it
		last = r.End
	}
	switch {
	case f.End.IsZero():
		bad(e.Time, "%s has ended at %s, and its outcome, %s, tells no end", r.name(), TimeOfDay(r.End), f.Status)
	case f.End.Before(r.End.Add(-doubt)) || f.End.After(last.Add(doubt)):
		bad(e.Time, "%s has ended at %s, and its outcome, %s, says %s", r.name(), TimeOfDay(r.End), f.Status, TimeOfDay(f.End))
	case f.Start.Before(from.Add(-doubt)) || f.Start.After(later(t.claim.Time, t.tick()).Add(doubt)):
		bad(e.Time, "%s was claimed at %s, and its outcome, %s, says %s", r.name(), TimeOfDay(t.claim.Time), f.Status, TimeOfDay(f.Start))
	}
}

// forgotten finds ends of runs that the old history has and the new one has not,
// or not as they were. The oldest outcomes may have been cut off.
func forgotten(old, now []store.Outcome, lost func(store.Outcome)) {
	rest := now[len(news(old, now)):]
	for i, f := range rest {
		if !old[i].End.IsZero() && !f.End.Equal(old[i].End) {
			lost(old[i])
		}
	}
}

// exact reports whether a range of n ticks tells their number. One with more than
// counted ticks tells those, and that there are more.
func exact(f *store.Outcome, n int) bool {
	return f.Count == min(n, counted) && f.AtLeast == (n > counted)
}

// counted is how many ticks of one range a record counts.
const counted = 100_000
