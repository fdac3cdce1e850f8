package judge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// What has to come, and how soon, is judged only once nothing goes wrong any more.

const (
	rests  = 2 * time.Minute  // until a healed cluster has left behind what befell it
	starts = 10 * time.Second // from a tick to a start
)

func (w *world) healed() time.Time {
	for _, e := range w.of[trace.Healed] {
		return e.Time
	}
	return time.Time{}
}

func (w *world) settled() time.Time {
	for _, e := range w.of[trace.Healed] {
		if e.End.After(e.Time.Add(trace.Settling)) {
			return e.End
		}
	}
	return w.healed().Add(trace.Settling)
}

// latest is the definition of a job on the replica that came up last, to stay.
func (w *world) latest(job string) (d *trace.Definition) {
	for _, u := range w.of[trace.Up] {
		if one := w.definition(u.Replica, job); one != nil && u.Cause != trace.Aborted {
			d = one
		}
	}
	return d
}

// aborted is when the last replica of an aborted deploy came up.
func (w *world) aborted() (last time.Time) {
	for _, u := range w.of[trace.Up] {
		if u.Cause == trace.Aborted {
			last = u.Time
		}
	}
	return last
}

func (w *world) calm() {
	healed, settled := w.healed(), w.settled()
	if healed.IsZero() || w.Zero != nil {
		return
	}
	from := healed.Add(rests)
	if a := w.aborted(); !a.IsZero() { // others respect it for a while
		from = later(from, a.Add(trace.Patience+time.Minute))
	}
	for _, name := range w.names {
		e, d := w.entries[name], w.latest(name)
		if d == nil || d.EveryReplica || trace.IsSlot(name) || name == trace.Foreign {
			continue
		}
		last := e.last()
		if d.Every == 0 {
			alive := slices.ContainsFunc(e.runs, func(r *run) bool {
				return slices.ContainsFunc(r.live, func(s span) bool { return s.from.Before(settled) && s.to.After(settled.Add(-time.Minute)) })
			})
			if !alive && cmp.Or(d.Backoff, 5*time.Second) <= time.Minute {
				w.bad("L2 runs", settled, "%s does not run", name)
			}
			continue
		}
		if w.pausedItself(name) {
			continue
		}
		busy := d.Missed == soloist.RunAll && len(e.runs) > 0 && e.runs[len(e.runs)-1].Time.After(settled.Add(-time.Minute))
		if last == nil || d.After(last.Watermark).Before(healed) && !busy {
			w.bad("L1 settled", settled, "ticks of %s up to %s have no outcome", name, trace.TimeOfDay(healed))
			continue
		}
		if d.Follows == "" && d.Group == "" && !d.Paused {
			w.inTime(e, d, from, settled)
		}
		w.cheap(e, d, from, settled)
	}
	w.waiters(healed, settled)
	w.ordered(settled)
	w.spread(settled)
	for _, s := range w.of[trace.Said] {
		if why, ok := strings.CutPrefix(s.Note, "health: "); ok && s.Job != trace.Foreign && w.aborted().IsZero() && !strings.Contains(s.Cause, "not write it") {
			w.bad("L6 health", s.Time, "%s says that %s is %s (%s)", s.Replica, s.Job, why, s.Cause)
		}
	}
}

func (e *entryLog) last() (r *store.Record) {
	for _, q := range slices.Backward(e.writes) {
		if q.Record != nil {
			return q.Record
		}
	}
	return nil
}

func (w *world) pausedItself(job string) bool {
	d, e := w.latest(job), w.entries[job]
	if e == nil || d == nil {
		return false
	}
	last := e.last()
	return last != nil && !last.Orders.Paused.At.IsZero() || slices.ContainsFunc(d.Before(), w.pausedItself)
}

// inTime: each tick starts within some seconds, unless its job was running then; none is missed.
func (w *world) inTime(e *entryLog, d *trace.Definition, from, to time.Time) {
	for tick := d.After(from); tick.Add(starts + time.Second).Before(to); tick = d.After(tick) {
		by, under, started := tick.Add(starts), false, false
		for _, r := range e.runs {
			other := r.claim != nil && !r.Tick.Equal(tick) && r.claim.Time.Before(tick.Add(time.Second))
			under = under || other && (r.End.IsZero() || r.End.After(tick.Add(-3*time.Second)))
			its := r.Tick.Equal(tick) || d.Overlap == soloist.Replace && r.Tick.After(tick)
			started = started || its && r.Request == "" && !r.Time.After(by)
		}
		if !started && (!under || d.Overlap == soloist.Replace) {
			w.bad("L1 in time", by, "tick %s of %s does not start, and it does not run", trace.TimeOfDay(tick), e.name)
		}
	}
}

// cheap: a tick costs few requests on average.
func (w *world) cheap(e *entryLog, d *trace.Definition, from, to time.Time) {
	ticks := 0
	for tick := d.After(from); tick.Before(to.Add(-starts)); tick = d.After(tick) {
		ticks++
	}
	if ticks < 6 || d.Beat > 0 || d.Follows != "" || d.Group != "" {
		return
	}
	n, took := 0, time.Duration(0)
	for _, q := range e.requests {
		if q.Sent.After(from) && q.Sent.Before(to.Add(-starts)) && q.Op != "renew" && q.Op != "save" && q.Op != "load" && q.Op != "progress" && q.Replica != trace.Operator {
			n++
		}
	}
	for _, r := range e.runs {
		for _, s := range r.live {
			if s.from.After(from) {
				took += s.to.Sub(s.from)
			}
		}
	}
	replicas := len(w.upAt(to.Add(-time.Second)))
	if most := ticks*(7+4*replicas) + replicas*(int(took/(d.Lease/3))+4); n > most {
		w.bad("L7 budget", to, "%d ticks of %s took %d requests of %d replicas, at most %d", ticks, e.name, n, replicas, most)
	}
}

