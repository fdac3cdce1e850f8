// Package why says in one sentence why a tick of a job did not run, or what became of it. It says no more than facts show, and
// names what is not known.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/host/internal/past"
	"github.com/soloist-go/soloist/host/internal/presence"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/ticks"
)

// Facts are all that an answer rests on.
type Facts struct {
	Now      time.Time
	Job      soloist.Job // as this program has it; zero: a singleton
	First    soloist.Job // whose schedule names the ticks: Job itself, unless that follows another one
	Ticks    *ticks.Ticks
	Status   desk.Status
	Lines    past.Lines // its outcomes, the newest first
	Logged   bool       // they are those of the log, too
	Whole    bool       // those of the log reach back as far as is asked
	Control  record.Control
	Replicas presence.Reading       // zero: nothing is known of them
	Others   map[string]desk.Status // the jobs that it follows, and those of its group
	Siblings []string               // the other jobs of its group
	Slots    int                    // of its group
	Here     Here
	LeftOut  []string // what was not read, and why
}

// A line is an outcome, and whether others before it may be lost.
type line = history.Line

// Here is what a replica that serves knows of itself.
type Here struct {
	Replica string   // empty: a command asks, which runs nothing
	Outages []Outage // the oldest first
	Broken  error    // why it cannot run the job
}

// An Outage is a time in which the store did not answer.
type Outage struct {
	From, To time.Time // zero To: it goes on
}

// A Cause is the kind of an answer, for programs.
type Cause string

// What became of a tick that was claimed, and what keeps one from being claimed.
const (
	Succeeded Cause = "succeeded"
	Failed    Cause = "failed"
	Stalled   Cause = "stalled"
	Died      Cause = "died"      // its runner, or the runner of the tick before
	Stopped   Cause = "stopped"   // its replica
	Lost      Cause = "lost"      // the lease of its run
	Unlocked  Cause = "unlocked"  // by an operator
	Cancelled Cause = "cancelled" // by an operator
	Replaced  Cause = "replaced"  // by a newer tick
	Declined  Cause = "declined"  // the function found nothing to do

	Paused           Cause = "paused" // it is not known how
	PausedByOrder    Cause = "paused-by-order"
	PausedBySettings Cause = "paused-by-settings"
	PausedItself     Cause = "paused-itself"
	Overlap          Cause = "overlap"
	GroupFull        Cause = "group-full"
	Predecessor      Cause = "predecessor"
	Definition       Cause = "definition" // another one was in force
	Down             Cause = "down"       // no replica was up
	OutOfReach       Cause = "outage"     // the store was out of reach
	Occupied         Cause = "occupied"   // by a client that is no replica
	TooMany          Cause = "too-many"
	Unclaimed        Cause = "unclaimed" // and why is not known

	Running  Cause = "running"
	Waiting  Cause = "waiting" // for another attempt, or until a replica may take over
	Due      Cause = "due"     // a moment ago
	NotDue   Cause = "not-due"
	Over     Cause = "over"
	NoTick   Cause = "no-tick" // the schedule names none then
	LeftDay  Cause = "left-out-day"
	Bounds   Cause = "bounds" // From or Until
	NoSuch   Cause = "no-such-time"
	Kept     Cause = "not-kept"  // its outcome
	NoRecord Cause = "no-record" // yet, or from then
	Each     Cause = "each-replica"
	Unread   Cause = "unread" // the record
)

// An Answer says why.
type Answer struct {
	Tick     time.Time `json:"tick,omitzero"` // zero: it is about no tick
	Cause    Cause     `json:"cause"`
	Sentence string    `json:"sentence"`
	Known    []string  `json:"known"`         // the facts that the sentence rests on
	NotKnown []string  `json:"notKnown"`      // what they leave open
	State    string    `json:"now,omitempty"` // how the job is now
}

// An asking is an answer that is being made.
type asking struct {
	*Facts
	Answer
}

// ask begins an answer.
func (f *Facts) ask() *asking {
	a := &asking{f, Answer{Known: []string{}, NotKnown: []string{}}}
	for _, text := range f.LeftOut {
		a.open("%s", text)
	}
	return a
}

// say sets the sentence.
func (a *asking) say(c Cause, text string, args ...any) {
	a.Cause, a.Sentence = c, format.Line(fmt.Sprintf(text, args...))
}

// know adds a fact, and open what is not known.
func (a *asking) know(text string, args ...any) {
	a.Known = append(a.Known, format.Line(fmt.Sprintf(text, args...)))
}
func (a *asking) open(text string, args ...any) {
	a.NotKnown = append(a.NotKnown, format.Line(fmt.Sprintf(text, args...)))
}

