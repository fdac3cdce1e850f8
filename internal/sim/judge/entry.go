package judge

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

type span struct{ from, to time.Time }

// A term is one lease as the service gave it.
type term struct {
	span
	id     string
	length time.Duration
	forced bool // an operator has ended it
}

// A claim is a write that was taken and brings a new token.
type claim struct {
	*trace.Event
	epoch int
	back  time.Time // when it was taken back; zero: it was not
}

// A run is one call of a function.
type run struct {
	trace.Event
	claim *claim // nil: there is none
	live  []span // when its context lives, less suspensions
}

// returned reports whether the function has returned with success, or found nothing to do.
func (r *run) returned() bool { return r.Result == trace.Well || r.Result == trace.Skipped }

// alive reports whether the context of a run lives at a time.
func (r *run) alive(t time.Time) bool {
	return slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(t) && s.to.After(t) })
}

// An outcome is what a write says of a tick or of a range of ticks.
type outcome struct {
	store.Outcome
	write *trace.Event
	mark  time.Time // up to which all ticks had their outcome before
}

// An entryLog is what the service has seen of one job, singleton, slot or key.
type entryLog struct {
	name     string
	requests []*trace.Event
	writes   []*trace.Event                 // taken
	before   map[*trace.Event]*store.Record // what the entry said before a write, in its epoch; nil: nothing
	epochs   []time.Time                    // when each began
	claims   []*claim
	terms    []*term
	outcomes []outcome
	runs     []*run
	of       map[trace.What][]*trace.Event

	find lookup
}

// A lookup finds what belongs to a token, a lease or a tick.
type lookup struct {
	claims   map[int64][]*claim // by token
	runs     map[int64][]*run
	outcomes map[int64][]outcome       // by tick
	requests map[string][]*trace.Event // by lease
	terms    map[string][]*term
	under    map[string][]*run // by the lease of their claim
}

func newEntryLog(name string) *entryLog {
	return &entryLog{name: name, before: map[*trace.Event]*store.Record{}, of: map[trace.What][]*trace.Event{}, find: lookup{
		map[int64][]*claim{}, map[int64][]*run{}, map[int64][]outcome{}, map[string][]*trace.Event{}, map[string][]*term{}, map[string][]*run{}}}
}

// follow goes through the requests as the service applied them.
func (e *entryLog) follow() {
	edits := map[time.Time]bool{}
	for _, c := range e.of[trace.Corrupted] {
		edits[c.Time], edits[c.End] = true, true
	}
	var last *store.Record
	for _, q := range e.requests {
		e.find.requests[q.Lease] = append(e.find.requests[q.Lease], q)
		if !q.OK() {
			continue
		}
		e.followLease(q)
		if q.Op == "delete" || q.Writes() && q.Replica == trace.Operator && edits[q.Time] {
			e.epochs, last = append(e.epochs, q.Time), nil
		}
		if q.Writes() {
			e.followWrite(q, last)
			last = q.Record
		}
	}
}

func (e *entryLog) followLease(q *trace.Event) {
	var now, newest *term // newest may have ended
	if n := len(e.terms); n > 0 {
		if newest = e.terms[n-1]; newest.to.After(q.Time) {
			now = newest
		}
	}
	switch {
	case q.Op == "acquire" && now != nil && now.id == q.Lease: // it was asked again
		now.to = q.Time.Add(q.Span)
	case q.Op == "acquire":
		t := &term{span: span{q.Time, q.Time.Add(q.Span)}, id: q.Lease, length: q.Span}
		e.terms, e.find.terms[q.Lease] = append(e.terms, t), append(e.find.terms[q.Lease], t)
	case q.Op == "renew" && newest != nil && newest.id == q.Lease:
		newest.to = q.Time.Add(newest.length)
	case now == nil:
	case q.Op == "release", q.Op == "replace":
		now.to = q.Time
	case q.Op == "delete", q.Op == "break" && q.Span == 0:
		now.to, now.forced = q.Time, true
	}
}

// followWrite finds claims, those that are taken back, and outcomes.
func (e *entryLog) followWrite(q *trace.Event, last *store.Record) {
	e.writes, e.before[q] = append(e.writes, q), last
	r := q.Record
	if r == nil || q.Replica == trace.Operator || q.Op == "create" {
		return
	}
	if r.Run.Status == store.Running && (last == nil || r.Token != last.Token) {
		c := &claim{Event: q, epoch: len(e.epochs)}
		e.claims, e.find.claims[r.Token] = append(e.claims, c), append(e.find.claims[r.Token], c)
	}
	if q.Op == "take back" {
		for _, c := range e.find.claims[r.Token] {
			if c.Lease == q.Lease {
				c.back = q.Time
			}
		}
	}
	if last == nil {
		return
	}
	mark := last.Watermark
	for _, f := range slices.Backward(news(last.History, r.History)) {
		o, tick := outcome{f, q, mark}, f.Tick.UnixNano()
		e.outcomes, e.find.outcomes[tick] = append(e.outcomes, o), append(e.find.outcomes[tick], o)
		if f.Request == "" {
			mark = later(mark, f.Tick)
		}
	}
}

// news is what stands in front of the old history. The end of a run may be added later.
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

// addRun finds the claim of a run: the newest one of its replica and token.
func (e *entryLog) addRun(r *run) {
	for _, c := range e.find.claims[r.Token] {
		if c.Replica == r.Replica && !c.Time.After(r.Time) {
			r.claim = c
		}
	}
	if r.claim != nil {
		e.find.under[r.claim.Lease] = append(e.find.under[r.claim.Lease], r)
	}
	e.runs, e.find.runs[r.Token] = append(e.runs, r), append(e.find.runs[r.Token], r)
}

// epoch is which one of the entry a time is in.
func (e *entryLog) epoch(t time.Time) int {
	return after(e.epochs, t, func(t time.Time) time.Time { return t })
}

// inEpoch reports whether a run was claimed in the epoch of a time.
func (e *entryLog) inEpoch(r *run, t time.Time) bool {
	return r.claim != nil && r.claim.epoch == e.epoch(t)
}

// last is the record as the entry has it in the end, nil if it has none.
func (e *entryLog) last() *store.Record {
	for _, q := range slices.Backward(e.writes) {
		if q.Record != nil {
			return q.Record
		}
	}
	return nil
}

// restored reports whether an operator put an older version back between two times.
func (e *entryLog) restored(from, to time.Time) bool {
	return slices.ContainsFunc(e.of[trace.Corrupted], func(c *trace.Event) bool { return !c.Time.After(to) && !c.End.Before(from) })
}
