package view

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// A Ticked is the JSON output of tick for one job.
type Ticked struct {
	Job     string          `json:"job"`
	Ran     []store.Outcome `json:"ran"`               // what was run here, in order
	Replica string          `json:"replica,omitempty"` // the other replica that runs it
	Next    time.Time       `json:"next,omitzero"`
	Awaits  string          `json:"awaits,omitempty"` // the jobs whose outcome Next waits for
	Error   string          `json:"error,omitempty"`  // why it could not be looked after
}

// NewTicked is a report in JSON.
func NewTicked(j soloist.JobReport) Ticked {
	t := Ticked{Job: j.Job, Ran: format.PlainOutcomes(j.Ran), Replica: j.Replica, Next: format.UTC(j.Next), Awaits: j.Awaits}
	if j.Err != nil {
		t.Error = format.Line(j.Err.Error())
	}
	return t
}

// Failed reports whether a tick that was run here came to a bad end.
func Failed(j soloist.JobReport) bool {
	return slices.ContainsFunc(j.Ran, func(f store.Outcome) bool {
		return f.Status == store.Failed || f.Status == store.Stalled || f.Status == store.Abandoned
	})
}

// Overrun says what an overrun is, wherever it is shown.
func Overrun(cause error) string {
	return "goes on though its context has ended (" + format.Line(cause.Error()) + "): only a restart helps"
}
