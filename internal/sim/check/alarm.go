package check

import (
	"net/http"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The invariants about clusters that a platform scales to zero. They are judged from what the queue itself did, from the
// schedules and from the runs: not from the note that says which alarm is pending.

// pendingAlarm: while no replica is up, a message is in the queue that is visible when there is something to do, or
// before: a tick, the end of the lease of a run whose replica has died, a run that was ordered. One may be missing that the
// platform has lost; then its net comes. A replica that has never said that an alarm is pending has promised none.
func pendingAlarm(l *Log, bad report) {
	if l.Zero == nil {
		return
	}
	all := l.letters()
	for _, g := range l.downTimes() {
		h := l.lastHanded(all, g.from)
		if h == nil {
			continue
		}
		moments := []time.Time{g.from}
		for _, m := range all {
			if !m.gone.IsZero() && m.gone.After(g.from) && m.gone.Before(g.to) {
				moments = append(moments, m.gone)
			}
		}
		for _, w := range l.wants(h, g) {
			for _, t := range moments {
				if l.wakesBy(all, t, w.at) || l.lostAlarm(all, t, w.at) {
					continue
				}
				bad(t, "no replica is up, and no message is in the queue that is visible at %s for %s of %s", TimeOfDay(w.at), w.why, w.job)
				break
			}
		}
	}
}

// lastHanded is what was said last up to t of an alarm that is pending. A replica that dies before it has said that may have put
// one, and deleted what was there before.
func (l *Log) lastHanded(all []*letter, t time.Time) *Event {
	h := l.handed(t)
	for _, m := range all {
		by := m.steps[0].Replica
		if died := l.crashed(by); h != nil && m.put.After(h.Time) && !m.put.After(t) && !died.IsZero() && !died.After(t) {
			h = &Event{What: Handed, Replica: by, Time: m.put, End: m.due}
		}
	}
	return h
}

// A want is a time at which a replica has something to do.
type want struct {
	at  time.Time
	job string
	why string
}

// wants are the first things to do of each job in a time in which no replica is up.
func (l *Log) wants(h *Event, g gap) (all []want) {
	for i := range l.Fleet[h.Replica] {
		d := &l.Fleet[h.Replica][i]
		if d.Every == 0 || d.EveryReplica || d.Name == Foreign || l.redefined(d, h.Time.Add(-Patience), g.from) || l.isSpoilt(d.Name, g.from) {
			continue
		}
		if end, open := l.openRun(d.Name, g.from); open && !d.Paused && !l.mayBePaused(d.Name, g.from) {
			if l.unread(h, d.Name) {
				end = later(end, h.Time.Add(soon))
			}
			if span := l.sawHeld(h, d.Name); span > 0 {
				end = later(end, h.Time.Add(span))
			}
			all = append(all, want{end, d.Name, "the run of a replica that has died"})
		}
		if l.orderWaits(d.Name, g) {
			all = append(all, want{g.from.Add(soon), d.Name, "a run that was ordered"})
		}
		tick := d.After(g.from)
		last, through := l.ledger(d.Name, g.from)
		anew := last == nil && tick.Sub(g.from) < 2*wakeDoubt // a record that is made then begins after it
		if anew || last != nil && !tick.After(through) {      // or it was run a moment before, by a clock that is fast by so much
			tick = tick.Add(d.Every)
		}
		if d.Follows != "" || d.Paused || l.mayBePaused(d.Name, g.from) || l.mayBePaused(d.Name, tick) {
			continue
		}
		all = append(all, want{later(tick, l.unpromised(h, d)), d.Name, "tick " + TimeOfDay(tick)})
		if l.overdue(d, tick.Add(-d.Every), g.from) {
			all = append(all, want{g.from.Add(soon), d.Name, "tick " + TimeOfDay(tick.Add(-d.Every)) + ", which is due,"})
		}
	}
	return all
}

// unpromised returns when the message of h comes, if that is of a replica that died before it handed over, and no replica with the
// ticks of d has handed over before. Nobody has promised an alarm for those ticks then. Zero: somebody has.
func (l *Log) unpromised(h *Event, d *Definition) time.Time {
	if said := l.handed(h.Time); said != nil {
		if its := l.definition(said.Replica, d.Name); its != nil && its.sameTicks(d) {
			return time.Time{}
		}
	}
	return h.End
}

// soon is when a replica is wanted at the latest for what is due: a minute later if an entry could not be read, or when a
// lease ends under which nothing was claimed.
const soon = time.Minute + 2*wakeDoubt

// isSpoilt reports whether the entry of a job says at a time what somebody has made of it.
func (l *Log) isSpoilt(job string, t time.Time) bool {
	return slices.ContainsFunc(l.of(job, Corrupted), func(c *Event) bool { return !c.Time.After(t) && (c.End.IsZero() || c.End.After(t)) })
}

// unread reports whether the last read of an entry had failed when a replica handed over: it has another one look in a minute.
func (l *Log) unread(h *Event, job string) bool {
	var last *Event
	for _, e := range l.of(job, Request) {
		if e.Replica == h.Replica && e.Op == "read" && e.Sent.Before(h.Time) && !e.Heard.After(h.Time) {
			last = e
		}
	}
	if last == nil {
		return false
	}
	late := last.Heard.IsZero() || l.frozen(h.Replica, last.Sent, last.Heard) != nil // its time was up before the answer was looked at
	return late || !last.OK() && last.Status != http.StatusNotFound
}

// sawHeld is the length of the lease that another replica had when one that handed over had read the entry last; zero: none
// had. It has a replica look when that would end. The holder may have let go of it since, and died.
func (l *Log) sawHeld(h *Event, job string) time.Duration {
	var held tenure
	var holder string
	var read time.Time
	for _, e := range l.of(job, Request) {
		if e.Replica == h.Replica && e.Op == "read" && e.OK() && !e.Heard.IsZero() && e.Heard.Before(h.Time) {
			read = e.Time
		}
	}
	for _, e := range l.of(job, Request) {
		if e.OK() && !e.Time.After(read) {
			if held.follow(e); e.Op == "acquire" {
				holder = e.Replica
			}
		}
	}
	if holder == h.Replica || !held.until.After(read) {
		return 0
	}
	return held.span
}

// redefined reports whether a replica with another definition of a job was up between two times.
func (l *Log) redefined(d *Definition, from, to time.Time) bool {
	return slices.ContainsFunc(l.of("", Up), func(u *Event) bool {
		gone, its := l.gone(u.Replica), l.definition(u.Replica, d.Name)
		up := !u.Time.After(to) && (gone.IsZero() || gone.After(from))
		return up && (its == nil || !its.sameTicks(d) || its.Paused != d.Paused || its.Follows != d.Follows)
	})
}

// openRun reports whether a run of a job has no outcome at t, at which no replica is up, and by when its lease has ended as
// far as the last one can know.
func (l *Log) openRun(job string, t time.Time) (end time.Time, open bool) {
	last, _ := l.ledger(job, t)
	if last == nil || last.Run.Status != store.Running || last.Run.Armed && last.Run.Tick.After(t) || len(l.of(job, Corrupted)) > 0 {
		return end, false
	}
	claim := l.claimOf(job, last.Token)
	if claim == nil || last.Run.Request != "" && l.rungInVain(job, t) {
		return end, false
	}
	var held tenure // also one whose replica has died before it could claim
	for _, e := range l.of(job, Request) {
		if e.OK() && !e.Time.After(t) {
			held.follow(e)
		}
	}
	if end = held.until; end.After(t) { // the one that looked may have seen it just before its end
		end = t.Add(held.span)
	}
	for _, tool := range l.of(job, Leased) {
		if !tool.Time.After(t) && tool.End.After(t) {
			end = tool.End.Add(time.Minute) // a replica looks again when a lease would be over
		}
	}
	return later(end, t), true
}

// rungInVain reports whether somebody who had ordered something for a job could not ring, up to t.
func (l *Log) rungInVain(job string, t time.Time) bool {
	return slices.ContainsFunc(l.of(job, Rung), func(e *Event) bool { return e.Note != "" && !e.Time.After(t) })
}

// orderWaits reports whether a run of a job was ordered before a time in which no replica is up, and has not begun by its
// end.
func (l *Log) orderWaits(job string, g gap) bool {
	if l.forgot(job, time.Time{}, g.to) || l.forgot("", time.Time{}, g.to) || len(l.of(job, Corrupted)) > 0 {
		return false
	}
	if last, _ := l.ledger(job, g.from); last != nil && l.mayBePaused(job, g.from) && last.Run.Tick.After(last.Watermark) {
		return false // a tick has to be run again first, when the job is resumed
	}
	return slices.ContainsFunc(l.of(job, Ordered), func(o *Event) bool {
		begun := slices.ContainsFunc(l.claimed(job), func(c *Event) bool { return c.Record.Run.Request == o.Request }) ||
			slices.ContainsFunc(l.writes(job), func(w *Event) bool { return w.Record != nil && tellsOf(w.Record, o.Request) })
		over := !o.End.IsZero() && o.End.Before(g.from.Add(time.Minute))
		rung := slices.ContainsFunc(l.of(job, Rung), func(e *Event) bool { return e.Note == "" && !e.Time.Before(o.Time) && !e.Time.After(g.from) })
		return o.Op == string(store.OrderRun) && !o.Heard.IsZero() && o.Heard.Before(g.from) && rung && !begun && !over
	})
}

// tellsOf reports whether a record knows of a request.
func tellsOf(r *store.Record, request string) bool {
	return r.Run.Request == request || slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == request })
}

