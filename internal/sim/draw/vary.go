package draw

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// vary draws the fields of some jobs, and adds two jobs: the seed draws nearly every field of the
// first, and the second runs on each replica.
func vary(all []trace.Definition, r *Roll) []trace.Definition {
	for i := range all {
		switch d := &all[i]; d.Name {
		case "count":
			d.MaxCheckpoint = Pick(r, 0, 200, 3000)
			d.Padding = r.Below(max(d.MaxCheckpoint, 200) - 40)
		case "leader":
			d.HeartbeatTimeout = Pick(r, 3*time.Second, 10*time.Second, 10*time.Second, 2*time.Minute) + 2*Odd
			d.Retry.Backoff, d.MaxCheckpoint = Pick(r, 0, time.Second, time.Minute), Pick(r, 0, 100)
			drawPulse(d, r)
		}
	}
	return append(all, drawn(r), trace.Definition{Every: time.Minute, Job: soloist.Job{Name: "here", Schedule: "* * * * *", EveryReplica: true,
		Timeout: Pick(r, 0, 20*time.Second+Odd), Retry: soloist.Retry{MaxTries: Pick(r, 0, 2), Backoff: Pick(r, 0, time.Second)}},
		Least: time.Second, Most: 30 * time.Second, Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Panics, trace.Deaf, trace.Stubborn}})
}

// drawStalls has some runs of the most frequent job stall, in half of the seeds.
// The next tick comes due before they do.
func drawStalls(all []trace.Definition, r *Roll) {
	d := &all[0]
	if d.Every > 0 && r.Chance(0.5) {
		d.HeartbeatTimeout = d.Every + 2*time.Second + 2*Odd
		d.Behaviors = append(slices.Repeat(d.Behaviors, 2), trace.Silent)
	}
}

// drawn is a job with a starting deadline of any kind: none, shorter than its
// lease, a few leases, longer than its period.
func drawn(r *Roll) trace.Definition {
	d := trace.Definition{Every: Pick(r, time.Minute, 2*time.Minute, 3*time.Minute), Job: soloist.Job{Name: "drawn", Lease: Pick(r, 15*time.Second, 20*time.Second, 30*time.Second),
		Timeout:          Pick(r, 0, 30*time.Second+Odd, 2*time.Minute+Odd),
		HeartbeatTimeout: Pick(r, 0, 0, time.Second+2*Odd, 12*time.Second+2*Odd, 100*time.Second+2*Odd),
		Retry:            soloist.Retry{MaxTries: Pick(r, 0, 1, 3), Backoff: Pick(r, 0, time.Second, 20*time.Second)},
		Late: soloist.Late{Start: Pick(r, 0, 5*time.Second, 70*time.Second, 10*time.Minute),
			Missed: Pick(r, soloist.RunLatest, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed)},
		Interrupted: Pick(r, soloist.Abandon, soloist.Rerun, soloist.Rerun), Paused: r.Chance(0.05)},
		Least: time.Second, Most: Pick(r, 10*time.Second, 100*time.Second),
		Behaviors: []trace.Behavior{trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fine, trace.Fails, trace.Later, trace.Nothing, trace.Silent, trace.Tardy, trace.Tardy, trace.Deaf, trace.Stubborn}}
	d.Schedule = "@every " + d.Every.String()
	drawPulse(&d, r)
	d.Retry.PauseAfter = Pick(r, 0, 0, 1, 2, 4)
	return d
}

// drawFinishBy says of some jobs by when their ticks have to have succeeded: before most runs end, or
// long after the history has lost the outcomes.
func drawFinishBy(all []trace.Definition, r *Roll) {
	for i := range all {
		if d := &all[i]; r.Chance(0.5) && d.Every > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			d.Late.Finish = max(time.Second, Pick(r, d.Every/10, d.Every/2, d.Every, 2*d.Every, 3*d.Every, 30*d.Every)) + 5*Odd
		}
	}
}

func drawPulse(d *trace.Definition, r *Roll) {
	d.Pulse = Pick(r, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.NoPulse, trace.Steady, trace.Flaps, trace.Weak, trace.Frozen, trace.Erratic)
	if d.Pulse != trace.NoPulse {
		d.HealthCheck.Interval = Pick(r, 10*time.Second, 2*time.Second, 20*time.Second) + 3*Odd
		d.HealthCheck.FailureThreshold = Pick(r, 0, 1, 2, 5)
	}
}
