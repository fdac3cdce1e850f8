package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// callers: who calls is told what has happened. Do calls its function once at most, returns after it, and returns nil only if
// that did; Once.Run returns nil only after a success, and nothing begins after the outcome of one was written; RunNow tells an
// outcome that is written. IDs are unique.
func (w *world) callers() {
	ids := map[string]string{}
	runs := map[string][]*run{}
	for _, name := range w.names {
		for _, r := range w.entries[name].runs {
			if r.Call != "" {
				runs[r.Call] = append(runs[r.Call], r)
			}
			if r.Lock != "" {
				if ids[r.Lock+r.ID] != "" {
					w.bad("S8 told", r.Time, "%s is told the ID %s of %s", r.Call, r.ID, ids[r.Lock+r.ID])
				}
				ids[r.Lock+r.ID] = r.Call
			}
		}
	}
	for _, c := range w.of[trace.Called] {
		if c.End.IsZero() {
			continue
		}
		all := runs[c.Call]
		if c.Op == "once" {
			w.once(c)
			continue
		}
		switch {
		case len(all) > 1 || len(all) == 0 && c.Note == "":
			w.bad("S8 told", c.End, "%s returns %q after %d calls of its function", c.Call, c.Note, len(all))
		case len(all) == 1 && (all[0].End.IsZero() || all[0].End.After(c.End)):
			w.bad("S8 told", c.End, "%s returns under its function", c.Call)
		case len(all) == 1 && (c.Note == trace.IsHeld || c.Note == "" && (all[0].Note != "" || all[0].Cause == store.ErrLost.Error())):
			w.bad("S8 told", c.End, "%s returns %q, and its function %q", c.Call, c.Note, all[0].Note)
		case c.Note == trace.IsHeld && c.Op == "do" && c.Cancelled.IsZero():
			w.bad("S8 told", c.End, "%s says that %s is held before its context has ended", c.Call, c.Lock)
		case c.Note == trace.IsHeld && c.Op == "try" && c.Cancelled.IsZero() && !w.busy(c):
			w.bad("S8 told", c.End, "%s says that %s is held, and it was free", c.Call, c.Lock)
		}
	}
	for _, s := range w.of[trace.Said] {
		status, ok := strings.CutPrefix(s.Note, trace.ByHand)
		e := w.entries[s.Job]
		if d := w.definition(s.Replica, s.Job); !ok || e == nil || d == nil || d.EveryReplica || status == "refused" || status == string(store.Running) {
			continue
		}
		if !slices.ContainsFunc(e.requests, func(q *trace.Event) bool {
			r := q.Record
			return q.Writes() && q.OK() && r != nil && !q.Time.After(s.Time) && (r.Run.Request == s.Request && r.Run.Status == store.Status(status) ||
				slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Request == s.Request && f.Status == store.Status(status) }))
		}) {
			w.bad("S8 told", s.Time, "%s tells that %s of %s has %s, which is not written", s.Replica, s.Request, s.Job, status)
		}
	}
}

// busy reports whether a slot of a lock was leased at some moment of a call, another call of the replica was under way, or a request
// of the call met a fault.
func (w *world) busy(c *trace.Event) bool {
	for i := range w.Locks[c.Lock].Slots {
		e := w.entries[entry.OfSlot(entry.Lock, i, c.Lock)]
		if e == nil {
			continue
		}
		if slices.ContainsFunc(e.terms, func(t *term) bool { return t.from.Before(c.End) && t.to.After(c.Time) }) ||
			slices.ContainsFunc(e.requests, func(q *trace.Event) bool {
				return q.Replica == c.Replica && (q.Cause != "" || q.Heard.IsZero()) && !q.Sent.Before(c.Time) && !q.Sent.After(c.End)
			}) {
			return true
		}
	}
	return w.sleeps(c.Replica, c.Time, c.End) || slices.ContainsFunc(w.of[trace.Called], func(o *trace.Event) bool {
		return o != c && o.Lock == c.Lock && o.Replica == c.Replica && !o.Time.After(c.End) && (o.End.IsZero() || !o.End.Before(c.Time))
	})
}

