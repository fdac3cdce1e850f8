package plan

import (
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
)

// Two definitions of a job are up during a rolling deploy. The one in force is the definition of the replica which started
// last; replicas of an older one yield. If the deploy is aborted, the older replicas take the job back:
//
//   - Mark: an older replica that has a tick overdue, or knows of a run that was ordered
//     and has not begun, writes a mark into the record. Of several older definitions the
//     youngest one replaces the marks of the others, and they leave its mark alone.
//   - Answer: each replica of the definition in force looks at the record once
//     a minute. A replica that finds a mark removes it, which changes the ETag.
//   - Inherit: if the marked record stands for InheritAfter, the older replica acquires the lease with the ETag of the mark
//     and makes its definition the one in force.
//
// The ETag decides: as long as it is the mark's, no replica has written, so none has answered. A replica of the younger
// definition that is cut off from the store for longer than InheritAfter loses the job until it restarts.

const (
	// InheritAfter is how long a mark must stand unanswered. That leaves room for a read once a minute, for slow answers, and
	// for clocks that differ. In a bounded model of this protocol 3.5 minutes were too short and 4 were enough.
	InheritAfter = 4 * time.Minute

	markAgain = 2 * time.Minute // after an answer, before this replica asks again

	// A mark is written no nearer than one lease and markMargin to a due tick of the
	// definition in force, or to the order of a run: it would delay the claim of that.
	markMargin = 5 * time.Second
)

// Outdated reports whether another definition is in force, from a replica which started
// later. Then this replica decides nothing about the job.
func (p *Policy) Outdated(v View) bool {
	d := &v.Record.Definition
	return d.Spec != p.Spec && younger(d.Spec, d.Since, p.Spec, v.Since)
}

// Adopts reports whether the next claim of this replica puts its definition into force.
func (p *Policy) Adopts(v View) bool { return v.Record.Definition.Spec != p.Spec && !p.Outdated(v) }

// younger reports whether a definition comes after another one: its replica started later. Two replicas that
// started at the same instant are ordered by their hashes, so that all replicas agree.
func younger(spec string, since time.Time, other string, otherSince time.Time) bool {
	return since.After(otherSince) || since.Equal(otherSince) && spec > other
}

// overdue reports whether a tick is due and not settled, or a run that was ordered waits. A singleton is always due.
func (s *step) overdue() bool {
	return s.Ticks == nil || s.Ticks.Last(s.Now).After(s.Record.Watermark) || s.waiting() != nil
}

// mayMark reports whether this replica, whose definition is an older one, should mark the
// record. It replaces the mark of a definition that is older still, even if nothing of its own
// is overdue: otherwise the oldest definition would take the job back.
func (s *step) mayMark() bool {
	switch mark := s.Record.Definition.Mark; {
	case mark.Spec == s.Spec:
		return false
	case mark.Spec == "" && !s.overdue(), mark.Spec != "" && !younger(s.Spec, s.Since, mark.Spec, mark.Since):
		return false
	}
	due, near := Due(s.Record), s.longer(s.Record)+markMargin
	if q := s.waiting(); q != nil && s.Now.Sub(q.At) <= near {
		return false
	}
	return due.IsZero() || s.Now.Sub(due).Abs() > near
}

// inherits reports whether the replicas of the definition in force have left the mark unanswered for long enough. Then the
// definition of this replica counts as the youngest from since on: since must be later than the start in the record.
func (s *step) inherits() (since time.Time, ok bool) {
	mark, patience := s.Record.Definition.Mark, InheritAfter
	takes := mark.Spec == s.Spec
	if !takes { // the replicas of that definition take it back first
		takes, patience = younger(mark.Spec, mark.Since, s.Spec, s.Since) && s.overdue(), 2*InheritAfter
	}
	if mark.Spec == "" || !takes || s.State.Live() || s.o.At.Sub(s.o.UnchangedSince) < patience {
		return time.Time{}, false
	}
	return instant.Later(s.Since, instant.Later(s.Now, s.Record.Definition.Since.Add(1))), true
}

// The hash of a definition has up to three parts: the hash of the texts, which every replica can read, and the sums of what
// replicas may have under the same names: the rules of the time zone, and the days of the calendars. So two replicas
// that differ can say in what.
const (
	zonePart = ".z"
	daysPart = ".d"
)

// SpecWith returns the hash of a definition from its parts. An empty sum is left out: without one the hash is
// the hash of the texts alone.
func SpecWith(texts, zone, days string) string {
	if zone != "" {
		texts += zonePart + zone
	}
	if days != "" {
		texts += daysPart + days
	}
	return texts
}

// parts returns the parts of a hash.
func parts(spec string) (texts, zone, days string) {
	spec, days, _ = strings.Cut(spec, daysPart)
	texts, zone, _ = strings.Cut(spec, zonePart)
	return texts, zone, days
}

// Difference says what two hashes of one job differ in, if the texts are the same: empty, they are not, or nothing differs.
func Difference(a, b string) string {
	textsA, zoneA, daysA := parts(a)
	textsB, zoneB, daysB := parts(b)
	if textsA != textsB {
		return ""
	}
	var all []string
	if zoneA != zoneB {
		all = append(all, "the rules of the time zone")
	}
	if daysA != daysB {
		all = append(all, "the days of the calendars")
	}
	return strings.Join(all, " and ")
}
