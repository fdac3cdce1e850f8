// Package judge judges the log of a simulated cluster by a few end-to-end properties. It is a prototype.
//
// Two devices take the place of excuses. What an operator deletes or overwrites begins a new epoch of the entry: the
// properties hold within one epoch. And while a machine is suspended, and for a second after it, nothing on it counts as
// alive: that time is cut out of the lives of its runs. Times are bounded only after all faults are over, in calm.go.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/entry"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/store"
)

const (
	noticed = time.Second + slack // until a machine sees that it was suspended
	slack   = 15 * time.Millisecond
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
	epoch, void int
	back        time.Time // it was taken back; zero: it was not
}

type run struct {
	trace.Event
	claim *claim
	live  []span
}

// An entry is what the service has seen of one job, singleton, slot or key.
type entryLog struct {
	name     string
	requests []*trace.Event
	runs     []*run
	claims   []*claim
	terms    []*term
	writes   []*trace.Event // taken
	epochs   []time.Time    // when each began
	told     []told
}

type told struct {
	write *trace.Event
	mark  time.Time
	store.Outcome
}

type world struct {
	*trace.Log
	entries map[string]*entryLog
	names   []string
	frozen  map[string][]span
	crashed map[string]time.Time
	of      map[trace.What][]*trace.Event
	spoilt  map[string][]*trace.Event
	all     []trace.Violation
}

func (w *world) bad(rule string, at time.Time, format string, args ...any) {
	w.all = append(w.all, trace.Violation{Invariant: rule, Time: at, Text: fmt.Sprintf(format, args...)})
}

// Judge returns what must not be.
func Judge(l *trace.Log) []trace.Violation {
	w := &world{Log: l, entries: map[string]*entryLog{}, frozen: map[string][]span{}, crashed: map[string]time.Time{}, of: map[trace.What][]*trace.Event{}, spoilt: map[string][]*trace.Event{}}
	w.index()
	for _, name := range w.names {
		e := w.entries[name]
		w.protocol(e)
		w.begun(e)
		if !trace.IsSlot(name) {
			w.ledger(e)
			w.facts(e)
			w.checkpoints(e)
		}
		w.exclusive(name, e.runs, func(time.Time) int { return 1 }, true)
	}
	w.several()
	w.stops()
	w.callers()
	w.orders()
	w.followers()
	w.statuses()
	w.events()
	w.calm()
	w.single()
	return w.all
}

func (w *world) index() {
	slotOf := map[string]*entryLog{}
	get := func(name string) *entryLog {
		if w.entries[name] == nil {
			w.entries[name] = &entryLog{name: name}
			w.names = append(w.names, name)
		}
		return w.entries[name]
	}
	for _, e := range w.Events {
		w.of[e.What] = append(w.of[e.What], e)
		switch e.What {
		case trace.Crash:
			w.crashed[e.Replica] = e.Time
		case trace.Freeze:
			w.frozen[e.Replica] = append(w.frozen[e.Replica], span{e.Time, e.End.Add(noticed)})
		case trace.Corrupted:
			w.spoilt[e.Job] = append(w.spoilt[e.Job], e)
		case trace.Request:
			if e.Job != "" && !e.OfDocument() && !strings.HasPrefix(e.Job, ".") {
				get(e.Job).requests = append(get(e.Job).requests, e)
			}
		}
	}
	slices.Sort(w.names)
	for _, name := range w.names {
		w.follow(w.entries[name])
	}
	// A function that holds a lock does not say which slot it has: its ID does.
	for _, e := range w.of[trace.Ran] {
		name := e.Job
		if e.Lock != "" {
			name = slot(e)
		}
		if d := w.definition(e.Replica, name); d != nil && d.EveryReplica || w.entries[name] == nil {
			continue
		}
		r := &run{Event: *e}
		if c := w.crashed[r.Replica]; !c.IsZero() {
			if r.Time.After(c) {
				continue // what a dead process goes on with in our memory
			}
			if r.End.IsZero() || r.End.After(c) {
				r.End = c
			}
			if r.Cancelled.After(c) {
				r.Cancelled = time.Time{}
			}
		}
		on := w.entries[name]
		r.claim = on.claimFor(r)
		r.live = w.lives(r)
		on.runs = append(on.runs, r)
	}
	_ = slotOf
}

