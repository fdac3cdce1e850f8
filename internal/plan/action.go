package plan

import "time"

// A What is what a replica does about an entry.
type What int

const (
	Wait    What = iota // nothing is due
	Follow              // another replica runs the job: read again later
	Queue               // a lease without a claim: its holder is about to claim
	Blocked             // a lease without a claim that has lasted longer than a replica needs
	Yield               // another definition is in force: read again later
	Mark                // the same, and ask whether a replica with that definition is up
	Inherit             // no such replica answers: the definition of this one is in force from Since on
	Answer              // remove a mark: the replica that asks learns that one is up
	Expect              // another replica holds the lease before a tick: it is expected to run that tick
	Tell                // write that ticks have not succeeded in time
	Await               // a job that this one follows has not ended: read its entry again
	Acquire             // something is due, or almost, and the lease is free
)

// An Action is what a replica does next. It contains no random number: the caller adds the
// jitter, so that a table can test the action.
type Action struct {
	What What

	After  time.Duration // until the next step
	Jitter time.Duration // up to this is added at random, so that followers do not all read at once
	Most   time.Duration // the longest sum of both; zero: no limit
	Read   bool          // the entry is read again before the next decision

	Lease time.Duration // Acquire: for how long
	Break bool          // Acquire: the lease is live, and its holder trusts it no more: it is broken first
	Tick  time.Time     // Acquire, Expect: the tick that is not due yet; zero: something is due
	Since time.Time     // Inherit: from when the definition counts
}

// A Clock is what is known of the service's clock when a decision is made.
type Clock struct {
	Low   time.Time // the earliest that it can show; zero: not known
	Drift int       // by how much the rates of two clocks may differ: one part in so many
}
