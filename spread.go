package soloist

import (
	"fmt"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/spread"
	"github.com/soloist-go/soloist/store"
)

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
			Jitter: lease.NewJitter(fmt.Sprint(s.Replica, "spread", s.core.replica.Created)),
			IDs:    lease.NewJitter(fmt.Sprint(s.Replica, "member", s.core.replica.Created)), Idle: s.core.replica.Idle, Tell: s.core.replica.Spread})
	}
	s.core.replica.Spreads(g.Name)
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
