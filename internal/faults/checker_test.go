package faults_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Each forgery of what an ordinary world leaves behind is found out, by name.
func TestTheChecker(t *testing.T) {
	var clean evidence
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, job: long, config: by(byKey)}
		w.start("a", "b")
		time.Sleep(4*time.Minute + 50*time.Second)
		w.end()
		clean = w.evidence()
	})
	if bad := clean.judge(); len(clean.runs) != 4 || len(bad) > 0 {
		t.Fatalf("%d runs: %q", len(clean.runs), bad)
	}
	for _, tt := range []struct {
		forgery, want string
		forge         func(e *evidence)
	}{
		{"a write without a lease id", "I2b", func(e *evidence) { e.write(5).Lease = "" }},
		{"a write under a lease that ran out", "I2b", func(e *evidence) { e.write(6).Time = e.write(6).Time.Add(D) }},
		{"a write after the release", "I2b", func(e *evidence) { e.write(5).Lease = e.write(3).Lease }},
		{"a lease id that is acquired again", "an id of the past", func(e *evidence) { e.reacquire() }},
		{"a lease id of another", "I2d", func(e *evidence) { e.write(6).replica = "c" }},
		{"a token that does not grow", "I2c", func(e *evidence) { e.write(5).record.Token--; e.write(6).record.Token-- }},
		{"a token that falls", "I2c", func(e *evidence) { e.write(7).record.Token -= 2 }},
		{"a tick that is claimed twice", "I2a", func(e *evidence) { e.write(5).record.Tick = e.write(3).record.Tick }},
		{"an attempt out of order", "I15", func(e *evidence) { e.write(5).record.Attempt = 3 }},
		{"a run that begins again", "I2a", func(e *evidence) { *e.write(5).record = *e.write(3).record }},
		{"a tick without an outcome", "I3", func(e *evidence) { h := &e.write(8).record.History; *h = (*h)[1:] }},
		{"a tick with two outcomes", "I3", func(e *evidence) { h := &e.write(4).record.History; *h = append((*h)[:1:1], *h...) }},
		{"a watermark that moves back", "I3", func(e *evidence) { e.write(5).record.Watermark = e.write(3).record.Watermark }},
		{"a success of nobody", "I10", func(e *evidence) { e.runs[1].cause = store.ErrLost }},
		{"two runs at once", "I1:", func(e *evidence) { e.runs[1].end = e.runs[2].start.Add(1) }},
		{"a run after its lease", "I1:", func(e *evidence) { e.runs[3].end = e.runs[3].end.Add(D) }},
		{"a run beyond its trust", "the trust at", func(e *evidence) { e.runs[3].end = e.runs[3].end.Add(D - D/6) }},
		{"a run without a claim", "I2a", func(e *evidence) { e.runs[2].Token += 100 }},
		{"a run before its claim", "I2a", func(e *evidence) { e.runs[2].start = e.runs[2].start.Add(-time.Second) }},
		{"a run that begins twice", "I2a", func(e *evidence) { e.runs = append(e.runs, e.runs[3]) }},
		{"a renewal without an answer", "I7a", func(e *evidence) { e.call("renew").heard = false }},
		{"a call without an end", "took too long", func(e *evidence) { c := e.call("renew"); c.done = c.done.Add(D) }},
		{"a key in a log", "secret", func(e *evidence) { e.text += accountKey }},
	} {
		t.Run(tt.forgery, func(t *testing.T) {
			e := clean.clone()
			tt.forge(&e)
			bad := e.judge()
			if !slices.ContainsFunc(bad, func(c string) bool { return strings.Contains(c, tt.want) }) {
				t.Errorf("got %q, want %s", bad, tt.want)
			}
		})
	}
}

func (e evidence) clone() evidence {
	e.log, e.runs, e.calls = slices.Clone(e.log), slices.Clone(e.runs), slices.Clone(e.calls)
	for i := range e.log {
		if r := e.log[i].record; r != nil {
			c := *r
			e.log[i].record = &c
		}
	}
	for i := range e.runs {
		c := *e.runs[i].Run
		e.runs[i].Run = &c
	}
	return e
}

// write returns the n-th write: the creation, then a claim and an outcome of
// each tick.
func (e *evidence) write(n int) *event {
	for i := range e.log {
		if w := &e.log[i]; w.ok() && w.record != nil {
			if n--; n < 0 {
				return w
			}
		}
	}
	return nil
}

// call returns the first call of that kind.
func (e *evidence) call(op string) *call {
	return &e.calls[slices.IndexFunc(e.calls, func(c call) bool { return c.op == op })]
}

// reacquire has the last acquisition use the id of the first.
func (e *evidence) reacquire() {
	var acquired []*event
	for i := range e.log {
		if w := &e.log[i]; w.ok() && w.Op.Op == "acquire" {
			acquired = append(acquired, w)
		}
	}
	again := acquired[len(acquired)-1]
	again.Lease, again.replica = acquired[0].Lease, acquired[0].replica
}