func (w *world) once(c *trace.Event) {
	e := w.entries[c.Job]
	if e == nil {
		return
	}
	well := func(r *run) bool {
		return !r.End.IsZero() && (r.Note == "" || strings.Contains(r.Note, trace.NothingToDo))
	}
	if c.Note == "" && !slices.ContainsFunc(e.runs, func(r *run) bool { return well(r) && !r.End.After(c.End) }) {
		w.bad("S8 told", c.End, "%s returns nil, and nobody has done %s", c.Call, c.Job)
	}
	if most := w.Onces[c.Job].MaxTries; strings.Contains(c.Note, "is not tried again for this key") && (most == 0 || len(e.claims) < most) {
		w.bad("S8 told", c.End, "%s gives %s up after %d claims of %d", c.Call, c.Job, len(e.claims), most)
	} else if c.Note != "" && c.Cancelled.IsZero() && !strings.Contains(c.Note, "is not tried again for this key") {
		w.bad("S8 told", c.End, "%s of %s ends before its context: %s", c.Call, c.Job, c.Note)
	}
	for _, r := range e.runs {
		for _, q := range e.writes {
			if q.Op == "finish" && q.Record != nil && q.Record.Token == r.Token && r.claim != nil && q.Lease == r.claim.Lease && well(r) {
				for _, again := range e.runs {
					if again.Time.After(q.Time) && e.epoch(again.Time) == e.epoch(q.Time) && again.claim != nil && again.claim.epoch == e.epoch(q.Time) && !w.sleeps(again.Replica, q.Time, again.Time) {
						w.bad("S4 once", again.Time, "%s begins %s again, which was done", again.Replica, c.Job)
					}
				}
				break
			}
		}
	}
}

// binds is how long after its confirmation each replica knows of an order.
const binds = 8*time.Second + 100*time.Millisecond

// orders: nothing of a paused job begins; a run that was ordered begins once; none is cancelled for which nobody has ordered that.
func (w *world) orders() {
	lost := func(from, to time.Time) bool {
		return slices.ContainsFunc(w.of[trace.Deleted], func(d *trace.Event) bool { return d.Job == "" && d.Time.After(from) && !d.Time.After(to) })
	}
	for _, o := range w.of[trace.Ordered] {
		e := w.entries[o.Job]
		if e == nil {
			continue
		}
		begun := 0
		for _, r := range e.runs {
			switch {
			case o.Op == string(store.OrderPause) && r.Try == 1 && (r.Request == "" || store.BackfillOf(r.Request) != 0):
				from := o.Heard.Add(binds)
				over := !o.End.IsZero() && r.Time.After(o.End.Add(-3*time.Second)) || slices.ContainsFunc(w.of[trace.Ordered], func(p *trace.Event) bool {
					return p != o && p.Job == o.Job && (p.Heard.IsZero() || !p.Heard.Before(o.Time)) && p.Time.Before(r.Time) && (p.Op == string(store.OrderResume) || p.Op == string(store.OrderPause) && !p.End.IsZero())
				})
				if !o.Heard.IsZero() && r.Time.After(from) && !over && !lost(o.Time, r.Time) && !w.sleeps(r.Replica, o.Heard, r.Time) {
					w.bad("S9 orders", r.Time, "%s begins %s, which is paused since %s", r.Replica, o.Job, trace.TimeOfDay(o.Heard))
				}
			case o.Op == string(store.OrderRun) && r.Request == o.Request && r.Try == 1 && !lost(o.Time, r.Time) && e.epoch(o.Time) == e.epoch(r.Time):
				if begun++; begun > 1 {
					w.bad("S9 orders", r.Time, "%s begins %s of %s again", r.Replica, o.Request, o.Job)
				}
			}
		}
	}
}

