package check

import (
	"strings"
	"time"
)

// budget: where nothing goes wrong, a tick takes four requests of the replica that runs it:
// acquire, claim, finish and release. Any other replica looks once before it, once more if the
// next tick is far away, and then once in each third of the lease that the run takes. Where the
// clocks of replicas differ they acquire at one time, and the loser looks again: then a tick
// takes two requests more, and not each tick. A job that follows others is looked at when its tick
// comes and when those have ended; its reads of their entries count for none. Renewals, checkpoints and progress come on top,
// and so do looks while a replica holds off.
func budget(l *Log, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, job := range l.index.jobs {
		d := l.latest(job)
		if d == nil || d.Every == 0 || job == Foreign {
			continue
		}
		var all spending
		for _, claim := range l.claimed(job) {
			r := claim.Record
			if from := r.Run.Tick.Add(-d.lead() - time.Second - slack); from.After(l.settled().Add(-Settling/2)) && r.Run.Request == "" && l.attempts(job, r.Run.Tick) == 1 {
				all.add(l.spend(claim, from, from.Add(min(d.Every, time.Minute)), bad))
			}
		}
		all.judge(job, l.settled(), d, bad)
	}
}

// A spending is how many requests some ticks took.
type spending struct {
	ticks, winners, followers, others int // followers: of each tick, together
	thirds                            int // of the lease, that the runs took
}

func (s *spending) add(o spending) {
	s.ticks += o.ticks
	s.winners += o.winners
	s.followers += o.followers
	s.others += o.others
	s.thirds += o.thirds
}

// judge judges the mean of enough ticks. Without a release it may be less: a lease is kept
// for a tick that is near.
func (s *spending) judge(job string, at time.Time, d *Definition, bad report) {
	if s.ticks < enoughTicks {
		return
	}
	looks := 2 * s.followers // one, and half of a lost race
	if d.Every > d.Lease || d.Follows != "" {
		looks += s.followers
	}
	if d.Group != "" { // who has waited for a slot acquires what another has run meanwhile, and looks
		looks += s.followers
	}
	if s.winners > 5*s.ticks {
		bad(at, "%d ticks of %s took %d requests of the replicas that ran them", s.ticks, job, s.winners)
	}
	if s.others > looks+s.thirds*s.followers/s.ticks {
		bad(at, "%d ticks of %s took %d requests of the other replicas, which were %d in all", s.ticks, job, s.others, s.followers)
	}
}

// enoughTicks are those whose mean counts.
const enoughTicks = 6

// attempts is how often a tick was claimed.
func (l *Log) attempts(job string, tick time.Time) (n int) {
	for _, e := range l.claimed(job) {
		if e.Record.Run.Tick.Equal(tick) {
			n++
		}
	}
	return n
}

// runBefore is when the run before a claim ended, or a if that is later. What it
// took until then is not the next tick's: while a backlog is worked off, several
// runs end between the instant at which a tick comes due and its claim.
func (l *Log) runBefore(claim *Event, a time.Time) time.Time {
	for _, r := range l.runs(claim.Job) {
		if r.Token < claim.Record.Token && r.End.After(a) && r.End.Before(claim.Time) {
			a = r.End
		}
	}
	return a
}

// spend counts what a tick takes from a to b.
func (l *Log) spend(claim *Event, a, b time.Time, bad report) (s spending) {
	job, third := claim.Job, time.Duration(claim.Record.Run.Lease)/3
	var took time.Duration
	for _, r := range l.runs(job) {
		if r.Token == claim.Record.Token && r.Cause != "" {
			return s // others may have to settle it
		} else if r.Token == claim.Record.Token {
			took = max(0, r.End.Sub(claim.Time)) // followers count the thirds from the claim, which may be before the tick
		}
	}
	for _, e := range l.of(job, Request) {
		if e.Op == "settle" && e.Sent.After(a) && e.Sent.Before(b) {
			return s // what an operator has ordered is noted
		}
	}
	for _, e := range l.of(job, Said) {
		if strings.HasPrefix(e.Note, "the last runner's lease did not run out") && e.Time.After(a) && e.Time.Before(claim.Time) {
			return s
		}
	}
	s.ticks, s.thirds = 1, int(took/third)
	d := l.latest(job)
	rare := d.Every > d.Lease || d.Follows != "" // the next look is further away than a lease
	for replica, n := range l.requests(job, l.runBefore(claim, a), b) {
		most := 4 + s.thirds
		if rare {
			most++
		}
		if replica == claim.Replica {
			if most = 6; d.Follows != "" {
				most++
			}
			s.winners += n
		} else {
			s.others += n
			s.followers++
		}
		if n > most+2*l.outdated(job, replica, a, b) {
			bad(claim.Time, "tick %s of %s took %d requests of %s, of %d", TimeOfDay(claim.Record.Run.Tick), job, n, replica, most)
		}
	}
	return s
}

// outdated counts the acquisitions of a replica that were refused since the entry had changed: its
// last look was long ago, and it looks again before the race for the tick.
func (l *Log) outdated(job, replica string, a, b time.Time) (n int) {
	for _, e := range l.of(job, Request) {
		if e.Op == "acquire" && e.Replica == replica && e.Status == 412 && !e.Sent.Before(a) && e.Sent.Before(b) {
			n++
		}
	}
	return n
}

// requests counts the requests of each replica for a job that are part of each tick.
func (l *Log) requests(job string, a, b time.Time) map[string]int {
	counts := map[string]int{}
	for _, e := range l.of(job, Request) {
		switch e.Op {
		case "read", "acquire", "claim", "take back", "finish", "release":
			if e.Op == "read" && l.followed(e.Replica, job) {
				continue
			}
			if !e.Sent.Before(a) && e.Sent.Before(b) && e.Replica != Operator {
				counts[e.Replica]++
			}
		}
	}
	return counts
}
