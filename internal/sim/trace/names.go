package trace

import "time"

// Names and notes that events have.
const (
	Operator = "operator"          // the replica of a request that an operator sends
	Unlocker = "ann@desk"          // the operator who unlocks jobs, as records name it
	Orderer  = "olivia"            // who orders
	Foreign  = "foreign"           // the job whose entry was made by a newer program: replicas must not touch it
	Aborted  = "an aborted deploy" // of Up: why the replica does not stay
	Older    = "older"             // of Corrupted: the entry is a version of the record that there was before
)

// Settling is how long a healed cluster has until everything due has its outcome:
// a long lease, a minute, the longest pause between two looks, and runs.
const Settling = 4 * time.Minute

// Patience is how long replicas of an older definition may wait after the last
// one of the younger is gone, until they take a job back.
const Patience = 12 * time.Minute

// Spreading is how much longer it gets where shards are spread: replicas keep for ten leases what they
// hold beyond their parts.
const Spreading = 2 * time.Minute

// A Lock is what is known of a lock.
type Lock struct {
	Slots int           // of the replica that has the most
	Lease time.Duration // the longest
}

// A Once is what is known of work that is done once.
type Once struct {
	Lease    time.Duration
	MaxTries int
	Backoff  time.Duration
}

// IsSlot reports whether an entry belongs to a slot of a lock or a group, to what is done once for a
// key, or to a replica that is up, and not to a job.
func IsSlot(name string) bool { return name != "" && name[0] >= '0' && name[0] <= '9' }
