package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

// ledger: within an epoch the watermark never goes back; of the ticks that it passes each has exactly one outcome, and they
// are ticks of the definition; an attempt is claimed once, without gaps, and a further one only under Rerun; ticks are
// claimed in their order, and none that the watermark has passed.
func (w *world) ledger(e *entryLog) {
	var last *store.Record
	var before *claim
	claimed := map[[2]int64]bool{}
	epoch, next := 0, 0
	for _, q := range e.writes {
		r := q.Record
		if n := e.epoch(q.Time); n != epoch || q.Op == "create" {
			epoch, last, before, claimed = n, nil, nil, map[[2]int64]bool{}
			for next < len(e.claims) && e.claims[next].epoch < n {
				next++
			}
		}
		if r == nil || q.Replica == trace.Operator || last == nil {
			if r == nil && q.Replica != trace.Operator {
				w.bad("S5 ledger", q.Time, "%s leaves no record of %s", q.Replica, e.name)
			}
			last = r
			continue
		}
		d := w.definition(q.Replica, e.name)
		isClaim := next < len(e.claims) && e.claims[next].Event == q
		if isClaim && e.claims[next].back.IsZero() {
			w.claims(e, e.claims[next], before, last, claimed, d)
			before = e.claims[next]
		}
		if isClaim {
			next++
		} else if q.Op != "take back" && r.Token == last.Token && (!r.Run.Tick.Equal(last.Run.Tick) || r.Run.Attempt != last.Run.Attempt || r.Run.Status == store.Running && last.Run.Status != store.Running) && !last.Backfill.Several {
			w.bad("S3 token", q.Time, "%s writes another run of %s under token %d", q.Replica, e.name, r.Token)
		}
		if d != nil && d.Every > 0 {
			w.settles(e, q, last, d)
		}
		last = r
	}
}

func (w *world) claims(e *entryLog, c, before *claim, last *store.Record, claimed map[[2]int64]bool, d *trace.Definition) {
	run := &c.Record.Run
	if run.Request != "" || run.Tick.IsZero() || d == nil || d.Every == 0 {
		return
	}
	key := [2]int64{run.Tick.UnixNano(), int64(run.Attempt)}
	switch {
	case claimed[key]:
		w.bad("S4 attempt", c.Time, "%s claims tick %s of %s, attempt %d, again", c.Replica, trace.TimeOfDay(run.Tick), e.name, run.Attempt)
	case run.Attempt > 1 && (!last.Run.Tick.Equal(run.Tick) || last.Run.Attempt != run.Attempt-1 || before != nil && before.Lease == c.Lease):
		w.bad("S4 attempt", c.Time, "%s claims tick %s of %s, attempt %d, after another", c.Replica, trace.TimeOfDay(run.Tick), e.name, run.Attempt)
	case run.Attempt > 1 && d.Interrupted != soloist.Rerun:
		w.bad("S4 attempt", c.Time, "%s claims tick %s of %s again, which has no Rerun", c.Replica, trace.TimeOfDay(run.Tick), e.name)
	case before != nil && before.Record.Run.Request == "" && run.Tick.Before(before.Record.Run.Tick):
		w.bad("S4 order", c.Time, "%s claims tick %s of %s after a later one", c.Replica, trace.TimeOfDay(run.Tick), e.name)
	case !run.Tick.After(last.Watermark):
		w.bad("S5 ledger", c.Time, "%s claims tick %s of %s, which has its outcome", c.Replica, trace.TimeOfDay(run.Tick), e.name)
	case run.Attempt == 1 && !d.Last(run.Tick).Equal(run.Tick):
		w.bad("S5 ledger", c.Time, "%s claims %s, which is no tick of %s", c.Replica, trace.TimeOfDay(run.Tick), e.name)
	case run.Attempt == 1 && c.Record.Definition.Spec == last.Definition.Spec && !d.After(c.Record.Watermark).Equal(run.Tick):
		w.bad("S5 ledger", c.Time, "%s claims tick %s of %s and leaves out the ticks after %s", c.Replica, trace.TimeOfDay(run.Tick), e.name, trace.TimeOfDay(c.Record.Watermark))
	}
	claimed[key] = true
}

