package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

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

// exclusive: of the runs of a job, or of a slot of a lock, only those of one token have a living context at a time. A group has
// no more runs than the limit in force, whichever slots they hold.
func exclusive(w *world, bad report) {
	groups := map[string][]*run{}
	for _, e := range w.logs {
		alone := func(a, b *run) bool {
			return a.Token == b.Token || a.claim == nil || b.claim == nil || a.claim.epoch != b.claim.epoch
		}
		crowded(e.name, livesOf(e.runs), alone, func(time.Time) int { return 1 }, bad)
		for _, r := range e.runs {
			if r.d != nil && r.d.Group != "" {
				groups[r.d.Group] = append(groups[r.d.Group], r)
			}
		}
	}
	same := func(a, b *run) bool { return a == b }
	for group, runs := range groups {
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
		crowded("group "+group, w.untilLost(group, livesOf(runs)), same, limit, bad)
	}
}

// crowded reports each life that begins while as many others as are allowed go on, but for those that do not count for it.
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

// untilLost leaves out lives in whose time, or shortly before whose claim, an entry of a slot of the group was deleted: nothing
// shows the slot as taken then.
func (w *world) untilLost(group string, all []life) []life {
	var lost []time.Time
	for _, e := range w.logs {
		if n, _ := entry.Parse(e.name); n.Kind == entry.Group && n.Name == group {
			lost = append(lost, e.epochs...)
		}
	}
	return slices.DeleteFunc(all, func(x life) bool {
		return slices.ContainsFunc(lost, func(t time.Time) bool { return t.After(x.from.Add(-20*time.Second)) && !t.After(x.to) })
	})
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
