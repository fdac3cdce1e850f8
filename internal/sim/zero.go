package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// drawZero draws the platform of a seed that scales to zero.
func drawZero(seed uint64) *trace.Zero {
	r := newRoll(seed, 0, "zero")
	z := &trace.Zero{Kind: pick(r, trace.AsJob, trace.AsApp, trace.AsFunctions), Poll: pick(r, 30*time.Second, 30*time.Second, 10*time.Second, time.Minute),
		Start: pick(r, time.Second, 10*time.Second, 25*time.Second, 90*time.Second), Lead: pick(r, time.Minute, time.Minute, 20*time.Second, 3*time.Minute),
		Net: pick(r, 24*time.Hour, 24*time.Hour, 6*time.Hour, time.Hour), CoolDown: pick(r, 5*time.Minute, 5*time.Minute, 30*time.Second, 15*time.Minute), Hold: 10 * time.Minute}
	z.Stay = max(z.Lead, pick(r, 20*time.Second, 2*time.Minute, 2*time.Minute, 10*time.Minute))
	if z.Kind == trace.AsApp && r.chance(0.2) {
		z.Stay = 0 // it does not end by itself
	}
	return z
}

// rarely gives the jobs of a program schedules by which most of them are due hours apart.
func rarely(all []trace.Definition, r *roll) []trace.Definition {
	key := uint64(*r)
	for i := range all {
		d := &all[i]
		unlimited(d) // limits are those of two days
		if d.EveryReplica {
			continue
		}
		one := newRoll(key, 0, "every", cmp.Or(d.Whole, d.Name))
		d.Every = pick(one, 5*time.Minute, 10*time.Minute, 20*time.Minute, 30*time.Minute, time.Hour, time.Hour, 2*time.Hour, 6*time.Hour, 12*time.Hour, 24*time.Hour, 7*24*time.Hour)
		if one.chance(0.03) {
			d.Every = time.Minute
		}
		d.Schedule = "@every " + d.Every.String()
		d.Lengthy = 0
		if long := newRoll(key, 0, "lengthy", cmp.Or(d.Whole, d.Name)); long.chance(0.3) && d.Group == "" && d.Every >= 20*time.Minute && d.Timeout == 0 && d.FinishBy == 0 {
			d.Lengthy = pick(long, 3*time.Minute, 6*time.Minute, 12*time.Minute)
		}
		if d.StartingDeadline > 0 {
			d.StartingDeadline = max(d.StartingDeadline, 10*time.Minute)
		}
		if d.HeartbeatTimeout > 0 {
			d.HeartbeatTimeout = min(d.HeartbeatTimeout, 12*time.Second+2*odd)
		}
	}
	follow(all)
	return all
}

// zeroProgram is the first version of what the replicas of a seed do that scales to zero.
// Alarms are for jobs, so it has no singletons.
func zeroProgram(seed uint64) []trace.Definition {
	r := newRoll(seed, 0, "program at zero")
	alone, kept := 0, 2+r.below(4)
	all := slices.DeleteFunc(Program(seed), func(d trace.Definition) bool {
		if d.Every > 0 && d.Follows == "" && d.Shards == 0 && !d.EveryReplica {
			alone++
		}
		return d.Every == 0 && d.Follows == "" || d.Name == trace.Foreign || alone > kept && d.Shards == 0 && !d.EveryReplica
	})
	return rarely(all, r)
}