// slot is the entry of a function that holds a lock.
func slot(e *trace.Event) string {
	n := 0
	if _, number, found := strings.Cut(e.ID[strings.LastIndexByte(e.ID, '@')+1:], "/"); found {
		fmt.Sscan(number, &n)
	}
	return entry.OfSlot(entry.Lock, n, e.Lock)
}

func (e *entryLog) claimFor(r *run) *claim {
	for _, c := range slices.Backward(e.claims) {
		if c.Record.Token == r.Token && c.Replica == r.Replica && !c.Time.After(r.Time) {
			return c
		}
	}
	return nil
}

// lives returns when the context of a run lives, less the suspensions of its machine.
func (w *world) lives(r *run) []span {
	to := r.End
	if to.IsZero() || !r.Cancelled.IsZero() && r.Cancelled.Before(to) {
		to = r.Cancelled
	}
	if to.IsZero() {
		to = w.Events[len(w.Events)-1].Time
	}
	all := []span{{r.Time, to}}
	for _, f := range w.frozen[r.Replica] {
		last := all[len(all)-1]
		if !f.from.Before(last.to) || !f.to.After(last.from) {
			continue
		}
		all = all[:len(all)-1]
		if f.from.After(last.from) {
			all = append(all, span{last.from, f.from})
		}
		if f.to.Before(last.to) {
			all = append(all, span{f.to, last.to})
		}
		if len(all) == 0 || !all[len(all)-1].to.Equal(last.to) {
			break
		}
	}
	return slices.DeleteFunc(all, func(s span) bool { return !s.from.Before(s.to) })
}

// sleeps reports whether a machine was suspended at some moment of a time.
func (w *world) sleeps(replica string, from, to time.Time) bool {
	return slices.ContainsFunc(w.frozen[replica], func(f span) bool { return !f.from.After(to) && !f.to.Before(from) })
}

// follow goes through the requests as the service applied them: leases, epochs, claims.
func (w *world) follow(e *entryLog) {
	edits := map[time.Time]bool{}
	for _, c := range w.spoilt[e.name] {
		edits[c.Time], edits[c.End] = true, true
	}
	var last *store.Record
	for _, q := range e.requests {
		if !q.OK() {
			continue
		}
		var now *term
		if n := len(e.terms); n > 0 && e.terms[n-1].to.After(q.Time) {
			now = e.terms[n-1]
		}
		switch q.Op {
		case "acquire":
			if now != nil && now.id == q.Lease { // it was asked again
				now.to = q.Time.Add(q.Span)
				break
			}
			e.terms = append(e.terms, &term{span: span{q.Time, q.Time.Add(q.Span)}, id: q.Lease, length: q.Span})
		case "renew":
			if n := len(e.terms); n > 0 && e.terms[n-1].id == q.Lease {
				e.terms[n-1].to = q.Time.Add(e.terms[n-1].length)
			}
		case "release", "replace":
			if now != nil {
				now.to = q.Time
			}
		case "break", "delete":
			if now != nil && (q.Op == "delete" || q.Span == 0) {
				now.to, now.forced = q.Time, true
			}
		}
		deleted := q.Op == "delete"
		if deleted || q.Writes() && q.Replica == trace.Operator && edits[q.Time] {
			e.epochs = append(e.epochs, q.Time)
			last = nil
			if !deleted {
				last = q.Record
			}
		}
		if !q.Writes() {
			continue
		}
		e.writes = append(e.writes, q)
		if r := q.Record; r != nil {
			if q.Replica != trace.Operator && q.Op != "create" && r.Run.Status == store.Running && (last == nil || r.Token != last.Token) {
				e.claims = append(e.claims, &claim{Event: q, epoch: len(e.epochs)})
			}
			if q.Op == "take back" {
				for _, c := range e.claims {
					if c.Lease == q.Lease && c.Record.Token == r.Token {
						c.back = q.Time
					}
				}
			}
			last = r
		}
	}
}

