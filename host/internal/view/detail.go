package view

import (
	"encoding/json"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// ticksShown is how many ticks to come a job is shown with.
const ticksShown = 10

// A Detail is a job as a page of its own shows it.
type Detail struct {
	Row
	Lease   store.LeaseState `json:"lease,omitempty"`   // its state; empty: there is no entry, or it could not be read
	Token   int64            `json:"token,omitzero"`    // the newest fencing token
	Outlook *Outlook         `json:"outlook,omitempty"` // by this program's schedule; nil: there is none, or another one is in force
	History []store.Outcome  `json:"history"`
	Orders  []store.Order    `json:"orders"`           // of operators, newest first
	Record  json.RawMessage  `json:"record,omitempty"` // as it is in the store
}

// DetailOf is all that is known of a job.
func DetailOf(a *app.App, st soloist.JobStatus, row Row, audit []store.Order) Detail {
	d := Detail{Row: row, Orders: OrdersOf(audit, st.Name), Lease: st.Lease, Token: st.Record.Token, Outlook: outlookOf(a, st), History: []store.Outcome{}}
	if st.Err == nil {
		d.History = format.PlainOutcomes(st.Record.History)
		d.Record = recordOf(&st.Record)
	}
	return d
}

// OrdersOf are the orders for one job; empty: for all.
func OrdersOf(audit []store.Order, job string) []store.Order {
	orders := []store.Order{}
	for _, o := range audit {
		if job == "" || job == o.Job {
			o.At = format.UTC(o.At)
			orders = append(orders, o)
		}
	}
	return orders
}

// recordOf is nil for a job without a record.
func recordOf(r *store.Record) json.RawMessage {
	if r.Token == 0 {
		return nil
	}
	c := r.Clone() // Encode changes what it encodes
	b, err := c.Encode()
	if err != nil { // it was read, so it fits
		return nil
	}
	return b
}

// outlookOf is nil where this program does not know the ticks. A tick that is settled
// already, as by a fast clock, is not to come.
func outlookOf(a *app.App, st soloist.JobStatus) *Outlook {
	if st.Singleton || st.Foreign {
		return nil
	}
	j, err := a.Job(st.Name)
	if err != nil {
		return nil
	}
	root := Root(a.Scheduler.Jobs, j)
	s, err := app.TicksOf(root)
	if err != nil { // it has been checked
		return nil
	}
	from := a.Now()
	if next := st.Next.Add(-time.Nanosecond); next.After(from) {
		from = next
	}
	o := Look(s, from, s.Location(), ticksShown)
	if j.After != "" {
		o.Schedule = "after " + j.After + ", " + o.Schedule
	}
	o.EveryReplica, o.Paused = j.EveryReplica, j.Paused
	return &o
}