// upAt are the replicas that are up to stay.
func (w *world) upAt(at time.Time) (all []*trace.Event) {
	for _, u := range w.of[trace.Up] {
		if g := w.gone(u.Replica); !u.Time.After(at) && (g.IsZero() || g.After(at)) && u.Cause == "" {
			all = append(all, u)
		}
	}
	return all
}

// waiters: who waits for a lock, or for what is done once, is served.
func (w *world) waiters(healed, settled time.Time) {
	for _, c := range w.of[trace.Called] {
		if g := w.gone(c.Replica); !c.End.IsZero() && c.End.Before(healed) || !g.IsZero() && g.Before(settled.Add(-time.Second)) || c.Time.After(settled.Add(-30*time.Second)) {
			continue
		}
		lease := cmp.Or(w.Locks[c.Lock].Lease, w.Onces[c.Job].Lease)
		if o, ok := w.Onces[c.Job]; ok && (o.Backoff > time.Second || o.MaxTries > 0) {
			continue
		}
		by := later(healed, c.Time).Add(3*lease + 30*time.Second)
		if by.Before(settled) && (c.End.IsZero() || c.End.After(by)) {
			w.bad("L3 served", by, "%s waits since %s, and goes on until %s", c.Call, trace.TimeOfDay(c.Time), trace.TimeOfDay(c.End))
		}
	}
}

// ordered: what was ordered has its outcome, and each tick of a backfill.
func (w *world) ordered(settled time.Time) {
	for _, o := range w.of[trace.Ordered] {
		e, d := w.entries[o.Job], w.latest(o.Job)
		if e == nil || d == nil || d.Every == 0 || o.Heard.IsZero() || len(e.epochs) > 0 || w.pausedItself(o.Job) || slices.ContainsFunc(w.of[trace.Deleted], func(d *trace.Event) bool { return d.Job == "" }) {
			continue
		}
		switch o.Op {
		case string(store.OrderRun):
			if o.End.Before(settled) && !slices.ContainsFunc(e.writes, func(q *trace.Event) bool {
				return q.Record != nil && slices.ContainsFunc(q.Record.History, func(f store.Outcome) bool { return f.Request == o.Request })
			}) {
				w.bad("L4 orders", o.Time, "%s of %s has no outcome", o.Request, o.Job)
			}
		case string(store.OrderBackfill):
			w.backfill(o, e, d)
		}
	}
}

// backfill: each tick of a backfill has one outcome, and none has begun that is not one of them.
func (w *world) backfill(o *trace.Event, e *entryLog, d *trace.Definition) {
	cancelled := slices.ContainsFunc(w.of[trace.Ordered], func(c *trace.Event) bool {
		return c.Job == o.Job && c.Op == string(store.OrderCancelBackfill) && c.Time.After(o.Time)
	})
	constant := true
	for replica := range w.Fleet {
		if its := w.definition(replica, o.Job); its != nil && (its.Every != d.Every || its.Limits != d.Limits || its.Paused) {
			constant = false
		}
	}
	seq := store.BackfillOf(o.Request)
	if cancelled || !constant || seq == 0 {
		return
	}
	var want, got []time.Time
	for _, s := range o.Spans {
		for tick := d.After(s.From); !tick.After(s.To); tick = d.After(tick) {
			want = append(want, tick)
		}
	}
	var done int64
	for _, r := range e.runs {
		if r.Request == o.Request && r.Try == 1 && !slices.ContainsFunc(got, r.Tick.Equal) {
			got = append(got, r.Tick)
		}
	}
	for _, q := range e.writes {
		if q.Record != nil && q.Record.Backfill.Seq == seq {
			done = q.Record.Backfill.Done()
		}
	}
	if last := e.last(); last == nil || d.After(d.After(last.Watermark)).Before(w.settled()) {
		return // it is always behind
	}
	if len(got) > len(want) || done != int64(len(want)) {
		w.bad("L4 orders", w.settled(), "%s of %s has %d ticks, %d began, and %d have an outcome", o.Request, o.Job, len(want), len(got), done)
	}
}

// spread: no replica holds two more shards than another.
func (w *world) spread(settled time.Time) {
	wholes := map[string]map[string]int{}
	at := settled.Add(-time.Second)
	for _, name := range w.names {
		d := w.latest(name)
		if d == nil || !d.Spread() || d.Backoff > time.Minute || d.Beat > 0 {
			continue
		}
		if wholes[d.Whole] == nil {
			wholes[d.Whole] = map[string]int{}
			for _, u := range w.upAt(at) {
				wholes[d.Whole][u.Replica] = 0
			}
		}
		for _, r := range w.entries[name].runs {
			if slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(at) && s.to.After(at) }) {
				wholes[d.Whole][r.Replica]++
			}
		}
	}
	for whole, held := range wholes {
		most, least := 0, 1<<30
		for _, n := range held {
			most, least = max(most, n), min(least, n)
		}
		if most-least > 1 && len(held) > 1 {
			w.bad("L5 spread", at, "the shards of %s are held so: %v", whole, held)
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
