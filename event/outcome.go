package event

import (
	"strconv"
	"strings"
	"time"
)

// An Outcome is what became of a tick, or of a range of ticks that no replica ran.
type Outcome struct {
	Tick    time.Time `json:"tick,omitzero"`    // the last tick of a range
	From    time.Time `json:"from,omitzero"`    // of a range: its ticks come after From
	Count   int       `json:"count,omitzero"`   // of a range: how many ticks it has; zero: not known
	AtLeast bool      `json:"atLeast,omitzero"` // of a range: it has more ticks than Count
	Status  Status    `json:"status"`
	Reason  string    `json:"reason,omitzero"`
	Request string    `json:"request,omitzero"` // of a manual run, which settles no tick
	Attempt int       `json:"attempt,omitzero"`
	Token   int64     `json:"token,omitzero"`
	Replica string    `json:"replica,omitzero"`
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
}

// Status is how a tick ended.
type Status string

const (
	Running   Status = "running" // of a run, which has no outcome yet
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
	Stalled   Status = "stalled"   // sent no heartbeat for too long, or was unhealthy
	Abandoned Status = "abandoned" // its runner died, or was stopped before the end
	Skipped   Status = "skipped"   // on purpose: its job was running or paused, or returned Skip
	Missed    Status = "missed"    // came due while no replica could run it
	Cancelled Status = "cancelled" // ended by an operator, or replaced by a newer tick
)

// BackfillOf returns the number of the backfill that a run with such a request is of, zero if it
// is of none. No person can ask for such a name.
func BackfillOf(request string) int64 {
	number, ok := strings.CutPrefix(request, "backfill/")
	if !ok {
		return 0
	}
	seq, _ := strconv.ParseInt(number, 10, 64)
	return seq
}
