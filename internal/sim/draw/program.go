package draw

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Program is the first version of what the replicas of a seed do: a job of each
// pace and a singleton; in every tenth seed, one of each other kind too.
func Program(seed uint64) []trace.Definition {
	all := []trace.Definition{
		{Every: 10 * time.Second, Job: soloist.Job{Name: "often", Schedule: "*/10 * * * * *", Lease: 15 * time.Second},
			Least: 20 * time.Millisecond, Most: 900 * time.Millisecond, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Panics}},
		{Every: time.Minute, Job: soloist.Job{Name: "minute", Schedule: "* * * * *", Lease: 30 * time.Second, Interrupted: soloist.Rerun, HeartbeatTimeout: 12 * time.Second, Retry: soloist.Retry{MaxTries: 2}},
			Least: time.Second, Most: 25 * time.Second, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Later, trace.Forever, trace.Silent, trace.Deaf, trace.Nothing, trace.Exits}},
		{Every: 5 * time.Minute, Job: soloist.Job{Name: "count", Schedule: "*/5 * * * *", Lease: 15 * time.Second, Interrupted: soloist.Rerun},
			Least: 20 * time.Second, Most: 90 * time.Second, Saves: true},
		{Every: time.Hour, Job: soloist.Job{Name: "hourly", Schedule: "@hourly", Lease: 60 * time.Second, Late: soloist.Late{Start: 20 * time.Minute, Missed: soloist.SkipMissed}},
			Least: time.Minute, Most: 10 * time.Minute, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Deaf}},
		{Job: soloist.Job{Name: "leader", Lease: 30 * time.Second, HeartbeatTimeout: 10 * time.Second},
			Least: time.Minute, Most: time.Hour, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Hasty, trace.Hangs, trace.Deaf, trace.Silent}},
	}
	if seed%10 == 0 {
		all = append(all, others()...)
	}
	drawStalls(all, New(seed, 0, "stalls"))
	all = vary(all, New(seed, 0, "program"))
	drawAhead(all, seed)
	drawGroup(all, seed)
	all = withFollowers(all, seed)
	drawFinishBy(all, New(seed, 0, "finish by"))
	all = withShards(all, seed)
	drawOverlap(all, seed)
	drawBeats(all, New(seed, 0, "beats"))
	Redate(all, New(seed, 0, "closed"))
	limitTicks(all, seed)
	return all
}

func others() []trace.Definition {
	return []trace.Definition{
		{Every: time.Minute, Job: soloist.Job{Name: "abandon", Schedule: "* * * * *", Lease: 20 * time.Second, HeartbeatTimeout: 12 * time.Second, Retry: soloist.Retry{MaxTries: 2}},
			Least: time.Second, Most: 25 * time.Second, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Later, trace.Forever, trace.Silent, trace.Deaf, trace.Nothing, trace.Exits}},
		{Every: 2 * time.Minute, Job: soloist.Job{Name: "rerun", Schedule: "@every 2m", Lease: 30 * time.Second, Interrupted: soloist.Rerun, Late: soloist.Late{Missed: soloist.RunAll},
			HeartbeatTimeout: 20 * time.Second}, Least: time.Second, Most: 50 * time.Second, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Silent, trace.Panics, trace.Deaf}},
		{Every: 2 * time.Minute, Job: soloist.Job{Name: "slow", Schedule: "*/2 * * * *", Lease: 15 * time.Second, Timeout: 4 * time.Minute},
			Least: 10 * time.Second, Most: 5 * time.Minute, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Hangs, trace.Deaf, trace.Fails}},
		{Every: time.Minute, Job: soloist.Job{Name: trace.Foreign, Schedule: "* * * * *", Lease: 15 * time.Second}},
	}
}

// Next is a later version of a program: leases change, one schedule, and when a tick is claimed.
func Next(old []trace.Definition, r *Roll) []trace.Definition {
	v := slices.Clone(old)
	for i := range v {
		d := &v[i]
		if d.Name == trace.Foreign {
			continue
		}
		if r.Chance(0.4) && !d.EveryReplica {
			d.Lease = []time.Duration{15, 20, 30, 60}[r.Below(4)] * time.Second
		}
		if d.Every > 0 {
			d.Paused = r.Chance(0.15)
			d.ClaimAhead = r.Chance(0.5) && !d.EveryReplica && d.Follows == "" && d.Group == ""
		}
		if d.Name == "rerun" || d.Name == "minute" || d.Name == "abandon" {
			d.Every = []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}[r.Below(3)]
			d.Schedule = "@every " + d.Every.String()
		}
	}
	Follow(v)
	nextGroup(v, r)
	nextOverlap(v, r)
	keepAlike(v)
	drawBeats(v, r)
	return v
}