// Of answers for a moment; the zero Moment: for the newest tick that did not succeed or, if there is none, for now.
func (f *Facts) Of(m Moment) Answer {
	a := f.ask()
	switch st := &f.Status; {
	case st.EveryReplica:
		a.say(Each, "each replica runs it for itself, so there is no record of its ticks")
		a.open("what became of a tick: the log of each replica has it")
		return a.Answer
	case st.Err != nil:
		a.say(Unread, "its record could not be read: %s", format.Error(st.Err))
		a.open("what became of its ticks")
		return a.Answer
	case st.Lease == "":
		a.say(NoRecord, "no replica has ever started with it, so it has no record")
		return a.Answer
	}
	switch {
	case m.IsZero():
		a.newest()
	case f.Ticks == nil || a.byHand():
		a.term(m)
	default:
		a.moment(m)
	}
	a.tellNow()
	return a.Answer
}

// OfOutcome answers for an outcome that the history has.
func (f *Facts) OfOutcome(o *event.Outcome) Answer {
	a := f.ask()
	a.ended(o, o.Tick)
	return a.Answer
}

// newest answers for the newest tick that did not succeed.
func (a *asking) newest() {
	if a.Ticks != nil {
		last := a.Ticks.Last(a.Now)
		if last.After(a.Status.Record.Watermark) && !a.runs(last) && !a.Status.Foreign {
			a.tick(last)
			return
		}
	}
	for i := range a.Lines {
		if o := &a.Lines[i].Outcome; (o.Request == "" || a.byHand()) && o.Status != event.Succeeded {
			a.ended(o, o.Tick)
			return
		}
	}
	a.Cause, a.Sentence = a.now()
	if len(a.Lines) > 0 {
		a.know("no outcome since %s is other than succeeded", format.Stamp(format.Moment(&a.Lines[len(a.Lines)-1].Outcome)))
	}
}

// runs reports whether a tick is under way.
func (f *Facts) runs(tick time.Time) bool {
	r := &f.Status.Record
	return r.Run.Status == event.Running && r.Run.Request == "" && r.Run.Tick.Equal(tick) && f.Status.Lease.Live()
}

// byHand reports whether a job has no ticks at all, and runs when that is ordered.
func (f *Facts) byHand() bool {
	return f.Ticks != nil && f.Ticks.Next(time.Time{}).IsZero()
}

// term answers for what a singleton, or a job without ticks, did at a moment.
func (a *asking) term(m Moment) {
	at := m.From
	for i := range a.Lines {
		if o := &a.Lines[i].Outcome; !o.Start.After(at) && !o.Start.IsZero() && !o.End.Before(at) {
			a.ended(o, o.Tick)
			return
		}
	}
	switch r := &a.Status.Record.Run; {
	case at.After(a.Now):
		a.say(NotDue, "that is to come")
	case a.Status.Record.MayRun() && !r.Claimed.After(at):
		a.Cause, a.Sentence = a.now()
	case a.byHand():
		a.say(NoTick, "no run of it at %s is in its history, and it has no ticks: it runs when that is ordered", format.Stamp(at))
	default:
		a.absent(at, "no replica ran it at "+format.Stamp(at))
	}
}

// tellNow adds how the job is now, unless the answer is about that.
func (a *asking) tellNow() {
	if _, now := a.now(); now != a.Sentence {
		a.State = now
	}
}

// now says how the job is now.
func (f *Facts) now() (Cause, string) {
	line := func(text string, args ...any) string { return format.Line(fmt.Sprintf(text, args...)) }
	st, r := &f.Status, &f.Status.Record
	run := &r.Run
	switch {
	case r.MayRun() && !st.Waits.IsZero():
		return Waiting, line("it waits after an unlock until about %s, since the run on %s may go on", format.Stamp(st.Waits), run.Replica)
	case r.MayRun() && st.Lease.Live() && run.Status == event.Stalled:
		return Stalled, line("its run on %s has stalled, and is not known to have ended", run.Replica)
	case r.MayRun() && st.Lease.Live():
		return Running, line("it runs on %s since %s%s", run.Replica, format.Stamp(run.Claimed), ofRun(run.Tick, run.Request))
	case r.MayRun():
		return Died, line("the lease of its run on %s has ended without an outcome, and no replica has taken over yet", run.Replica)
	}
	if p := f.pauseNow(); p != nil {
		return p.cause, line("it is paused %s", p.words)
	}
	switch next := st.Next; {
	case st.Occupied != nil:
		return Occupied, format.Error(st.Occupied)
	case st.Awaits != "" && !next.After(f.Now):
		return Predecessor, line("its tick of %s waits for %s", format.Stamp(next), st.Awaits)
	case !st.Over.IsZero():
		return Over, line("its last tick of all was %s", format.Stamp(st.Over))
	case next.IsZero() && st.Singleton:
		return Waiting, "no replica runs it"
	case next.IsZero() && f.byHand():
		return NotDue, "it has no ticks: it runs when that is ordered"
	case next.IsZero():
		return NotDue, "no tick is to come"
	case !next.After(f.Now):
		return Due, line("its tick of %s has not been claimed yet", format.Stamp(next))
	default:
		return NotDue, line("nothing is due: the next tick is %s, %s", format.Stamp(next), format.Relative(next, f.Now))
	}
}

