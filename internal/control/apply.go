// Package control carries the orders of operators to the replicas, through one document of
// the store for each app. A [Client] writes an order; a [Watch] reads what is in force, every
// few seconds. What an order means for a tick is decided by internal/plan.
//
// It is one document, and not one for each job, so that a replica with a thousand jobs makes
// one conditional read every few seconds, and so that orders have one sequence. The document
// has no lease: its ETag alone guards it, and two operators who write at the same time are
// told apart by the store.
//
// A replica that cannot read the document starts nothing. Otherwise a pause would not bind the
// very replica that the operator cannot reach.
package control

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/record"
)

const (
	maxAudit    = 100            // orders that are kept
	maxPauses   = 10             // pauses of a job that are kept after their end
	maxEnds     = 20             // orders to end runs of one job that are kept after a later one
	maxRequests = 100            // of one job that wait for a replica
	maxNames    = 1000           // of requests of one job that are kept
	keepName    = 24 * time.Hour // after the end of a request that is served: its name is not used again
)

// Apply changes the document by one order, which gets the next number, or keeps its own if that
// is larger. The order was checked by its caller, who has read the record of the job; a job that has none is given a
// zero one. An error leaves the document half changed: it must not be written then.
func Apply(c *record.Control, o *record.Order, r *record.Record) error {
	o.Seq = max(c.Seq+1, o.Seq)
	if o.Seq > record.MaxToken {
		return fmt.Errorf("the control document has the order %d, the largest there is: correct the document", c.Seq)
	}
	j := c.Jobs[o.Job]
	j.Pauses, j.Requests = unsettled(j.Pauses, r, o.At), slices.Clone(j.Requests) // others may read the old ones
	var err error
	switch o.Kind {
	case record.OrderPause:
		pause(&j, o)
	case record.OrderResume:
		resume(&j, o.At)
		if o.Token > j.Resumed.Token || o.Token == 0 { // else the job goes on since the resume before
			j.Resumed = record.Resume{At: o.At, Token: o.Token}
		}
	case record.OrderRun:
		err = request(&j, o, r.Orders.Served)
	case record.OrderCancel, record.OrderStepDown:
		err = end(&j, o, r)
	case record.OrderBackfill:
		err = backfill(&j, o)
	case record.OrderCancelBackfill:
		if b := &j.Backfill; !b.On() || b.Seq != o.Backfill.Seq {
			err = errors.New("it has no such backfill, or that is cancelled already")
			break
		}
		o.Name = record.BackfillRequest(j.Backfill.Seq)
		j.Backfill.Cancelled = record.End{Seq: o.Seq, Cancel: true, By: o.By, Reason: o.Reason}
	default:
		err = fmt.Errorf("there is no order %q", o.Kind)
	}
	if err != nil {
		return err
	}
	if c.Jobs == nil {
		c.Jobs = map[string]record.JobControl{}
	}
	c.Jobs[o.Job], c.Seq = j, o.Seq
	line := *o
	line.Backfill.Spans = nil // there may be many, and they are kept above
	c.Audit = append([]record.Order{line}, c.Audit[:min(len(c.Audit), maxAudit-1)]...)
	return nil
}

// pause begins a pause, or changes the reason and the end of one that is in force.
func pause(j *record.JobControl, o *record.Order) {
	since := o.At
	if j.Pause.On(o.At) {
		since = j.Pause.At
	} else {
		resume(j, o.At)
	}
	j.Pause = record.Pause{At: since, By: o.By, Reason: o.Reason, Until: o.Until}
}

// resume ends the pause, or keeps that it has ended by itself. A pause that is over is kept: its
// ticks may have come due while no replica was up, and the next replica has to skip them.
func resume(j *record.JobControl, at time.Time) {
	if j.Pause.At.IsZero() {
		return
	}
	if !j.Pause.On(at) {
		at = j.Pause.Until.Add(-1) // it is not in force at Until
	}
	j.Pauses = append(j.Pauses, record.Span{From: j.Pause.At, To: at})
	j.Pauses = j.Pauses[max(0, len(j.Pauses)-maxPauses):]
	j.Pause = record.Pause{}
}

// unsettled returns those of some pauses in which ticks may be without an outcome, by the record of their job: they are still to
// be skipped. A job may have no next tick, as a singleton, or no record, as one of EveryReplica. Then a day is enough: a
// replica that was late for a tick is not late for as long.
func unsettled(pauses []record.Span, r *record.Record, now time.Time) []record.Span {
	settled := r.Due.Add(-1)
	switch {
	case r.Run.Request == "" && r.Run.Tick.After(r.Watermark): // the claim of that tick may be given up
		settled = r.Watermark
	case r.Due.IsZero():
		settled = now.Add(-keepName)
	}
	return slices.DeleteFunc(slices.Clone(pauses), func(s record.Span) bool { return !s.To.After(settled) })
}

