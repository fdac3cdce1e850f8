package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/near"
)

// A catalog finds jobs and singletons by their names. The zero catalog has none.
type catalog struct {
	all    []*piece          // in the order of the program, jobs first
	byName map[string]*piece // also by the names of shards: a list of many jobs asks for each of them
}

// A piece is a job or a singleton.
type piece struct {
	name   string
	shards []string // under which it runs: its own name if it has none
	lease  *time.Duration
	job    *soloist.Job // nil: a singleton
	work   soloist.Work
}

func catalogOf(s *soloist.Scheduler) catalog {
	c := catalog{byName: map[string]*piece{}}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		c.all = append(c.all, &piece{j.Name, soloist.ShardNames(j.Name, j.Shards), &j.Lease, j, j})
	}
	for i := range s.Singletons {
		g := &s.Singletons[i]
		c.all = append(c.all, &piece{g.Name, soloist.ShardNames(g.Name, g.Shards), &g.Lease, nil, g})
	}
	for _, p := range slices.Backward(c.all) {
		for _, name := range append(p.shards, p.name) {
			c.byName[name] = p
		}
	}
	return c
}

// Jobs are the names of the jobs, which have settings of their own.
func (c *catalog) Jobs() (names []string) {
	for _, p := range c.all {
		if p.job != nil {
			names = append(names, p.name)
		}
	}
	return names
}

// Wholes are the names of jobs and singletons, as the program has them.
func (c *catalog) Wholes() (names []string) {
	for _, p := range c.all {
		names = append(names, p.name)
	}
	return names
}

// Names are the names of jobs and singletons; if they have shards, the names of the shards.
func (c *catalog) Names() (names []string) {
	for _, p := range c.all {
		names = append(names, p.shards...)
	}
	return names
}

// Shards are the names under which a job or singleton of this program runs: its shards' names, or
// its own. A name that is none of the program's stands for itself.
func (c *catalog) Shards(name string) []string {
	if p := c.byName[name]; p != nil && p.name == name {
		return slices.Clone(p.shards)
	}
	return []string{name}
}

// Whole is the name of the job or singleton that a name is a shard of; any other name is itself.
func (c *catalog) Whole(name string) string {
	if p := c.byName[name]; p != nil {
		return p.name
	}
	return name
}

// One returns an error unless exactly one job, singleton or shard has the name.
func (c *catalog) One(name string) error {
	if shards := c.Shards(name); shards[0] != name {
		return fmt.Errorf("%s is split into shards, %s to %s: name one of them", name, shards[0], shards[len(shards)-1])
	}
	return Known(name, c.Names())
}

// find is the job that has a name, or has a shard with that name; the zero Job: there is none.
func (c *catalog) find(name string) (j soloist.Job) {
	if p := c.byName[name]; p != nil && p.job != nil {
		j = *p.job
	}
	return j
}

// Job finds a job by its name, or by the name of one of its shards.
func (c *catalog) Job(name string) (soloist.Job, error) {
	j := c.find(name)
	if j.Name == "" {
		return j, Known(name, c.Jobs())
	}
	return j, nil
}

// SettingsOf are the settings of a job or singleton, or of one that a name is a shard of, without those of when it has ticks.
func (c *catalog) SettingsOf(name string) []Setting {
	if p := c.byName[name]; p != nil {
		return given(p.work)
	}
	return nil
}

// Paused reports whether this program's settings pause a job.
func (c *catalog) Paused(name string) bool { return c.find(name).Paused }

// EveryReplica reports whether each replica runs a job. Such a job has no lease.
func (c *catalog) EveryReplica(name string) bool { return c.find(name).EveryReplica }

// LimitOf is how long a run of a job may take; zero: that is not known. Of several tries the record does not say when the last
// one began.
func (c *catalog) LimitOf(name string) time.Duration {
	if j := c.find(name); j.Retry.MaxTries <= 1 {
		return j.Timeout
	}
	return 0
}

// LeaseOf is the lease that this program gives a job or singleton.
func (c *catalog) LeaseOf(name string) time.Duration {
	if p := c.byName[name]; p != nil {
		return *p.lease
	}
	return 0
}

// WithoutLease is why nothing can be done about the lease of a job.
func WithoutLease(job string) string { return job + " runs on each replica: it has no lease" }

// mostListed is how many names an error lists; of more, it has the first few.
const mostListed = 30

// Known returns an error that lists the names if name is none of them.
func Known(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	var once []string // the caller may have a name twice: of a part, and of the whole
	had := map[string]bool{}
	for _, known := range names {
		if !had[known] {
			had[known], once = true, append(once, known)
		}
	}
	list := format.Join(once...)
	if len(once) > mostListed {
		list = format.Names(once)
	}
	return fmt.Errorf("there is no job %q: want one of %s%s", name, list, DidYouMean("; ", name, names))
}

// DidYouMean ends the error about an unknown name if one of those known is near.
func DidYouMean(separator, name string, known []string) string {
	if meant := near.Name(name, known); meant != "" {
		return separator + "did you mean " + meant + "?"
	}
	return ""
}
