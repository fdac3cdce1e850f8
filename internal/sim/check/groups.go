package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/store"
)

// The invariants about groups of jobs. A slot of a group has a lease and a claim, which is judged as
// that of a lock; but no function that holds it: what it is for are the runs of jobs.

// groupHolders: at no time have more runs of a group a living context than it has slots on the replica
// that has the most. A suspended replica runs nothing, as in belief.
func groupHolders(l *Log, bad report) {
	for _, group := range l.index.groups {
		var running []Event
		for _, r := range l.runsOfGroup(group) {
			running = slices.DeleteFunc(running, func(o Event) bool { return !o.End.After(r.Time) })
			running = append(running, r)
			if n := l.limit(group, r.Time); len(running) > n && !l.groupForgot(group, running[0].Time, r.Time) {
				bad(r.Time, "%d runs of the group %s take place, whose limit is %d: %s", len(running), group, n, namesOf(running))
			}
		}
	}
}

// groupSkips: a tick is skipped for its group only if the group was full at some moment from the tick
// to that outcome, or something hindered the look for a slot, or another job of its replica held off.
func groupSkips(l *Log, bad report) {
	for _, job := range l.index.jobs {
		for _, n := range l.index.told[job] {
			d := l.definition(n.write.Replica, job)
			if d == nil || d.Group == "" || !n.forGroup(d) {
				continue
			}
			from, to := n.outcome.Tick.Add(-l.doubt(n.write)), l.beforeOwnSlot(d, n.write)
			if l.fullUntil(d, from, to).IsZero() && !l.slotsHindered(d, n.write.Replica, from, n.write.Time) && !l.slotHeldOff(d, n.write.Replica, from, to) {
				bad(n.write.Time, "%s skips tick %s of %s for its group %s, which had a free slot all the time", n.write.Replica, TimeOfDay(n.outcome.Tick), job, d.Group)
			}
		}
	}
}

// beforeOwnSlot is just before a replica had the slot under which it sends a write. What claims no run
// needs none.
func (l *Log) beforeOwnSlot(d *Definition, write *Event) (at time.Time) {
	if write.Op != "claim" {
		return write.Time
	}
	for _, slot := range d.slotsOfGroup() {
		for _, t := range l.index.leases[slot] {
			if t.Replica == write.Replica && t.Time.Before(write.Sent) && t.End.After(write.Sent) && t.Time.After(at) {
				at = t.Time.Add(-1)
			}
		}
	}
	if at.IsZero() {
		return write.Time
	}
	return at
}

// forGroup reports whether an outcome says that its ticks got no slot of the group of their job.
func (n *told) forGroup(d *Definition) bool {
	return d.Group != "" && n.outcome.Status == store.Skipped && n.outcome.Reason == "group "+d.Group
}

// findGroups finds the names of all groups, and the times in which their slots are leased.
func (x *index) findGroups(l *Log) {
	for _, defs := range l.Fleet {
		for _, d := range defs {
			if d.Group != "" && !slices.Contains(x.groups, d.Group) {
				x.groups = append(x.groups, d.Group)
			}
		}
	}
	slices.Sort(x.groups)
	for _, name := range x.slots {
		if n, _ := entry.Parse(name); n.Kind == entry.Group {
			x.leases[name] = leaseTimes(x.events[name][Request])
		}
	}
}

// leaseTimes are the times in which an entry is leased by the requests for it.
func leaseTimes(all []*Event) (times []Event) {
	var t tenure
	var since time.Time
	var holder string
	end := func(at time.Time) {
		if t.id != "" && at.After(since) {
			times = append(times, Event{Time: since, End: at, Replica: holder})
		}
	}
	for _, e := range all {
		if !e.OK() {
			continue
		}
		before := t
		if t.follow(e); e.Op == "delete" {
			t = tenure{}
		}
		if before.id == t.id {
			continue
		}
		after := t
		t = before
		end(earlier(before.until, e.Time))
		t, since, holder = after, e.Time, e.Replica
	}
	end(t.until)
	return times
}

