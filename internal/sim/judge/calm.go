package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// What has to come, and how soon, is judged only once nothing goes wrong any more.

const starts = 10 * time.Second // from a tick to its start

// settled: each tick that came due while faults went on has its outcome, unless the job is still busy with one after the other.
func settled(w *world, bad report) {
	for _, t := range w.tasks {
		if t.Every == 0 || t.paused {
			continue
		}
		last := t.last(forever)
		busy := t.Late.Missed == soloist.RunAll && len(t.runs) > 0 && t.runs[len(t.runs)-1].Time.After(w.settled.Add(-time.Minute))
		if last == nil || t.After(last.Watermark).Before(w.healed) && !busy {
			bad(w.settled, "ticks of %s up to %s have no outcome", t.name, clock(w.healed))
		}
	}
}

// inTime: each tick begins within ten seconds, unless its job runs when it is due.
func inTime(w *world, bad report) {
	for _, t := range w.tasks {
		if w.Zero == nil && t.due() && !t.Paused {
			t.begins(t.calm(w), w.settled, starts, bad)
		}
	}
}

// begins judges the ticks between two times: each begins soon, or a newer one in its place, or its job runs already.
func (t task) begins(from, to time.Time, soon time.Duration, bad report) {
	for tick := t.After(from); tick.Add(soon + time.Second).Before(to); tick = t.After(tick) {
		by, under, started := tick.Add(soon), false, false
		first := after(t.runs, tick.Add(-3*time.Second), func(r *run) time.Time { return r.Time })
		for _, r := range t.runs[max(0, first-1):] {
			claimed := r.Time
			if r.claim != nil {
				claimed = r.claim.Time
			}
			if r.Time.After(by) && claimed.After(tick.Add(time.Second)) {
				break
			}
			newer := r.Tick.After(tick) && (t.Overlap == soloist.Replace || t.Every < soon && t.Late.Missed != soloist.RunAll)
			started = started || r.Request == "" && (r.Tick.Equal(tick) || newer) && !r.Time.After(by)
			under = under || !r.Tick.Equal(tick) && claimed.Before(tick.Add(time.Second)) && r.goesOn(tick.Add(-3*time.Second))
		}
		if !started && (!under || t.Overlap == soloist.Replace) {
			bad(by, "tick %s of %s does not begin, and the job does not run", clock(tick), t.name)
		}
	}
}

// singletons: each singleton runs.
func singletons(w *world, bad report) {
	for _, t := range w.tasks {
		if t.Every == 0 && !t.runsAt(w.settled, time.Minute) && cmp.Or(t.Retry.Backoff, 5*time.Second) <= time.Minute {
			bad(w.settled, "%s does not run", t.name)
		}
	}
}

// runsAt reports whether a run lives at a time, or shortly before.
func (e *entryLog) runsAt(to time.Time, before time.Duration) bool {
	return slices.ContainsFunc(e.runs, func(r *run) bool { return r.lives(to.Add(-before), to.Add(-1)) })
}

// waiters: who waits for a lock, or for what is done once, is served. What has failed is tried again after a pause, up to five
// minutes.
func waiters(w *world, bad report) {
	for _, c := range w.of[trace.Called] {
		o, e := w.Onces[c.Job], w.entries[c.Job]
		fails := e != nil && slices.ContainsFunc(e.outcomes, func(f outcome) bool { return f.Status == event.Failed })
		gone, by := w.left[c.Replica], later(w.healed, c.Time).Add(3*cmp.Or(w.Locks[c.Lock].Lease, o.Lease)+30*time.Second)
		pauses := o.Backoff > time.Second || o.MaxTries > 0 || fails
		if !pauses && by.Before(w.settled) && (c.End.IsZero() || c.End.After(by)) && (gone.IsZero() || gone.After(w.settled)) {
			bad(by, "%s waits since %s, and goes on until %s", c.Call, clock(c.Time), clock(c.End))
		}
	}
}

// spread: no replica holds two more shards of a singleton than another.
func spread(w *world, bad report) {
	at := w.settled.Add(-time.Second)
	for _, whole := range w.tasks {
		if !whole.Spread() || whole.Shard > 0 || whole.Retry.Backoff > time.Minute || whole.Beat > 0 {
			continue
		}
		held := map[string]int{} // by replica
		for _, u := range w.upAt(at) {
			held[u.Replica] = 0
		}
		for _, t := range w.tasks {
			for _, r := range t.runs {
				if _, up := held[r.Replica]; up && t.Whole == whole.Whole && r.lives(at, at) {
					held[r.Replica]++
				}
			}
		}
		if n := slices.Sorted(maps.Values(held)); len(n) > 1 && n[len(n)-1]-n[0] > 1 {
			bad(at, "the shards of %s are held so: %v", whole.Whole, held)
		}
	}
}

// health: once all faults are over, Health says nothing of a job. A replica whose last write of an entry was refused says so
// until one is taken. The definition of an aborted deploy is in force still.
func health(w *world, bad report) {
	for _, h := range w.of[trace.Health] {
		refused := false
		for _, q := range w.of[trace.Request] {
			if q.Job == h.Job && q.Replica == h.Replica && q.Writes() && q.Sent.Before(h.Time) {
				refused = !q.OK() || q.Heard.IsZero()
			}
		}
		if w.aborted.IsZero() && h.Job != trace.Foreign && !(refused && h.Op == "broken") {
			bad(h.Time, "%s says that %s is %s", h.Replica, h.Job, h.Op)
		}
	}
}

// budget: a tick costs few requests on average, of all replicas together. The requests of a run that goes on do not count,
// nor do the reads of a job that others follow: they wait for its end.
func budget(w *world, bad report) {
	to := w.settled.Add(-starts)
	replicas := len(w.upAt(to))
	for _, t := range w.tasks {
		if w.Zero != nil || t.Beat > 0 || !t.due() {
			continue
		}
		from, n, took := t.calm(w), 0, time.Duration(0)
		followed := slices.ContainsFunc(w.tasks, func(f task) bool { return slices.Contains(f.Before(), t.Name) })
		for _, q := range t.requests {
			ofRun := slices.Contains([]string{"renew", "save", "load", "progress"}, q.Op)
			if q.Sent.After(from) && q.Sent.Before(to) && !ofRun && (q.Op != "read" || !followed) && q.Replica != trace.Operator {
				n++
			}
		}
		for _, r := range t.runs {
			if len(r.live) > 0 && r.Time.After(from) {
				took += r.live[len(r.live)-1].to.Sub(r.Time)
			}
		}
		ticks := ticksIn(t.Definition, from, to.Add(-1), 1<<30)
		if most := ticks*(7+4*replicas) + replicas*(int(took/(t.Lease/3))+4); ticks >= 6 && n > most {
			bad(to, "%d ticks of %s took %d requests of %d replicas, at most %d", ticks, t.name, n, replicas, most)
		}
	}
}
