package draw

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Looks is an upheaval that changes nothing: a program that runs nothing, such as the
// one behind a page, asks for the status of all jobs.
const Looks = "look"

// Sweeps is an operator's removal of the entries of unused locks. A sweep must not affect a lock's
// callers: unlike a deletion, it permits no violation.
const Sweeps = "sweep"

// Unlocks is an upheaval: an operator unlocks a job with this program, and then
// asks for its status.
const Unlocks = "unlock"

// Upheavals are what happens to a whole cluster or its operation, in addition to the faults of
// single machines and requests.
const (
	Downtime    = "downtime"      // no replica is up for a while
	ToolLeases  = "tool leases"   // a tool holds the lease of an entry and claims nothing
	AbortDeploy = "abort deploy"  // a replica with another definition is up for seconds
	DeleteTwice = "delete twice"  // an entry is deleted, and again within a second
	Chase       = "chase"         // a replica is stopped whenever it runs the job
	stopInClaim = "stop in claim" // a replica is stopped while it acquires or claims
	readOnly    = "read only"     // a replica may not write
	Redeploy    = "redeploy"      // all replicas are replaced at once, by the next version, while a tick comes due
	WakeCold    = "wake cold"     // a platform starts a process for each tick
)

// quiet is the one upheaval of a quiet seed, in which nothing else goes wrong;
// empty for any other seed. Promises that hold where nothing else happens are
// judged in those.
func quiet(seed uint64) string {
	kinds := []string{Downtime, AbortDeploy, readOnly, ToolLeases, Chase, stopInClaim, DeleteTwice}
	if seed%10 != 7 {
		return ""
	}
	return kinds[seed/10%uint64(len(kinds))]
}

// Upheavals is the plan of a seed's upheavals.
func Upheavals(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []PlannedFault) {
	r, only := New(seed, 0, "upheavals"), quiet(seed)
	p := planner{r, start, end, 0.4, slots, namesOf(jobs), nil}
	every := func(what string, mean time.Duration, set func(d *PlannedFault)) {
		if only == "" {
			p.every(mean, what, set)
		} else if p.without = 0; only == what {
			p.every(mean/3, what, set)
		}
	}
	every(Downtime, 90*time.Minute, func(d *PlannedFault) { d.For = Pick(r, 30*time.Second, 2*time.Minute, 12*time.Minute, 45*time.Minute) })
	every(ToolLeases, 40*time.Minute, func(d *PlannedFault) { d.For = Pick(r, 20*time.Second, 3*time.Minute, 10*time.Minute) })
	every(AbortDeploy, time.Hour, func(d *PlannedFault) { d.For = r.Between(2*time.Second, time.Minute) })
	every(DeleteTwice, 2*time.Hour, func(d *PlannedFault) { d.For = r.Between(0, time.Second) })
	every(Chase, time.Hour, func(d *PlannedFault) { d.Job = "count" })
	every(stopInClaim, 10*time.Minute, func(d *PlannedFault) {
		d.What, d.Job, d.For = "arm", Pick(r, "claim before", "claim applied", "acquire applied"), Stopping
	})
	every(Redeploy, 40*time.Minute, func(d *PlannedFault) {
		d.At = d.At.Truncate(commonEvery).Add(commonEvery - r.Between(time.Second, 15*time.Second))
		d.For = r.Between(5*time.Second, 40*time.Second)
	})
	every(Unlocks, 8*time.Minute, nil)
	every(WakeCold, 40*time.Minute, func(d *PlannedFault) { d.For = Pick(r, 3*time.Minute, 10*time.Minute) })
	every(Looks, time.Minute, nil)
	return slices.DeleteFunc(p.all, func(d PlannedFault) bool { return !d.At.Before(end) })
}

// commonEvery is how often all schedules that a deploy may choose from have a tick
// in common.
const commonEvery = 6 * time.Minute

// Redefine gives a job another schedule, or makes a singleton of it, or a job of
// a singleton.
func Redefine(defs []trace.Definition, job string, r *Roll) {
	for i := range defs {
		d := &defs[i]
		if d.Name != job || d.Name == trace.Foreign || d.EveryReplica {
			continue
		}
		d.Follows, d.Job.After.Any = "", false
		unlimited(d)
		if d.Every > 0 && r.Chance(0.3) {
			d.Every, d.Schedule, d.Group = 0, "", ""
			continue
		}
		d.Every = Pick(r, 7*time.Minute, 24*time.Hour)
		d.Schedule = "@every " + d.Every.String()
	}
}
