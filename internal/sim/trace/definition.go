package trace

import (
	"strings"
	"time"

	"github.com/soloist-go/soloist"
)

// A Definition is a job or singleton as one version of the program has it, and
// how its runs behave.
type Definition struct {
	soloist.Job               // but for its functions and calendars; Lease is that of the store
	Every       time.Duration // ticks are its multiples; zero: a singleton
	Open        []Time        // when the job has ticks; empty: always
	Limits      Limits        // what the program says of that
	Closed      string        // far days of its calendar, whose name has no edition; empty: it has no calendar
	Beat        time.Duration // the lease that the program asks for, if the store takes none so short
	Follows     string        // the jobs in After.Jobs; empty: none. Every and Schedule are theirs
	Slots       int           // of the group: how many of its runs take place at a time

	// A shard of a job or singleton is a definition of its own, with the name of the shard.
	Whole string // what it is a shard of; empty: of nothing
	Shard int

	Pulse Pulse // how HealthCheck answers

	Least, Most time.Duration // that a run takes
	Lengthy     time.Duration // that it takes once all faults are over, up to that; zero: seconds
	Saves       bool          // it keeps a counter as its checkpoint
	Padding     int           // bytes of the checkpoint in addition to the counter
	Behaviors   []Behavior    // of a run, one of them; none: it is fine
}

// Spread reports whether the shards of a singleton are shared out among the replicas.
func (d *Definition) Spread() bool { return d.Shards > 0 && d.Every == 0 }

// Before are the jobs that a follower follows.
func (d *Definition) Before() []string {
	if d.Follows == "" {
		return nil
	}
	return strings.Split(d.Follows, ", ")
}

// Limits are what a program says about the ticks of a job in addition to its schedule.
type Limits struct {
	From, Until time.Time
	Except      string // days with spaces between them; empty: none
	Only        string // also days; empty: none
	Shift       soloist.Shift
}

// A Behavior is how a run behaves.
type Behavior string

// Behaviors. The last four need something that ends them.
const (
	Fine     Behavior = "fine"
	Fails    Behavior = "fails"
	Forever  Behavior = "fails for good"
	Later    Behavior = "asks for a later try"
	Nothing  Behavior = "has nothing to do"
	Panics   Behavior = "panics"
	Exits    Behavior = "ends its goroutine"
	Hasty    Behavior = "saves ten times a second for a while"
	Tardy    Behavior = "tells its progress at the last moment"
	Deaf     Behavior = "goes on after its context has ended"
	Hangs    Behavior = "hangs until it is cancelled"
	Stubborn Behavior = "hangs, and goes on for minutes after its context has ended"
	Silent   Behavior = "is silent"
)

// A Pulse is how the HealthCheck of a job answers.
type Pulse string

// Pulses. A job without one has no HealthCheck.
const (
	NoPulse Pulse = ""
	Steady  Pulse = "steady"  // nothing is wrong
	Flaps   Pulse = "flaps"   // every other call fails, about
	Weak    Pulse = "weak"    // most calls fail
	Frozen  Pulse = "frozen"  // some calls do not answer until their context has ended
	Erratic Pulse = "erratic" // some calls panic
)
