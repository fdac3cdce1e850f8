package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/near"
)

// Jobs are the names of the jobs, which have settings of their own.
func (a *App) Jobs() (names []string) {
	for _, j := range a.Scheduler.Jobs {
		names = append(names, j.Name)
	}
	return names
}

// Wholes are the names of jobs and singletons, as the program has them.
func (a *App) Wholes() []string {
	names := a.Jobs()
	for _, g := range a.Scheduler.Singletons {
		names = append(names, g.Name)
	}
	return names
}

// Names are the names of jobs and singletons; if they have shards, the names of the shards.
func (a *App) Names() (names []string) {
	for _, j := range a.Scheduler.Jobs {
		names = append(names, soloist.ShardNames(j.Name, j.Shards)...)
	}
	for _, g := range a.Scheduler.Singletons {
		names = append(names, soloist.ShardNames(g.Name, g.Shards)...)
	}
	return names
}

// Job finds a job by its name, or by the name of one of its shards.
func (a *App) Job(name string) (soloist.Job, error) {
	name = a.Whole(name)
	for _, j := range a.Scheduler.Jobs {
		if j.Name == name {
			return j, nil
		}
	}
	return soloist.Job{}, Known(name, a.Jobs())
}

// Paused reports whether this program's settings pause a job.
func (a *App) Paused(name string) bool { return a.paused[name] }

// pausedOf are the names of the jobs that are paused. It is a map since each refresh of
// a list of many jobs asks for each of them.
func pausedOf(jobs []soloist.Job) map[string]bool {
	paused := map[string]bool{}
	for i := range jobs {
		for _, name := range soloist.ShardNames(jobs[i].Name, jobs[i].Shards) {
			if jobs[i].Paused {
				paused[name] = true
			}
		}
	}
	return paused
}

// LimitOf is how long a run of a job may take; zero: that is not known.
func (a *App) LimitOf(name string) time.Duration { return a.limits[name] }

// limitsOf are the time-outs of jobs with one try. Of several tries the record does not say when the last one began.
func limitsOf(jobs []soloist.Job) map[string]time.Duration {
	limits := map[string]time.Duration{}
	for i := range jobs {
		for _, name := range soloist.ShardNames(jobs[i].Name, jobs[i].Shards) {
			if jobs[i].Timeout > 0 && jobs[i].Retry.MaxTries <= 1 {
				limits[name] = jobs[i].Timeout
			}
		}
	}
	return limits
}

// EveryReplica reports whether each replica runs a job. Such a job has no lease.
func (a *App) EveryReplica(name string) bool {
	return slices.ContainsFunc(a.Scheduler.Jobs, func(j soloist.Job) bool { return j.Name == name && j.EveryReplica })
}

// WithoutLease is why nothing can be done about the lease of a job.
func WithoutLease(job string) string { return job + " runs on each replica: it has no lease" }

// LeaseOf is the lease that this program gives a job or singleton.
func (a *App) LeaseOf(name string) time.Duration {
	name = a.Whole(name)
	for _, j := range a.Scheduler.Jobs {
		if j.Name == name {
			return j.Lease
		}
	}
	for _, g := range a.Scheduler.Singletons {
		if g.Name == name {
			return g.Lease
		}
	}
	return 0
}

// Known returns an error that lists the names if name is none of them.
func Known(name string, names []string) error {
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no job %q: want one of %s%s", name, format.Join(names...), DidYouMean("; ", name, names))
}

// DidYouMean ends the error about an unknown name if one of those known is near.
func DidYouMean(separator, name string, known []string) string {
	if meant := near.Name(name, known); meant != "" {
		return separator + "did you mean " + meant + "?"
	}
	return ""
}
