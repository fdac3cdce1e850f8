package runner

// A Seat says whether this replica may hold a shard of a singleton, so that the shards are spread
// evenly; internal/spread implements it. It has no say in who holds the shard: the lease has. The
// methods do not block.
type Seat interface {
	// Take reports whether the replica may acquire the lease, which is free. If so, Leave follows
	// once the replica does not hold the lease any more, or has not acquired it. failedOn names the
	// other replica on which the last run has failed or stalled; empty: there is none.
	Take(failedOn string) bool
	Leave()

	// Follow says that another replica holds the lease, and whether it is about to hand it over.
	// It reports whether this replica would acquire it.
	Follow(stopping bool) bool

	// Listed reports whether a chance to acquire the lease is found by listings, so that a replica
	// that would not acquire it need not read it.
	Listed() bool

	// Hurried reports whether the entry is to be read before its time, once.
	Hurried() bool
}