// ofRun names what a run is for.
func ofRun(tick time.Time, request string) string {
	switch {
	case event.BackfillOf(request) != 0:
		return fmt.Sprintf(", for the tick of %s in backfill %d", format.Stamp(tick), event.BackfillOf(request))
	case request != "":
		return ", by hand: " + format.Brief(request)
	case tick.IsZero():
		return ""
	}
	return ", for the tick of " + format.Stamp(tick)
}

// orders are what is in force for the job.
func (f *Facts) orders() record.JobControl { return f.Control.Jobs[f.Status.Name] }

// A pause keeps ticks from running.
type pause struct {
	cause Cause
	words string
}

// pauseNow returns the pause that is in force, nil if none is.
func (f *Facts) pauseNow() *pause { return f.pauseAt(f.Now) }

// pauseAt returns a pause in which an instant lies, as far as orders, record and settings show; nil: there is none.
func (f *Facts) pauseAt(at time.Time) *pause {
	r, c := &f.Status.Record, f.orders()
	isIn := func(s record.Span) bool { return at.After(s.From) && !at.After(s.To) }
	switch p, self := c.Pause, r.Orders.Paused; {
	case !p.At.IsZero() && at.After(p.At) && p.On(at):
		return &pause{PausedByOrder, byOrder(p.By, p.At, p.Until, p.Reason)}
	case slices.ContainsFunc(c.Pauses, isIn):
		return f.pauseOfAudit(at)
	case !self.At.IsZero() && at.After(self.At) && (c.Resumed.Token < self.Token || !at.After(c.Resumed.At)):
		return &pause{PausedItself, f.afterFailures(self)}
	}
	if p := f.pauseOfAudit(at); p != nil {
		return p
	}
	if on, where := f.pausedBySettings(); on && !f.Now.After(at) {
		return &pause{PausedBySettings, "by its settings " + where}
	}
	return nil
}

func byOrder(by string, at, until time.Time, reason string) string {
	text := "by " + format.Brief(cmp.Or(by, "an operator")) + " at " + format.Stamp(at)
	if !until.IsZero() {
		text += " until " + format.Stamp(until)
	}
	if reason == "" {
		return text + ", who gave no reason"
	}
	return text + ": " + format.Brief(reason)
}

// pauseOfAudit finds in the last orders the pause in which an instant lies.
func (f *Facts) pauseOfAudit(at time.Time) *pause {
	for _, o := range f.Control.Audit { // the newest first
		if o.Job != f.Status.Name || !o.At.Before(at) {
			continue
		}
		switch o.Kind {
		case record.OrderResume:
			return nil
		case record.OrderPause:
			if !o.Until.IsZero() && !at.Before(o.Until) {
				return nil
			}
			return &pause{PausedByOrder, byOrder(o.By, o.At, o.Until, o.Reason)}
		}
	}
	return nil
}

// pausedBySettings reports whether the settings of replicas pause the job or, if these are not known, those of this program.
func (f *Facts) pausedBySettings() (on bool, where string) {
	known := false
	if doc := f.Replicas.Doc; doc != nil {
		for name, r := range doc.Replicas {
			s, ok := doc.Work[r.Work][cmp.Or(f.Job.Name, f.Status.Name)]
			if !ok || f.Replicas.State(r) != presence.Up {
				continue
			}
			if known = true; s.Paused {
				return true, "on " + name
			}
		}
	}
	return !known && f.Job.Paused, "in this environment"
}

// afterFailures says after how many failures the job has paused itself.
func (f *Facts) afterFailures(p record.SelfPause) string {
	n := 0
	for i := range f.Lines {
		o := &f.Lines[i].Outcome
		if o.Request != "" || o.Token == 0 || o.Token > p.Token {
			continue
		}
		if o.Status == event.Succeeded {
			break
		}
		if o.Status == event.Failed || o.Status == event.Stalled {
			n++
		}
	}
	if n == 0 {
		return "by itself at " + format.Stamp(p.At) + " after failures in a row"
	}
	return fmt.Sprintf("by itself at %s after %s in a row", format.Stamp(p.At), format.Plural(n, "failure"))
}

// live reports whether a status shows a run that is under way.
func live(st *desk.Status) bool {
	return st.Err == nil && st.Record.MayRun() && st.Lease.Live()
}
