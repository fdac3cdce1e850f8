package soloist

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/spread"
	"github.com/soloist-go/soloist/store"
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

// maxShards bounds the shards of one name: each of them has an entry, a lease and calls of its own.
const maxShards = 256

// ShardNames returns the names of the shards of a job or singleton: "import-0" to "import-15" for
// the name "import" and 16 shards. Each of them is a job of that name to all that names one: entry,
// status, orders and log. Without shards it returns the name itself; so it does for a number of
// shards that [Scheduler.Validate] refuses.
func ShardNames(name string, shards int) []string {
	if !isSplit(shards) {
		return []string{name}
	}
	names := make([]string, shards)
	for i := range names {
		names[i] = name + "-" + strconv.Itoa(i)
	}
	return names
}

// isSplit reports whether there are shards. A number that is refused counts as none.
func isSplit(shards int) bool { return shards > 0 && shards <= maxShards }

// A part is a whole job or singleton, or one shard of it.
type part struct {
	name          string
	shard, shards int // 0 of 1: the whole
}

// partsOf returns the shards of a job or singleton, or the whole if it has none.
func partsOf(name string, shards int) []part {
	names := ShardNames(name, shards)
	parts := make([]part, len(names))
	for i := range parts {
		parts[i] = part{names[i], i, len(parts)}
	}
	return parts
}

// addSingleton makes the runners of a singleton whose settings are valid.
func (s *Scheduler) addSingleton(g *Singleton) error {
	jobs, err := g.runnerJobs(s.Store, s.core.told.job)
	if err != nil {
		return err
	}
	group, first := s.group(g, jobs), len(s.core.Runners)
	if err := s.add(jobs, nil); err != nil || group == nil {
		return err
	}
	for i, r := range s.core.Runners[first:] {
		group.Add(i, r)
	}
	return nil
}

// group has the shards of a singleton spread over the replicas. It returns nil if there are none, or
// if the store does not list.
func (s *Scheduler) group(g *Singleton, jobs []*runner.Job) *spread.Group {
	if _, lists := s.Store.(store.Lister); g.Shards == 0 || !lists {
		return nil
	}
	if s.core.spread == nil {
		s.core.spread = spread.New(spread.Config{App: s.App, Replica: s.Replica, Store: s.Store, Clock: s.core.Replica.Clock,
			Jitter: lease.NewJitter(fmt.Sprint(s.Replica, "spread", s.core.Replica.Created)),
			IDs:    lease.NewJitter(fmt.Sprint(s.Replica, "member", s.core.Replica.Created)), Degraded: s.core.Replica.Degraded, Tell: s.core.Replica.Spread})
	}
	s.core.Replica.Spreads(g.Name)
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Name
	}
	group := s.core.spread.Group(g.Name, names, jobs[0].Policy.Lease)
	for i, j := range jobs {
		j.Seat = spread.SeatOf(group, i)
	}
	return group
}
