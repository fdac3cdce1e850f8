package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// evidence is all that a world leaves behind.
type evidence struct {
	job   job
	log   []event // of the service
	runs  []run
	calls []call
	text  string // logs
}

func (w *world) evidence() evidence {
	e := evidence{job: w.job, log: w.service.log(), runs: w.all()}
	for _, r := range w.replicas {
		e.calls = append(e.calls, r.line.sent()...)
		e.text += r.log.String()
	}
	return e
}

// judge returns what is wrong. Complaints have the names of the invariants.
func (e evidence) judge() []string {
	var c complaints
	c.leases(e.log)
	c.records(e.log, e.job)
	c.runs(e)
	c.outcomes(e)
	c.calls(e.calls)
	c.patience(e.calls, e.runs)
	c.secrets(e.text)
	return c
}

// check judges a world that has ended.
func (w *world) check() {
	w.t.Helper()
	e := w.evidence()
	for i, c := range e.judge() {
		if i == 10 {
			w.t.Error("...")
			break
		}
		w.t.Error(c)
	}
	if w.t.Failed() {
		w.t.Logf("the end of the service's log:\n%s", tail(e.log, 40))
	}
}

func tail(log []event, n int) string {
	var b strings.Builder
	for _, e := range log[max(0, len(log)-n):] {
		fmt.Fprintf(&b, "%s %s %s %.4s %d %s", at(e.Time), e.replica, e.Op.Op, e.Lease, e.Status, e.Code)
		if r := e.record; r != nil {
			fmt.Fprintf(&b, " token %d %s %s/%d through %s", r.Token%1000, r.Status, r.Tick.Format(time.TimeOnly), r.Attempt, r.Watermark.Format(time.TimeOnly))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func at(t time.Time) string { return t.Format("15:04:05.000") }

type complaints []string

func (c *complaints) add(format string, args ...any) { *c = append(*c, fmt.Sprintf(format, args...)) }

// A tenure is the time that the service gave to one lease id.
type tenure struct {
	id    string
	span  time.Duration
	until time.Time // as far as known now
}

// follow lets one request have its effect on who holds the lease.
func (h *tenure) follow(e event) {
	switch {
	case !e.ok():
	case e.Op.Op == "acquire":
		*h = tenure{e.Lease, e.span, e.Time.Add(e.span)}
	case e.Op.Op == "renew":
		h.until = e.Time.Add(h.span)
	case e.Op.Op == "release":
		h.until = e.Time
	}
}

// leases checks I2b, that who writes holds the lease, and I2d, that an id is one
// replica's and serves one acquisition.
func (c *complaints) leases(log []event) {
	var holder tenure
	made, wrote, over, owner := false, map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, e := range log {
		if e.Lease != "" && owner[e.Lease] == "" {
			owner[e.Lease] = e.replica
		}
		if owner[e.Lease] != e.replica && e.Lease != "" {
			c.add("I2d: at %s %s used a lease id of %s", at(e.Time), e.replica, owner[e.Lease])
		}
		switch {
		case !e.ok():
			continue
		case e.Op.Op == "put" || e.Op.Op == "metadata":
			if made && (e.Lease == "" || e.Lease != holder.id || !e.Time.Before(holder.until)) {
				c.add("I2b: at %s %s wrote under the lease id %q, which does not hold", at(e.Time), e.replica, e.Lease)
			}
			made, wrote[e.Lease] = true, true
		case e.Op.Op == "acquire":
			if wrote[e.Lease] && over[e.Lease] {
				c.add("I2d: at %s %s acquired the lease under an id of the past", at(e.Time), e.replica)
			}
			over[holder.id] = holder.id != e.Lease
		case e.Op.Op == "release":
			over[e.Lease] = true
		}
		holder.follow(e)
	}
}

// writes are the records that the service took.
func writes(log []event) (all []event) {
	for _, e := range log {
		if e.ok() && e.record != nil {
			all = append(all, e)
		}
	}
	return all
}

// records checks I2a, that an attempt is claimed once, I2c, that tokens grow,
// and I3, that each tick has one outcome.
func (c *complaints) records(log []event, j job) {
	type attempt struct {
		tick time.Time
		n    int
	}
	claimed, outcomes := map[attempt]bool{}, map[time.Time][]store.Outcome{}
	var last *store.Record
	var lease string
	for _, e := range writes(log) {
		r := e.record
		if last == nil {
			last = r
			continue
		}
		if r.Watermark.Before(last.Watermark) {
			c.add("I3: at %s the watermark moved back from %s to %s", at(e.Time), last.Watermark, r.Watermark)
		}
		this := attempt{r.Tick, r.Attempt}
		switch {
		case r.Token < last.Token:
			c.add("I2c: at %s the token fell from %d to %d", at(e.Time), last.Token, r.Token)
		case r.Token > last.Token:
			if claimed[this] || r.Status != store.Running {
				c.add("I2a: at %s a claim of %s, attempt %d, status %s, that was claimed before", at(e.Time), r.Tick, r.Attempt, r.Status)
			}
			if r.Attempt > 1 && (!claimed[attempt{r.Tick, r.Attempt - 1}] || j.interrupted != soloist.Rerun) {
				c.add("I15: at %s attempt %d of %s", at(e.Time), r.Attempt, r.Tick)
			}
			claimed[this], lease = true, e.Lease
		case !r.Tick.Equal(last.Tick) || r.Attempt != last.Attempt:
			c.add("I2c: at %s a claim of %s under the token of %s", at(e.Time), r.Tick, last.Tick)
		case r.Status == store.Running && (last.Status != store.Running || lease != e.Lease):
			c.add("I2a: at %s the run of token %d began again", at(e.Time), r.Token)
		}
		for _, f := range news(last.History, r.History) {
			for _, tick := range j.ticks(f) {
				outcomes[tick] = append(outcomes[tick], f)
			}
		}
		last = r
	}
	if last == nil {
		return
	}
	for tick, all := range outcomes {
		if len(all) > 1 || tick.After(last.Watermark) {
			c.add("I3: %s has %d outcomes, with the watermark at %s: %v", tick, len(all), last.Watermark, all)
		}
	}
	for _, tick := range j.ticks(store.Outcome{From: last.Created, Tick: last.Watermark}) {
		if len(outcomes[tick]) == 0 {
			c.add("I3: %s has no outcome, and the watermark is at %s", tick, last.Watermark)
		}
	}
}

// ticks are those of an outcome.
func (j job) ticks(f store.Outcome) (all []time.Time) {
	if f.From.IsZero() {
		return []time.Time{f.Tick}
	}
	for t := f.From.Truncate(j.every).Add(j.every); !t.After(f.Tick); t = t.Add(j.every) {
		all = append(all, t)
	}
	return all
}

// news is what stands in front of the old history in the new one, of which the
// oldest may have been cut off.
func news(old, now []store.Outcome) []store.Outcome {
	for n := range now {
		rest := now[n:]
		if len(rest) <= len(old) && slices.Equal(rest, old[:len(rest)]) {
			return now[:n]
		}
	}
	return now
}

// runs checks that nothing runs without a claim or on another's time: I1, that
// no two runs go on at once, and that each ends while the service keeps its
// lease and its replica may trust in that.
func (c *complaints) runs(e evidence) {
	begun := map[string]bool{}
	var before time.Time
	for _, r := range e.runs {
		id := fmt.Sprintf("the run of %s, attempt %d,", r.ID(), r.Attempt)
		if begun[id] {
			c.add("I2a: %s began twice", id)
		}
		begun[id] = true
		if r.start.Before(before) {
			c.add("I1: %s began at %s, and one before it ended at %s", id, at(r.start), at(before))
		}
		if r.end.After(before) {
			before = r.end
		}
		claim := claimOf(e.log, r.Token)
		if claim.record == nil {
			c.add("I2a: %s was never claimed", id)
			continue
		}
		if claim.replica != r.replica || claim.Time.After(r.start) || !claim.record.Tick.Equal(r.Tick) || claim.record.Attempt != r.Attempt {
			c.add("I2a: %s by %s at %s: the claim was %s's, at %s", id, r.replica, at(r.start), claim.replica, at(claim.Time))
		}
		if until := kept(e.log, claim.Lease, r.end); r.end.After(until) {
			c.add("I1: %s ended at %s, and its lease at %s", id, at(r.end), at(until))
		}
		if until := trusted(e.calls, claim.Lease, r.end); r.end.After(until.Add(time.Millisecond)) {
			c.add("I1: %s ended at %s, and the trust at %s", id, at(r.end), at(until))
		}
	}
}

func claimOf(log []event, token int64) event {
	for _, e := range writes(log) {
		if e.record.Token == token && e.record.Status == store.Running {
			return e
		}
	}
	return event{}
}

// outcomes checks I10's other half: what is recorded as succeeded ran to its end.
func (c *complaints) outcomes(e evidence) {
	for _, w := range writes(e.log) {
		ran := func(r run) bool { return r.Token == w.record.Token && r.cause == nil && !r.end.After(w.Time) }
		if w.record.Status == store.Succeeded && !slices.ContainsFunc(e.runs, ran) {
			c.add("I10: at %s %s was written as succeeded, and did not run to its end", at(w.Time), w.record.Tick)
		}
	}
}

// kept is when the lease of id ends, by what the service had answered at t.
func kept(log []event, id string, t time.Time) time.Time {
	var holder tenure
	var until time.Time
	for _, e := range log {
		if e.Time.After(t) {
			break
		}
		if holder.follow(e); holder.id == id {
			until = holder.until
		}
	}
	return until
}

// trusted is until when a replica may believe at t that it has the lease of id:
// the promise of the package comment.
func trusted(calls []call, id string, t time.Time) (until time.Time) {
	for _, c := range calls {
		if (c.op == "acquire" || c.op == "renew") && c.leaseID() == id && c.heard && !c.done.After(t) {
			until = c.sent.Add(trust)
		}
	}
	return until
}

// calls checks that none goes on for longer than a replica can wait for it.
func (c *complaints) calls(calls []call) {
	for _, call := range calls {
		limit := D / 6
		if call.op == "create" || call.op == "container" { // one call of the store may be three requests
			limit = D / 3
		}
		if call.op == "token" { // one fetch serves all calls and may take longer than any
			limit = time.Minute
		}
		if took := call.done.Sub(call.sent); took > limit || call.done.IsZero() {
			c.add("a call took too long: %s at %s, %s", call.op, at(call.sent), took)
		}
	}
}

// patience checks I7a, that a renewal which failed during a run is tried again
// while there is time for it.
func (c *complaints) patience(calls []call, runs []run) {
	const soon = D / 10
	for i, failed := range calls {
		if failed.op != "renew" || failed.heard {
			continue
		}
		ranOn := slices.ContainsFunc(runs, func(r run) bool {
			return r.replica == failed.line.replica && r.start.Before(failed.sent) && r.end.Sub(failed.done) > soon
		})
		again := slices.ContainsFunc(calls[i+1:], func(next call) bool {
			return next.op == "renew" && next.leaseID() == failed.leaseID() && next.sent.Sub(failed.done) <= soon
		})
		if ranOn && !again {
			c.add("I7a: after the failed renewal at %s there was none for %s, and the run went on", at(failed.sent), soon)
		}
	}
}

// secrets looks for what must not be told.
func (c *complaints) secrets(text string) {
	for _, s := range []string{accountKey, "do-not-tell", signature, "SharedKey", "sig="} {
		if i := strings.Index(text, s); i >= 0 {
			c.add("a secret is told: %s", text[max(0, i-200):min(len(text), i+50)])
		}
	}
}
