package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// withShards adds a job with shards in a quarter of the seeds, and a singleton with shards in a third.
// Its dice are its own, so the jobs of a seed are what they are without them.
func withShards(all []trace.Definition, seed uint64) []trace.Definition {
	r, room := newRoll(seed, 0, "shards"), roomFor(all)
	if n := min(2+r.below(3), room); r.chance(0.3) && n >= 2 {
		room -= n
		all = append(all, shards(trace.Definition{Name: "split", Every: pick(r, time.Minute, 2*time.Minute), Lease: pick(r, 15*time.Second, 20*time.Second, 30*time.Second),
			MaxTries: pick(r, 0, 2), Missed: pick(r, soloist.RunLatest, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed), Interrupted: pick(r, soloist.Abandon, soloist.Rerun),
			Least: time.Second, Most: pick(r, 10*time.Second, 50*time.Second), Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Deaf}}, n)...)
	}
	if n := min(3+r.below(3), room); r.chance(0.4) && n >= 3 {
		all = append(all, shards(trace.Definition{Name: "parts", Lease: pick(r, 15*time.Second, longestSpread), HeartbeatTimeout: pick(r, 0, 10*time.Second+2*odd), Backoff: pick(r, 0, 0, time.Second, 5*time.Minute),
			Least: time.Minute, Most: time.Hour, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Hangs, trace.Deaf, trace.Silent, trace.Fails}}, n)...)
	}
	return all
}

// roomFor is how many entries more a program may have. From twelve entries on a replica reads and starts
// several jobs at one instant. Of two such calls, nobody can tell which is first.
func roomFor(all []trace.Definition) int {
	const mostEntries = 11
	return mostEntries - len(slices.DeleteFunc(slices.Clone(all), func(d trace.Definition) bool { return d.EveryReplica }))
}

// longestSpread is the longest lease of a singleton with shards. A replica keeps for ten leases what it
// holds beyond its part, and there is to be time after that.
const longestSpread = 20 * time.Second

// shards are the definitions of n shards of a job or singleton.
func shards(d trace.Definition, n int) (all []trace.Definition) {
	if d.Whole, d.Shards = d.Name, n; d.Every > 0 {
		d.Schedule = "@every " + d.Every.String()
	}
	for i, name := range soloist.ShardNames(d.Whole, n) {
		d.Name, d.Shard = name, i
		all = append(all, d)
	}
	return all
}

// shardOf is the definition of the shard that a run is for.
func shardOf(d *trace.Definition, run *soloist.Run) *trace.Definition {
	if d.Shards == 0 {
		return d
	}
	one := *d
	one.Name, one.Shard = soloist.ShardNames(d.Whole, d.Shards)[run.Shard], run.Shard
	return &one
}

// keepAlike gives the shards of a whole one definition: that of the first.
func keepAlike(all []trace.Definition) {
	for i := range all {
		if d := &all[i]; d.Shards > 0 {
			if d.Spread() {
				d.Lease = min(d.Lease, longestSpread)
			}
			name, shard := d.Name, d.Shard
			*d = all[i-shard]
			d.Name, d.Shard = name, shard
		}
	}
}

// keepWhole gives the other shards of a whole the definition of one.
func keepWhole(all []trace.Definition, shard string) {
	n := slices.IndexFunc(all, func(d trace.Definition) bool { return d.Name == shard })
	if n < 0 || all[n].Shards == 0 {
		return
	}
	all[n-all[n].Shard] = all[n]
	first := &all[n-all[n].Shard]
	first.Name, first.Shard = soloist.ShardNames(first.Whole, first.Shards)[0], 0
	keepAlike(all)
}

// ofMember begins the points at which a machine comes by for the member entry of a replica. They are
// apart, as those of locks are.
const ofMember = "member "

// memberFaults are crashes, suspensions and stops of replicas in their calls for their member entries.
func memberFaults(seed uint64, start, end time.Time, jobs []trace.Definition) (all []plannedFault) {
	if !slices.ContainsFunc(jobs, func(d trace.Definition) bool { return d.Spread() }) {
		return nil
	}
	all = slotFaults(seed, start, end, []string{""}, "member faults", ofMember)
	return slices.DeleteFunc(all, func(d plannedFault) bool { return !strings.HasPrefix(d.job, ofMember) })
}
