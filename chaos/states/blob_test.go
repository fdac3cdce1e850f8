package states_test

import (
	"fmt"
	"time"

	"pgregory.net/rapid"
)

// A blob is what the documentation makes of the calls so far.
type blob struct {
	table  table
	now    time.Time
	exists bool
	etag   string          // as told last
	former map[string]bool // the ETags so far
	record string
	body   string

	state string
	id    string // of the last holder
	span  time.Duration
	until time.Time // the end of the lease, or of breaking; zero: none
}

// newBlob is one that is not there yet, in the night of a change of clocks.
func newBlob(tab table) blob {
	return blob{table: tab, now: time.Date(2026, 3, 29, 0, 59, 30, 0, time.UTC), state: "available", former: map[string]bool{}}
}

// written checks that an answer to a write tells an ETag that is new.
func (b *blob) written(t *rapid.T, etag string) {
	t.Helper()
	if etag == "" || b.former[etag] {
		t.Fatalf("a write is told the ETag %q, want a new one", etag)
	}
	b.former[etag], b.etag = true, etag
}

// infinite is the span of a lease that time does not end.
const infinite = -time.Second

// A try is one call on the blob.
type try struct {
	op       string        // "acquire", "renew", "change", "release", "break", "write" or "read"
	id       string        // the lease id that it brings, in its canonical form; empty: none
	proposed string        // of change
	span     time.Duration // of acquire
	period   time.Duration // of break; negative: none
}

// row is the row of the table for a try.
func (b *blob) row(t try) string {
	who := func(id string) string {
		if id == b.id {
			return "A"
		}
		return "B"
	}
	switch {
	case t.op == "break" && (t.period == 0 || t.period < 0 && b.state == "leased" && b.span == infinite):
		return "break 0" // without a period, an infinite lease breaks at once
	case t.op == "break":
		return "break later"
	case t.op == "change" && t.id == b.id:
		return "change A to B"
	case t.op == "change" && t.proposed == b.id:
		return "change B to A"
	case t.op == "change":
		return "change B to C"
	case t.id == "":
		return t.op
	}
	return t.op + " " + who(t.id)
}

// pass lets time pass.
func (b *blob) pass(d time.Duration) {
	b.now = b.now.Add(d)
	if b.live() && (b.until.IsZero() || b.now.Before(b.until)) {
		return
	}
	b.state, b.until = b.table["time"][b.state].next, time.Time{}
}

// expect is the cell for a try.
func (b *blob) expect(t try) cell { return b.table[b.row(t)][b.state] }

// apply has a try its effect, which the cell tells, on the lease. The id is that
// which the service told of.
func (b *blob) apply(t try, c cell, id string) {
	switch from := b.state; {
	case c.status > 0:
		return
	case t.op == "acquire":
		b.id, b.span = id, t.span
		b.begin()
	case t.op == "renew":
		b.begin()
	case t.op == "change":
		b.id = t.proposed
	case c.next == "breaking" && t.op == "break":
		if end := b.now.Add(t.period); t.period > 0 && (b.until.IsZero() || end.Before(b.until)) {
			b.until = end
		}
	case c.next != from:
		b.until = time.Time{}
	}
	b.state = c.next
}

func (b *blob) begin() {
	b.until = time.Time{}
	if b.span != infinite {
		b.until = b.now.Add(b.span)
	}
}

// left is what a break tells, in whole seconds.
func (b *blob) left() string {
	if b.state != "breaking" {
		return "0"
	}
	return fmt.Sprint(int((b.until.Sub(b.now) + time.Second - 1) / time.Second))
}

func (b *blob) live() bool { return b.state == "leased" || b.state == "breaking" }
