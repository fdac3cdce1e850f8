package runner

import (
	"slices"

	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// shownBy reports whether a record shows that the write was applied: the record is that write, or, if other
// replicas have written since, it still shows the run. A run that was claimed has no status.
func (u *unconfirmed) shownBy(rec *store.Record) bool {
	is := func(o store.Outcome) bool {
		return o.Token == u.run.Token && o.Replica == u.run.Replica && o.Start.Equal(u.run.Start) &&
			(u.run.Status == "" || o.Status == u.run.Status && o.End.Equal(u.run.End))
	}
	return rec.Writer == u.writer ||
		u.run.Token != 0 && (is(plan.LastOutcome(rec, rec.Run.Status, "")) || slices.ContainsFunc(rec.History, is))
}

// reportOnceRead keeps the last write under the lease until a read shows whether it was applied.
func (h *hold) reportOnceRead(run store.Outcome, report func()) {
	u := unconfirmed{h.session.Record().Writer, run, report}
	h.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, u) })
}

// reportApplied follows a read. It reports the outcomes of writes that were applied, and forgets the others
// unless there is a lease: until its end the store may still apply them.
func (r *Runner) reportApplied() {
	var all, left []unconfirmed
	r.source.state.set(func(n *snapshot) { all, n.unconfirmed = n.unconfirmed, nil })
	for _, u := range all {
		switch {
		case u.shownBy(&r.view.rec):
			u.report()
		case r.view.entry.State.Live():
			left = append(left, u)
		}
	}
	if len(left) > 0 {
		r.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, left...) })
	}
}
