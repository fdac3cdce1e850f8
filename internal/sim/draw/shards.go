package draw

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// withShards adds a job with shards in a quarter of the seeds, and a singleton with shards in a third.
// Its dice are its own, so the jobs of a seed are what they are without them.
func withShards(all []trace.Definition, seed uint64) []trace.Definition {
	r, room := New(seed, 0, "shards"), roomFor(all)
	if n := min(2+r.Below(3), room); r.Chance(0.3) && n >= 2 {
		room -= n
		all = append(all, Shards(trace.Definition{Every: Pick(r, time.Minute, 2*time.Minute), Job: soloist.Job{Name: "split", Lease: Pick(r, 15*time.Second, 20*time.Second, 30*time.Second),
			Retry: soloist.Retry{MaxTries: Pick(r, 0, 2)}, Late: soloist.Late{Missed: Pick(r, soloist.RunLatest, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed)}, Interrupted: Pick(r, soloist.Abandon, soloist.Rerun)},
			Least: time.Second, Most: Pick(r, 10*time.Second, 50*time.Second), Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Deaf}}, n)...)
	}
	if n := min(3+r.Below(3), room); r.Chance(0.4) && n >= 3 {
		all = append(all, Shards(trace.Definition{Job: soloist.Job{Name: "parts", Lease: Pick(r, 15*time.Second, longestSpread), HeartbeatTimeout: Pick(r, 0, 10*time.Second+2*Odd), Retry: soloist.Retry{Backoff: Pick(r, 0, 0, time.Second, 5*time.Minute)}},
			Least: time.Minute, Most: time.Hour, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Hangs, trace.Deaf, trace.Silent, trace.Fails}}, n)...)
	}
	return all
}

// roomFor is how many entries more a program may have. From twelve entries on a replica reads and starts
// several jobs at one instant. Two such calls have no defined order.
func roomFor(all []trace.Definition) int {
	const mostEntries = 11
	return mostEntries - len(slices.DeleteFunc(slices.Clone(all), func(d trace.Definition) bool { return d.EveryReplica }))
}

// longestSpread is the longest lease of a singleton with shards. A replica keeps for ten leases what it
// holds beyond its part, and there is to be time after that.
const longestSpread = 20 * time.Second

// Shards are the definitions of n shards of a job or singleton.
func Shards(d trace.Definition, n int) (all []trace.Definition) {
	if d.Whole, d.Shards = d.Name, n; d.Every > 0 {
		d.Schedule = "@every " + d.Every.String()
	}
	for i, name := range soloist.ShardNames(d.Whole, n) {
		d.Name, d.Shard = name, i
		all = append(all, d)
	}
	return all
}

// ShardOf is the definition of the shard that a run is for.
func ShardOf(d *trace.Definition, run *soloist.Run) *trace.Definition {
	if d.Shards == 0 {
		return d
	}
	one := *d
	one.Name, one.Shard = soloist.ShardNames(d.Whole, d.Shards)[run.Shard], run.Shard
	return &one
}

// keepAlike gives all shards of a whole the definition of the first.
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

// KeepWhole gives the other shards of a whole the definition of one.
func KeepWhole(all []trace.Definition, shard string) {
	n := slices.IndexFunc(all, func(d trace.Definition) bool { return d.Name == shard })
	if n < 0 || all[n].Shards == 0 {
		return
	}
	all[n-all[n].Shard] = all[n]
	first := &all[n-all[n].Shard]
	first.Name, first.Shard = soloist.ShardNames(first.Whole, first.Shards)[0], 0
	keepAlike(all)
}
