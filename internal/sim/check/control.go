package check

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about what operators order.

// Orderer is who orders.
const Orderer = "olivia"

// binds is how long after its confirmation an order is known to each replica that starts
// something: it has read the document in the last five seconds, by a call of three. Its clock
// may be slow.
const binds = 8*time.Second + 100*time.Millisecond

// A pauseTime is a time in which a job was surely paused: from From on nothing of it starts.
type pauseTime struct{ from, to time.Time }

// pauseTimes returns the times in which a job was surely paused by an operator. An order
// whose answer is not known, or the loss of the document, may have ended a pause.
func (l *Log) pauseTimes(job string) (all []pauseTime) {
	orders := l.of(job, Ordered)
	for _, e := range orders {
		if e.Op != string(store.OrderPause) || e.Heard.IsZero() {
			continue
		}
		p := pauseTime{e.Heard, l.end()}
		if !e.End.IsZero() {
			p.to = earlier(p.to, e.End.Add(-3*time.Second)) // by the clock of a replica
		}
		for _, o := range orders {
			if o != e && !o.before(e) && (o.Op == string(store.OrderResume) || o.Op == string(store.OrderPause) && !o.End.IsZero()) {
				p.to = earlier(p.to, o.Time)
			}
		}
		for _, d := range l.of("", Deleted) {
			if d.Time.After(e.Time) {
				p.to = earlier(p.to, d.Time)
			}
		}
		if p.to.After(p.from) {
			all = append(all, p)
		}
	}
	return all
}

// before reports whether an order was surely in force before another one was given.
func (e *Event) before(o *Event) bool { return !e.Heard.IsZero() && e.Heard.Before(o.Time) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// paused: nothing of a paused job starts but runs by hand.
func paused(l *Log, bad report) {
	for _, job := range l.index.jobs {
		times := l.pauseTimes(job)
		for _, r := range l.runs(job) {
			if r.Try != 1 || r.Request != "" && store.BackfillOf(r.Request) == 0 {
				continue
			}
			for _, p := range times {
				if r.Time.After(p.from.Add(binds)) && r.Time.Before(p.to) && l.frozen(r.Replica, p.from, r.Time) == nil {
					bad(r.Time, "%s begins, and the job is paused since %s", r.name(), TimeOfDay(p.from))
				}
			}
		}
	}
}

// mayBePaused reports whether the job may have been paused at t, by an operator or by itself.
func (l *Log) mayBePaused(job string, t time.Time) bool {
	for _, e := range l.of(job, Ordered) {
		if e.Op == string(store.OrderPause) && e.Time.Before(t) && !l.resumedBetween(job, e, t) {
			return true
		}
	}
	return l.mayHavePausedItself(job, t)
}

// mayHavePausedItself reports whether a record says that the job had paused itself at t, or a
// moment before or after.
func (l *Log) mayHavePausedItself(job string, t time.Time) bool {
	var since time.Time
	for _, w := range l.writes(job) {
		if w.Record == nil {
			continue
		}
		if !since.IsZero() && w.Record.Orders.Paused.At.IsZero() && t.After(since.Add(-slack)) && t.Before(w.Time.Add(slack)) {
			return true
		}
		since = w.Record.Orders.Paused.At
	}
	return !since.IsZero() && t.After(since.Add(-slack))
}

// resumedBetween reports whether a pause was surely over at t: it was resumed and each replica
// has read so, or it has ended by itself.
func (l *Log) resumedBetween(job string, pause *Event, t time.Time) bool {
	if !pause.End.IsZero() && pause.End.Add(binds).Before(t) {
		return true
	}
	return slices.ContainsFunc(l.of(job, Ordered), func(o *Event) bool {
		return o.Op == string(store.OrderResume) && pause.before(o) && !o.Heard.IsZero() && o.Heard.Add(binds).Before(t)
	})
}

// requested: a run that was ordered starts once, after it was ordered and not after its time
// is up, and has one outcome. All starts, claims and outcomes count that there ever were, also
// of calls by hand with its name, and not only what is left in the record.
func requested(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, o := range l.of(job, Ordered) {
			if o.Op != string(store.OrderRun) {
				continue
			}
			starts, claims, end := 0, 0, earlier(l.ordersLost(o.Time), l.entryLost(o))
			for _, r := range l.runs(job) {
				if r.Request != o.Request || r.Try != 1 || r.Time.After(end) {
					continue
				}
				if starts++; starts > 1 {
					bad(r.Time, "%s begins, and its request %s had begun before", r.name(), r.Request)
				}
				claim := l.claimOf(job, r.Token)
				if t := l.termOf(job, r.Token); t != nil && !o.End.IsZero() && l.decided(t).After(o.End.Add(t.doubt())) {
					bad(r.Time, "%s was claimed at %s, and its request %s was for %s at the latest", r.name(), TimeOfDay(claim.Sent), r.Request, TimeOfDay(o.End))
				}
			}
			for _, e := range l.claimed(job) {
				if e.Record.Run.Request == o.Request && !e.Time.After(end) {
					claims++
				}
			}
			outcomes := map[store.Outcome]bool{}
			for _, n := range l.index.told[job] {
				if n.outcome.Request == o.Request && !n.write.Time.After(end) {
					f := n.outcome
					f.End = time.Time{} // of a stalled run, it is told later
					outcomes[f] = true
				}
			}
			forgot := l.forgot(job, o.Time, l.end()) || l.forgot("", o.Time, l.end()) || len(l.of(job, Corrupted)) > 0
			switch {
			case claims > 1 || len(outcomes) > 1:
				bad(o.Time, "the request %s of %s has %d claims and %d outcomes", o.Request, job, claims, len(outcomes))
			case len(outcomes) == 0 && !o.Heard.IsZero() && !forgot && !l.healed().IsZero() && o.End.Before(l.settled()) && l.latest(job) != nil && l.latest(job).Every > 0:
				bad(o.Time, "the request %s of %s has no outcome", o.Request, job)
			}
		}
	}
}