// epoch is which one of an entry a time is in.
func (e *entryLog) epoch(t time.Time) int {
	n, _ := slices.BinarySearchFunc(e.epochs, t, func(a, b time.Time) int { return cmp.Or(a.Compare(b), -1) })
	return n
}

// protocol: only who has the lease writes, on the version that it has read; a lease id serves one replica, one entry and one
// acquisition; what an operator has spoilt is left alone; and no lease is released under its run.
func (w *world) protocol(e *entryLog) {
	owner, used := map[string]string{}, map[string]time.Time{}
	exists, i := false, 0
	var now *store.Record
	var spoilt *trace.Event
	held := func(q *trace.Event) bool {
		return slices.ContainsFunc(e.terms, func(t *term) bool { return t.id == q.Lease && !q.Time.Before(t.from) && !q.Time.After(t.to) })
	}
	for _, q := range e.requests {
		mine := q.Replica != trace.Operator
		if q.Lease != "" && mine {
			if o := owner[q.Lease]; o != "" && o != q.Replica {
				w.bad("S2 lease", q.Time, "%s uses the lease id of %s for %s", q.Replica, o, e.name)
			}
			owner[q.Lease] = q.Replica
			if u := used[q.Lease]; q.Op == "acquire" && !u.IsZero() && q.Sent.After(u) {
				w.bad("S2 lease", q.Time, "%s acquires %s again under an id that it had", q.Replica, e.name)
			} else if q.Op != "acquire" && (u.IsZero() || q.Sent.Before(u)) {
				used[q.Lease] = q.Sent
			}
		}
		if q.Op == "release" && mine {
			for _, r := range e.runs {
				if r.claim != nil && r.claim.Lease == q.Lease && r.Replica == q.Replica && r.Time.Before(q.Sent) && (r.End.IsZero() || r.End.After(q.Sent)) {
					w.bad("S2 lease", q.Sent, "%s releases the lease of %s under its run", q.Replica, e.name)
				}
			}
		}
		if !q.OK() {
			continue
		}
		if q.Op == "release" && mine && now != nil && now.Run.Status == store.Running && !now.Run.Armed && slices.ContainsFunc(e.runs, func(r *run) bool {
			return r.Token == now.Token && r.claim != nil && r.claim.Lease == q.Lease && r.Replica == q.Replica
		}) {
			w.bad("S2 lease", q.Time, "%s releases the lease of %s, and its record says that token %d runs", q.Replica, e.name, now.Token)
		}
		if q.Writes() {
			now = q.Record
		}
		for ; i < len(w.spoilt[e.name]) && !w.spoilt[e.name][i].Time.After(q.Time); i++ {
			spoilt = w.spoilt[e.name][i]
		}
		if !mine && (q.Op == "delete" || q.Writes() && spoilt != nil && q.Time.After(spoilt.Time)) {
			spoilt = nil
		}
		switch {
		case q.Op == "delete":
			exists = false
		case !mine:
			exists = exists || q.Writes()
		case q.Op == "create" && exists:
			w.bad("S2 lease", q.Time, "%s makes the entry of %s that there is", q.Replica, e.name)
		case q.Op == "create":
			exists = true
		case q.Writes() && (q.Lease == "" || !q.Match || !held(q)):
			w.bad("S2 lease", q.Time, "%s writes %s (%s) and does not hold its lease, or names no version", q.Replica, e.name, q.Op)
		}
		if mine && spoilt != nil && spoilt.Note != trace.Older && q.Writes() && q.Time.After(spoilt.Time) {
			w.bad("S9 closed", q.Time, "%s writes %s, whose entry is spoilt: %s", q.Replica, e.name, spoilt.Note)
		}
	}
}

