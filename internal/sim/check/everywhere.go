package check

import (
	"slices"
	"time"
)

// everywhere: a job that runs on each replica asks the store for nothing. A
// replica begins each tick once, one run after the other, and goes on with its
// ticks when all faults are over.
func everywhere(l *Log, bad report) {
	for job := range l.index.events {
		if job == "" || !l.everywhere(job) {
			continue
		}
		for _, e := range l.of(job, Request) {
			if e.Replica != Operator {
				bad(e.Time, "%s sends a %s for %s, which runs everywhere", e.Replica, e.Op, job)
			}
		}
		last := map[string]*Event{}
		for _, e := range l.of(job, Ran) {
			if d := l.definition(e.Replica, job); d == nil || d.Every == 0 || e.Tick.UnixNano()%int64(d.Every) != 0 || l.afterCrash(e) {
				continue // by hand, or what a crashed replica does in our memory
			}
			old := last[e.Replica]
			if last[e.Replica] = e; old == nil {
				continue
			}
			if e.Try == 1 && e.Tick.Equal(old.Tick) && !l.stepped(e.Replica, e.Time.Add(-3*time.Minute), e.Time) {
				bad(e.Time, "%s begins again", e.name())
			}
			if (old.End.IsZero() || old.End.After(e.Time)) && !e.End.Equal(old.Time) { // that one was replaced as it began
				bad(e.Time, "%s begins, and the one before goes on until %s", e.name(), TimeOfDay(old.End))
			}
		}
		l.goesOnEverywhere(job, bad)
	}
}

// afterCrash reports whether a run began after its replica had crashed.
func (l *Log) afterCrash(e *Event) bool {
	c := l.crashed(e.Replica)
	return !c.IsZero() && e.Time.After(c)
}

// stepped reports whether the wall clock of a replica was set between two times:
// one that is put back shows a tick again.
func (l *Log) stepped(replica string, a, b time.Time) bool {
	return slices.ContainsFunc(l.of("", Stepped), func(e *Event) bool { return e.Replica == replica && e.Time.After(a) && e.Time.Before(b) })
}

// goesOnEverywhere finds replicas that do not run a job though nothing is wrong
// any more.
func (l *Log) goesOnEverywhere(job string, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, u := range l.of("", Up) {
		d := l.definition(u.Replica, job)
		gone := slices.ContainsFunc(slices.Concat(l.of("", Stop), l.of("", Gone), l.of("", Crash)), func(e *Event) bool {
			return e.Replica == u.Replica && e.Time.Before(healed.Add(Settling))
		})
		if gone || d == nil || d.Paused || u.Cause != "" || u.Time.After(healed) || d.Every > Settling/3 {
			continue
		}
		if !slices.ContainsFunc(l.of(job, Ran), func(e *Event) bool { return e.Replica == u.Replica && e.Time.After(healed) }) {
			bad(healed, "%s does not run %s any more, which runs everywhere", u.Replica, job)
		}
	}
}

// pulses: a run ends soon after so many failures of HealthCheck in a row as its
// definition allows, and is called unhealthy after no fewer.
func pulses(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			d := l.definition(r.Replica, job)
			if d == nil || d.Pulse == NoPulse || l.asleep(&r, l.believed(&r)) != nil {
				continue
			}
			if c := l.claimOf(job, r.Token); c != nil && c.several() {
				continue // each run asks, and the answers do not say which
			}
			at, ill := l.illSince(&r, d)
			end := l.believed(&r)
			if by := at.Add(d.Lease/3 + noticed); ill && end.After(by) {
				bad(end, "the context of %s lives, and it was unhealthy since %s", r.name(), TimeOfDay(at))
			} else if !ill && r.Cause == "stalled" && d.HeartbeatTimeout == 0 {
				bad(end, "%s has stalled, and it was healthy", r.name())
			}
		}
	}
}

// illSince is when the checks of a run had failed so often in a row that it has
// to end.
func (l *Log) illSince(r *Event, d *Definition) (at time.Time, ill bool) {
	every, most, failures := 10*time.Second, 3, 0
	if d.HealthInterval > 0 {
		every = d.HealthInterval
	}
	if d.FailureThreshold > 0 {
		most = d.FailureThreshold
	}
	for _, e := range l.of(r.Job, Asked) {
		if e.Replica != r.Replica || e.Time.Before(r.Time) || e.Time.After(l.believed(r)) {
			continue
		}
		late := e.End.IsZero() || e.End.Sub(e.Time) >= every
		switch at = e.End; {
		case late:
			failures, at = failures+1, e.Time.Add(every)
		case e.Note != "":
			failures++
		default:
			failures = 0
		}
		for next := at.Add(every); late && failures < most && !e.End.IsZero() && next.Before(e.End); next = next.Add(every) {
			failures, at = failures+1, next
		}
		if failures >= most {
			return at, true
		}
	}
	return time.Time{}, false
}

// chatter: a run writes how far it is now and then, not at each heartbeat. Several runs under one claim write each for itself.
func chatter(l *Log, bad report) {
	const each, span = 10, 10 * time.Second
	for _, job := range l.index.jobs {
		wrote, runs := map[string][]time.Time{}, l.runsUnder(job)
		for _, e := range l.of(job, Request) {
			if e.Op == "progress" {
				wrote[e.Lease] = append(wrote[e.Lease], e.Sent)
			}
		}
		for id, times := range wrote {
			most := each * max(1, runs[id])
			for i := most; i < len(times); i++ {
				if times[i].Sub(times[i-most]) < span {
					bad(times[i], "a run of %s writes its progress %d times in %s", job, most+1, times[i].Sub(times[i-most]))
					break
				}
			}
		}
	}
}

// runsUnder returns how many runs there are under one claim at most, by the id of its lease.
func (l *Log) runsUnder(job string) map[string]int {
	most, under := map[string]int{}, map[int64]int{}
	for _, r := range l.runs(job) {
		if claim := l.claimOf(job, r.Token); claim != nil && r.Try == 1 {
			under[r.Token]++
			most[claim.Lease] = max(most[claim.Lease], under[r.Token])
		}
	}
	return most
}
