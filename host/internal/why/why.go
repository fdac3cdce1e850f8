// Package why says in one sentence why a tick of a job did not run, or what became of it. It says no more than facts show, and
// names what is not known.
package why

import (
	"cmp"
	"fmt"
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
		a.term(m.From)
	default:
		a.moment(m)
	}
	now := asking{Facts: f}
	if now.sayNow(); now.Sentence != a.Sentence { // else the answer is about that
		a.State = now.Sentence
	}
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
		if last.After(a.Status.Record.Watermark) && !a.isRunning(last) && !a.Status.Foreign {
			a.tick(last)
			return
		}
	}
	for _, l := range a.Lines {
		if (l.Request == "" || a.byHand()) && l.Status != event.Succeeded {
			a.ended(&l.Outcome, l.Tick)
			return
		}
	}
	a.sayNow()
	if len(a.Lines) > 0 {
		a.know("no outcome since %s is other than succeeded", format.Stamp(format.Moment(&a.Lines[len(a.Lines)-1].Outcome)))
	}
}

// isRunning reports whether a tick is under way.
func (f *Facts) isRunning(tick time.Time) bool {
	r := &f.Status.Record.Run
	return live(&f.Status) && r.Status == event.Running && r.Request == "" && r.Tick.Equal(tick)
}

// byHand reports whether a job has no ticks at all, and runs when that is ordered.
func (f *Facts) byHand() bool {
	return f.Ticks != nil && f.Ticks.Next(time.Time{}).IsZero()
}

// term answers for what a singleton, or a job without ticks, did at an instant.
func (a *asking) term(at time.Time) {
	for _, l := range a.Lines {
		if !l.Start.After(at) && !l.Start.IsZero() && !l.End.Before(at) {
			a.ended(&l.Outcome, l.Tick)
			return
		}
	}
	switch r := &a.Status.Record; {
	case at.After(a.Now):
		a.say(NotDue, "that is to come")
	case r.MayRun() && !r.Run.Claimed.After(at):
		a.sayNow()
	case a.byHand():
		a.say(NoTick, "no run of it at %s is in its history, and it has no ticks: it runs when that is ordered", format.Stamp(at))
	default:
		a.absent(at, "no replica ran it at "+format.Stamp(at))
	}
}

// sayNow says how the job is now.
func (a *asking) sayNow() {
	st, r, run := &a.Status, &a.Status.Record, &a.Status.Record.Run
	cause, paused := a.pauseAt(a.Now)
	switch next := st.Next; {
	case r.MayRun() && !st.Waits.IsZero():
		a.say(Waiting, "it waits after an unlock until about %s, since the run on %s may go on", format.Stamp(st.Waits), run.Replica)
	case live(st) && run.Status == event.Stalled:
		a.say(Stalled, "its run on %s has stalled, and is not known to have ended", run.Replica)
	case live(st):
		a.say(Running, "it runs on %s since %s%s", run.Replica, format.Stamp(run.Claimed), ofRun(run.Tick, run.Request))
	case r.MayRun():
		a.say(Died, "the lease of its run on %s has ended without an outcome, and no replica has taken over yet", run.Replica)
	case cause != "":
		a.say(cause, "it is paused %s", paused)
	case st.Occupied != nil:
		a.say(Occupied, "%s", format.Error(st.Occupied))
	case st.Awaits != "" && !next.After(a.Now):
		a.say(Predecessor, "its tick of %s waits for %s", format.Stamp(next), st.Awaits)
	case !st.Over.IsZero():
		a.say(Over, "its last tick of all was %s", format.Stamp(st.Over))
	case next.IsZero() && st.Singleton:
		a.say(Waiting, "no replica runs it")
	case next.IsZero() && a.byHand():
		a.say(NotDue, "it has no ticks: it runs when that is ordered")
	case next.IsZero():
		a.say(NotDue, "no tick is to come")
	case !next.After(a.Now):
		a.say(Due, "its tick of %s has not been claimed yet", format.Stamp(next))
	default:
		a.say(NotDue, "nothing is due: the next tick is %s, %s", format.Stamp(next), format.Relative(next, a.Now))
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

// pauseAt returns the kind of a pause in which an instant lies, and its words, as far as orders, record and settings show; empty:
// there is none.
func (f *Facts) pauseAt(at time.Time) (Cause, string) {
	orders, self := f.Control.Jobs[f.Status.Name], f.Status.Record.Orders.Paused
	if p := orders.Pause; !p.At.IsZero() && at.After(p.At) && p.On(at) {
		return PausedByOrder, byOrder(p.By, p.At, p.Until, p.Reason)
	}
	if words := f.orderedPause(at); words != "" {
		return PausedByOrder, words
	}
	resumed := orders.Resumed
	if !self.At.IsZero() && at.After(self.At) && (resumed.Token < self.Token || !at.After(resumed.At)) {
		n, _ := f.failures(func(o *event.Outcome) bool { return o.Token <= self.Token })
		failures := cmp.Or(format.Plural(n, "failure"), "failures")
		return PausedItself, "by itself at " + format.Stamp(self.At) + " after " + failures + " in a row"
	}
	if on, where := f.pausedBySettings(); on && !f.Now.After(at) {
		return PausedBySettings, "by its settings " + where
	}
	return "", ""
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

// orderedPause finds in the last orders the pause in which an instant lies.
func (f *Facts) orderedPause(at time.Time) string {
	for _, o := range f.Control.Audit { // the newest first
		if o.Job != f.Status.Name || !o.At.Before(at) {
			continue
		}
		switch o.Kind {
		case record.OrderResume:
			return ""
		case record.OrderPause:
			if !o.Until.IsZero() && !at.Before(o.Until) {
				return ""
			}
			return byOrder(o.By, o.At, o.Until, o.Reason)
		}
	}
	return ""
}

// pausedBySettings reports whether the settings of replicas pause the job or, if these are not known, those of this program.
func (f *Facts) pausedBySettings() (on bool, where string) {
	known := false
	for name, r := range f.replicas() {
		s, ok := f.Replicas.Doc.Work[r.Work][cmp.Or(f.Job.Name, f.Status.Name)]
		if ok && f.Replicas.State(r) == presence.Up {
			if known = true; s.Paused {
				return true, "on " + name
			}
		}
	}
	return !known && f.Job.Paused, "in this environment"
}

// failures returns how many of those runs failed in a row, and when the last of them ended.
func (f *Facts) failures(of func(*event.Outcome) bool) (n int, last time.Time) {
	for _, o := range f.Lines {
		switch {
		case o.Request != "" || o.Start.IsZero() || !of(&o.Outcome):
		case o.Status == event.Succeeded:
			return n, last
		case o.Status == event.Failed || o.Status == event.Stalled:
			if n++; n == 1 {
				last = o.End
			}
		}
	}
	return n, last
}

// live reports whether a status shows a run that is under way.
func live(st *desk.Status) bool {
	return st.Err == nil && st.Record.MayRun() && st.Lease.Live()
}
