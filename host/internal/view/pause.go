package view

import (
	"cmp"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// A Pause was ordered by an operator, or begun by the job itself.
type Pause struct {
	By     string    `json:"by,omitempty"` // empty: the job itself, after failures in a row
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself; zero: a resume ends it
}

// pauseOf is nil if no pause is in force.
func pauseOf(st *soloist.JobStatus, ordered store.JobControl, now time.Time) *Pause {
	if p := ordered.Pause; p.On(now) {
		out := &Pause{By: p.By, Reason: p.Reason, At: format.UTC(p.At)}
		if !p.Until.IsZero() {
			out.Until = format.UTC(p.Until)
		}
		return out
	}
	if at := st.Record.Orders.Paused.At; st.Err == nil && !at.IsZero() && ordered.Resumed.Token < st.Record.Orders.Paused.Token {
		return &Pause{Reason: "failures in a row", At: format.UTC(at)}
	}
	return nil
}

// PauseReplaced says which pause a new one takes the place of; empty: none was in force.
func PauseReplaced(ordered store.JobControl, now time.Time) string {
	p := ordered.Pause
	if !p.On(now) {
		return ""
	}
	end := "a resume"
	if !p.Until.IsZero() {
		end = format.Stamp(p.Until)
	}
	return "this takes the place of the pause by " + format.Line(p.By) + " until " + end + ": " + cmp.Or(format.Line(p.Reason), "no reason given")
}
