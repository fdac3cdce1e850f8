package soloist

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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
// checkGroups reports why.
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
	r := bareReplica(s.App, s.Replica, s.Store, s.core.Replica)
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

// newSlots returns the slots of a lock or a group, with the lease d.
func newSlots(r *runner.Replica, kind entry.Kind, name string, n int, d time.Duration) *mutex.Mutex {
	length, beat := leaseOf(d, r.Store)
	slots := make([]*runner.Runner, n)
	for i := range slots {
		slots[i] = runner.New(r, &runner.Job{Name: entry.OfSlot(kind, i, name), Policy: plan.Policy{Lease: length, Beat: beat, Spec: string(kind)},
			Task: supervise.Task{MaxCheckpoint: defaultCheckpoint}})
	}
	return mutex.New(r, slots, length)
}

// checkGroups returns what is wrong with the groups.
func (s *Scheduler) checkGroups() (errs []error) {
	used := map[string]bool{}
	for _, j := range s.Jobs {
		if j.Group == "" {
			continue
		}
		used[quote(j.Group)] = true
		if _, known := s.Groups[j.Group]; !known {
			errs = append(errs, fmt.Errorf("job %q: Group is %s, which has no limit: set one in Groups", j.Name, quote(j.Group)))
		}
	}
	known := "no job has a group"
	if len(used) > 0 {
		known = "the groups of jobs are " + strings.Join(slices.Sorted(maps.Keys(used)), ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		errs = append(errs, s.checkGroup(name))
		if !used[quote(name)] { // perhaps it is misspelled
			errs = append(errs, fmt.Errorf("Groups[%s] is %d, and no job has the Group %[1]s: %[3]s", quote(name), s.Groups[name], known)) //nolint:staticcheck // ST1005: it begins with the name of a field
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
