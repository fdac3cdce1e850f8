package view

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// A Row is a job as a list of many shows it.
type Row struct {
	Job
	Here       bool      `json:"here,omitempty"`       // it runs on this replica
	Attempt    int       `json:"attempt,omitempty"`    // of the run under way
	Trouble    bool      `json:"trouble,omitempty"`    // an operator should look at it
	Checkpoint int64     `json:"checkpoint,omitempty"` // its length in bytes
	Ordered    int       `json:"ordered,omitzero"`     // runs by hand that were ordered and have not begun
	Recent     []Outcome `json:"recent"`               // the outcomes that the record keeps, newest first
}

// An Outcome is a [store.Outcome] as a strip or a plot shows it.
type Outcome struct {
	At      time.Time    `json:"at,omitzero"`
	Status  store.Status `json:"status"`
	Seconds float64      `json:"seconds,omitzero"` // how long it ran; zero: it did not, or that is not known
	Count   int          `json:"count,omitzero"`   // of a range of ticks
	Reason  string       `json:"reason,omitempty"`
}

// RowOf is a job in a list, by its record, what operators have ordered for it, and the
// health of this replica.
func RowOf(a *app.App, st soloist.JobStatus, ordered store.JobControl, h soloist.Health) Row {
	row := Row{Job: Of(a, st), Here: slices.Contains(h.Running, st.Name), Checkpoint: st.Checkpoint, Recent: []Outcome{}}
	row.Trouble = row.Tone() == format.Red || row.Error != "" && row.State != unknown || h.Overrun[st.Name] != nil || slices.Contains(h.Stuck, st.Name)
	row.heed(&st, ordered, a.Now())
	for _, r := range ordered.Requests {
		if st.Err == nil && r.Seq > st.Record.Orders.Served && r.Until.After(a.Now()) {
			row.Ordered++
		}
	}
	if row.Last != nil {
		last := format.PlainOutcomes([]store.Outcome{*row.Last})[0]
		row.Last = &last
	}
	if st.Err == nil {
		if MayRun(&st.Record) {
			row.Attempt = st.Record.Run.Attempt
		}
		for i := range st.Record.History {
			row.Recent = append(row.Recent, outcomeOf(&st.Record.History[i]))
		}
	}
	return row
}

// Rows is [RowOf] for each of them.
func Rows(a *app.App, all []soloist.JobStatus, orders store.Control) []Row {
	h := a.Scheduler.Health()
	rows := make([]Row, len(all))
	for i, st := range all {
		rows[i] = RowOf(a, st, orders.Jobs[st.Name], h)
	}
	return rows
}

func outcomeOf(f *store.Outcome) Outcome {
	o := Outcome{At: format.UTC(format.Moment(f)), Status: f.Status, Reason: f.Reason}
	if !f.Start.IsZero() && f.End.After(f.Start) {
		o.Seconds = f.End.Sub(f.Start).Round(time.Millisecond).Seconds()
	}
	if !f.From.IsZero() {
		o.Count = f.Count
	}
	return o
}