// settles judges what one write says of the ticks between two watermarks.
func (w *world) settles(e *entryLog, q *trace.Event, last *store.Record, d *trace.Definition) {
	r, mark, same := q.Record, last.Watermark, last.Definition.Spec == q.Record.Definition.Spec
	fresh := news(last.History, r.History)
	for _, f := range slices.Backward(fresh) {
		e.told = append(e.told, told{q, mark, f})
		if f.Request != "" || f.Tick.IsZero() {
			continue
		}
		switch {
		case f.From.IsZero() && !f.Tick.After(mark), !f.From.IsZero() && !f.From.Equal(mark):
			w.bad("S5 ledger", q.Time, "%s writes an outcome of %s of %s again, or leaves some out: from %s, after %s", q.Replica, trace.TimeOfDay(f.Tick), e.name, trace.TimeOfDay(f.From), trace.TimeOfDay(mark))
		case f.From.IsZero() && same && !d.After(mark).Equal(f.Tick):
			w.bad("S5 ledger", q.Time, "%s writes an outcome of %s of %s and none of ticks after %s", q.Replica, trace.TimeOfDay(f.Tick), e.name, trace.TimeOfDay(mark))
		case f.Token == 0 && same && f.Status != store.Abandoned && !d.Last(f.Tick).Equal(f.Tick):
			w.bad("S5 ledger", q.Time, "%s writes an outcome of %s, which is no tick of %s", q.Replica, trace.TimeOfDay(f.Tick), e.name)
		case !f.From.IsZero() && same && f.Count > 0:
			n := 0
			for tick := d.After(mark); !tick.After(f.Tick) && n <= 100_000; tick = d.After(tick) {
				n++
			}
			if f.Count != min(n, 100_000) || f.AtLeast != (n > 100_000) {
				w.bad("S5 ledger", q.Time, "%s counts %d ticks of %s in a range of %d", q.Replica, f.Count, e.name, n)
			}
		}
		if f.Tick.After(mark) {
			mark = f.Tick
		}
	}
	if !mark.Equal(r.Watermark) {
		w.bad("S5 ledger", q.Time, "%s moves the watermark of %s from %s to %s, and its outcomes reach to %s", q.Replica, e.name, trace.TimeOfDay(last.Watermark), trace.TimeOfDay(r.Watermark), trace.TimeOfDay(mark))
	}
}

// news is what stands in front of the old history. The end of a run may be told later.
func news(old, now []store.Outcome) []store.Outcome {
	for n := range now {
		if rest := now[n:]; len(rest) <= len(old) && slices.EqualFunc(rest, old[:len(rest)], func(a, b store.Outcome) bool {
			a.End, b.End = time.Time{}, time.Time{}
			return a == b
		}) {
			return now[:n]
		}
	}
	return now
}

// facts: an outcome says what happened: succeeded, failed and skipped of a run that returned so before; missed or skipped of a tick
// of which no run was claimed. A tick that has succeeded does not begin again.
func (w *world) facts(e *entryLog) {
	done := map[int64]*trace.Event{}
	for _, t := range e.told {
		d := w.definition(t.write.Replica, e.name)
		if d == nil || d.Every == 0 || t.Request != "" {
			continue
		}
		epoch := e.epoch(t.write.Time)
		if t.Token == 0 {
			for _, c := range e.claims {
				tick := c.Record.Run.Tick
				if c.back.IsZero() && c.epoch == epoch && c.Record.Run.Request == "" && c.Time.Before(t.write.Time) && tick.After(t.mark) && !tick.After(t.Tick) {
					w.bad("S5 facts", t.write.Time, "%s writes that tick %s of %s is %s, and it was claimed", t.write.Replica, trace.TimeOfDay(tick), e.name, t.Status)
				}
			}
			continue
		}
		var end *run
		for _, r := range e.runs {
			if r.Token == t.Token && r.claim != nil && r.claim.epoch == epoch && !r.End.IsZero() && !r.End.After(t.write.Time) {
				end = r
			}
		}
		ok := true
		switch t.Status {
		case store.Succeeded:
			ok = end != nil && end.Note == ""
			done[t.Tick.UnixNano()] = t.write
		case store.Failed:
			ok = end != nil && end.Note != "" && !strings.Contains(end.Note, trace.NothingToDo)
		case store.Skipped:
			ok = end != nil && strings.Contains(end.Note, trace.NothingToDo)
		case store.Stalled: // no function that has returned well, by itself, before its context ended
			ok = !slices.ContainsFunc(e.runs, func(r *run) bool {
				return r.Token == t.Token && r.Note == "" && r.Cause == "" && !r.End.IsZero() && !w.sleeps(r.Replica, r.Time, r.End) && d.Pulse == trace.NoPulse && d.HeartbeatTimeout == 0
			})
		}
		if !ok {
			w.bad("S5 facts", t.write.Time, "%s writes that tick %s of %s has %s, and that is not so", t.write.Replica, trace.TimeOfDay(t.Tick), e.name, t.Status)
		}
	}
	w.around(e)
	w.causes(e)
	for _, r := range e.runs {
		s := done[r.Tick.UnixNano()]
		if s != nil && r.Request == "" && r.Time.After(s.Time) && e.epoch(r.Time) == e.epoch(s.Time) && r.claim != nil && r.claim.epoch == e.epoch(s.Time) && !w.sleeps(r.Replica, s.Time, r.Time) {
			w.bad("S4 once", r.Time, "%s begins tick %s of %s, which has succeeded", r.Replica, trace.TimeOfDay(r.Tick), e.name)
		}
	}
}

