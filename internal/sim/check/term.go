package check

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A term is what one claim began: the tries of its run, until its outcome is
// written, or nothing of it is left.
type term struct {
	claim   *Event
	acquire *Event    // of its lease, as it was answered last before the claim; nil: unknown
	asking  time.Time // when its claimer began to acquire it
	sent    time.Time // the first request that claims
	tries   []*Event
	over    time.Time // the last write of its lease, or the end of its last try
	asked   time.Time // the last request to write its outcome, whatever the answer
}

// A told is an outcome as a write tells it first.
type told struct {
	write   *Event
	before  *store.Record // that the write replaces
	outcome store.Outcome
	mark    time.Time // the watermark that the outcome moves on
}

func (x *index) addTerms(job string) {
	x.terms[job] = map[int64]*term{}
	byLease := map[string][]*term{} // one that is kept from tick to tick has several claims
	for _, e := range x.claims[job] {
		t := &term{claim: e, sent: e.Sent, over: e.Time}
		x.terms[job][e.Record.Token] = t
		byLease[e.Lease] = append(byLease[e.Lease], t)
	}
	for _, e := range x.events[job][Request] {
		for _, t := range byLease[e.Lease] {
			x.addTo(t, e)
		}
	}
	runs := x.runs[job]
	for i := range runs {
		if t := x.terms[job][runs[i].Token]; t != nil && t.claim.Replica == runs[i].Replica {
			t.tries = append(t.tries, &runs[i])
			if runs[i].End.After(t.over) {
				t.over = runs[i].End
			}
		}
	}
}

// addTo notes what a request under the lease of a term is for it.
func (x *index) addTo(t *term, e *Event) {
	its := (e.Record == nil || e.Record.Token == t.claim.Record.Token) && e.Op != "settle"
	if its && e.Op == "finish" {
		t.asked = e.Sent
	}
	switch {
	case e.Replica != t.claim.Replica:
	case e.Op == "acquire" && e.OK() && !e.Heard.IsZero() && !e.Heard.After(t.claim.Sent):
		t.acquire, t.asking = e, x.begins(e)
	case its && e.Op == "claim" && e.Sent.Before(t.sent):
		t.sent = e.Sent
	case its && e.Writes() && e.OK() && e.Time.After(t.over):
		t.over = e.Time
	}
}

// begins is when a replica looked at its clock for a request: its machine may have been
// suspended between that and the request.
func (x *index) begins(e *Event) time.Time {
	for _, f := range x.freezes[e.Replica] {
		if !f.End.After(e.Sent) && !f.End.Add(moment).Before(e.Sent) {
			return f.Time
		}
	}
	return e.Sent
}

// addTold finds the outcomes that writes tell. What an operator writes tells none.
func (x *index) addTold(job string) {
	var last *store.Record
	for _, e := range x.writes[job] {
		r := e.Record
		if r == nil || e.Replica == Operator {
			continue
		}
		if last == nil || e.Op == "create" {
			last = r
			continue
		}
		mark := last.Watermark
		outcomes := news(last.History, r.History)
		for _, f := range slices.Backward(outcomes) {
			x.told[job] = append(x.told[job], told{e, last, f, mark})
			if f.Request == "" && f.Tick.After(mark) {
				mark = f.Tick
			}
		}
		last = r
	}
}

// termOf is what the claim of a token began, nil if there is none.
func (l *Log) termOf(job string, token int64) *term { return l.index.terms[job][token] }

// doubt is how far the service's clock may be from what the claimer of a term
// takes it for: whole seconds, the way of the answer that told it, and what two
// clocks may differ by since then.
func (t *term) doubt() time.Duration { return t.doubtAt(t.sent) }

// doubtAt is doubt at another time.
func (t *term) doubtAt(at time.Time) time.Duration {
	if t.acquire == nil {
		return time.Minute
	}
	since := at.Sub(t.asking)
	return time.Second + t.acquire.Heard.Sub(t.asking) + since/50 + slack
}

// decided is when the claimer of a term looked at the clock for it at the earliest:
// its machine may have been suspended between that and the claim.
func (l *Log) decided(t *term) time.Time {
	if stood := l.frozen(t.claim.Replica, t.acquired(), t.sent); stood != nil && stood.Time.Before(t.sent) {
		return stood.Time
	}
	return t.sent
}

// outcomePatience is for how many lengths of its lease a replica tries to write an
// outcome.
const outcomePatience = 5

// gone is when nothing of a term is left: a replica keeps the lease while it tries
// to write the outcome of its run.
func (t *term) gone() time.Time {
	if most := t.over.Add(outcomePatience * time.Duration(t.claim.Record.Run.Lease)); t.asked.After(most) {
		return most
	}
	return later(t.over, t.asked)
}

// last is the try of a term that has returned last, nil if none began.
func (t *term) last() *Event {
	if len(t.tries) == 0 {
		return nil
	}
	last := t.tries[len(t.tries)-1]
	for _, r := range t.tries { // a claim of several ticks has as many runs at a time
		if t.claim.several() && !last.End.IsZero() && (r.End.IsZero() || r.End.After(last.End)) {
			last = r
		}
	}
	return last
}

// acquired is when the lease of a term was acquired. The claim itself may come
// long after, and the lease be broken in between.
func (t *term) acquired() time.Time {
	if t.acquire == nil {
		return t.claim.Time
	}
	return t.acquire.Time
}

// tick is when the tick of a term is due, zero for a run by hand or a singleton.
func (t *term) tick() time.Time {
	if t.claim.Record.Run.Request != "" {
		return time.Time{}
	}
	return t.claim.Record.Run.Tick
}

// held is when the claimer of a term had its lease, the claim at the latest.
func (t *term) held() time.Time {
	if t.acquire == nil || t.acquire.Sent.After(t.claim.Sent) {
		return t.claim.Sent
	}
	return t.acquire.Sent
}
