package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/store"
)

// ControlName is the name of the document of operators' orders, "app/.control".
func ControlName(app string) string { return app + "/.control" }

// A Control is what operators have ordered for the jobs of one app. One document of the store
// holds it; see [store.Documenter]. Replicas read it every few seconds, and only operators write it.
type Control struct {
	Schema int    `json:"schema"`
	App    string `json:"app"`
	Seq    int64  `json:"seq"` // of the last order; it only grows, and starts from the store's time in microseconds

	Jobs  map[string]JobControl `json:"jobs,omitzero"`
	Audit []Order               `json:"audit,omitzero"` // the last orders, newest first
}

// A JobControl is what is in force for one job.
type JobControl struct {
	Pause    Pause     `json:"pause,omitzero"`    // zero: the job is not paused
	Pauses   []Span    `json:"pauses,omitzero"`   // pauses that are over, oldest first
	Resumed  Resume    `json:"resumed,omitzero"`  // the last one
	Requests []Request `json:"requests,omitzero"` // manual runs, oldest first; which of them are served is in the job's record
	End      End       `json:"end,omitzero"`      // the run that was last ordered to end
	Earlier  []End     `json:"earlier,omitempty"` // orders before it that may still have to be obeyed
	Backfill Backfill  `json:"backfill,omitzero"` // the last one; how far it is says the job's record
}

