package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

type span struct{ from, to time.Time }

// A term is one lease as the service gave it.
type term struct {
	span
	id, replica string
	length      time.Duration
	forced      bool // an operator has ended it
}

// A write is a write request that the service accepted.
type write struct {
	*trace.Event
	e        *entryLog
	d        *trace.Definition // of its replica; nil: it has none
	epoch    int
	last     *record.Record // what the entry said before, in its epoch; nil: nothing
	outcomes []outcome      // that it brings
}

// A claim is a write that brings a new token.
type claim struct {
	*write
	back time.Time // when it was taken back; zero: it was not
}

// ofTick reports whether a claim is of a tick of a job, which was not taken back.
func (c *claim) ofTick() bool {
	run := &c.Record.Run
	return c.back.IsZero() && c.d != nil && c.d.Every > 0 && run.Request == "" && !run.Tick.IsZero()
}

func (c *claim) String() string {
	run := &c.Record.Run
	return fmt.Sprintf("%s claims tick %s of %s, attempt %d, %s", c.Replica, clock(run.Tick), c.e.name, run.Attempt, run.Request)
}

// A run is one call of a function.
type run struct {
	trace.Event
	e     *entryLog
	d     *trace.Definition // of its replica
	claim *claim            // nil: there is none
	live  []span            // when its context lives, less suspensions
}

// returned reports whether the function has returned with success, or found nothing to do.
func (r *run) returned() bool { return r.Result == trace.Well || r.Result == trace.Skipped }

// isTick reports whether a run is of a tick of its job, and neither on demand nor of a backfill.
func (r *run) isTick() bool { return r.d != nil && r.d.Every > 0 && r.Request == "" && r.claim != nil }

// lives reports whether the context of a run lives at some moment between two times.
func (r *run) lives(from, to time.Time) bool {
	return slices.ContainsFunc(r.live, func(s span) bool { return !s.from.After(to) && s.to.After(from) })
}

// goesOn reports whether a run has not returned by a time.
func (r *run) goesOn(t time.Time) bool { return r.End.IsZero() || r.End.After(t) }

// over is when the context of a run has ended, zero for never.
func (r *run) over() time.Time {
	if r.Cancelled.IsZero() {
		return r.End
	}
	return first(r.End, r.Cancelled)
}

// inEpoch reports whether a run was claimed in the epoch of a time.
func (r *run) inEpoch(t time.Time) bool { return r.claim != nil && r.claim.epoch == r.e.epoch(t) }

func (r *run) String() string {
	return fmt.Sprintf("%s begins tick %s of %s %s, token %d, try %d,", r.Replica, clock(r.Tick), r.e.name, r.Request, r.Token, r.Try)
}

// An outcome is what a write says of a tick or of a range of ticks.
type outcome struct {
	event.Outcome
	write *write
	mark  time.Time // up to which all ticks had their outcome before
}

func (o outcome) String() string {
	q := o.write
	return fmt.Sprintf("%s writes that tick %s of %s, from %s, is %s", q.Replica, clock(o.Tick), q.e.name, clock(o.From), o.Status)
}

// by finds what belongs to a token, a lease or a tick.
type by[K comparable, V any] map[K][]V

func (b by[K, V]) add(key K, v V) { b[key] = append(b[key], v) }

// An entryLog is what the service has seen of one job, singleton, slot or key.
type entryLog struct {
	name     string
	requests []*trace.Event
	writes   []*write
	epochs   []time.Time // when each began
	claims   []*claim
	newest   *term
	outcomes []outcome
	runs     []*run
	of       map[trace.What][]*trace.Event

	claimsBy   by[int64, *claim] // by token
	runsBy     by[int64, *run]
	outcomesBy by[int64, outcome]       // by tick
	requestsBy by[string, *trace.Event] // by lease
	termsBy    by[string, *term]
	under      by[string, *run] // by the lease of their claim
}

func newEntryLog(name string) *entryLog {
	return &entryLog{name: name, of: map[trace.What][]*trace.Event{}, claimsBy: by[int64, *claim]{}, runsBy: by[int64, *run]{},
		outcomesBy: by[int64, outcome]{}, requestsBy: by[string, *trace.Event]{}, termsBy: by[string, *term]{},
		under: by[string, *run]{}}
}

