package soloist

import (
	"context"
	"time"
)

// A Singleton is a task that one of all replicas does at a time, for as long as it can: the leader
// election pattern (https://learn.microsoft.com/azure/architecture/patterns/leader-election).
type Singleton struct {
	// Name is unique among the jobs and singletons of the program: a
	// lower-case letter, then up to 62 lower-case letters, digits and hyphens.
	Name string

	// Do is the task. Its context ends when the replica loses the lease or
	// stops, or when the task has stalled; the lease is released only after Do
	// has returned. Whenever it returns, nil or not, a replica is elected again.
	Do func(ctx context.Context, run *Run) error

	// Shards splits the task. With n shards it is n tasks, one for each [Run.Shard] from 0 to
	// n-1, each of them on one replica at a time. The replicas share them evenly: within two
	// leases after a replica has come or gone, no replica has two more than another. That takes
	// a store that is a [store.Lister]; over another one each shard is held by whichever replica
	// is first. Names and changes of the number are as for [Job.Shards]. Zero: it is not split.
	Shards int

	// These are as for a [Job].
	HeartbeatTimeout time.Duration
	HealthCheck      HealthCheck
	MaxCheckpoint    int

	// Lease is how long a dead holder keeps other replicas from the task, in whole seconds. The
	// store has its limits: 15 to 60 s on Azure. From 1 s on, a shorter one is kept by beats, at a
	// price: see docs/leases.md. Zero: 30 s.
	Lease time.Duration

	// Backoff is the pause of a replica after its Do has returned, so that a task that fails at
	// once does not fail all the time. After a stall the pause is at least 1.5 s, so that another
	// replica can take over; for a shard, a third of the lease and a second. A shard that is handed
	// over so that the spread is even, or whose lease was lost, is no reason to pause for longer than
	// that. Zero: 5 s.
	Backoff time.Duration
}
