package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// Two definitions of a job are up during a rolling deploy. The one in force is
// that of the replica which started last; replicas of an older one yield. If
// the deploy is aborted, the older replicas take the job back:
//
//   - Mark: an older replica that has a tick overdue writes a mark into the
//     record. Of several older definitions the youngest one replaces the marks of
//     the others, and they leave its mark alone.
//   - Answer: each replica of the definition in force looks at the record once
//     a minute. One that finds a mark removes it, which changes the ETag.
//   - Inherit: if the marked record stands for InheritAfter, the older replica
//     acquires the lease with the ETag of the mark and makes its definition the
//     one in force.
//
// The ETag decides: a record without a write since the mark is a record without
// an answer. A replica of the younger definition that is cut off from the store
// for longer than InheritAfter loses the job until it restarts.

const (
	// InheritAfter is how long a mark stands unanswered. It has room for a look
	// once a minute, for slow answers, and for clocks that differ. In a bounded
	// model 3.5 minutes were too short and 4 were enough.
	InheritAfter = 4 * time.Minute

	markAgain  = 2 * time.Minute // after an answer
	markMargin = 5 * time.Second // and a lease: how far a mark keeps from a tick of the definition in force
)

// definition is that of this replica.
func (p *Policy) definition(v View) store.Mark { return store.Mark{Spec: p.Spec, Since: v.Since} }

// Outdated reports whether the definition in force is another one, of a replica
// that started later.
func (p *Policy) Outdated(v View) bool {
	return younger(store.Mark{Spec: v.Record.Spec, Since: v.Record.Since}, p.definition(v))
}

// younger reports whether a definition, and the start of a replica that has it,
// comes after another. Two replicas that started at the same instant are ordered
// by their definitions.
func younger(a, b store.Mark) bool {
	return a.Spec != b.Spec && (a.Since.After(b.Since) || a.Since.Equal(b.Since) && a.Spec > b.Spec)
}

// mayMark reports whether a replica of this, an older, definition should mark the
// record. It replaces the mark of a definition that is older still, also where none
// of its own ticks is overdue: else the oldest one would take the job back.
func (p *Policy) mayMark(v View) bool {
	r := v.Record
	switch {
	case r.Mark.Spec == p.Spec:
		return false
	case r.Mark.Spec == "" && !p.overdue(r, v.Now):
		return false
	case r.Mark.Spec != "" && !younger(p.definition(v), r.Mark):
		return false
	}
	due := Due(r)
	return due.IsZero() || v.Now.Sub(due).Abs() > max(p.Lease, time.Duration(r.Lease))+markMargin
}

// patience is how long the mark of the record has to stand before a replica of
// this definition inherits. It returns false if that mark is none to wait for.
func (p *Policy) patience(v View) (wait time.Duration, ok bool) {
	mark := v.Record.Mark
	switch {
	case mark.Spec == "":
		return 0, false
	case mark.Spec == p.Spec:
		return InheritAfter, true
	case younger(mark, p.definition(v)): // its replicas go first
		return 2 * InheritAfter, true
	}
	return 0, false
}

// inherits reports whether no replica of the definition in force answers. The
// definition of this replica then counts as the youngest, from since on.
func (p *Policy) inherits(v View, o *Observation) (since time.Time, ok bool) {
	patience, ok := p.patience(v)
	wanted := v.Record.Mark.Spec == p.Spec || p.overdue(v.Record, v.Now)
	if !ok || v.State.Live() || !wanted || o.At.Sub(o.UnchangedSince) < patience {
		return time.Time{}, false
	}
	return instant.Later(v.Since, instant.Later(v.Now, v.Record.Since.Add(1))), true
}
