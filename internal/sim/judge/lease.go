package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// leases: a replica writes only under the lease that it holds, and on the version that it has read; it makes an entry only
// where there is none. A lease id serves one replica and one acquisition.
func leases(w *world, bad report) {
	for _, e := range w.logs {
		exists := false
		owner, used := map[string]string{}, map[string]time.Time{} // used: when it was first named after its acquisition
		for _, q := range e.requests {
			mine, u, o := q.Replica != trace.Operator, used[q.Lease], owner[q.Lease]
			if mine && q.Lease != "" {
				if o != "" && o != q.Replica || q.Op == "acquire" && !u.IsZero() && q.Sent.After(u) {
					bad(q.Time, "%s asks for %s of %s by a lease id that it, or %s, has used", q.Replica, q.Op, e.name, o)
				}
				if owner[q.Lease] = q.Replica; q.Op != "acquire" {
					used[q.Lease] = first(u, q.Sent)
				}
			}
			switch {
			case !q.OK():
			case q.Op == "delete":
				exists = false
			case mine && q.Op == "create" && exists:
				bad(q.Time, "%s makes the entry of %s, which there is", q.Replica, e.name)
			case !mine || q.Op == "create":
				exists = exists || q.Writes()
			case q.Writes() && (q.Lease == "" || !q.Match || !e.held(q)):
				bad(q.Time, "%s writes %s (%s), and does not hold its lease or names no version", q.Replica, e.name, q.Op)
			}
		}
	}
}

// held reports whether the lease that a request names was in force.
func (e *entryLog) held(q *trace.Event) bool {
	return slices.ContainsFunc(e.termsBy[q.Lease], func(t *term) bool { return !q.Time.Before(t.from) && !q.Time.After(t.to) })
}

// releases: no replica releases a lease while a function runs under it, nor while the record says that its run goes on.
func releases(w *world, bad report) {
	for _, e := range w.logs {
		var now *record.Record
		for _, q := range e.requests {
			for _, r := range e.under[q.Lease] {
				switch {
				case q.Op != "release" || q.Replica != r.Replica:
				case r.Time.Before(q.Sent) && r.goesOn(q.Sent):
					bad(q.Sent, "%s releases the lease of %s while its function runs", q.Replica, e.name)
				case q.OK() && now != nil && now.Token == r.Token && now.Run.Status == event.Running && !now.Run.Armed:
					bad(q.Time, "%s releases the lease of %s, and the record says that token %d runs", q.Replica, e.name, now.Token)
				}
			}
			if q.OK() && q.Writes() {
				now = q.Record
			}
		}
	}
}

// closed: after an operator has corrupted an entry, no replica writes to it until it is mended. An older version of the
// record does not count: replicas cannot distinguish it from the right one.
func closed(w *world, bad report) {
	for _, e := range w.logs {
		var spoilt *trace.Event
		next := e.of[trace.Corrupted]
		for _, q := range e.requests {
			for ; len(next) > 0 && !next[0].Time.After(q.Time); next = next[1:] {
				spoilt = next[0]
			}
			switch {
			case !q.OK() || spoilt == nil || !q.Time.After(spoilt.Time):
			case q.Replica == trace.Operator && (q.Op == "delete" || q.Writes()):
				spoilt = nil
			case q.Writes() && spoilt.Note != trace.Older:
				bad(q.Time, "%s writes %s, whose entry is spoilt: %s", q.Replica, e.name, spoilt.Note)
			}
		}
	}
}

// A life is a time in which the context of a run lives.
type life struct {
	span
	run *run
}

func livesOf(runs []*run) (all []life) {
	for _, r := range runs {
		for _, s := range r.live {
			all = append(all, life{s, r})
		}
	}
	slices.SortStableFunc(all, func(a, b life) int { return a.from.Compare(b.from) })
	return all
}

// exclusive: of the runs of a job, or of a slot of a lock, only the runs with one token have a living context at a time. A
// group has no more runs than the limit in force, whichever slots they hold: but a run does not count once a slot was deleted
// that it may have, since nothing shows that slot as taken.
func exclusive(w *world, bad report) {
	groups, lost := by[string, *run]{}, by[string, time.Time]{}
	for _, e := range w.logs {
		alone := func(a, b *run) bool {
			return a.Token == b.Token || a.claim == nil || b.claim == nil || a.claim.epoch != b.claim.epoch
		}
		crowded(e.name, livesOf(e.runs), alone, func(time.Time) int { return 1 }, bad)
		for _, r := range e.runs {
			if r.d != nil && r.d.Group != "" {
				groups.add(r.d.Group, r)
			}
		}
		if n, _ := entry.Parse(e.name); n.Kind == entry.Group {
			lost[n.Name] = append(lost[n.Name], e.epochs...)
		}
	}
	for group, runs := range groups {
		apart := func(a, b *run) bool {
			return a == b || slices.ContainsFunc(lost[group], func(t time.Time) bool {
				return t.After(a.Time.Add(-20*time.Second)) && !t.After(b.Time)
			})
		}
		limit := func(at time.Time) (most int) { // the largest that a replica has which is up
			for _, u := range w.of[trace.Up] {
				for _, d := range w.Fleet[u.Replica] {
					if d.Group == group && w.isUp(u, at) {
						most = max(most, d.Slots)
					}
				}
			}
			return most
		}
		crowded("group "+group, livesOf(runs), apart, limit, bad)
	}
}

// crowded reports each life that begins while as many others as are allowed go on, not counting the lives that apart exempts.
func crowded(name string, all []life, apart func(a, b *run) bool, limit func(time.Time) int, bad report) {
	var now []life
	for _, x := range all {
		now = slices.DeleteFunc(now, func(o life) bool { return !o.to.After(x.from) })
		others := 0
		for _, o := range now {
			if !apart(o.run, x.run) {
				others++
			}
		}
		if others > 0 && others >= limit(x.from) {
			bad(x.from, "%s lives while %d others of %s do, the first until %s", x.run, others, name, clock(now[0].to))
		}
		now = append(now, x)
	}
}

// covered: a context lives only while the service has its lease given to its claim, unless an operator has ended that.
func covered(w *world, r *run) bool {
	if r.claim == nil {
		return false
	}
	all := r.e.termsBy[r.claim.Lease]
	n := len(all) - 1
	return n >= 0 && !all[n].forced && r.lives(all[n].to, w.end())
}
