package app

import (
	"fmt"
	"slices"

	"github.com/soloist-go/soloist"
)

// Shards are the names under which a job or singleton of this program runs: its shards' names, or
// its own. A name that is none of the program's stands for itself.
func (a *App) Shards(name string) []string {
	for _, j := range a.Scheduler.Jobs {
		if j.Name == name {
			return soloist.ShardNames(name, j.Shards)
		}
	}
	for _, g := range a.Scheduler.Singletons {
		if g.Name == name {
			return soloist.ShardNames(name, g.Shards)
		}
	}
	return []string{name}
}

// Whole is the name of the job or singleton that a name is a shard of; any other name is itself.
func (a *App) Whole(name string) string {
	for _, j := range a.Scheduler.Jobs {
		if j.Shards > 0 && slices.Contains(soloist.ShardNames(j.Name, j.Shards), name) {
			return j.Name
		}
	}
	for _, g := range a.Scheduler.Singletons {
		if g.Shards > 0 && slices.Contains(soloist.ShardNames(g.Name, g.Shards), name) {
			return g.Name
		}
	}
	return name
}

// One returns an error unless exactly one job, singleton or shard has the name.
func (a *App) One(name string) error {
	if shards := a.Shards(name); shards[0] != name {
		return fmt.Errorf("%s is split into shards, %s to %s: name one of them", name, shards[0], shards[len(shards)-1])
	}
	return Known(name, a.Names())
}
