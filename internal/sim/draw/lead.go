package draw

import (
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// InLead is what happens to a cluster in the last seconds before a tick of a job, or just
// after it, when a replica has the job's lease, or has claimed the tick.
const InLead = "in the lead"

// drawAhead draws which jobs claim their ticks ahead, and how often the most frequent job is
// due: more often than its lease is acquired before a tick, in some seeds.
func drawAhead(all []trace.Definition, seed uint64) {
	r := New(seed, 0, "ahead")
	if d := &all[0]; r.Chance(0.4) {
		d.Every = Pick(r, time.Second, 2*time.Second, 5*time.Second, 5*time.Second)
		d.Schedule = "@every " + d.Every.String()
		if d.HeartbeatTimeout > 0 {
			d.HeartbeatTimeout = 12*time.Second + 2*Odd
		}
	}
	for i := range all {
		if d := &all[i]; d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			d.ClaimAhead = r.Chance(0.6)
		}
	}
}

// DeedsInLead is the plan of a seed for the last seconds before ticks, in half of the seeds.
func DeedsInLead(seed uint64, start, end time.Time, slots int, jobs []trace.Definition) (all []PlannedFault) {
	r := New(seed, 0, InLead)
	if quiet(seed) != "" || !r.Chance(0.6) {
		return nil
	}
	for t := start.Add(r.Around(time.Minute)); t.Before(end); t = t.Add(r.Around(90 * time.Second)) {
		d := &jobs[r.Below(len(jobs))]
		if d.Every == 0 || d.EveryReplica || d.Name == trace.Foreign || d.Every > 5*time.Minute && r.Chance(0.5) {
			d = &jobs[0]
		}
		at := d.After(t.Add(3 * time.Second)).Add(r.Between(-2500*time.Millisecond, 500*time.Millisecond))
		one := PlannedFault{At: at, What: InLead, Slot: r.Below(slots), Job: d.Name, For: time.Duration(r.Next() >> 1)}
		if at.After(start) && at.Before(end) {
			all = append(all, one)
		}
	}
	return all
}
