package draw

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// withFollowers adds jobs that follow others, in half of the seeds: a single follower, a chain,
// or a follower of two jobs.
func withFollowers(all []trace.Definition, seed uint64) []trace.Definition {
	r := New(seed, 0, "after")
	if !r.Chance(0.5) {
		return all
	}
	first := Pick(r, "often", "minute", "minute", "count", "drawn")
	all = append(all, follower("then", first, r))
	switch last := r.Below(3); {
	case roomFor(all) < 1:
	case last == 0:
		all = append(all, follower("last", "then", r))
	case last == 1:
		all = append(all, follower("last", "then, "+first, r))
	}
	Follow(all)
	return all
}

func follower(name, after string, r *Roll) trace.Definition {
	return trace.Definition{Follows: after, Job: soloist.Job{Name: name, After: soloist.After{Any: r.Chance(0.25)},
		Lease: Pick(r, 15*time.Second, 20*time.Second, 30*time.Second),
		Late: soloist.Late{Start: Pick(r, 0, 0, 5*time.Second, 10*time.Minute),
			Missed: Pick(r, soloist.RunLatest, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed)},
		Interrupted: Pick(r, soloist.Abandon, soloist.Abandon, soloist.Rerun), Paused: r.Chance(0.03)},
		Least: 20 * time.Millisecond, Most: Pick(r, time.Second, 10*time.Second, 100*time.Second),
		Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Nothing, trace.Deaf, trace.Exits}}
}

// Follow gives each follower the ticks of the jobs before it. A follower of a job without
// ticks, or of two jobs with different schedules, gets a schedule of its own.
func Follow(all []trace.Definition) {
	for i := range all {
		d := &all[i]
		if d.Follows == "" {
			continue
		}
		d.Every = 0
		unlimited(d)
		for name := range strings.SplitSeq(d.Follows, ", ") {
			n := slices.IndexFunc(all[:i], func(o trace.Definition) bool { return o.Name == name })
			if n < 0 || all[n].Every == 0 || all[n].EveryReplica || d.Every > 0 && all[n].Schedule != d.Schedule {
				d.Follows, d.Job.After.Any, d.Every, d.Schedule, d.Open = "", false, 3*time.Minute, "@every 3m", nil
				break
			}
			d.Every, d.Schedule, d.Open = all[n].Every, all[n].Schedule, all[n].Open
		}
	}
}

// Lineage returns a job and those that it follows, the job first.
func Lineage(all []trace.Definition, d trace.Definition) (jobs []trace.Definition) {
	jobs = []trace.Definition{d}
	for _, name := range d.Before() {
		if n := slices.IndexFunc(all, func(o trace.Definition) bool { return o.Name == name }); n >= 0 {
			for _, o := range Lineage(all, all[n]) {
				if !slices.ContainsFunc(jobs, func(j trace.Definition) bool { return j.Name == o.Name }) {
					jobs = append(jobs, o)
				}
			}
		}
	}
	return jobs
}
