package store

import (
	"errors"
	"maps"
	"slices"
)

// A replica writes the record of each job twice a tick, and package json takes longer for that
// than all that decides what to write. So the known fields are appended by hand, to the same
// bytes as those of package json, but for what must be ASCII. A test holds the two together, so
// that no new field is left out here.

// appendJSON appends the record as JSON in ASCII. It returns false if that is not possible: the
// record has an instant that JSON cannot write, or fields of a newer program.
func (r *Record) appendJSON(b []byte) ([]byte, bool) {
	if len(r.unknown) > 0 {
		return b, false
	}
	w := writer{b: append(b, '{')}
	w.number("schema", schema)
	w.text("app", r.App)
	w.text("job", r.Job)
	w.instant("created", r.Created)
	w.definition(&r.Definition)
	w.number("token", r.Token)
	if r.Beat != (Beat{}) {
		w.open("beat", '{')
		w.number("token", r.Beat.Token)
		w.seconds("length", r.Beat.Length)
		w.close()
	}
	w.text("writer", r.Writer)
	w.instant("watermark", r.Watermark)
	w.instantUnlessZero("due", r.Due)
	w.instantUnlessZero("succeeded", r.Succeeded)
	if r.Past != (Past{}) {
		w.past(&r.Past)
	}
	w.run(&r.Run)
	w.numberUnlessZero("failures", r.Failures)
	if !r.Orders.zero() {
		w.orders(&r.Orders)
	}
	if !r.Backfill.zero() {
		w.backfill(&r.Backfill)
	}
	w.counts(r.Counts)
	if r.History != nil {
		w.open("history", '[')
		for i := range r.History {
			w.element()
			w.outcome(&r.History[i])
		}
		w.b = append(w.b, ']')
	}
	w.close()
	return w.b, w.err == nil
}

func (w *writer) definition(d *Definition) {
	w.open("definition", '{')
	w.text("spec", d.Spec)
	w.instant("since", d.Since)
	if d.Mark != (Mark{}) {
		w.open("mark", '{')
		w.text("spec", d.Mark.Spec)
		w.instant("since", d.Mark.Since)
		w.close()
	}
	w.close()
}

func (w *writer) past(p *Past) {
	w.open("past", '{')
	w.instantUnlessZero("succeeded", p.Succeeded)
	w.instantUnlessZero("judged", p.Judged)
	if p.Late != (Late{}) {
		w.open("late", '{')
		w.instant("since", p.Late.Since)
		w.instant("tick", p.Late.Tick)
		w.number("count", p.Late.Count)
		w.close()
	}
	w.instantUnlessZero("told", p.Told)
	w.close()
}

func (w *writer) run(r *Run) {
	w.open("run", '{')
	w.instantUnlessZero("tick", r.Tick)
	w.textUnlessEmpty("request", r.Request)
	w.numberUnlessZero("order", r.Order)
	w.numberUnlessZero("attempt", int64(r.Attempt))
	w.numberUnlessZero("deaths", int64(r.Deaths))
	w.text("status", string(r.Status))
	w.textUnlessEmpty("replica", r.Replica)
	if r.Lease != 0 {
		w.seconds("lease", r.Lease)
	}
	w.instantUnlessZero("claimed", r.Claimed)
	w.flag("armed", r.Armed)
	w.instantUnlessZero("finished", r.Finished)
	w.flag("stopping", r.Stopping)
	if r.Progress != (Progress{}) {
		w.open("progress", '{')
		w.textUnlessEmpty("note", r.Progress.Note)
		w.instant("at", r.Progress.At)
		w.close()
	}
	w.textUnlessEmpty("error", r.Error)
	if r.Unlocked != (Unlocked{}) {
		w.open("unlocked", '{')
		w.text("by", r.Unlocked.By)
		w.instant("at", r.Unlocked.At)
		w.close()
	}
	w.close()
}

func (w *writer) orders(o *Orders) {
	w.open("orders", '{')
	w.numberUnlessZero("served", o.Served)
	if o.Paused != (SelfPause{}) {
		w.open("paused", '{')
		w.instant("at", o.Paused.At)
		w.number("token", o.Paused.Token)
		w.close()
	}
	if len(o.Pauses) > 0 {
		w.open("pauses", '[')
		for _, s := range o.Pauses {
			w.element()
			w.instant("from", s.From)
			w.instant("to", s.To)
			w.close()
		}
		w.b = append(w.b, ']')
	}
	if o.Returned != (Returned{}) {
		w.open("returned", '{')
		w.instantUnlessZero("tick", o.Returned.Tick)
		w.numberUnlessZero("order", o.Returned.Order)
		w.close()
	}
	w.numberUnlessZero("spared", o.Spared)
	w.close()
}

// zero reports whether no field is set.
func (o *Orders) zero() bool {
	return o.Served == 0 && o.Paused == SelfPause{} && o.Pauses == nil && o.Returned == Returned{} && o.Spared == 0
}

func (w *writer) backfill(b *Backfilled) {
	w.open("backfill", '{')
	w.number("seq", b.Seq)
	w.instant("through", b.Through)
	w.numberUnlessZero("attempt", int64(b.Attempt))
	w.numberUnlessZero("deaths", int64(b.Deaths))
	w.counts(b.Counts)
	w.instantUnlessZero("failed", b.Failed)
	w.flag("several", b.Several)
	w.openTicks(b.Open)
	w.close()
}

func (w *writer) openTicks(all []OpenTick) {
	if len(all) == 0 {
		return
	}
	w.open("open", '[')
	for _, o := range all {
		w.element()
		w.instant("tick", o.Tick)
		w.number("token", o.Token)
		w.numberUnlessZero("attempt", int64(o.Attempt))
		w.numberUnlessZero("deaths", int64(o.Deaths))
		w.close()
	}
	w.b = append(w.b, ']')
}

// zero reports whether no field is set.
func (b *Backfilled) zero() bool {
	return b.Seq == 0 && b.Through.IsZero() && b.Attempt == 0 && b.Deaths == 0 && b.Counts == nil && b.Failed.IsZero() && !b.Several && len(b.Open) == 0
}

var errUnknownCount = errors.New("the record counts a status that this program does not know")

func (w *writer) counts(c map[Status]int64) {
	if c == nil {
		return
	}
	w.open("counts", '{')
	for _, s := range slices.Sorted(maps.Keys(c)) {
		if !s.known() { // its name may have to be escaped
			w.err = errUnknownCount
		}
		w.number(string(s), c[s])
	}
	w.close()
}

// outcome appends the members of an outcome and closes it.
func (w *writer) outcome(o *Outcome) {
	w.instantUnlessZero("tick", o.Tick)
	w.instantUnlessZero("from", o.From)
	w.numberUnlessZero("count", int64(o.Count))
	w.flag("atLeast", o.AtLeast)
	w.text("status", string(o.Status))
	w.textUnlessEmpty("reason", o.Reason)
	w.textUnlessEmpty("request", o.Request)
	w.numberUnlessZero("attempt", int64(o.Attempt))
	w.numberUnlessZero("token", o.Token)
	w.textUnlessEmpty("replica", o.Replica)
	w.instantUnlessZero("start", o.Start)
	w.instantUnlessZero("end", o.End)
	w.close()
}