// begun: each run has a claim that was taken before and not taken back, once; tokens grow with claims, also over deletions,
// and are about one tick and attempt; and a run begins only when the answers under its lease do not prove that it is early.
func (w *world) begun(e *entryLog) {
	var most int64
	var last *claim
	for _, c := range e.claims {
		if last != nil && last.epoch != c.epoch && w.voided(e, last.Time, c.Time) {
			most = 0
		}
		if c.Record.Token <= most {
			w.bad("S3 token", c.Time, "%s claims %s with token %d after %d", c.Replica, e.name, c.Record.Token, most)
		}
		most, last = c.Record.Token, c
	}
	tried := map[string]bool{}
	for _, r := range e.runs {
		key := fmt.Sprint(r.Token, r.Try, r.Attempt, r.Tick.UnixNano(), r.Replica)
		switch c := r.claim; {
		case c == nil:
			w.bad("S3 claim", r.Time, "%s begins %s with token %d and has not claimed it", r.Replica, e.name, r.Token)
		case !c.back.IsZero() && c.back.Before(r.Time):
			w.bad("S3 claim", r.Time, "%s begins %s with token %d and has taken the claim back", r.Replica, e.name, r.Token)
		case tried[key]:
			w.bad("S3 claim", r.Time, "%s begins %s with token %d again", r.Replica, e.name, r.Token)
		case !trace.IsSlot(e.name) && !c.Record.Backfill.Several && (!c.Record.Run.Tick.Equal(r.Tick) && r.Request == "" || c.Record.Run.Attempt != r.Attempt):
			w.bad("S3 claim", r.Time, "%s begins %s with token %d for another tick or attempt than it has claimed", r.Replica, e.name, r.Token)
		default:
			w.early(e, r)
		}
		tried[key] = true
	}
}

// voided reports whether an operator put an older version back between two times.
func (w *world) voided(e *entryLog, a, b time.Time) bool {
	return slices.ContainsFunc(w.spoilt[e.name], func(c *trace.Event) bool { return !c.Time.After(b) && !c.End.Before(a) })
}

func (w *world) early(e *entryLog, r *run) {
	if r.Tick.IsZero() || r.Request != "" || r.Try != 1 || !r.Time.Before(r.Tick) {
		return
	}
	for _, q := range e.requests {
		if q.Lease != r.claim.Lease || q.Replica != r.Replica || !q.OK() || q.Cause != "" || q.Heard.IsZero() || !q.Heard.Before(r.Time) || w.sleeps(r.Replica, q.Sent.Add(-slack), r.Time) {
			continue
		}
		if latest := q.Time.Truncate(time.Second).Add(time.Second + r.Time.Sub(q.Sent)*51/50 + slack); latest.Before(r.Tick) {
			w.bad("S6 early", r.Time, "%s begins %s %s before its tick: the answer to its %s proves that", r.Replica, e.name, r.Tick.Sub(r.Time), q.Op)
			return
		}
	}
}

