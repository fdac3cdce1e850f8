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

	// These are as for a [Job].
	HeartbeatTimeout time.Duration
	HealthCheck      HealthCheck
	MaxCheckpoint    int

	// Lease is how long a dead holder keeps other replicas from the task. The store has its
	// limits: 15 to 60 s on Azure. Zero: 30 s.
	Lease time.Duration

	// Backoff is the pause of a replica after its Do has returned, so that a task that fails at
	// once does not fail all the time. After a stall the pause is at least 1.5 s, so that another
	// replica can take over. Zero: 5 s.
	Backoff time.Duration
}
