package check

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/store"
)

// The invariants about locks. That a slot has one holder at a time, with a claim of its own and a
// lease that is trusted no longer than it lasts, is judged as it is for the runs of jobs.

// lockHolders: at no time do more functions with a living context hold a lock than it has slots,
// whichever slots they think they hold. A suspended replica holds nothing, as in belief.
func lockHolders(l *Log, bad report) {
	for _, name := range l.locks() {
		var holding []Event
		for _, r := range l.holders(name) {
			holding = slices.DeleteFunc(holding, func(o Event) bool { return !o.End.After(r.Time) })
			holding = append(holding, r)
			if n := l.Locks[name].Slots; len(holding) > n && !l.lockForgot(name, holding[0].Time, r.Time) {
				bad(r.Time, "%d functions hold %s, which has %d slots: %s", len(holding), name, n, callsOf(holding))
			}
		}
	}
}

// holders are the functions that have held a lock, in the order of their starts. The End of each
// is that of the trust in it.
func (l *Log) holders(name string) (all []Event) {
	for _, slot := range l.slotsOf(name) {
		for _, r := range l.runs(slot) {
			if r.End = l.trustedTo(&r); r.Time.Before(r.End) {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return all
}

// trustedTo is when the trust in a run ended: with its context, or when its replica was suspended.
func (l *Log) trustedTo(r *Event) time.Time {
	to, begun := l.believed(r), l.begun(r)
	f := l.asleep(r, to)
	if f == nil && begun.Before(r.Time) {
		f = l.frozen(r.Replica, begun, r.Time)
	}
	if f != nil && !to.After(f.End.Add(noticed)) && f.Time.After(begun) {
		return f.Time
	}
	return to
}

func callsOf(all []Event) (calls []string) {
	for _, r := range all {
		calls = append(calls, r.Call)
	}
	return calls
}

// locks are the names of all locks.
func (l *Log) locks() []string { return slices.Sorted(maps.Keys(l.Locks)) }

// slotsOf are the entries of a lock.
func (l *Log) slotsOf(name string) (all []string) {
	for i := range l.Locks[name].Slots {
		all = append(all, entry.OfSlot(entry.Lock, i, name))
	}
	return all
}

// lockForgot reports whether the entry of a slot was deleted between two times.
func (l *Log) lockForgot(name string, a, b time.Time) bool {
	return slices.ContainsFunc(l.slotsOf(name), func(slot string) bool { return l.forgot(slot, a, b) })
}

// lockTokens: of the functions that hold one slot, each has a larger token than the one before,
// and they begin in the order of their claims.
func lockTokens(l *Log, bad report) {
	for _, slot := range l.index.slots {
		var last Event
		for _, r := range l.runs(slot) {
			if r.Token <= last.Token && l.asleep(&r, r.Time) == nil {
				bad(r.Time, "%s begins after token %d", r.name(), last.Token)
			}
			last = r
		}
	}
}

// lockIDs: no two functions that hold a lock are told the same ID.
func lockIDs(l *Log, bad report) {
	for _, name := range l.locks() {
		seen := map[string]string{}
		for _, slot := range l.slotsOf(name) {
			for _, r := range l.runs(slot) {
				if other := seen[r.ID]; other != "" {
					bad(r.Time, "%s is told the ID %s of %s", r.Call, r.ID, other)
				}
				seen[r.ID] = r.Call
			}
		}
	}
}

// calls are the calls for a lock that were heard of again, or all.
func (l *Log) calls(name string, returned bool) (all []*Event) {
	for _, e := range l.of("", Called) {
		if e.Lock == name && (!returned || !e.End.IsZero()) {
			all = append(all, e)
		}
	}
	return all
}

// ranFor are the functions that were called for a call.
func (l *Log) ranFor(e *Event) (all []Event) {
	for _, r := range l.runs(cmp.Or(e.Job, l.index.slotOf[e.Call])) {
		if r.Call == e.Call {
			all = append(all, r)
		}
	}
	return all
}

// lockResults: a call calls its function at most once and returns after it, with what the
// function has returned, unless the trust had ended before; and it returns nil only if
// the function did.
func lockResults(l *Log, bad report) {
	for _, name := range l.locks() {
		for _, e := range l.calls(name, true) {
			all := l.ranFor(e)
			if len(all) != 1 {
				if len(all) > 1 || e.Note == "" {
					bad(e.End, "%s returns %q, and its function was called %d times", e.Call, e.Note, len(all))
				}
				continue
			}
			r := all[0]
			lost := r.Cause == store.ErrLost.Error() || l.frozen(r.Replica, r.Time, e.End) != nil
			switch {
			case r.End.IsZero() || r.End.After(e.End):
				bad(e.End, "%s returns, and its function goes on", e.Call)
			case e.Note == IsHeld:
				bad(e.End, "%s says that another holds %s, and its function was called", e.Call, name)
			case r.Cause == store.ErrLost.Error() && r.Note == "" && e.Note != IsLost:
				bad(e.End, "%s returns %q, and the context of its function had ended with the lease", e.Call, e.Note)
			case r.Note == "" && e.Note == IsLost && (lost || !r.Cancelled.IsZero() || l.disturbs(e) || l.lapsesBefore(&r, e.End)): // perhaps at the instant at which the function returned
			case !lost && (r.Note == "") != (e.Note == ""):
				bad(e.End, "%s returns %q, and its function %q", e.Call, e.Note, r.Note)
			}
		}
	}
}

// lapsesBefore reports whether the trust in the lease of a run ended before a time, or somebody had done something to the lease.
func (l *Log) lapsesBefore(r *Event, t time.Time) bool {
	claim := l.claimOf(r.Job, r.Token)
	if claim == nil {
		return false
	}
	return l.lapse(claim, t).Before(t.Add(slack)) || slices.ContainsFunc(l.of(r.Job, Request), func(e *Event) bool {
		byOther := e.Replica == Operator && e.Op != "read" || e.Replica == r.Replica && refused(e)
		return byOther && e.Time.After(claim.Time) && e.Time.Before(t)
	})
}

// heldResults: TryDo says that a lock is held only if a slot was leased at some moment of the
// call, another call of its replica was under way beside it, or its context has ended meanwhile.
// Do says so only after its context has ended.
func heldResults(l *Log, bad report) {
	for _, name := range l.locks() {
		for _, e := range l.calls(name, true) {
			switch {
			case e.Note != IsHeld:
			case e.Op == "do" && e.Cancelled.IsZero():
				bad(e.End, "%s says that another holds %s, and its context has not ended", e.Call, name)
			case e.Op == "try" && e.Cancelled.IsZero() && !l.besides(e) && !l.disturbs(e) && !l.sleepsThrough(e) && !l.leasedDuring(name, e):
				bad(e.End, "%s says that another holds %s, and a slot was free from %s on", e.Call, name, TimeOfDay(e.Time))
			}
		}
	}
}

// besides reports whether another call for the lock was under way on the replica of a call.
func (l *Log) besides(e *Event) bool {
	return slices.ContainsFunc(l.calls(e.Lock, false), func(o *Event) bool {
		return o != e && o.Replica == e.Replica && !o.Time.After(e.End) && (o.End.IsZero() || !o.End.Before(e.Time))
	})
}

// disturbs reports whether a request for a lock met a fault in a call.
func (l *Log) disturbs(e *Event) bool {
	return slices.ContainsFunc(l.slotsOf(e.Lock), func(slot string) bool {
		return slices.ContainsFunc(l.of(slot, Request), func(q *Event) bool {
			return q.Replica == e.Replica && q.Cause != "" && !q.Sent.Before(e.Time) && !q.Sent.After(e.End)
		})
	})
}

// sleepsThrough reports whether the replica of a call was suspended while it looked at the first slot of
// several: an answer that comes when its time is up shows nothing, as if the store had failed, and then
// another slot that is held is all that the call has seen. Of a lock with one slot it looks again.
func (l *Log) sleepsThrough(e *Event) bool {
	if l.Locks[e.Lock].Slots < 2 || l.frozen(e.Replica, e.Time, e.End) == nil {
		return false
	}
	looked := false
	for _, q := range l.of(l.slotsOf(e.Lock)[0], Request) {
		if q.Replica != e.Replica || q.Sent.Before(e.Time) || q.Sent.After(e.End) {
			continue
		}
		if looked = true; l.frozen(e.Replica, q.Sent, overAt(q)) != nil {
			return true
		}
	}
	return !looked
}

// leasedDuring reports whether each slot of a lock was leased at some moment of a call.
func (l *Log) leasedDuring(name string, e *Event) bool {
	for _, slot := range l.slotsOf(name)[:1] { // a replica may know of fewer slots than others
		var t tenure
		leased := false
		for _, q := range l.of(slot, Request) {
			if !q.OK() || q.Time.After(e.End) {
				continue
			}
			leased = leased || t.id != "" && !q.Time.Before(e.Time) && !t.until.Before(e.Time)
			t.follow(q)
		}
		if !leased && (t.id == "" || t.until.Before(e.Time)) {
			return false
		}
	}
	return true
}

// lockEnds: a call returns soon after its context has ended, or its function has returned: it may
// have a claim under way, and then an outcome to write, which it tries for as long as others
// could not have the lock.
func lockEnds(l *Log, bad report) {
	for _, name := range l.locks() {
		lease := l.Locks[name].Lease
		for _, e := range l.calls(name, false) {
			by := e.Cancelled.Add(2*lease + noticed)
			if all := l.ranFor(e); len(all) > 0 {
				by = later(by, all[len(all)-1].End.Add(2*lease+noticed))
				if all[len(all)-1].End.IsZero() {
					continue
				}
			}
			if f := l.frozen(e.Replica, e.Time, by); f != nil {
				by = later(by, f.End.Add(2*lease+noticed))
			}
			if !e.Cancelled.IsZero() && l.crashed(e.Replica).IsZero() && (e.End.IsZero() || e.End.After(by)) {
				bad(by, "%s goes on until %s, and its context has ended at %s", e.Call, TimeOfDay(e.End), TimeOfDay(e.Cancelled))
			}
		}
	}
}

// lockTurns: once all faults are over, each call that waits gets the lock, after the leases of
// those that died and the others that wait have had their turn; and it does what it is for. A
// call that begins only when all these had their turn has the time of one turn.
func lockTurns(l *Log, bad report) {
	healed := l.healed()
	if healed.IsZero() {
		return
	}
	for _, name := range l.locks() {
		lock := l.Locks[name]
		by := healed.Add(2*lock.Lease + time.Duration(l.usersAt(name, healed))*lockTurn)
		if by.After(l.settled()) {
			by = l.settled()
		}
		for _, e := range l.calls(name, false) {
			by := later(by, e.Time.Add(lockTurn))
			switch {
			case !e.End.IsZero() && e.End.Before(healed) || !l.staysUp(e.Replica, by):
			case e.End.IsZero() || e.End.After(by):
				bad(by, "%s waits since %s for %s, and goes on until %s", e.Call, TimeOfDay(e.Time), name, TimeOfDay(e.End))
			case e.Time.After(healed) && e.Note != "" && e.Note != IsHeld && !l.overrunsBeside(e):
				bad(e.End, "%s fails when all faults are over: %s", e.Call, e.Note)
			}
		}
	}
}

// overrunsBeside reports whether a function of the same lock and replica went on in a call although its context had ended, and
// Overrun was called for that, or it did so for the length of its lease: the replica takes nothing new then.
func (l *Log) overrunsBeside(e *Event) bool {
	told := slices.DeleteFunc(slices.Clone(l.of("", Overran)), func(o *Event) bool {
		return o.Replica != e.Replica || o.Lock != e.Lock || o.Time.After(e.End)
	})
	return slices.ContainsFunc(l.slotsOf(e.Lock), func(slot string) bool {
		return slices.ContainsFunc(l.runs(slot), func(r Event) bool {
			if r.Replica != e.Replica || !r.End.After(e.Time) {
				return false
			}
			claim := l.claimOf(slot, r.Token)
			ignores := claim != nil && !r.Cancelled.IsZero() && r.Cancelled.Add(time.Duration(claim.Record.Run.Lease)).Before(e.End)
			return ignores || slices.ContainsFunc(told, func(o *Event) bool { return r.Time.Before(o.Time) && r.End.After(o.Time) })
		})
	})
}

// lockTurn is how long one holder keeps a lock from the next one, once all faults are over: what it
// does, its calls, and the pause of who waits.
const lockTurn = 4 * time.Second

// usersAt is how many calls for a lock end at or after a time.
func (l *Log) usersAt(name string, t time.Time) (n int) {
	for _, e := range l.calls(name, false) {
		if e.End.IsZero() && l.crashed(e.Replica).IsZero() || !e.End.Before(t) {
			n++
		}
	}
	return n
}

// staysUp reports whether a replica neither stops nor crashes before a time.
func (l *Log) staysUp(replica string, t time.Time) bool {
	return !slices.ContainsFunc(slices.Concat(l.of("", Stop), l.of("", Crash)), func(e *Event) bool {
		return e.Replica == replica && e.Time.Before(t)
	})
}

// lockPace: who waits for a lock does not ask all the time, and asks less often the longer it has
// the same holders.
func lockPace(l *Log, bad report) {
	for _, name := range l.locks() {
		slots := l.slotsOf(name)
		sent, claims := map[string][]time.Time{}, []time.Time{}
		for _, slot := range slots {
			for _, e := range l.of(slot, Request) {
				if e.Replica != Operator {
					sent[e.Replica] = append(sent[e.Replica], e.Sent)
				}
			}
			for _, e := range l.claimed(slot) {
				claims = append(claims, e.Time)
			}
		}
		slices.SortFunc(claims, time.Time.Compare)
		for _, replica := range slices.Sorted(maps.Keys(sent)) {
			times := sent[replica]
			slices.SortFunc(times, time.Time.Compare)
			if at, often := tooOften(times, 60*len(slots), time.Second); often {
				bad(at, "%s sends more than %d requests for %s in a second", replica, 60*len(slots), name)
			}
			held := slices.DeleteFunc(times, func(t time.Time) bool {
				n, _ := slices.BinarySearchFunc(claims, t, time.Time.Compare)
				return n == 0 || t.Sub(claims[n-1]) < 5*time.Second || n < len(claims) && claims[n].Sub(claims[n-1]) < 15*time.Second
			})
			if at, often := tooOften(held, 100*len(slots), 10*time.Second); often {
				bad(at, "%s sends more than %d requests for %s in ten seconds, and its holders stay the same", replica, 100*len(slots), name)
			}
		}
	}
}

// tooOften finds more than so many times within a span.
func tooOften(times []time.Time, most int, span time.Duration) (at time.Time, often bool) {
	for i := most; i < len(times); i++ {
		if times[i].Sub(times[i-most]) < span {
			return times[i], true
		}
	}
	return at, false
}
