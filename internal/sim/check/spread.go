package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Spread reports whether it is a shard of a singleton.
func (d *Definition) Spread() bool { return d.Shards > 0 && d.Every == 0 }

// keptExtra is for how many leases a replica may keep a shard beyond its part, and a few for the time in
// which the shard was free, and in which it is handed over.
const keptExtra = 10 + 4

// longestRest is the longest Backoff with which the spread is even that soon: those that rest have no part.
const longestRest = time.Minute

// calmSpread is since when all is calm, and no definition of an aborted deploy is in force any more.
func (l *Log) calmSpread() time.Time { return l.settled().Add(-Settling - Spreading) }

// evenSpread: when all faults are over, and what replicas have kept beyond their parts is offered
// again, no replica that takes part holds two more shards of a singleton than another, and each shard
// has a holder, but for two leases after a replica has come or gone.
func evenSpread(l *Log, bad report) {
	if l.healed().IsZero() {
		return
	}
	for _, job := range l.index.jobs {
		d := l.latest(job)
		if d == nil || !d.Spread() || d.Shard > 0 || d.Backoff > longestRest {
			continue
		}
		if d.brief() {
			continue
		}
		longest, shards := l.longestSpread(d), l.shardsOf(d)
		from := later(l.calmSpread().Add(keptExtra*longest), l.lastChange().Add(2*longest+noticed))
		for _, at := range l.moments(shards, from, l.settled().Add(-time.Second)) {
			if text := l.unevenAt(d, shards, at); text != "" {
				bad(at, "%s of %s", text, d.Whole)
				break
			}
		}
	}
}

// shardsOf are the names of all shards of a whole.
func (l *Log) shardsOf(of *Definition) (names []string) {
	for _, job := range l.index.jobs {
		if d := l.latest(job); d != nil && d.Whole == of.Whole {
			names = append(names, job)
		}
	}
	return names
}

// longestSpread is the longest lease of the shards of a whole on any replica.
func (l *Log) longestSpread(of *Definition) (longest time.Duration) {
	for _, defs := range l.Fleet {
		for _, d := range defs {
			if d.Whole == of.Whole {
				longest = max(longest, d.Lease)
			}
		}
	}
	return longest
}

// lastChange is when the last replica came or went before the end of all.
func (l *Log) lastChange() (last time.Time) {
	for _, what := range []What{Up, Stop, Gone, Crash} {
		for _, e := range l.of("", what) {
			if e.Time.Before(l.settled()) {
				last = later(last, e.Time)
			}
		}
	}
	return last
}

// moments are the times between two, at which a run of a shard begins or ends, and those two.
func (l *Log) moments(shards []string, from, to time.Time) (all []time.Time) {
	if !from.Before(to) {
		return nil
	}
	all = []time.Time{from, to}
	for _, shard := range shards {
		for _, r := range l.runs(shard) {
			for _, t := range []time.Time{r.Time, l.believed(&r)} {
				if t.After(from) && t.Before(to) {
					all = append(all, t)
				}
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// unevenAt is how the shards of a singleton are not spread evenly at a time, empty if they are.
func (l *Log) unevenAt(of *Definition, shards []string, at time.Time) string {
	held, kept := map[string]int{}, map[string]int{}
	for _, u := range l.of("", Up) {
		if l.takesPart(u, of, at) {
			held[u.Replica] = 0
		}
	}
	for _, shard := range shards {
		runs := l.runs(shard)
		n := slices.IndexFunc(runs, func(r Event) bool { return !r.Time.After(at) && l.believed(&r).After(at) })
		if n < 0 {
			return "nobody holds " + shard
		}
		if _, takes := held[runs[n].Replica]; takes {
			held[runs[n].Replica]++
			if n > 0 && runs[n-1].Replica != runs[n].Replica && slices.Contains([]store.Status{store.Failed, store.Stalled}, l.outcomeOf(&runs[n-1])) {
				kept[runs[n].Replica]++
			}
		}
	}
	maps.DeleteFunc(held, func(replica string, n int) bool { return n > 0 && n == kept[replica] }) // it hands none of them over
	return unequal(held)
}

// takesPart reports whether a replica has shards of a singleton to hold at a time: one to stay, that is
// not woken up by calls, and of which no run goes on after the end of its context.
func (l *Log) takesPart(u *Event, of *Definition, at time.Time) bool {
	its := l.definition(u.Replica, of.Name)
	over := slices.ContainsFunc(slices.Concat(l.of("", Stop), l.of("", Gone), l.of("", Crash)), func(e *Event) bool {
		return e.Replica == u.Replica && !e.Time.After(at)
	})
	if over || u.Cause != "" || u.Time.After(at) || its == nil || !its.Spread() || its.Shards != of.Shards {
		return false
	}
	for _, job := range l.index.jobs {
		if slices.ContainsFunc(l.runs(job), func(r Event) bool {
			return r.Replica == u.Replica && !r.Cancelled.IsZero() && !r.Cancelled.After(at) && (r.End.IsZero() || r.End.After(at))
		}) {
			return false
		}
	}
	return true
}

// unequal names the replicas of which one holds two more shards than the other, empty if there are none.
func unequal(held map[string]int) string {
	replicas := slices.Sorted(maps.Keys(held))
	byHeld := func(a, b string) int { return cmp.Compare(held[a], held[b]) }
	if len(replicas) < 2 {
		return ""
	}
	most, least := slices.MaxFunc(replicas, byHeld), slices.MinFunc(replicas, byHeld)
	if held[most]-held[least] < 2 {
		return ""
	}
	return fmt.Sprintf("%s holds %d shards, and %s %d,", most, held[most], least, held[least])
}