// end orders the end of a run. The order before it is kept while it may have to be obeyed: a replica that has not read it may
// have claimed another run in between, whose end is ordered now.
func end(j *record.JobControl, o *record.Order, r *record.Record) error {
	cancels := o.Kind == record.OrderCancel
	switch before := j.EndOf(o.Token, o.About); {
	case before.Cancel && cancels: // all that the order is for is cancelled
		return nil
	case before.Cancel:
		return errors.New("the run is cancelled already")
	}
	earlier := slices.DeleteFunc(append(slices.Clone(j.Earlier), j.End), func(e record.End) bool {
		return over(&e, r, &j.Backfill)
	})
	if len(earlier) > maxEnds {
		return fmt.Errorf("%d orders are kept to end runs of %s that have no outcome yet: start a replica, which writes them, and order this again",
			len(earlier), o.Job)
	}
	j.Earlier = earlier
	j.End = record.End{Seq: o.Seq, Token: o.Token, About: o.About, Cancel: cancels, By: o.By, Reason: o.Reason}
	return nil
}

// over reports whether an order has nothing left to end, by the record that the next order is based on. If two operators order at
// once, that record may be older than the run which the order is for. A manual run that was not ordered is claimed once.
func over(e *record.End, r *record.Record, fill *record.Backfill) bool {
	switch a := e.About; {
	case r.Token < e.Token:
		return false
	case !e.Cancel:
		return true
	case a.Order == 0:
		return !a.Tick.After(r.Watermark)
	case !a.Tick.IsZero():
		return fill.Seq != a.Order || !fill.On() || past(&r.Backfill, &a)
	default:
		return r.Orders.IsServed(a.Order) && a.Order != r.Run.Order
	}
}

// past reports whether all ticks of a backfill up to one have their outcome.
func past(b *record.Backfilled, a *record.About) bool {
	left := slices.ContainsFunc(b.Open, func(o record.OpenTick) bool { return !o.Tick.After(a.Tick) })
	return b.Seq == a.Order && b.Through.After(a.Tick) && !left
}

// isOld reports whether the name of a request may be used again once it is served.
func isOld(q *record.Request, now time.Time) bool { return now.Sub(q.Until) > keepName }

// request adds a request. A name is used once, so that a person who repeats an order whose answer was lost does not get a
// second run. A request that is not served is kept, since its outcome is still to be written.
func request(j *record.JobControl, o *record.Order, served int64) error {
	j.Requests = slices.DeleteFunc(j.Requests, func(q record.Request) bool { return q.Seq <= served && isOld(&q, o.At) })
	waiting, first := 0, o.At
	for _, q := range j.Requests {
		if q.Name == o.Name {
			return fmt.Errorf("a run of %s under the name %q is ordered already: choose another name", o.Job, o.Name)
		}
		if q.Seq > served && q.Until.After(o.At) {
			waiting++
		}
		first = instant.Earlier(first, q.Until)
	}
	switch {
	case waiting >= maxRequests:
		return fmt.Errorf("%d runs of %s are ordered already: wait until they are over", waiting, o.Job)
	case len(j.Requests) >= maxNames:
		return fmt.Errorf("%d runs of %s were ordered of late, and their names are kept for a day: order the next one after %s",
			len(j.Requests), o.Job, first.Add(keepName).UTC().Format(time.RFC3339))
	}
	j.Requests = append(j.Requests, record.Request{Seq: o.Seq, Name: o.Name, By: o.By, At: o.At, Until: o.Until})
	return nil
}

// backfill begins a backfill. A job has one at a time: that of the job is cancelled, or was over when
// the order was checked.
func backfill(j *record.JobControl, o *record.Order) error {
	if last := &j.Backfill; last.On() && last.Seq != o.Backfill.Before {
		return fmt.Errorf("the backfill %d of %s is under way: wait for its end, or cancel it", last.Seq, o.Job)
	}
	o.Name = record.BackfillRequest(o.Seq)
	o.Backfill.Seq, o.Backfill.By, o.Backfill.At, o.Backfill.Reason = o.Seq, o.By, o.At, o.Reason
	j.Backfill = o.Backfill
	return nil
}