// ordersLost is when the document of orders was deleted after t: then its requests are unknown,
// and their names free.
func (l *Log) ordersLost(t time.Time) time.Time {
	for _, d := range l.of("", Deleted) {
		if d.Time.After(t) {
			return d.Time
		}
	}
	return l.end()
}

// entryLost is when the entry of a job was deleted, if that was just after an order for it: the record that is made then
// knows its own time by the service's date, which shows seconds, and takes the order for one that came after it.
func (l *Log) entryLost(o *Event) time.Time {
	for _, d := range l.of(o.Job, Deleted) {
		if d.Time.After(o.Time) && d.Time.Before(o.Time.Add(wakeDoubt)) {
			return d.Time
		}
	}
	return l.end()
}

// cancels: a run is cancelled only if an operator has ordered that, for that run; and then its
// context ends as soon as its replica can know.
func cancels(l *Log, bad report) {
	for _, job := range l.index.jobs {
		ordered, ends := map[int64]*Event{}, map[string]bool{}
		for _, o := range l.of(job, Ordered) {
			if o.Op == string(store.OrderCancelBackfill) {
				ends[o.Request] = true
			}
			if o.Op == string(store.OrderCancel) && (o.Token != 0 || o.Heard.IsZero()) {
				ordered[o.Token] = o
			}
		}
		for _, r := range l.runs(job) {
			if o := ordered[r.Token]; o != nil && !o.Heard.IsZero() && l.believed(&r).After(o.Heard.Add(binds)) && r.Time.Before(o.Heard) && l.attentive(&r, o) {
				bad(r.Time, "the context of %s lives until %s, and it was cancelled at %s", r.name(), TimeOfDay(l.believed(&r)), TimeOfDay(o.Heard))
			}
			if o := ordered[r.Token]; r.Cause == soloist.ErrCancelled.Error() && o == nil && ordered[0] == nil && !ends[r.Request] && !(ends[""] && store.BackfillOf(r.Request) != 0) {
				bad(r.Cancelled, "%s is cancelled, and nobody has ordered that", r.name())
			}
		}
		for _, n := range l.index.told[job] {
			if n.outcome.Status == store.Cancelled && !isReplaced(&n.outcome) && !strings.HasPrefix(n.outcome.Reason, "by "+Orderer) {
				bad(n.write.Time, "%s writes that the run of %s with token %d was cancelled (%s)", n.write.Replica, job, n.outcome.Token, n.outcome.Reason)
			}
		}
	}
}

// attentive reports whether the replica of a run could read the orders after one was given:
// no read of it has met a fault, no order was lost with the document, and it was not suspended.
func (l *Log) attentive(r, o *Event) bool {
	to := o.Heard.Add(binds)
	ill := slices.ContainsFunc(l.of("", Request), func(e *Event) bool {
		return e.Replica == r.Replica && e.Sent.Before(to) && e.Sent.After(o.Time.Add(-time.Minute)) && (e.Cause != "" || e.Heard.IsZero())
	})
	newer := slices.ContainsFunc(l.of(o.Job, Ordered), func(e *Event) bool {
		ends := e.Op == string(store.OrderCancel) || e.Op == string(store.OrderStepDown)
		return e != o && ends && e.Time.After(o.Time.Add(-time.Minute)) && e.Time.Before(to)
	})
	return !ill && !newer && !l.forgot("", o.Time, to) && l.frozen(r.Replica, o.Time, to) == nil && l.crashed(r.Replica).IsZero()
}

// orderedAround reports whether an operator has ordered something for a job that may have had
// its effect between two times.
func (l *Log) orderedAround(job string, from, to time.Time) bool {
	if l.mayBePaused(job, from) || l.mayBePaused(job, to) || l.backfilledAround(job, from.Add(-unrest), to) {
		return true
	}
	return slices.ContainsFunc(l.of(job, Ordered), func(e *Event) bool {
		return e.Time.Before(to) && e.Time.After(from.Add(-time.Minute))
	})
}