// checkpoints: a run loads what was saved last; a resource that fences takes what a run sends while its context lives.
func (w *world) checkpoints(e *entryLog) {
	kept, i := "0", 0
	for _, l := range w.of[trace.Loaded] {
		if l.Job != e.name {
			continue
		}
		for ; i < len(e.writes) && !e.writes[i].Time.After(l.Time); i++ {
			switch e.writes[i].Op {
			case "create":
				kept = "0"
			case "save":
				kept = e.writes[i].Note
			}
		}
		if c := w.crashed[l.Replica]; l.Note != kept && len(w.spoilt[e.name]) == 0 && (c.IsZero() || l.Time.Before(c)) {
			w.bad("S7 checkpoint", l.Time, "%s loads %s of %s, and %s was saved", l.Replica, l.Note, e.name, kept)
		}
	}
	for _, f := range w.of[trace.Effect] {
		if f.Job != e.name || f.Note != "refused" || len(w.spoilt[e.name]) > 0 {
			continue
		}
		for _, r := range e.runs {
			if r.Token == f.Token && r.Replica == f.Replica && r.claim != nil && e.epoch(f.Time) == r.claim.epoch && slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(f.Sent) && s.to.After(f.Time) }) {
				w.bad("S7 fence", f.Time, "the resource refuses what %s, token %d of %s, sends while its context lives", f.Replica, f.Token, e.name)
			}
		}
	}
}

// around: a run is given the newest tick whose success was written when it was claimed; and its outcome says when it ended.
func (w *world) around(e *entryLog) {
	if len(e.epochs) > 0 || !w.Around {
		return
	}
	for _, r := range e.runs {
		if d := w.definition(r.Replica, e.name); r.claim == nil || r.Request != "" || d == nil || d.Every == 0 {
			continue
		}
		var newest time.Time
		for _, t := range e.told {
			if t.Status == store.Succeeded && t.Request == "" && !t.write.Time.After(r.claim.Time) {
				newest = later(newest, t.Tick)
			}
			if t.Token == r.Token && t.Status == store.Succeeded && t.write.Lease == r.claim.Lease && r.Note == "" && !r.End.IsZero() && !w.sleeps(r.Replica, r.claim.Sent.Add(-10*time.Second), t.write.Time) {
				if doubt := w.doubt(e, r); t.End.Sub(r.End).Abs() > doubt {
					w.bad("S5 facts", t.write.Time, "%s writes that tick %s of %s ended at %s, and it did at %s", r.Replica, trace.TimeOfDay(r.Tick), e.name, trace.TimeOfDay(t.End), trace.TimeOfDay(r.End))
				}
			}
		}
		if !r.Previous.Equal(newest) {
			w.bad("S12 previous", r.Time, "%s is given %s as the last success before %s of %s, and that was %s", r.Replica, trace.TimeOfDay(r.Previous), trace.TimeOfDay(r.Tick), e.name, trace.TimeOfDay(newest))
		}
	}
}

// doubt is by how much the clock of who runs may be wrong: the second that dates leave out, the way of the answer that told
// the time, and the drift since.
func (w *world) doubt(e *entryLog, r *run) time.Duration {
	d := time.Minute
	for _, q := range e.requests {
		if q.Op == "acquire" && q.Lease == r.claim.Lease && q.OK() && !q.Heard.IsZero() && !q.Heard.After(r.claim.Sent) {
			d = time.Second + q.Heard.Sub(q.Sent) + r.End.Sub(q.Sent)/50 + slack
		}
	}
	return d
}

// causes: the context of a run ends only for what has happened: it is replaced when a newer tick is due, cancelled when that
// was ordered, and stalled if its job has a limit to its silence.
func (w *world) causes(e *entryLog) {
	for _, r := range e.runs {
		d := w.definition(r.Replica, e.name)
		if d == nil || r.Cancelled.IsZero() || r.claim == nil {
			continue
		}
		ok := true
		switch r.Cause {
		case soloist.ErrReplaced.Error():
			ok = d.Overlap == soloist.Replace && !d.After(r.Tick).After(r.Cancelled.Add(w.doubt(e, r)))
		case soloist.ErrCancelled.Error():
			ok = slices.ContainsFunc(w.of[trace.Ordered], func(o *trace.Event) bool {
				return o.Job == e.name && strings.HasPrefix(o.Op, string(store.OrderCancel)) && o.Time.Before(r.Cancelled)
			})
		case soloist.ErrStalled.Error():
			ok = d.Pulse != trace.NoPulse || d.HeartbeatTimeout > 0
		}
		if !ok {
			w.bad("S13 cause", r.Cancelled, "the context of %s, token %d of %s, ends (%s), and nothing of the kind has happened", r.Replica, r.Token, e.name, r.Cause)
		}
	}
}
