package soloist

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/mutex"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
)

// A group lets runs of several jobs take its slots.
type group struct{ slots *mutex.Mutex }

// Do implements [runner.Group].
func (g *group) Do(ctx context.Context, patience time.Duration, f func(slot context.Context)) error {
	return g.slots.DoWithin(ctx, patience, func(ctx context.Context, _ int, _ *supervise.Handle) error {
		f(ctx)
		return nil
	})
}

// prepareGroups makes the groups that jobs use, by their names. Those that are wrong are left out, and
// checkGroups tells why.
func (s *Scheduler) prepareGroups() map[string]*group {
	all := map[string]*group{}
	for i := range s.Jobs {
		name := s.Jobs[i].Group
		if all[name] == nil && s.Groups[name] > 0 && s.checkGroup(name) == nil && checkPlace(s.Store, s.App, s.Replica) == nil {
			all[name] = s.newGroup(name)
		}
	}
	return all
}

func (s *Scheduler) newGroup(name string) *group {
	length := s.leaseOfGroup(name)
	r := bareReplica(s.App, s.Replica, s.Store, s.core.replica)
	r.Overrun = s.Overrun
	hearTrouble(r, s.Logger.With("group", name, "replica", s.Replica))
	return &group{newSlots(r, entry.Group, name, s.Groups[name], length)}
}

// leaseOfGroup returns the longest lease of the jobs of a group: a slot then lasts as long as the lease
// of the run that has it.
func (s *Scheduler) leaseOfGroup(name string) (longest time.Duration) {
	for _, j := range s.Jobs {
		if j.Group == name {
			longest = max(longest, orDefault(j.Lease, defaultLease))
		}
	}
	return longest
}

// newSlots returns the slots of a lock or a group.
func newSlots(r *runner.Replica, kind entry.Kind, name string, n int, length time.Duration) *mutex.Mutex {
	slots := make([]*runner.Runner, n)
	for i := range slots {
		slots[i] = runner.New(r, &runner.Job{Name: entry.OfSlot(kind, i, name), Policy: plan.Policy{Lease: length, Spec: string(kind)},
			Task: supervise.Task{MaxCheckpoint: defaultCheckpoint}})
	}
	return mutex.New(r, slots, length)
}

// checkGroups returns what is wrong with the groups.
func (s *Scheduler) checkGroups() (errs []error) {
	for name := range s.Groups {
		errs = append(errs, s.checkGroup(name))
	}
	for _, j := range s.Jobs {
		if _, known := s.Groups[j.Group]; j.Group != "" && !known {
			errs = append(errs, fmt.Errorf("job %q: Group is %s, which has no limit: set one in Groups", j.Name, quote(j.Group)))
		}
	}
	return errs
}

func (s *Scheduler) checkGroup(name string) error {
	if err := entry.Check(name); err != nil {
		return fmt.Errorf("Groups has the name %s: %w", quote(name), err) //nolint:staticcheck // ST1005: it begins with the name of a field
	}
	if n := s.Groups[name]; n < 1 || n > entry.MaxSlots {
		return wrong(fmt.Sprintf("Groups[%s]", quote(name)), n, fmt.Sprintf("1 to %d", entry.MaxSlots))
	}
	return nil
}
