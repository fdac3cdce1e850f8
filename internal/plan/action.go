package plan

import "time"

// What a replica does about an entry.
type What int

const (
	Wait    What = iota // nothing is due
	Follow              // another replica runs it: read again later
	Queue               // a lease without a claim: its holder is about to claim
	Blocked             // a lease without a claim, for longer than a replica would need
	Yield               // another definition is in force: read again later
	Mark                // likewise, and ask whether any replica has it
	Inherit             // no replica has it: this definition is in force from Since on
	Answer              // remove a mark: a replica of the definition in force is up
	Acquire             // something is due, and the lease is free
)

// An Action is what a replica does next.
type Action struct {
	What What

	After  time.Duration // until the next step
	Jitter time.Duration // added at random, up to this
	Most   time.Duration // limits both; zero: no limit
	Read   bool          // the entry is read again then

	Lease time.Duration // Acquire: for how long
	Since time.Time     // Inherit
	Short bool          // Wait: a run is due for which there is no time
}

// Clock is what is known of the service's clock.
type Clock struct {
	Low   time.Time // the earliest that it can show; zero: not known
	Drift int       // how much the rates of two clocks may differ: one in so many
}