// followers: a run of a follower starts only when the service had taken that those before it have returned well for its tick.
func (w *world) followers() {
	for _, name := range w.names {
		for _, r := range w.entries[name].runs {
			d := w.definition(r.Replica, name)
			if d == nil || d.Follows == "" || r.Request != "" || r.claim == nil {
				continue
			}
			for _, before := range d.Before() {
				e := w.entries[before]
				if e == nil || len(w.spoilt[before]) > 0 {
					continue
				}
				if !slices.ContainsFunc(e.writes, func(q *trace.Event) bool {
					if q.Record == nil || !q.Time.Before(r.Time) {
						return false
					}
					if d.FollowsAny {
						return !q.Record.Watermark.Before(r.Tick)
					}
					return q.Op == "finish" && slices.ContainsFunc(e.runs, func(p *run) bool {
						return p.Request == "" && p.Tick.Equal(r.Tick) && p.Token == q.Record.Token && p.Note == "" && !p.End.IsZero() && p.End.Before(q.Time)
					})
				}) {
					w.bad("S10 after", r.Time, "%s begins tick %s of %s, and %s has not ended for it", r.Replica, trace.TimeOfDay(r.Tick), name, before)
				}
			}
		}
	}
}

// statuses: a status says what a record said while it was read.
func (w *world) statuses() {
	for _, s := range w.of[trace.Listed] {
		e := w.entries[s.Job]
		if e == nil || e.epoch(s.Heard) > 0 || slices.ContainsFunc(w.of[trace.Deleted], func(d *trace.Event) bool { return d.Job == "" && d.Time.Before(s.Heard) }) {
			continue
		}
		said, there := s.Record == nil, false
		for i, q := range e.writes {
			if q.Time.After(s.Heard) || i+1 < len(e.writes) && !e.writes[i+1].Time.After(s.Sent) {
				continue
			}
			if s.Record == nil && !q.Time.After(s.Sent) {
				there = true
			}
			said = said || q.Record != nil && q.Record.Writer == s.Record.Writer
		}
		if !said || there {
			w.bad("S8 told", s.Heard, "a status says of %s what its record did not say from %s on", s.Job, trace.TimeOfDay(s.Sent))
		}
	}
}

// events: what a replica tells of an outcome is written before, and it tells it once. After all faults it tells each.
func (w *world) events() {
	if !w.Emits {
		return
	}
	healed := w.healed()
	count := map[string]int{}
	key := func(replica, job string, kind event.Kind, tick time.Time, token int64) string {
		return fmt.Sprint(replica, job, kind, tick.UnixNano(), token)
	}
	for _, e := range w.of[trace.Emitted] {
		on := w.entries[e.Job]
		kind := event.Kind(e.Op)
		if d := w.definition(e.Replica, e.Job); kind != event.Ended && kind != event.Settled || on == nil || d == nil || d.EveryReplica || len(w.spoilt[e.Job]) > 0 || e.Request != "" {
			continue
		}
		k := key(e.Replica, e.Job, kind, e.Tick, e.Token)
		if count[k]++; count[k] > 1 {
			w.bad("S8 events", e.Time, "%s tells what became of tick %s of %s again", e.Replica, trace.TimeOfDay(e.Tick), e.Job)
		}
		if !slices.ContainsFunc(on.writes, func(q *trace.Event) bool {
			r := q.Record
			return r != nil && q.Replica == e.Replica && !q.Time.After(e.Time) && (r.Token == e.Token && e.Token != 0 && string(r.Run.Status) == e.Note ||
				slices.ContainsFunc(r.History, func(f store.Outcome) bool { return f.Tick.Equal(e.Tick) && string(f.Status) == e.Note }))
		}) {
			w.bad("S8 events", e.Time, "%s tells that tick %s of %s has %s, which it has not written", e.Replica, trace.TimeOfDay(e.Tick), e.Job, e.Note)
		}
	}
	for _, name := range w.names {
		for _, t := range w.entries[name].told {
			if healed.IsZero() || t.write.Time.Before(healed.Add(time.Minute)) || t.Request != "" || len(w.spoilt[name]) > 0 {
				continue
			}
			if g := w.gone(t.write.Replica); count[key(t.write.Replica, name, event.Ended, t.Tick, t.Token)]+count[key(t.write.Replica, name, event.Settled, t.Tick, t.Token)] == 0 && (g.IsZero() || g.After(t.write.Time.Add(time.Minute))) {
				w.bad("S8 events", t.write.Time, "%s does not tell that tick %s of %s has %s", t.write.Replica, trace.TimeOfDay(t.Tick), name, t.Status)
			}
		}
	}
}
