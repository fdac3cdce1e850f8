package check

import (
	"cmp"
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
	if healed.IsZero() || l.Zero != nil { // who hands over reads all entries once more
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
	if s.ticks < enoughTicks || d.brief() {
		return
	}
	looks := 2 * s.followers // one, and half of a lost race
	if d.Every > d.Lease || d.Follows != "" {
		looks += s.followers
	}
	if d.Group != "" { // who has waited for a slot acquires what another has run meanwhile, and looks
		looks += s.followers
	}
	most := 5
	if d.Follows != "" { // who follows looks at its own entry too, when a job before it has ended
		most++
	}
	if s.winners > most*s.ticks {
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
	job, third := claim.Job, cmp.Or(claim.beats(), time.Duration(claim.Record.Run.Lease))/3
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
	waits := l.looksForSlot(d, claim, b)
	for replica, n := range l.requests(job, l.runBefore(claim, a), b) {
		most := 4 + s.thirds
		if rare {
			most++
		}
		if l.listsJobs(replica) { // the looks of its jobs come together, whenever each of them was looked at before
			most++
		}
		if replica == claim.Replica {
			if most = 6; d.Follows != "" {
				most++
			}
			if d.Group != "" { // it looks at its own entry too, while it waits for a slot
				most += int(claim.Time.Sub(claim.Record.Run.Tick) / third)
			}
			s.winners += n
		} else {
			most += waits
			s.others += n
			s.followers++
		}
		if claim.beats() > 0 && (d.brief() || claim.beats()/6 < roundTrip) { // beats that time out are read back
			continue
		}
		if n > most+2*l.furtherRaces(job, replica, a, b) {
			bad(claim.Time, "tick %s of %s took %d requests of %s, of %d", TimeOfDay(claim.Record.Run.Tick), job, n, replica, most)
		}
	}
	return s
}

// looksForSlot is how often a replica that does not get the claim looks at the entry until b, while its
// group is full: as often as its patience with a slot ends. The group may be full for a whole lease, if who
// has a slot has to hold off.
func (l *Log) looksForSlot(d *Definition, claim *Event, b time.Time) int {
	if d.Group == "" {
		return 0
	}
	full := l.fullUntil(d, claim.Record.Run.Tick, claim.Time)
	return int(max(0, earlier(full, b).Sub(claim.Record.Run.Tick)) / groupPatience)
}

// listsJobs reports whether a replica has so many jobs that it looks at them by listings.
func (l *Log) listsJobs(replica string) bool {
	n := 0
	for _, d := range l.Fleet[replica] {
		if !d.EveryReplica {
			n++
		}
	}
	return n >= 12
}

// furtherRaces counts the acquisitions of a replica that were refused, but for one that another replica was before: each
// costs the call and another look. Where the entry had changed its last look was long ago. It may lose one race as the lead
// begins, and one at the tick.
func (l *Log) furtherRaces(job, replica string, a, b time.Time) (n int) {
	lost := 0
	for _, e := range l.of(job, Request) {
		if e.Op != "acquire" || e.Replica != replica || e.Sent.Before(a) || !e.Sent.Before(b) {
			continue
		}
		switch e.Status {
		case 412:
			n++
		case 409:
			lost++
		}
	}
	return n + max(0, lost-1)
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
