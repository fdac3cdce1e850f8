package view

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
)

// A Backfill is the last backfill of a job.
type Backfill struct {
	Number int64                  `json:"number"`
	State  string                 `json:"state"` // waiting, running, done or cancelled
	By     string                 `json:"by"`
	At     time.Time              `json:"at"`
	Reason string                 `json:"reason,omitempty"`
	From   time.Time              `json:"from"`
	To     time.Time              `json:"to"`
	All    bool                   `json:"all,omitempty"` // all ticks of the range; otherwise those that were missed
	Ticks  int                    `json:"ticks"`
	Done   int64                  `json:"done"` // those that have their outcome
	Counts map[event.Status]int64 `json:"counts,omitempty"`
	Failed time.Time              `json:"failed,omitzero"` // the last tick that came to a bad end
	Tick   time.Time              `json:"tick,omitzero"`   // that runs
	Beside int                    `json:"beside,omitzero"` // how many more ticks run

	Parallel int `json:"parallel,omitzero"` // how many are run at a time; 0 and 1: one
}

// backfillOf is nil for a job without one.
func backfillOf(st *desk.Status) *Backfill {
	b := &st.Backfill
	if b.Order.Seq == 0 {
		return nil
	}
	o := &b.Order
	v := &Backfill{Number: o.Seq, State: "waiting", By: o.By, At: format.UTC(o.At), Reason: o.Reason, From: o.From, To: o.To, All: o.All, Ticks: o.Ticks,
		Done: b.Done.Done(), Counts: b.Done.Counts, Failed: b.Done.Failed, Tick: b.Tick, Beside: b.Beside, Parallel: o.Parallel}
	switch {
	case !b.Tick.IsZero():
		v.State = "running"
	case !o.On():
		v.State = "cancelled"
	case b.Over:
		v.State = "done"
	}
	return v
}

// Words says how far it is.
func (b *Backfill) Words(c format.Clock) string {
	text := fmt.Sprintf("backfill %d by %s, from %s to %s: %s, %d of %s", b.Number, format.Line(b.By), c.Stamp(b.From), c.Stamp(b.To), b.State, b.Done, format.Plural(b.Ticks, "tick"))
	if len(b.Counts) > 0 {
		text += " (" + format.Tally(b.Counts) + ")"
	}
	if !b.Tick.IsZero() {
		text += ", at " + c.Stamp(b.Tick)
	}
	if b.Beside > 0 {
		text += fmt.Sprintf(" and %d beside it", b.Beside)
	}
	if !b.Failed.IsZero() {
		text += ", the last bad end that of " + c.Stamp(b.Failed)
	}
	return text
}
