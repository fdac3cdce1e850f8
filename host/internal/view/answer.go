package view

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/locks"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An Answer is the JSON output of a command: J is its part about one job.
type Answer[J any] struct {
	App   string    `json:"app,omitempty"`   // of next --schedule: there is none
	Store string    `json:"store,omitempty"` // of next: it asks none
	Time  time.Time `json:"time"`
	Jobs  []J       `json:"jobs"`
	Next  time.Time `json:"next,omitzero"` // of tick: when the next one of any job is due

	// Of status and next: which data of time zones are in use, and how old they are; empty: all is in UTC.
	Zones string `json:"zones,omitempty"`

	// Of status: seconds that this machine's clock is ahead of the store's, as
	// far as that is proved.
	Skew float64 `json:"skew,omitzero"`

	// Of status, in Functions: what is deployed and is not what the jobs need.
	Functions []string `json:"functions,omitempty"`

	// Of status: the replicas by what each has written last, and where they and this program
	// differ.
	Replicas []Replica `json:"replicas,omitempty"`
	Differs  []string  `json:"differs,omitempty"`

	// Of status: the locks, and what is done once. Nil: of another command.
	*locks.Shown

	// Of status and history: why there is nothing to show.
	Error string `json:"error,omitempty"`
}

// New is an answer about these jobs.
func New[J any](a *app.App, jobs []J) Answer[J] {
	if jobs == nil {
		jobs = []J{} // readers want a list
	}
	return Answer[J]{App: a.Settings.App, Store: a.Place, Time: format.UTC(a.Now()), Jobs: jobs}
}

// Status is the answer of status --json: functions is what is
// deployed in Functions and is not what the jobs need.
func Status(a *app.App, views []Job, functions []string, fleet *Fleet) Answer[Job] {
	body := New(a, views)
	if fleet != nil {
		body.Replicas, body.Differs = fleet.Replicas, fleet.Differs
	}
	body.Skew, body.Functions, body.Zones = format.SkewSeconds(a.Skew()), functions, a.ZoneWords()
	return body
}

// ticksShown is how many ticks to come a job is shown with.
const ticksShown = 10

// A Detail is a job as a page of its own shows it.
type Detail struct {
	Job
	Lease   store.LeaseState `json:"lease,omitempty"`   // its state; empty: there is no entry, or it could not be read
	Token   int64            `json:"token,omitzero"`    // the newest fencing token
	Outlook *Outlook         `json:"outlook,omitempty"` // by this program's schedule; nil: there is none, or another one is in force
	History []past.Run       `json:"history"`
	Orders  []Order          `json:"orders"`           // of operators, newest first
	Record  json.RawMessage  `json:"record,omitempty"` // as it is in the store

	Settings []app.Setting `json:"settings,omitempty"` // those that are not the defaults
	Failing  *Streak       `json:"failing,omitempty"`  // nil: it does not fail
	Runner   string        `json:"runner,omitempty"`   // who ran the run that is interrupted
	Run      string        `json:"run,omitempty"`      // the id of the run under way, or of the one that is interrupted
}

// DetailOf is all that is known of a job.
func DetailOf(a *app.App, st desk.Status, job Job, audit []record.Order) Detail {
	d := Detail{Job: job, Orders: OrdersOf(audit, st.Name), Lease: st.Lease, Token: st.Record.Token, Outlook: outlookOf(a, st),
		History: []past.Run{}, Settings: a.SettingsOf(st.Name), Runner: job.Runner}
	d.Skip(a)
	if st.Err != nil {
		return d
	}
	r := &st.Record
	for _, o := range r.History {
		d.History = append(d.History, past.RunOf(st.Name, o))
	}
	for i := range d.Orders {
		d.Orders[i].follow(r, a.Now())
	}
	d.Record, d.Failing = recordOf(r), failingOf(r)
	if r.MayRun() {
		d.Run = past.RunOf(st.Name, event.Outcome{Tick: r.Run.Tick, Request: r.Run.Request, Token: r.Token}).ID
	}
	return d
}

// OrdersOf are the orders for one job; empty: for all.
func OrdersOf(audit []record.Order, job string) []Order {
	orders := []Order{}
	for _, o := range audit {
		if job == "" || job == o.Job {
			orders = append(orders, *OrderOf(o))
		}
	}
	return orders
}

// recordOf is nil for a job without a record.
func recordOf(r *record.Record) json.RawMessage {
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
func outlookOf(a *app.App, st desk.Status) *Outlook {
	if st.Singleton || st.Foreign {
		return nil
	}
	j, err := a.Job(st.Name)
	if err != nil {
		return nil
	}
	from := a.Now()
	if next := st.Next.Add(-time.Nanosecond); next.After(from) {
		from = next
	}
	o, err := OutlookOf(a, j, nil, func(*time.Location) time.Time { return from }, ticksShown)
	if err != nil { // it has been checked
		return nil
	}
	return &o
}

// A Ticked is the JSON output of tick for one job.
type Ticked struct {
	Job     string          `json:"job"`
	Ran     []event.Outcome `json:"ran"`               // what was run here, in order
	Replica string          `json:"replica,omitempty"` // the other replica that runs it
	Next    time.Time       `json:"next,omitzero"`
	Awaits  string          `json:"awaits,omitempty"` // the jobs whose outcome Next waits for
	Error   string          `json:"error,omitempty"`  // why it could not be looked after
}

// Ticks is the answer of tick.
func Ticks(a *app.App, r soloist.Report) Answer[Ticked] {
	body := New[Ticked](a, nil)
	for _, j := range r.Jobs {
		body.Jobs = append(body.Jobs, Ticked{Job: j.Job, Ran: format.PlainOutcomes(j.Ran), Replica: j.Replica, Next: format.UTC(j.Next),
			Awaits: j.Awaits, Error: format.Error(j.Err)})
	}
	body.Next = format.UTC(r.Next)
	return body
}

// Failed reports whether a tick that was run here came to a bad end.
func Failed(j soloist.JobReport) bool {
	return slices.ContainsFunc(j.Ran, func(f event.Outcome) bool {
		return f.Status == event.Failed || f.Status == event.Stalled || f.Status == event.Abandoned
	})
}

// Overrun says what an overrun is, wherever it is shown.
func Overrun(cause error) string {
	return "goes on though its context has ended (" + format.Error(cause) + "): only a restart helps"
}