// A Pause keeps a job from starting. A run that is under way goes on, and a manual run is
// possible.
type Pause struct {
	At     time.Time `json:"at"` // by the store's clock
	By     string    `json:"by"` // who ordered it
	Reason string    `json:"reason,omitzero"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself; zero: it does not
}

// On reports whether the pause is in force at an instant.
func (p Pause) On(at time.Time) bool {
	return !p.At.IsZero() && (p.Until.IsZero() || at.Before(p.Until))
}

// A Resume also ends the pause of a job that has paused itself.
type Resume struct {
	At    time.Time `json:"at"`             // by the store's clock
	Token int64     `json:"token,omitzero"` // in the job's record by then
}

// A Request asks for one manual run, on whichever replica is first.
type Request struct {
	Seq   int64     `json:"seq"`  // of the order
	Name  string    `json:"name"` // Request of the run and of its outcome
	By    string    `json:"by"`
	At    time.Time `json:"at"`    // by the store's clock
	Until time.Time `json:"until"` // it is not started later
}

// An About says what a run is for: a tick, a run that was ordered, or a tick of a backfill. A later claim of the same has
// another token.
type About struct {
	Tick    time.Time `json:"tick,omitzero"`
	Order   int64     `json:"order,omitzero"` // that has asked for the run, or of its backfill
	Attempt int       `json:"attempt,omitzero"`
}

// An End asks the holder of a job to end one run.
type End struct {
	Seq    int64  `json:"seq"`
	Token  int64  `json:"token"`           // of the run
	About  About  `json:"about,omitzero"`  // what that run is for: a later claim of the same obeys too
	Cancel bool   `json:"cancel,omitzero"` // it is cancelled, and its tick not run again; otherwise it is handed over
	By     string `json:"by"`
	Reason string `json:"reason,omitzero"`
}

// EndOf returns the order that is for the run of a claim, zero if there is none. If there are several, a cancellation is obeyed.
func (j *JobControl) EndOf(token int64, a About) (e End) {
	for _, o := range append(slices.Clip(j.Earlier), j.End) {
		if o.isFor(token, a) && !e.Cancel {
			e = o
		}
	}
	return e
}

// isFor reports whether an order is for the run of a claim. The order names the claim that its operator has seen. Until the
// order is written, another replica may claim the same: the same attempt, if the claim was given up, or the next one, if the
// runner has died. What is cancelled is not run at all; only the same attempt is handed over, or each would be.
//
// The order names the last tick of a claim of several. A backfill claims its ticks in their order, and a claim with a further
// attempt has no new tick. So a later claim of a tick that is not after the one named has ticks of the claim named alone.
func (e *End) isFor(token int64, a About) bool {
	switch {
	case e.Token >= token:
		return e.Token == token
	case a.Order != e.About.Order || a.Order == 0 && a.Tick.IsZero():
		return false
	case e.Cancel && a.Order != 0 && !a.Tick.IsZero():
		return !a.Tick.After(e.About.Tick)
	}
	return a.Tick.Equal(e.About.Tick) && (a.Attempt == e.About.Attempt || e.Cancel && a.Attempt > e.About.Attempt)
}

// A Backfill is an order to run ticks again that have their outcome, in their order.
type Backfill struct {
	Seq    int64     `json:"seq"` // of the order: the number of the backfill
	By     string    `json:"by"`
	At     time.Time `json:"at"` // by the store's clock
	Reason string    `json:"reason,omitzero"`

	From  time.Time `json:"from"`           // the range that was asked for, with both ends
	To    time.Time `json:"to"`             //
	All   bool      `json:"all,omitzero"`   // all ticks of the range; otherwise those that were missed
	Ticks int       `json:"ticks"`          // how many they were when they were ordered
	Spans []Span    `json:"spans,omitzero"` // where they are, the oldest first

	Parallel int `json:"parallel,omitzero"` // how many are run at a time; 0 and 1: one

	Before    int64 `json:"before,omitzero"`    // the backfill of the job that was over by then
	Cancelled End   `json:"cancelled,omitzero"` // zero: it is not
}

// On reports whether there is a backfill, and it is not cancelled. All its ticks may be over.
func (b *Backfill) On() bool { return b.Seq != 0 && b.Cancelled.Seq == 0 }

// OrderKind is what an operator can order.
type OrderKind string

const (
	OrderPause    OrderKind = "pause"
	OrderResume   OrderKind = "resume"
	OrderRun      OrderKind = "run"
	OrderCancel   OrderKind = "cancel"
	OrderStepDown OrderKind = "step-down"

	OrderBackfill       OrderKind = "backfill"
	OrderCancelBackfill OrderKind = "cancel-backfill"
)

// An Order is one line of the audit.
type Order struct {
	Seq    int64     `json:"seq"`
	ID     string    `json:"id"` // a nonce: shows a writer whether a write of unclear outcome is its own
	At     time.Time `json:"at"`
	Kind   OrderKind `json:"kind"`
	Job    string    `json:"job"`
	By     string    `json:"by"`
	Reason string    `json:"reason,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	Token  int64     `json:"token,omitzero"`   // in the job's record: cancel and step-down are for that run
	About  About     `json:"about,omitzero"`   // and for a later claim of the same
	Name   string    `json:"request,omitzero"` // run, backfill and its cancellation: the request of the runs

	Backfill Backfill `json:"backfill,omitzero"` // backfill: its ticks; cancel-backfill: which one
}

// DecodeControl reads the control document of an app. A document that it refuses must neither
// be obeyed in part nor overwritten.
func DecodeControl(b []byte, app string) (Control, error) {
	var c Control
	if err := json.Unmarshal(b, &c); err != nil {
		return Control{}, fmt.Errorf("the control document is not JSON: %w", err)
	}
	switch {
	case c.Schema > schema:
		return Control{}, fmt.Errorf("the control document has schema %d and this program reads up to %d: update the program", c.Schema, schema)
	case c.Schema < 1:
		return Control{}, fmt.Errorf("the control document has schema %d: another program wrote it", c.Schema)
	case c.App != app:
		return Control{}, fmt.Errorf("the control document belongs to %.80q, not to %q: two programs share a name", c.App, app)
	case c.Seq < 1 || c.Seq > MaxToken:
		return Control{}, fmt.Errorf("the control document has the order %d: an order is from 1 to %d", c.Seq, int64(MaxToken))
	}
	return c, nil
}

// Encode returns the document as JSON.
func (c *Control) Encode() ([]byte, error) {
	c.Schema = schema
	b, err := json.Marshal(c)
	if err == nil && len(b) > store.MaxDocument {
		err = errors.New("the control document is too large: start a replica of each job that has orders, or wait until requests are over")
	}
	return b, err
}