// anew draws other schedules for some versions of a program that scales to zero. The rest leave them as they are.
func anew(before, next []trace.Definition, r *roll) []trace.Definition {
	if r.chance(0.5) {
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

// Kinds of trouble that the queue of alarms makes.
const (
	losesMail   = "loses a message"
	delaysMail  = "shows a message late"
	repeatsMail = "shows a message again"
	garbageMail = "has garbage"
	othersMail  = "has a message of another app"
	floodMail   = "has many stale messages"
)

// mailFaults is what befalls calls to the queue.
func mailFaults(seed uint64, start, end time.Time, slots int) (all []NetworkFault) {
	r := newRoll(seed, 0, "mail faults")
	for t := start.Add(r.around(20 * time.Minute)); t.Before(end); t = t.Add(r.around(40 * time.Minute)) {
		f := NetworkFault{From: t, To: t.Add(r.around(10 * time.Minute)), Slot: r.below(slots), Share: r.share()}
		f.Fault = pick(r, trace.None, trace.None, trace.None, trace.Drop, trace.DropReply, trace.Denied, trace.Late, trace.Slow)
		if r.chance(0.5) {
			f.Slot = -1
		}
		all = append(all, f)
	}
	return append(all, NetworkFault{From: start, To: end, Slot: -1, Share: r.share() * 0.05})
}

// troubleMail has the queue make trouble until the faults end.
func (p *platform) troubleMail() {
	r := newRoll(p.Seed, 0, "trouble of mail")
	if r.chance(0.15) {
		return
	}
	defer p.dropOthers()
	for p.idle(r.around(40 * time.Minute)) {
		m, ok := p.box.any(r)
		what := pick(r, losesMail, losesMail, delaysMail, delaysMail, repeatsMail, repeatsMail, garbageMail, othersMail, floodMail)
		late := r.around(10 * time.Minute)
		switch {
		case what == garbageMail:
			p.box.put(trace.Platform, []byte(pick(r, "", "hello", "{", "null", "\xff\xfe", `{"schema":99,"app":"sim"}`)), 0)
		case what == othersMail:
			p.others = append(p.others, p.box.put(trace.Platform, p.letter("other", late), 0).id)
		case what == floodMail:
			for range 1 + r.below(150) {
				p.box.put(trace.Platform, p.letter("sim", -late), 0)
			}
		case !ok:
		case what == losesMail:
			p.box.lose(m.id)
		case what == delaysMail && m.visible.After(time.Now()):
			p.box.show(m.id, m.visible.Add(late))
		case what == repeatsMail:
			again := p.box.put(trace.Platform, m.body, max(0, time.Until(m.visible)+late))
			if slices.Contains(p.others, m.id) {
				p.others = append(p.others, again.id)
			}
		}
	}
}

// dropOthers has an operator delete the messages of another app, as the log of each replica asks for: they keep the platform
// starting replicas.
func (p *platform) dropOthers() {
	for _, id := range p.others {
		p.box.lose(id)
	}
}

// letter is the body of an alarm.
func (p *platform) letter(app string, in time.Duration) []byte {
	at := time.Now().Add(in).UTC()
	b, err := json.Marshal(map[string]any{"schema": 1, "app": app, "id": "stale", "at": at, "tick": at})
	if err != nil {
		panic(err)
	}
	return b
}

// mailTraps are points of the calls to the queue at which replicas crash, are suspended or are stopped.
func mailTraps(seed uint64, start, end time.Time) (all []plannedFault) {
	r, points := newRoll(seed, 0, "mail traps"), MailPoints()
	for t := start; t.Before(end); t = t.Add(r.around(25 * time.Minute)) {
		all = append(all, plannedFault{at: t, what: "arm", job: pick(r, points...), d: pick(r, 0, 0, stopping, r.between(time.Second, 75*time.Second))})
	}
	return all
}

// planAtZero is the plan of a cluster that scales to zero: no replica of an aborted deploy is left behind, which nobody would
// be up to take a job back from, and replicas meet trouble in their calls to the queue.
func (c *Cluster) planAtZero(all []plannedFault, start time.Time) []plannedFault {
	if c.platform == nil {
		return all
	}
	all = slices.DeleteFunc(all, func(d plannedFault) bool { return d.what == abortDeploy || d.what == wakeCold })
	return append(all, mailTraps(c.Seed, start, c.end)...)
}

// ring has an operator, or who asks for a run by hand, wake a cluster up that scales to zero. The end of ctx ends that.
func (c *Cluster) ring(ctx context.Context, job string) {
	if c.platform == nil {
		return
	}
	m := newMachine(trace.Orderer+" "+trace.TimeOfDay(time.Now()), -1, NewClock(0, 0), c.log, &traps{})
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	e := trace.Event{What: trace.Rung, Job: job, Replica: trace.Orderer}
	if c.platform.clock(&soloist.Scheduler{}, m, 0).Ring(ctx) != nil {
		e.Note = "failed"
	}
	c.log.Add(e)
}