// runsOfGroup are the runs of all jobs of a group, in the order of their starts. The End of each is
// that of the trust in it.
func (l *Log) runsOfGroup(group string) (all []Event) {
	for _, job := range l.index.jobs {
		for _, r := range l.runs(job) {
			if d := l.definition(r.Replica, job); d == nil || d.Group != group {
				continue
			}
			if r.End = l.trustedTo(&r); r.Time.Before(r.End) {
				all = append(all, r)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int { return a.Time.Compare(b.Time) })
	return all
}

// limit is the largest limit of a group on the replicas that are up at t.
func (l *Log) limit(group string, t time.Time) (most int) {
	for _, u := range l.of("", Up) {
		over := slices.ContainsFunc(slices.Concat(l.of("", Gone), l.of("", Crash)), func(e *Event) bool {
			return e.Replica == u.Replica && e.Time.Before(t)
		})
		if u.Time.After(t) || over {
			continue
		}
		for _, d := range l.Fleet[u.Replica] {
			if d.Group == group {
				most = max(most, d.Slots)
			}
		}
	}
	return most
}

// slotsOfGroup are the entries of the slots of a group as one replica knows them.
func (d *Definition) slotsOfGroup() (all []string) {
	for i := range d.Slots {
		all = append(all, entry.OfSlot(entry.Group, i, d.Group))
	}
	return all
}

// groupForgot reports whether the entry of a slot was deleted between two times.
func (l *Log) groupForgot(group string, a, b time.Time) bool {
	return slices.ContainsFunc(l.index.slots, func(slot string) bool {
		n, _ := entry.Parse(slot)
		return n.Kind == entry.Group && n.Name == group && l.forgot(slot, a, b)
	})
}

// fullUntil is the last moment from a to b at which all slots of the group of a job were leased, zero if
// there was none.
func (l *Log) fullUntil(d *Definition, a, b time.Time) (last time.Time) {
	moments := []time.Time{b}
	for _, slot := range d.slotsOfGroup() {
		for _, t := range l.index.leases[slot] {
			moments = append(moments, t.End.Add(-1))
		}
	}
	for _, m := range moments {
		if m.After(last) && !m.Before(a) && !m.After(b) && l.fullAt(d, m) {
			last = m
		}
	}
	return last
}

// fullAt reports whether all slots of the group of a job are leased.
func (l *Log) fullAt(d *Definition, at time.Time) bool {
	return !slices.ContainsFunc(d.slotsOfGroup(), func(slot string) bool {
		return !slices.ContainsFunc(l.index.leases[slot], func(t Event) bool { return !t.Time.After(at) && t.End.After(at) })
	})
}

// slotsHindered reports whether a fault has met a request of a replica for a slot of a group, or an
// operator has touched one, between two times: one that looks for a slot keeps the others of its
// replica waiting.
func (l *Log) slotsHindered(d *Definition, replica string, a, b time.Time) bool {
	if l.frozen(replica, a, b) != nil {
		return true
	}
	return slices.ContainsFunc(d.slotsOfGroup(), func(slot string) bool {
		return slices.ContainsFunc(l.of(slot, Request), func(e *Event) bool {
			return (e.Replica == replica && (e.Cause != "" || e.Heard.IsZero()) || e.Replica == Operator) && e.Sent.Before(b) && overAt(e).After(a)
		})
	})
}

// slotHeldOff reports whether a replica held off on a slot of a group between two times, for as long as a
// job waits before it gives up. The jobs of a replica wait in turn, and the turn of one ends with its claim
// of a slot: until then no other one looks, whichever slots are free.
func (l *Log) slotHeldOff(d *Definition, replica string, a, b time.Time) bool {
	return slices.ContainsFunc(d.slotsOfGroup(), func(slot string) bool {
		return slices.ContainsFunc(l.claimed(slot), func(c *Event) bool {
			t := l.termOf(slot, c.Record.Token)
			return c.Replica == replica && earlier(c.Time, b).Sub(later(t.acquired(), a)) >= groupPatience
		})
	})
}

// groupPatience is how long a job waits for a slot of its group before it looks at its own entry again.
const groupPatience = 5 * time.Second

func namesOf(all []Event) (names []string) {
	for _, r := range all {
		names = append(names, r.name())
	}
	return names
}
