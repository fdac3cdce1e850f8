// Package desk answers operators: how the jobs of an app are, and what they order. The rest of the module uses it where users
// have the methods of a Scheduler, since it shows whole records.
package desk

import (
	"context"
	"errors"
	"fmt"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/runner"
)

type (
	// A Status is what the store says about one job.
	Status = runner.Status

	// A Range says which ticks a backfill has.
	Range = runner.Range

	// A BackfillPlan says which ticks those are.
	BackfillPlan = runner.BackfillPlan
)

// A Desk is of one scheduler.
type Desk struct {
	Replica *runner.Replica
	Runners []*runner.Runner // of Jobs, then of Singletons
}

// Of returns the desk of a *soloist.Scheduler, or what is wrong with that. Its package sets it.
var Of func(scheduler any) (*Desk, error)

// ErrNoOrders is for a store of the user's own without the optional interface.
var ErrNoOrders = errors.New("the store keeps no orders of operators: it does not implement store.Documenter")

// Statuses returns the status of each job and singleton, in their order.
func (d *Desk) Statuses(ctx context.Context) []Status {
	_ = d.Replica.Orders.Refresh(ctx) // without the orders a status may leave out that a job is paused
	return runner.Statuses(ctx, d.Runners)
}

// Status returns the status of one job, singleton or shard.
func (d *Desk) Status(ctx context.Context, job string) (Status, error) {
	of, err := d.Runner(job)
	if err != nil {
		return Status{}, err
	}
	runners := []*runner.Runner{of}
	for _, name := range of.After() {
		before, _ := d.Runner(name) // a scheduler that is valid has it
		runners = append(runners, before)
	}
	_ = d.Replica.Orders.Refresh(ctx) // as in Statuses
	return runner.Statuses(ctx, runners)[0], nil
}

// Control returns what operators have ordered. It reads the store.
func (d *Desk) Control(ctx context.Context) (record.Control, error) {
	if d.Replica.Orders == nil {
		return record.Control{}, ErrNoOrders
	}
	return d.Replica.Orders.Client.Read(ctx)
}

// PlanBackfill returns what a backfill of a job or shard would run.
func (d *Desk) PlanBackfill(ctx context.Context, job string, of Range) (BackfillPlan, error) {
	r, err := d.Runner(job)
	switch {
	case err != nil:
		return BackfillPlan{}, err
	case r.Singleton() || r.EveryReplica():
		return BackfillPlan{}, control.Refuse(fmt.Errorf("%s has no ticks that are run once: it is a singleton, or runs on each replica", job))
	}
	plan, err := r.PlanBackfill(ctx, of)
	if err != nil {
		err = fmt.Errorf("backfill %s: %w", job, err)
	}
	return plan, err
}

// Runner returns the runner of a job, singleton or shard.
func (d *Desk) Runner(job string) (*runner.Runner, error) {
	for _, r := range d.Runners {
		if r.Name() == job {
			return r, nil
		}
	}
	if shards := d.Shards(job); shards != nil {
		return nil, fmt.Errorf("%s is split into shards, %s to %s: name one of them", job, shards[0].Name(), shards[len(shards)-1].Name())
	}
	return nil, fmt.Errorf("there is no job or singleton %q", job)
}

// Shards returns the runners of all shards of a name, nil if it has none.
func (d *Desk) Shards(name string) (shards []*runner.Runner) {
	for _, r := range d.Runners {
		if r.ShardOf() == name {
			shards = append(shards, r)
		}
	}
	return shards
}