// follow goes through the requests as the service applied them.
func (e *entryLog) follow(w *world) {
	edits := map[time.Time]bool{}
	for _, c := range e.of[trace.Corrupted] {
		edits[c.Time], edits[c.End] = true, true
	}
	var last *record.Record
	for _, q := range e.requests {
		e.requestsBy.add(q.Lease, q)
		if !q.OK() {
			continue
		}
		e.followLease(q)
		if q.Op == "delete" || q.Writes() && q.Replica == trace.Operator && edits[q.Time] {
			e.epochs, last = append(e.epochs, q.Time), nil
		}
		if q.Writes() {
			e.followWrite(&write{Event: q, e: e, d: w.definition(q.Replica, e.name), epoch: len(e.epochs), last: last})
			last = q.Record
		}
	}
}

func (e *entryLog) followLease(q *trace.Event) {
	now := e.newest // which may have ended
	switch over := now == nil || !now.to.After(q.Time); {
	case q.Op == "acquire" && !over && now.id == q.Lease: // it was asked again
		now.to = q.Time.Add(q.Span)
	case q.Op == "acquire":
		e.newest = &term{span: span{q.Time, q.Time.Add(q.Span)}, id: q.Lease, replica: q.Replica, length: q.Span}
		e.termsBy.add(q.Lease, e.newest)
	case q.Op == "renew" && now != nil && now.id == q.Lease:
		now.to = q.Time.Add(now.length)
	case over:
	case q.Op == "release", q.Op == "replace":
		now.to = q.Time
	case q.Op == "delete", q.Op == "break" && q.Span == 0:
		now.to, now.forced = q.Time, true
	}
}

// followWrite finds claims, those that are taken back, and outcomes.
func (e *entryLog) followWrite(q *write) {
	e.writes = append(e.writes, q)
	r := q.Record
	if r == nil || q.Replica == trace.Operator || q.Op == "create" {
		return
	}
	if r.Run.Status == event.Running && (q.last == nil || r.Token != q.last.Token) {
		c := &claim{write: q}
		e.claims = append(e.claims, c)
		e.claimsBy.add(r.Token, c)
	}
	if q.Op == "take back" {
		for _, c := range e.claimsBy[r.Token] {
			if c.Lease == q.Lease {
				c.back = q.Time
			}
		}
	}
	if q.last == nil {
		return
	}
	mark := q.last.Watermark
	for _, f := range slices.Backward(news(q.last.History, r.History)) {
		o := outcome{f, q, mark}
		q.outcomes, e.outcomes = append(q.outcomes, o), append(e.outcomes, o)
		if e.outcomesBy.add(f.Tick.UnixNano(), o); f.Request == "" {
			mark = later(mark, f.Tick)
		}
	}
}

// news is what stands in front of the old history, of which some may be dropped. The end of a run may be added later.
func news(old, now []event.Outcome) []event.Outcome {
	for n := range now {
		rest := old
		if !slices.ContainsFunc(now[n:], func(f event.Outcome) bool { // it is not in the old one, in its order
			i := slices.IndexFunc(rest, func(o event.Outcome) bool { o.End = f.End; return o == f })
			rest = rest[i+1:]
			return i < 0
		}) {
			return now[:n]
		}
	}
	return now
}

// addRun finds the claim of a run: the newest one of its replica and token.
func (e *entryLog) addRun(r *run) {
	for _, c := range e.claimsBy[r.Token] {
		if c.Replica == r.Replica && !c.Time.After(r.Time) {
			r.claim = c
		}
	}
	if e.runs = append(e.runs, r); r.claim != nil {
		e.under.add(r.claim.Lease, r)
	}
	e.runsBy.add(r.Token, r)
}

// epoch is which one of the entry a time is in.
func (e *entryLog) epoch(t time.Time) int {
	return after(e.epochs, t, func(t time.Time) time.Time { return t })
}

// last is the record that was written last before a time, nil for none.
func (e *entryLog) last(before time.Time) *record.Record {
	for _, q := range slices.Backward(e.writes) {
		if q.Record != nil && q.Time.Before(before) {
			return q.Record
		}
	}
	return nil
}

// answered reports whether what was requested has its outcome.
func (e *entryLog) answered(request string) bool {
	return slices.ContainsFunc(e.outcomes, func(f outcome) bool { return f.Request == request })
}

// begun reports whether a run that is meant has begun by a time.
func (e *entryLog) begun(by time.Time, meant func(r *run) bool) bool {
	return slices.ContainsFunc(e.runs, func(r *run) bool { return meant(r) && !r.Time.After(by) })
}
