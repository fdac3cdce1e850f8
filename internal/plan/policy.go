// Package plan decides what becomes of the ticks of a job. It is pure: it has
// neither clock nor store nor goroutine, so each decision is a value that
// follows from a record, the policy of the job and what the replica has seen.
//
//   - [Policy.Next] says what a replica does now about an entry that it has read.
//   - [Policy.HoldOff] says how long a new holder waits before it claims.
//   - [Policy.Claim] says what that holder then writes, and whether it runs a tick.
//   - [Policy.Finish], [Policy.Stall] and [Policy.TakeBack] say what is written at
//     the end of a run.
package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

// Ticks are those of a schedule; see internal/schedule.
type Ticks interface {
	Next(after time.Time) time.Time
	Last(at time.Time) time.Time
	Count(after, to time.Time, limit int) int
}

// Missed says what becomes of ticks that came due while nobody ran them.
type Missed string

// Interrupted says what becomes of a tick whose runner died.
type Interrupted string

// The meaning of each is told in the documentation of a job's fields.
const (
	RunLatest  Missed = ""
	RunAll     Missed = "all"
	SkipMissed Missed = "skip"

	Abandon Interrupted = ""
	Rerun   Interrupted = "rerun"
)

// A Policy is what the program says about the ticks of a job.
type Policy struct {
	Ticks            Ticks         // nil: a singleton, which has a claim and no ticks
	StartingDeadline time.Duration // after the tick; zero: none
	Lease            time.Duration
	Missed           Missed
	Interrupted      Interrupted
	Paused           bool
	Spec             string // hash of the definition
}

const (
	maxSleep  = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended
	LookEvery = time.Minute      // at a record that is not expected to change
)

const (
	maxBacklog = 100     // ticks that RunAll makes up for
	maxDeaths  = 5       // runners that one tick may cost under Rerun
	maxCount   = 100_000 // ticks counted in one range: of more, the outcome says that there are at least as many
)

// A View is an entry as a replica sees it, and what it decides by.
type View struct {
	Record *store.Record
	State  store.LeaseState
	Now    time.Time // up to which ticks are due
	Since  time.Time // from when the definition of this replica counts: its start, or when it took the job back

	// Request is that of a run by hand, which is then all that there is to do.
	Request string

	// SettleOnly: there is no time for a run. Ticks that are to be settled
	// without one are settled.
	SettleOnly bool
}

// NextTick returns the next tick to run, zero when there is none: one whose run is to
// be repeated comes first.
func (p *Policy) NextTick(r *store.Record) time.Time {
	if p.Ticks != nil && open(r) {
		return r.Tick
	}
	return p.unclaimed(r)
}

// unclaimed is the next tick that is neither settled nor claimed, zero when there
// is none.
func (p *Policy) unclaimed(r *store.Record) time.Time {
	if p.Ticks == nil {
		return time.Time{}
	}
	return p.Ticks.Next(instant.Later(r.Watermark, claimed(r)))
}

// due is what Due of a record has to say: the next tick by the definition in force.
func (p *Policy) due(r *store.Record) time.Time {
	if r.Spec != p.Spec {
		return r.Due
	}
	return p.unclaimed(r)
}

// overdue reports whether a tick is due and not settled. A singleton is always due.
func (p *Policy) overdue(r *store.Record, now time.Time) bool {
	return p.Ticks == nil || p.Ticks.Last(now).After(r.Watermark)
}
