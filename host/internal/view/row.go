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
	Ordered    int       `json:"ordered,omitzero"`     // manual runs that were ordered and have not begun
	Recent     []Outcome `json:"recent"`               // the outcomes that the record keeps, newest first; see Whole

	Kept []store.Outcome `json:"-"` // the outcomes as the record has them
}

// An Outcome is a [store.Outcome] as a strip or a plot shows it.
type Outcome struct {
	At      time.Time    `json:"at,omitzero"`
	Status  store.Status `json:"status"`
	Seconds float64      `json:"seconds,omitzero"` // how long it ran; zero: it did not, or that is not known
	Count   int          `json:"count,omitzero"`   // of a range of ticks
	Reason  string       `json:"reason,omitempty"`
}

// rowOf is a job in a list, by its record, what operators have ordered for it, the health of this replica, and the
// settings that all replicas have published. It is enough to choose and to sort by; [Row.Whole] has the rest.
func rowOf(a *app.App, st soloist.JobStatus, ordered store.JobControl, h soloist.Health, fleet *Fleet) Row {
	row := Row{Job: of(a, st, h), Here: slices.Contains(h.Running, st.Name), Checkpoint: st.Checkpoint}
	row.Trouble = row.Tone() == format.Red || row.Error != "" && row.State != unknown || h.Overrun[st.Name] != nil || slices.Contains(h.Stuck, st.Name)
	row.heed(a, &st, ordered)
	row.meet(a, fleet)
	for _, r := range ordered.Requests {
		if st.Err == nil && !st.Record.Orders.IsServed(r.Seq) && r.Until.After(a.Now()) {
			row.Ordered++
		}
	}
	if st.Err == nil {
		row.Kept = st.Record.History
		if MayRun(&st.Record) {
			row.Attempt = st.Record.Run.Attempt
		}
	}
	return row
}

// Rows are the rows of all jobs, not yet whole: a page shows a hundred of them at most.
func Rows(a *app.App, all []soloist.JobStatus, orders store.Control, fleet *Fleet) []Row {
	h := a.Scheduler.Health()
	rows := make([]Row, len(all))
	for i, st := range all {
		rows[i] = rowOf(a, st, orders.Jobs[st.Name], h, fleet)
	}
	return rows
}

// Whole returns the row with its outcomes.
func (r *Row) Whole() Row {
	whole := *r
	if r.Last != nil {
		whole.Last = &format.PlainOutcomes([]store.Outcome{*r.Last})[0]
	}
	whole.Recent = make([]Outcome, 0, len(r.Kept))
	for i := range r.Kept {
		whole.Recent = append(whole.Recent, outcomeOf(&r.Kept[i]))
	}
	return whole
}

// Took is how many seconds the newest run took whose duration is known; zero: there is none.
func (r *Row) Took() float64 {
	for i := range r.Kept {
		if took := seconds(&r.Kept[i]); took > 0 {
			return took
		}
	}
	return 0
}

func outcomeOf(f *store.Outcome) Outcome {
	o := Outcome{At: format.UTC(format.Moment(f)), Status: f.Status, Reason: f.Reason, Seconds: seconds(f)}
	if !f.From.IsZero() {
		o.Count = f.Count
	}
	return o
}

// seconds is how long an outcome took; zero: it was not run, or that is not known.
func seconds(f *store.Outcome) float64 {
	if f.Start.IsZero() || !f.End.After(f.Start) {
		return 0
	}
	return f.End.Sub(f.Start).Round(time.Millisecond).Seconds()
}
