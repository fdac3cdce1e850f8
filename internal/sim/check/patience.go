package check

import (
	"slices"
	"time"
)

// bounded: no request goes on for longer than a replica can wait for it: a sixth of
// the lease. What makes an entry may take three requests, and a fetch of a token
// serves all jobs.
func bounded(l *Log, bad report) {
	for job := range l.index.events {
		for _, e := range l.of(job, Request) {
			limit := l.patienceOf(e)
			if took := e.Done.Sub(e.Sent); !e.Done.IsZero() && limit > 0 && took > limit+slack && l.crashed(e.Replica).IsZero() && l.frozen(e.Replica, e.Sent, e.Done) == nil {
				bad(e.Done, "a %s of %s by %s takes %s, at most %s", e.Op, job, e.Replica, took, limit)
			}
		}
	}
}

// patienceOf is how long a request may take, zero if it is not known.
func (l *Log) patienceOf(e *Event) time.Duration {
	switch d := l.definition(e.Replica, e.Job); {
	case e.Op == "token":
		return time.Minute
	case e.Job == AlarmNote:
		return noteTime
	case e.OfDocument():
		return 3 * time.Second
	case e.Op == "container" && l.Zero != nil: // perhaps for the note of the alarm
		return max(l.longestLease(e.Replica)/3, noteTime)
	case e.Op == "container":
		return l.longestLease(e.Replica) / 3
	case d == nil:
		return 0
	case e.Op == "create":
		return d.Lease / 3
	case e.Op == "read":
		return max(d.Lease, l.longestFollower(e.Replica, e.Job)) / 6
	default:
		return d.Lease / 6
	}
}

// noteTime is how long a call for the note of the alarm may take.
const noteTime = 10 * time.Second

// longestFollower is the longest lease of a replica's jobs that follow another one: they read its
// entry too.
func (l *Log) longestFollower(replica, job string) (longest time.Duration) {
	for _, d := range l.Fleet[replica] {
		if slices.Contains(d.Before(), job) {
			longest = max(longest, d.Lease)
		}
	}
	return longest
}

func (l *Log) longestLease(replica string) (longest time.Duration) {
	for _, d := range l.Fleet[replica] {
		longest = max(longest, d.Lease)
	}
	return longest
}

// patience: a renewal that is due during a run and fails is sent again within a tenth
// of the lease, as long as the run goes on. One is due when a third of the lease has
// gone since the last that was answered; a run may ask for one before, which nothing
// repeats.
func patience(l *Log, bad report) {
	for _, job := range l.index.jobs {
		renewals := map[string][]*Event{}
		for _, e := range l.of(job, Request) {
			if e.Op == "renew" || e.Op == "acquire" {
				renewals[e.Lease] = append(renewals[e.Lease], e)
			}
		}
		for _, r := range l.runs(job) {
			claim := l.claimOf(job, r.Token)
			if claim == nil {
				continue
			}
			var span time.Duration // of the lease, which may be longer than its definition says
			var due time.Time
			for _, e := range renewals[claim.Lease] {
				if e.Op == "acquire" {
					span = e.Span
				}
				by := e.Done.Add(span/10 + slack)
				if e.answered() {
					due = e.Sent.Add(span * 3 / 10)
					// Renewals come at thirds of the lease. A late answer may stand for the next one.
					if e.Heard.Sub(e.Sent) > span/30 {
						due = later(due, e.Heard.Add(span*4/10))
					}
				}
				if e.answered() || e.Op != "renew" || e.Sent.Before(due) || e.Done.IsZero() || e.Sent.Before(r.Time) || !l.believed(&r).After(by) || l.frozen(r.Replica, e.Sent, by) != nil || l.blocked(r.Replica, by) {
					continue
				}
				again := slices.ContainsFunc(renewals[claim.Lease], func(next *Event) bool { return next.Sent.After(e.Sent) && !next.Sent.After(by) })
				if !again && !l.stalledBy(claim, by) {
					bad(e.Done, "a renewal of %s fails at %s, there is none until %s, and %s goes on", job, TimeOfDay(e.Done), TimeOfDay(by), r.name())
				}
			}
		}
	}
}

// answered reports whether a replica has learnt from a request what it asked for.
func (e *Event) answered() bool {
	return !e.Heard.IsZero() && (e.OK() || refused(e)) && e.Cause != string(CutOff) && e.Cause != string(Applied500)
}

// stalledBy reports whether a run of a claim had stalled by t. The renewals of its lease end then, also for runs beside it.
func (l *Log) stalledBy(claim *Event, t time.Time) bool {
	return slices.ContainsFunc(l.of(claim.Job, Said), func(e *Event) bool {
		return e.Replica == claim.Replica && e.Token == claim.Record.Token && e.Note == "the run has stalled" && !e.Time.After(t)
	})
}
