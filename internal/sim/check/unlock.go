package check

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// The invariants about what is said of a run that an operator has ended.

// unlocked: once an unlock has ended the lease of a run, a status does not say
// that it runs but until when others wait, which is a lease at least, that of beats where it beats; and the outcome
// of that run names who unlocked it. No other outcome does.
func unlocked(l *Log, bad report) {
	for _, job := range l.index.jobs {
		ended := map[int64]*Event{} // by the token of the run
		for _, u := range l.of(job, Unlocked) {
			b, run := l.endedBy(u)
			if run == nil {
				continue
			}
			if u.Cause == "" && !l.settledSince(job, b) {
				ended[run.Token] = u
			}
			if u.Cause != "" || l.wroteBetween(job, b.Time, u.Heard) {
				continue
			}
			lease := cmp.Or(run.Beats(), time.Duration(run.Run.Lease))
			soonest, latest := b.Time.Add(lease-2*time.Second), b.Time.Add(lease+longestWait)
			switch {
			case u.Note != IsWaiting:
				bad(u.Heard, "a status says that %s is %s, and the lease of its run, token %d, was ended at %s", job, u.Note, run.Token, TimeOfDay(b.Time))
			case u.End.Before(soonest) || u.End.After(latest):
				bad(u.Heard, "a status says that others wait for %s until %s, and the lease of %s was ended at %s", job, TimeOfDay(u.End), lease, TimeOfDay(b.Time))
			}
		}
		for _, n := range l.index.told[job] {
			u, claim := ended[n.outcome.Token], l.claimOf(job, n.outcome.Token)
			own := claim != nil && claim.Lease == n.write.Lease
			named := strings.HasPrefix(n.outcome.Reason, "unlocked by "+Unlocker)
			switch {
			case n.outcome.Status == store.Cancelled: // by whom, the outcome says
			case n.outcome.Token != 0 && u != nil && !own && !named && n.write.Time.After(u.Heard):
				bad(n.write.Time, "%s writes that the run of %s with token %d is %s (%s), and %s unlocked it", n.write.Replica, job, n.outcome.Token, n.outcome.Status, n.outcome.Reason, Unlocker)
			case strings.HasPrefix(n.outcome.Reason, "unlocked by ") && !(named && l.unlockedBefore(job, n)):
				bad(n.write.Time, "%s writes that the run of %s with token %d was %s, and it was not", n.write.Replica, job, n.outcome.Token, n.outcome.Reason)
			}
		}
	}
}

// longestWait is how much longer than a lease of the run others may wait: until
// they have looked, and their own lease is longer.
const longestWait = 2 * time.Minute

// endedBy returns the request with which an unlock has ended a lease at once, and
// what the record said of the run that had it; nil if it has ended none.
func (l *Log) endedBy(u *Event) (b *Event, run *store.Record) {
	for _, e := range l.of(u.Job, Request) {
		if e.Replica == Operator && e.Op == "break" && e.OK() && e.Span == 0 && !e.Sent.Before(u.Time) && !e.Heard.IsZero() && !e.Heard.After(u.Sent) {
			b = e
		}
	}
	if b == nil {
		return nil, nil
	}
	for _, e := range l.writes(u.Job) {
		if e.Record != nil && e.Time.Before(b.Time) {
			run = e.Record
		}
	}
	if l.forgot(u.Job, u.Time.Add(-time.Minute), u.Heard) || run == nil || run.Run.Status != store.Running {
		return b, nil
	}
	return b, run
}

// wroteBetween reports whether a replica, or another operator, wrote the entry of
// a job between two times: then there may be another run, or none.
func (l *Log) wroteBetween(job string, a, b time.Time) bool {
	return slices.ContainsFunc(l.of(job, Request), func(e *Event) bool {
		byOther := e.Replica != Operator || e.Lease == ""
		return e.Writes() && byOther && e.OK() && !e.Time.Before(a) && !e.Time.After(b)
	})
}

// settledSince reports whether the entry of a job was deleted or corrupted after a
// request: then no outcome of the run before comes.
func (l *Log) settledSince(job string, b *Event) bool {
	return slices.ContainsFunc(slices.Concat(l.of(job, Deleted), l.of(job, Corrupted)), func(e *Event) bool { return e.Time.After(b.Time) && e.Time.Before(b.Time.Add(time.Minute)) })
}

// unlockedBefore reports whether an unlock came between the claim of a run and
// the write that tells its outcome.
func (l *Log) unlockedBefore(job string, n told) bool {
	claim := l.claimOf(job, n.outcome.Token)
	return slices.ContainsFunc(l.of(job, Unlocked), func(u *Event) bool {
		return (claim == nil || u.Heard.After(claim.Time)) && u.Time.Before(n.write.Time)
	})
}

// lines: no line of a log names a tick, or another time, that there is not.
func lines(l *Log, bad report) {
	for job := range l.index.events {
		for _, e := range l.of(job, Said) {
			if strings.Contains(e.Cause, NoTick) {
				bad(e.Time, "%s logs of %s: %s (%s)", e.Replica, job, e.Note, e.Cause)
			}
		}
	}
}

// announced: a record says that a run is about to be handed over only if it is:
// its replica is to stop or step down, or the run is watched by HealthCheck, or by a
// HeartbeatTimeout in which others have the time to come near. A shard of a singleton is handed over
// for an even spread, too.
func announced(l *Log, bad report) {
	for _, job := range l.index.jobs {
		before := false
		for _, e := range l.writes(job) {
			if e.Record == nil {
				continue
			}
			begins := e.Record.Run.Stopping && !before
			before = e.Record.Run.Stopping
			t, d := l.termOf(job, e.Record.Token), l.definition(e.Replica, job)
			if !begins || e.Op != "progress" || t == nil || d == nil || d.Pulse != NoPulse || d.Spread() || e.Record.Run.Status != store.Running || l.askedToYield(t) {
				continue
			}
			length := max(d.Lease, time.Duration(e.Record.Run.Lease))
			if beat := e.beats(); beat > 0 {
				length = beat
			}
			if near := length/3 + time.Second; d.HeartbeatTimeout < near {
				bad(e.Time, "%s writes that it hands %s over, and a HeartbeatTimeout of %s is too short for others to come near", e.Replica, job, d.HeartbeatTimeout)
			}
		}
	}
}