// exclusive: no more runs of an entry have a living context at once than there may be, and each lives under a lease that the
// service has given to its claim.
func (w *world) exclusive(name string, runs []*run, limit func(time.Time) int, one bool) {
	type life struct {
		span
		r *run
	}
	var all []life
	for _, r := range runs {
		for _, s := range r.live {
			all = append(all, life{s, r})
			if one && r.claim != nil {
				w.covered(r, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b life) int { return a.from.Compare(b.from) })
	var now []life
	for _, x := range all {
		now = slices.DeleteFunc(now, func(o life) bool { return !o.to.After(x.from) })
		others := 0
		for _, o := range now {
			if !one && o.r != x.r || one && o.r.Token != x.r.Token && o.r.claim != nil && x.r.claim != nil && o.r.claim.epoch == x.r.claim.epoch {
				others++
			}
		}
		if n := limit(x.from); others >= n {
			w.bad("S1 exclusive", x.from, "%s with token %d of %s lives beside %d others, until %s", x.r.Replica, x.r.Token, name, others, now[0].to)
		}
		now = append(now, x)
	}
}

// covered: while a context lives, its lease does, unless an operator has ended that.
func (w *world) covered(r *run, s span) {
	e := w.entries[r.claim.Job]
	for _, t := range e.terms {
		if t.id != r.claim.Lease {
			continue
		}
		if !t.forced && s.to.After(t.to) && s.from.Before(t.to.Add(1<<60)) && !slices.ContainsFunc(e.terms, func(o *term) bool { return o != t && o.id == t.id && o.to.After(t.to) }) {
			w.bad("S1 covered", t.to, "the context of %s, token %d of %s, lives until %s, and its lease ended", r.Replica, r.Token, e.name, s.to.Sub(t.to))
		}
	}
}

// several: a lock has no more holders than slots, a group no more runs than its limit.
func (w *world) several() {
	for name, lock := range w.Locks {
		var runs []*run
		for i := range lock.Slots {
			if e := w.entries[entry.OfSlot(entry.Lock, i, name)]; e != nil {
				runs = append(runs, w.untilLost(e, e.runs)...)
			}
		}
		w.exclusive("lock "+name, runs, func(time.Time) int { return lock.Slots }, false)
	}
	groups := map[string][]*run{}
	lost := map[string]*entryLog{}
	for _, name := range w.names {
		if n, _ := entry.Parse(name); n.Kind == entry.Group {
			if lost[n.Name] == nil {
				lost[n.Name] = &entryLog{}
			}
			lost[n.Name].epochs = append(lost[n.Name].epochs, w.entries[name].epochs...)
		}
		for _, r := range w.entries[name].runs {
			if d := w.definition(r.Replica, name); d != nil && d.Group != "" {
				groups[d.Group] = append(groups[d.Group], r)
			}
		}
	}
	for group, runs := range groups {
		if lost[group] != nil {
			slices.SortFunc(lost[group].epochs, time.Time.Compare)
			runs = w.untilLost(lost[group], runs)
		}
		w.exclusive("group "+group, runs, func(at time.Time) (most int) {
			for _, u := range w.of[trace.Up] {
				if d := w.groupOf(u.Replica, group); !u.Time.After(at) && (w.gone(u.Replica).IsZero() || w.gone(u.Replica).After(at)) {
					most = max(most, d)
				}
			}
			return most
		}, false)
	}
}

// untilLost cuts the lives of runs where an entry was deleted under them.
func (w *world) untilLost(e *entryLog, runs []*run) (all []*run) {
	for _, r := range runs {
		c := *r
		c.live = slices.DeleteFunc(slices.Clone(r.live), func(s span) bool {
			from := s.from
			if r.claim != nil {
				from = r.claim.Sent.Add(-10 * time.Second)
			}
			return e.epoch(from) != e.epoch(s.to)
		})
		all = append(all, &c)
	}
	return all
}

func (w *world) groupOf(replica, group string) int {
	for _, d := range w.Fleet[replica] {
		if d.Group == group {
			return d.Slots
		}
	}
	return 0
}

// stops: a replica that is asked to stop begins nothing that was due before, and nothing at all once its grace is over.
func (w *world) stops() {
	for _, stop := range w.of[trace.Stop] {
		for _, name := range w.names {
			for _, r := range w.entries[name].runs {
				after := r.Replica == stop.Replica && r.Time.After(stop.Time.Add(slack)) && r.Try == 1 && r.Lock == "" && (r.Request == "" || store.BackfillOf(r.Request) != 0)
				due := r.Tick.IsZero() || r.Tick.Before(stop.Time.Add(-4*time.Second)) || r.Time.After(stop.End.Add(slack))
				if after && due && !trace.IsSlot(name) && !w.sleeps(r.Replica, stop.Time, r.Time) && !w.muted(r.Replica, r.Time) {
					w.bad("S11 stop", r.Time, "%s begins %s, and was asked to stop at %s", r.Replica, name, trace.TimeOfDay(stop.Time))
				}
			}
		}
	}
}

// muted reports whether the log of a replica takes no line at a time, or just before: a run is said to begin before it does.
func (w *world) muted(replica string, t time.Time) bool {
	return slices.ContainsFunc(w.of[trace.Blocked], func(b *trace.Event) bool {
		return b.Replica == replica && b.Time.Before(t) && b.End.Add(slack).After(t)
	})
}

// gone is when a replica was killed or had stopped.
func (w *world) gone(replica string) time.Time {
	if c := w.crashed[replica]; !c.IsZero() {
		return c
	}
	for _, e := range w.of[trace.Gone] {
		if e.Replica == replica {
			return e.Time
		}
	}
	return time.Time{}
}

func (w *world) definition(replica, job string) *trace.Definition {
	for i, d := range w.Fleet[replica] {
		if d.Name == job {
			return &w.Fleet[replica][i]
		}
	}
	return nil
}

func (w *world) isForeign(name string) bool { return name == trace.Foreign }

var _ = soloist.Rerun