// overdue reports whether a tick that has come has to be run still, whenever that may be.
func (l *Log) overdue(d *Definition, tick, t time.Time) bool {
	if d.Group != "" || d.StartingDeadline > 0 || d.Missed == soloist.SkipMissed || len(l.of(d.Name, Corrupted)) > 0 || l.forgot(d.Name, tick.Add(-d.Every), t) || l.forgot("", tick.Add(-d.Every), t) {
		return false
	}
	last, through := l.ledger(d.Name, t)
	return last != nil && through.Before(tick) && last.Created.Before(tick) && last.Run.Tick.Before(tick) && t.Sub(tick) > wakeDoubt && l.definedFor(d, tick, t)
}

// definedFor reports whether no replica had another definition of a job since the tick before one.
func (l *Log) definedFor(d *Definition, tick, t time.Time) bool {
	return !l.redefined(d, tick.Add(-d.Every), t)
}

// wakesBy reports whether a message that is in the queue at t wakes the app up by another time.
func (l *Log) wakesBy(all []*letter, t, by time.Time) bool {
	return slices.ContainsFunc(all, func(m *letter) bool { return m.wakes(t, by) })
}

// lostAlarm reports whether the platform has lost a message that would have woken the app up, and no replica could know
// that: none has said that an alarm is pending since it would have been visible.
func (l *Log) lostAlarm(all []*letter, t, by time.Time) bool {
	h := l.handed(t)
	return slices.ContainsFunc(all, func(m *letter) bool {
		if !m.lost || m.gone.After(t) || m.due.After(later(t, by).Add(wakeDoubt)) {
			return false
		}
		return h == nil || h.Time.Before(later(m.gone, m.due).Add(time.Minute))
	})
}

