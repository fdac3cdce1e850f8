package draw

import (
	"cmp"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// MailPoints are the points of calls to the queue of alarms, and to its note, at which a simulation crashes a machine.
func MailPoints() (all []string) {
	for _, op := range []string{"put mail", "take mail", "drop mail", "read document", "write document"} {
		for _, when := range []string{" before", " applied", " after"} {
			all = append(all, op+when)
		}
	}
	return all
}

func Grace(r *Roll) time.Duration { return Pick(r, 0, 5*time.Second+Odd, 25*time.Second+Odd) }

// Zero draws the platform of a seed that scales to zero.
func Zero(seed uint64) *trace.Zero {
	r := New(seed, 0, "zero")
	z := &trace.Zero{Kind: Pick(r, trace.AsJob, trace.AsApp, trace.AsFunctions), Poll: Pick(r, 30*time.Second, 30*time.Second, 10*time.Second, time.Minute),
		Start: Pick(r, time.Second, 10*time.Second, 25*time.Second, 90*time.Second), Lead: Pick(r, time.Minute, time.Minute, 20*time.Second, 3*time.Minute),
		Net: Pick(r, 24*time.Hour, 24*time.Hour, 6*time.Hour, time.Hour), CoolDown: Pick(r, 5*time.Minute, 5*time.Minute, 30*time.Second, 15*time.Minute), Hold: 10 * time.Minute}
	z.Stay = max(z.Lead, Pick(r, 20*time.Second, 2*time.Minute, 2*time.Minute, 10*time.Minute))
	if z.Kind == trace.AsApp && r.Chance(0.2) {
		z.Stay = 0 // it does not end by itself
	}
	return z
}

// rarely gives the jobs of a program schedules by which most of them are due hours apart.
func rarely(all []trace.Definition, r *Roll) []trace.Definition {
	key := uint64(*r)
	for i := range all {
		d := &all[i]
		unlimited(d) // limits are made for two days
		if d.EveryReplica {
			continue
		}
		one := New(key, 0, "every", cmp.Or(d.Whole, d.Name))
		d.Every = Pick(one, 5*time.Minute, 10*time.Minute, 20*time.Minute, 30*time.Minute, time.Hour, time.Hour, 2*time.Hour, 6*time.Hour, 12*time.Hour, 24*time.Hour, 7*24*time.Hour)
		if one.Chance(0.03) {
			d.Every = time.Minute
		}
		d.Schedule = "@every " + d.Every.String()
		d.Lengthy = 0
		if long := New(key, 0, "lengthy", cmp.Or(d.Whole, d.Name)); long.Chance(0.3) && d.Group == "" && d.Every >= 20*time.Minute && d.Timeout == 0 && d.Late.Finish == 0 {
			d.Lengthy = Pick(long, 3*time.Minute, 6*time.Minute, 12*time.Minute)
		}
		if d.Late.Start > 0 {
			d.Late.Start = max(d.Late.Start, 10*time.Minute)
		}
		if d.HeartbeatTimeout > 0 {
			d.HeartbeatTimeout = min(d.HeartbeatTimeout, 12*time.Second+2*Odd)
		}
	}
	Follow(all)
	return all
}

// ZeroProgram is the first version of what the replicas of a seed do that scales to zero.
// Alarms are for jobs, so it has no singletons.
func ZeroProgram(seed uint64) []trace.Definition {
	r := New(seed, 0, "program at zero")
	alone, kept := 0, 2+r.Below(4)
	all := slices.DeleteFunc(Program(seed), func(d trace.Definition) bool {
		if d.Every > 0 && d.Follows == "" && d.Shards == 0 && !d.EveryReplica {
			alone++
		}
		return d.Every == 0 && d.Follows == "" || d.Name == trace.Foreign || alone > kept && d.Shards == 0 && !d.EveryReplica
	})
	return rarely(all, r)
}

// Anew draws other schedules for some versions of a program that scales to zero. The rest leave them as they are.
func Anew(before, next []trace.Definition, r *Roll) []trace.Definition {
	if r.Chance(0.5) {
		return rarely(next, r)
	}
	for i := range next {
		unlimited(&next[i])
		n := slices.IndexFunc(before, func(d trace.Definition) bool { return d.Name == next[i].Name })
		if n >= 0 {
			next[i].Every, next[i].Schedule = before[n].Every, before[n].Schedule
		}
	}
	return next
}

// MailFaults are the faults of calls to the queue.
func MailFaults(seed uint64, start, end time.Time, slots int) (all []NetworkFault) {
	r := New(seed, 0, "mail faults")
	for t := start.Add(r.Around(20 * time.Minute)); t.Before(end); t = t.Add(r.Around(40 * time.Minute)) {
		f := NetworkFault{From: t, To: t.Add(r.Around(10 * time.Minute)), Slot: r.Below(slots), Share: r.share()}
		f.Fault = Pick(r, trace.None, trace.None, trace.None, trace.Drop, trace.DropReply, trace.Denied, trace.Late, trace.Slow)
		if r.Chance(0.5) {
			f.Slot = -1
		}
		all = append(all, f)
	}
	return append(all, NetworkFault{From: start, To: end, Slot: -1, Share: r.share() * 0.05})
}

// MailTraps are points of the calls to the queue at which replicas crash, are suspended or are stopped.
func MailTraps(seed uint64, start, end time.Time) (all []PlannedFault) {
	r, points := New(seed, 0, "mail traps"), MailPoints()
	for t := start; t.Before(end); t = t.Add(r.Around(25 * time.Minute)) {
		all = append(all, PlannedFault{At: t, What: "arm", Job: Pick(r, points...), For: Pick(r, 0, 0, Stopping, r.Between(time.Second, 75*time.Second))})
	}
	return all
}
