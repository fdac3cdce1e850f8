package check

import (
	"strings"
	"time"
)

// budget: where nothing goes wrong, a tick takes four requests of the replica
// that runs it: acquire, claim, finish and release. It may have looked before,
// and have acquired too early by its clock, and released. Any other replica may
// have done so too, acquire too late, look after that, and then once in each
// third of the lease that the run takes. Renewals, checkpoints and progress come
// on top, and so do looks while somebody holds off.
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
		for _, claim := range l.claimed(job) {
			r := claim.Record
			if from := r.Run.Tick.Add(-time.Second); from.After(l.settled().Add(-Settling/2)) && r.Run.Request == "" && l.attempts(job, r.Run.Tick) == 1 {
				l.spend(claim, from, from.Add(min(d.Every, time.Minute)), bad)
			}
		}
	}
}

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
func (l *Log) spend(claim *Event, a, b time.Time, bad report) {
	job, third := claim.Job, time.Duration(claim.Record.Run.Lease)/3
	var took time.Duration
	for _, r := range l.runs(job) {
		if r.Token == claim.Record.Token && r.Cause != "" {
			return // others may have to settle it
		} else if r.Token == claim.Record.Token {
			took = r.End.Sub(claim.Time)
		}
	}
	for _, e := range l.of(job, Said) {
		if strings.HasPrefix(e.Note, "the last runner's lease did not run out") && e.Time.After(a) && e.Time.Before(claim.Time) {
			return
		}
	}
	a = l.runBefore(claim, a)
	counts := map[string]int{}
	for _, e := range l.of(job, Request) {
		switch e.Op {
		case "read", "acquire", "claim", "settle", "finish", "release":
			if !e.Sent.Before(a) && e.Sent.Before(b) && e.Replica != Operator {
				counts[e.Replica]++
			}
		}
	}
	for replica, n := range counts {
		most := 6 + int(took/third)
		if replica == claim.Replica {
			most = 7
		}
		if n > most {
			bad(claim.Time, "tick %s of %s took %d requests of %s, of %d", TimeOfDay(claim.Record.Run.Tick), job, n, replica, most)
		}
	}
}
