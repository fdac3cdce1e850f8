package soloist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
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
//   - Inherit: if the marked record stands for inheritAfter, the older replica
//     acquires the lease with the ETag of the mark and makes its definition the
//     one in force.
//
// The ETag decides: a record without a write since the mark is a record without
// an answer. A replica of the younger definition that is cut off from the store
// for longer than inheritAfter loses the job until it restarts.

const (
	// inheritAfter is how long a mark stands unanswered. It has room for a look
	// once a minute, for slow answers, and for clocks that differ. In a bounded
	// model 3.5 minutes were too short and 4 were enough.
	inheritAfter = 4 * time.Minute

	markAgain  = 2 * time.Minute // after an answer
	markMargin = 5 * time.Second // and a lease: how far a mark keeps from a tick of the definition in force
)

// A Mark asks whether replicas of the definition in force are up.
type Mark struct {
	Spec  string    `json:"spec"`  // definition of the replica that asks
	Since time.Time `json:"since"` // start of that replica
}

// younger reports whether a definition, and the start of a replica that has it,
// comes after another. Two replicas that started at the same instant are ordered
// by their definitions.
func younger(spec string, since time.Time, otherSpec string, otherSince time.Time) bool {
	return spec != otherSpec && (since.After(otherSince) || since.Equal(otherSince) && spec > otherSpec)
}

// overdue reports whether this definition has a tick that is due and not
// settled. A singleton is always due.
func (p *planner) overdue(r *Record, now time.Time) bool {
	return p.ticks == nil || p.ticks.Last(now).After(r.Through)
}

// mayMark reports whether a replica of this, an older, definition should mark r.
// It replaces the mark of a definition that is older still, also where none of its
// own ticks is overdue: else the oldest one would take the job back.
func (p *planner) mayMark(r *Record, now time.Time, lease time.Duration) bool {
	switch {
	case r.Mark.Spec == p.spec:
		return false
	case r.Mark.Spec == "" && !p.overdue(r, now):
		return false
	case r.Mark.Spec != "" && !younger(p.spec, p.since, r.Mark.Spec, r.Mark.Since):
		return false
	}
	due := r.nextDue()
	return due.IsZero() || now.Sub(due).Abs() > max(lease, time.Duration(r.Lease))+markMargin
}

// patience is how long the mark of r has to stand before a replica of this
// definition inherits. It returns false if that mark is none to wait for.
func (p *planner) patience(r *Record) (wait time.Duration, ok bool) {
	switch {
	case r.Mark.Spec == "":
		return 0, false
	case r.Mark.Spec == p.spec:
		return inheritAfter, true
	case younger(r.Mark.Spec, r.Mark.Since, p.spec, p.since): // its replicas go first
		return 2 * inheritAfter, true
	}
	return 0, false
}

// inherits reports whether no replica of the definition in force answers. This
// replica's definition then counts as the youngest.
func (w *worker) inherits(now time.Time) bool {
	patience, ok := w.patience(&w.rec)
	wanted := w.rec.Mark.Spec == w.spec || w.overdue(&w.rec, now)
	if !ok || w.entry.State.Live() || !wanted || time.Since(w.still.at) < patience {
		return false
	}
	w.log.Warn("no replica with the definition in force has answered: this one takes the job back",
		"since", w.rec.Since, "waited", patience)
	w.since = later(w.since, later(now, w.rec.Since.Add(1)))
	return true
}

// yield leaves the job to replicas of a younger definition, and asks whether any
// is up.
func (w *worker) yield(ctx context.Context, now time.Time) time.Duration {
	why := fmt.Errorf("a replica that started at %s has another schedule for this job: this one leaves it alone, and takes it back once no replica with that definition has answered for %s",
		w.rec.Since.Format(time.RFC3339), inheritAfter)
	w.note(cmp.Or(w.denied, why))
	if w.rec.Mark.Spec == w.spec {
		w.marked = time.Now()
	}
	if w.entry.State.Live() || time.Since(w.marked) < markAgain || !w.mayMark(&w.rec, now, w.length) {
		return w.again(maxSleep)
	}
	err := w.annotate(ctx, func(r *Record) { r.Mark = Mark{w.spec, w.since} })
	if err != nil {
		return w.notAnnotated(ctx, err)
	}
	w.marked = time.Now()
	w.log.Debug("asked whether replicas with the definition in force are up")
	return w.again(maxSleep)
}

// answer removes a mark: a replica of the definition in force is up.
func (w *worker) answer(ctx context.Context) time.Duration {
	err := w.annotate(ctx, func(r *Record) { r.Mark, r.Since = Mark{}, later(r.Since, w.planner.since) })
	if err != nil {
		return w.notAnnotated(ctx, err)
	}
	w.log.Debug("answered a replica with an older definition")
	return 0
}

// notAnnotated returns when to look again after an annotation that failed.
func (w *worker) notAnnotated(ctx context.Context, err error) time.Duration {
	switch {
	case errors.Is(err, errNotWritten) && errors.Is(err, fs.ErrPermission), errors.Is(err, errNotEncoded):
		return w.standBack(err)
	case definite(err): // another replica was first
		return w.again(firstLook + w.dice.upTo(firstLook))
	}
	return w.fault(ctx, err)
}
