package check

import (
	"time"

	"github.com/soloist-go/soloist"
)

// A Definition is a job or singleton as one version of the program has it, and
// how its runs behave.
type Definition struct {
	Name             string
	Every            time.Duration // ticks are its multiples; zero: a singleton
	Schedule         string        // the same as text
	Zone             string        // that it is meant in
	Lease            time.Duration
	Timeout          time.Duration
	HeartbeatTimeout time.Duration
	MaxTries         int
	Backoff          time.Duration
	StartingDeadline time.Duration
	Missed           soloist.MissedPolicy
	Interrupted      soloist.InterruptedPolicy
	Paused           bool
	PauseAfter       int
	EveryReplica     bool
	Follows          string // the jobs in After; empty: none. Every and Schedule are theirs
	FollowsAny       bool
	ClaimAhead       bool
	Group            string
	Slots            int // of the group: how many of its runs take place at a time

	// A shard of a job or singleton is a definition of its own, with the name of the shard.
	Whole         string // what it is a shard of; empty: of nothing
	Shard, Shards int

	Pulse            Pulse // how HealthCheck answers
	HealthInterval   time.Duration
	FailureThreshold int
	MaxCheckpoint    int

	Least, Most time.Duration // that a run takes
	Saves       bool          // it keeps a counter as its checkpoint
	Padding     int           // bytes of the checkpoint beside the counter
	Behaviors   []Behavior    // of a run, one of them; none: it is fine
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