// fewAlarms: once all faults are over, no more than two messages are in the queue for long, beside those that the faults have
// left, or what these are put off by. What a replica has found visible when it began is gone after it, or after the next ones.
func fewAlarms(l *Log, bad report) {
	healed := l.healed()
	if l.Zero == nil || healed.IsZero() {
		return
	}
	var pending []*letter
	all, from := l.letters(), healed.Add(2*Settling)
	most := 2 + inQueue(all, from)
	for _, m := range all {
		if m.put.Before(from) {
			continue
		}
		pending = append(pending, m)
		n := 0
		for _, o := range pending {
			if o.there(m.put) && m.put.Sub(o.put) > manyFor {
				n++
			}
		}
		if n > most {
			bad(m.put, "%d messages are in the queue for more than %s", n, manyFor)
			break
		}
	}
	for _, m := range all {
		if passes := l.passesOver(m, later(m.due, healed)); passes > 3 {
			bad(later(m.due, healed), "message %s is visible and %d replicas have said since then that they have handed over", m.id, passes)
			break
		}
	}
}

// inQueue is how many messages are in the queue at t.
func inQueue(all []*letter, t time.Time) (n int) {
	for _, m := range all {
		if m.there(t) {
			n++
		}
	}
	return n
}

// manyFor is for how long more than two messages may be in the queue: a replica clears it at the end of its passes, which
// go on for half an hour at most.
const manyFor = 35 * time.Minute

// passesOver is how many replicas came up after t and said that an alarm is pending, while a message was in the queue.
func (l *Log) passesOver(m *letter, t time.Time) (n int) {
	for _, e := range l.of("", Handed) {
		came := slices.ContainsFunc(l.of("", Up), func(u *Event) bool { return u.Replica == e.Replica && u.Time.After(t.Add(10*time.Second)) })
		if came && e.Note == "" && e.Op == HandedOver && m.there(e.Time) && m.last(e.Time).Replica != Platform {
			n++
		}
	}
	return n
}

// quietAtZero: once all faults are over, replicas are started about as often as ticks come due: an alarm for nothing is
// not followed by another one. Each message that the faults have left may start one.
func quietAtZero(l *Log, bad report) {
	healed := l.healed()
	if l.Zero == nil || healed.IsZero() {
		return
	}
	from, to := healed.Add(2*Settling), l.settled()
	instants := map[int64]bool{}
	for _, job := range l.index.jobs {
		d := l.latest(job)
		if d == nil || d.Every == 0 || d.Follows != "" {
			continue
		}
		for tick := d.After(from.Add(-time.Hour)); tick.Before(to); tick = tick.Add(d.Every) {
			instants[tick.Unix()] = true
			if d.FinishBy > 0 {
				instants[tick.Add(d.FinishBy).Unix()] = true // one may be late
			}
		}
	}
	wakes := 0
	for _, g := range l.downTimes() {
		u := l.upAt(g.to)
		if u != nil && g.to.After(from) && g.to.Before(to) && u.Op == ByAlarm {
			wakes++
		}
	}
	left := inQueue(l.letters(), from)
	if most := 2*len(instants) + left + 6; wakes > most {
		bad(to, "replicas were started %d times since %s, %d messages were left, and ticks came due at %d instants", wakes, TimeOfDay(from), left, len(instants))
	}
}

// upAt is the start of a replica at a time.
func (l *Log) upAt(t time.Time) *Event {
	for _, u := range l.of("", Up) {
		if u.Time.Equal(t) {
			return u
		}
	}
	return nil
}
