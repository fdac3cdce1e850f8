package view

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/internal/record"
)

// A Look is a kind of jobs that an operator looks for first.
type Look string

// Looks are all of them. A job may be of several.
var Looks = []Look{"failing", "running", "late", "paused", "due"}

// Is reports whether a job is of a kind. What is in trouble and not only late counts as failing, so that no trouble is hidden.
func (v *Job) Is(l Look, now time.Time) bool {
	switch l {
	case "failing":
		return v.Trouble && (v.Late == nil || v.Failures > 0 || v.TimedOut || v.State == stalled || v.State == broken)
	case "running":
		return v.State == running || v.State == stopping
	case "late":
		return v.Late != nil
	case "paused":
		return v.Resting()
	}
	return !v.Next.IsZero() && !v.Resting() && v.Next.Before(now.Add(time.Hour)) // also what is due by now
}

// Resting reports whether the ticks of a job are skipped by a pause.
func (v *Job) Resting() bool { return v.State == paused || v.Pause != nil }

// Rank puts first what an operator should look at, then what may become that.
func (v *Job) Rank() int {
	switch {
	case v.Trouble:
		return 0
	case v.Tone() == format.Yellow:
		return 1
	}
	return 2
}

// Skipped are ticks that have come due in a pause. The record has them only once the pause is over.
type Skipped struct {
	Count int         `json:"count"`
	More  bool        `json:"more,omitempty"` // there are more of them than Count, where the count stopped
	Ticks []time.Time `json:"ticks"`          // some of them, the last counted first
}

const (
	mostSkipped  = 100 // are counted: a list has many jobs
	skippedShown = 10
)

// Skip finds the ticks that the pause in force has skipped, but for those that a replica ran before it knew of the pause.
func (v *Job) Skip(a *app.App) {
	j, err := a.Job(v.Name)
	if v.Pause == nil || err != nil || v.Foreign {
		return
	}
	ticks, err := app.TicksFor(a, j)
	if err != nil { // it has been checked
		return
	}
	from, s := v.Pause.At, &Skipped{Ticks: []time.Time{}}
	if v.Last != nil && v.Last.Tick.After(from) && !v.Last.Start.IsZero() {
		from = v.Last.Tick
	}
	for at := ticks.Next(from); !at.IsZero() && !at.After(a.Now()); at = ticks.Next(at) {
		if s.Count == mostSkipped {
			s.More = true
			break
		}
		s.Count++
		s.Ticks = append(s.Ticks, format.UTC(at))
	}
	s.Ticks = s.Ticks[max(0, len(s.Ticks)-skippedShown):]
	slices.Reverse(s.Ticks)
	v.Skipped = s
}

// A Streak says how a job has failed since its last success.
type Streak struct {
	Since     time.Time    `json:"since"`              // the end of the first of its failures
	Before    bool         `json:"before,omitempty"`   // there may be older ones: the record has lost them
	Status    event.Status `json:"status"`             // of the last one
	Error     string       `json:"error,omitempty"`    // of the last one
	Run       string       `json:"run,omitempty"`      // the id of the last one
	Attempt   int          `json:"attempt,omitempty"`  // of the last one
	Succeeded time.Time    `json:"succeeded,omitzero"` // the end of the last success; zero: there is none
	Replicas  []string     `json:"replicas"`           // on which it has failed, the last one first
}

// failingOf is nil for a job that does not fail. Manual runs count for neither.
func failingOf(r *record.Record) *Streak {
	if r.Failures <= 0 {
		return nil
	}
	f := &Streak{Succeeded: format.UTC(r.Succeeded), Replicas: []string{}, Before: true}
	found := int64(0)
	for i := range r.History {
		o := &r.History[i]
		if o.Request != "" || o.Status != event.Failed && o.Status != event.Stalled {
			continue
		}
		if found == r.Failures {
			break
		}
		if found++; found == 1 {
			f.Status, f.Error, f.Run, f.Attempt = o.Status, o.Reason, past.RunOf(r.Job, *o).ID, o.Attempt
		}
		f.Since = format.UTC(format.Moment(o))
		if o.Replica != "" && !slices.Contains(f.Replicas, o.Replica) {
			f.Replicas = append(f.Replicas, o.Replica)
		}
	}
	f.Before = found < r.Failures
	return f
}

// An Order is one of an operator's, and what has become of it.
type Order struct {
	record.Order
	State string `json:"state,omitempty"` // of a run: waiting, running, given up, or its outcome; empty: that is not known
	Run   string `json:"run,omitempty"`   // the id of its run
}

// OrderOf is an order that has been written.
func OrderOf(o record.Order) *Order {
	o.At = format.UTC(o.At)
	out := &Order{Order: o}
	if o.Kind == record.OrderRun {
		out.Run = o.Job + "@" + o.Name
	}
	return out
}

// follow says what has become of an order for a run.
func (o *Order) follow(r *record.Record, now time.Time) {
	if o.Kind != record.OrderRun {
		return
	}
	ended := slices.IndexFunc(r.History, func(h event.Outcome) bool { return h.Request == o.Name })
	switch {
	case ended >= 0:
		o.State = string(r.History[ended].Status)
	case r.MayRun() && r.Run.Request == o.Name:
		o.State = string(event.Running)
	case r.Orders.IsServed(o.Seq):
	case o.Until.After(now):
		o.State = "waiting"
	default:
		o.State = "given up"
	}
}
