package soloist

import (
	"fmt"
	"strconv"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/spread"
	"github.com/soloist-go/soloist/store"
)

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

// checkShards returns what is wrong with the number of shards, and with the names that they get.
func checkShards(name string, shards int) error {
	if shards < 0 || shards > maxShards {
		return wrong("Shards", shards, fmt.Sprintf("0 to %d", maxShards))
	}
	names := ShardNames(name, shards)
	if last := names[len(names)-1]; nameRule.MatchString(name) && !nameRule.MatchString(last) {
		return fmt.Errorf("the name of its last shard, %q, is %d characters long: allowed are 63, so shorten Name", last, len(last))
	}
	return nil
}

// specOf returns the hash of a definition. The number of shards is part of it: the shards of another
// number have other shares of the work.
func specOf(shards int, parts ...string) string {
	if shards > 0 {
		parts = append(parts, "shards", strconv.Itoa(shards))
	}
	return spec(parts...)
}

// whole returns the runners of all shards of a name, nil if it has none.
func (s *Scheduler) whole(name string) (shards []*runner.Runner) {
	for _, r := range s.core.runners {
		if r.ShardOf() == name {
			shards = append(shards, r)
		}
	}
	return shards
}

// A listingStore is a store by whose listings shards can be spread.
type listingStore struct {
	store.Store
	store.Lister
}

// addSingleton makes the runners of a singleton whose settings are valid.
func (s *Scheduler) addSingleton(g *Singleton) error {
	jobs, err := g.runnerJobs(s.Store, s.core.told.job)
	if err != nil {
		return err
	}
	group, first := s.group(g, jobs), len(s.core.runners)
	if err := s.add(jobs, nil); err != nil || group == nil {
		return err
	}
	for i, r := range s.core.runners[first:] {
		group.Add(i, r)
	}
	return nil
}

// group has the shards of a singleton spread over the replicas. It returns nil if there are none, or
// if the store does not list.
func (s *Scheduler) group(g *Singleton, jobs []*runner.Job) *spread.Group {
	lister, lists := s.Store.(store.Lister)
	if g.Shards == 0 || !lists {
		return nil
	}
	if s.core.spread == nil {
		s.core.spread = spread.New(spread.Config{App: s.App, Replica: s.Replica, Store: listingStore{s.Store, lister}, Clock: s.core.replica.Clock,
			Jitter: lease.NewJitter(fmt.Sprint(s.Replica, "spread", s.core.replica.Created)), Idle: s.core.replica.Idle})
	}
	names := make([]string, len(jobs))
	for i, j := range jobs {
		names[i] = j.Name
	}
	group := s.core.spread.Group(g.Name, names, jobs[0].Policy.Lease)
	for i, j := range jobs {
		j.Seat = group.Seat(i)
	}
	return group
}
