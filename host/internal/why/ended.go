package why

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/format"
)

// Reasons are compared as texts, and not with the constants of the program that writes them: records also have those that other
// versions have written.
const scheduleChanged = "the schedule changed"

// tick answers for a tick of the schedule.
func (a *asking) tick(tick time.Time) {
	r := &a.Status.Record
	o, gap := a.outcomeOf(tick)
	switch a.Tick = tick; {
	case tick.After(a.Now):
		a.ahead(tick)
	case o != nil:
		a.ended(o, tick)
	case tick.After(r.Watermark):
		a.owed(tick)
	case !r.Created.IsZero() && tick.Before(r.Created):
		a.say(NoRecord, "the job has no record from then: it was made at %s", format.Stamp(r.Created))
		a.know("ticks from before the record are not run")
	default:
		a.say(Kept, "the tick has its outcome, which is not kept any more")
		if n := len(a.Lines); n > 0 {
			a.know("the oldest outcome that was read is of %s", format.Stamp(format.Moment(&a.Lines[n-1].Outcome)))
		}
		a.whyNotKept(gap)
	}
}

// whyNotKept says why an outcome is not found.
func (a *asking) whyNotKept(gap bool) {
	switch {
	case gap:
		a.open("what became of it: outcomes may be lost between those that the log has")
	case a.Logged && !a.Whole:
		a.open("what became of it: the log was not read back so far; the command history with --since reads all of it")
	default:
		a.open("what became of it: a record keeps the last outcomes, and with SOLOIST_HISTORY a log keeps all")
	}
}

// outcomeOf returns the outcome of a tick, nil if there is none. gap reports whether outcomes may be lost where it would be. That
// a backfill has run the tick again is a further fact.
func (a *asking) outcomeOf(tick time.Time) (found *event.Outcome, gap bool) {
	for i := range a.Lines {
		l := &a.Lines[i]
		isIn := isOf(&l.Outcome, tick)
		switch seq := event.BackfillOf(l.Request); {
		case isIn && seq != 0:
			a.know("backfill %d has run it again: %s", seq, format.Outcome(&l.Outcome))
		case isIn && l.Request == "" && found == nil:
			found = &l.Outcome
		}
		older := i+1 == len(a.Lines) || !a.Lines[i+1].Tick.After(tick)
		gap = gap || l.Gap && found == nil && older && l.Tick.After(tick)
	}
	return found, gap
}

// isOf reports whether an outcome is that of a tick, or of a range in which it lies.
func isOf(o *event.Outcome, tick time.Time) bool {
	return o.Tick.Equal(tick) || !o.From.IsZero() && tick.After(o.From) && !tick.After(o.Tick)
}

// ended answers for a tick, or a term, that has its outcome.
func (a *asking) ended(o *event.Outcome, tick time.Time) {
	a.Tick = tick
	if !o.From.IsZero() {
		a.know("its outcome is that of the ticks after %s up to %s", format.Stamp(o.From), format.Stamp(o.Tick))
	}
	if !o.Start.IsZero() {
		a.ran(o)
	}
	reason := format.Brief(o.Reason)
	because := ""
	if reason != "" {
		because = ": " + reason
	}
	switch o.Status {
	case event.Succeeded:
		a.say(Succeeded, "it succeeded%s", because)
	case event.Failed:
		a.say(Failed, "it ran on %s, and failed%s", o.Replica, because)
	case event.Stalled:
		a.say(Stalled, "it ran on %s, which made no progress, and was given up%s", o.Replica, because)
	case event.Abandoned:
		a.abandoned(o)
	case event.Cancelled:
		if rest, ok := strings.CutPrefix(o.Reason, "replaced "); ok {
			a.say(Replaced, "its run was replaced %s", format.Brief(rest))
			a.know("the job has Overlap: Replace")
		} else {
			a.say(Cancelled, "it was cancelled %s", reason)
		}
	case event.Skipped:
		a.skipped(o, tick)
	case event.Missed:
		a.missed(o, tick)
	}
}

// ran notes where and when a run took place.
func (a *asking) ran(o *event.Outcome) {
	text := "it began on " + o.Replica + " at " + format.Stamp(o.Start)
	if late := o.Start.Sub(o.Tick); !o.Tick.IsZero() && late >= time.Second {
		text += ", " + format.Roughly(late) + " after its tick"
	}
	if !o.End.IsZero() {
		text += ", and ended at " + format.Stamp(o.End)
	}
	a.know("%s", text)
	if o.Attempt > 1 {
		a.know("that was attempt %d: those before were interrupted", o.Attempt)
	}
}

// abandoned answers for a tick whose last run had no end of its own.
func (a *asking) abandoned(o *event.Outcome) {
	rest, died := strings.CutPrefix(o.Reason, "its runner died")
	switch why := o.Reason; {
	case died:
		a.say(Died, "it began on %s, whose lease ended without an outcome: the runner died%s", o.Replica, format.Brief(rest))
		a.open("why the runner died: the log of %s and its platform may tell", o.Replica)
	case strings.HasPrefix(why, "unlocked"):
		a.say(Unlocked, "its job was %s while it ran on %s", format.Brief(why), o.Replica)
	case strings.HasPrefix(why, "stopped"):
		a.say(Stopped, "it began on %s, which was stopped before the end: %s", o.Replica, format.Brief(why))
	case strings.HasPrefix(why, "not run again"):
		a.say(Died, "its run on %s was interrupted, and it was %s", o.Replica, format.Brief(why))
	default:
		a.say(Lost, "its run on %s lost its lease: %s", o.Replica, format.Brief(why))
	}
	if a.Ticks != nil && a.Job.Interrupted != soloist.Rerun {
		a.know("the job has no Interrupted: Rerun, so such a tick is not run again")
	}
}

// skipped answers for a tick that was not run on purpose.
func (a *asking) skipped(o *event.Outcome, tick time.Time) {
	if o.Token != 0 {
		a.say(Declined, "its function skipped it: %s", format.Join(format.Brief(o.Reason)))
		return
	}
	if name, ok := strings.CutPrefix(o.Reason, "group "); ok {
		has := ""
		if a.Slots > 0 {
			has = ", which has " + strconv.Itoa(a.Slots) + ","
		}
		a.say(GroupFull, "no slot of group %s%s was free until a newer tick was due or its starting deadline had passed",
			format.Brief(name), has)
		a.open("which jobs had the slots then: their histories tell")
		return
	}
	switch o.Reason {
	case "paused":
		a.wasPaused(tick)
	case "overlap":
		if run := a.runAt(tick); run != nil {
			a.overlap("", run)
			return
		}
		a.say(Overlap, "the job was running")
		a.open("which run that was: its outcome is not kept")
	default:
		a.predecessor(o.Reason, tick)
	}
}

// wasPaused answers for a tick that was skipped for a pause.
func (a *asking) wasPaused(tick time.Time) {
	if cause, words := a.pauseAt(tick); cause != "" {
		a.say(cause, "the job was paused %s", words)
		return
	}
	n, last := a.failures(func(o *event.Outcome) bool { return o.Tick.Before(tick) })
	if a.Job.Retry.PauseAfter > 0 && n >= a.Job.Retry.PauseAfter {
		a.say(PausedItself, "the job had paused itself after %s in a row, the last at %s", format.Plural(n, "failure"), format.Stamp(last))
		a.know("Retry.PauseAfter is %d", a.Job.Retry.PauseAfter)
		return
	}
	if on, where := a.pausedBySettings(); on {
		a.say(PausedBySettings, "the job was paused by its settings, as it is now %s", where)
		return
	}
	a.say(Paused, "the job was paused")
	a.open("by what: no order to pause it is among those that are kept, and no settings that are known pause it now")
}

// predecessor answers for a tick whose reason begins with the name of a job that its job follows.
func (a *asking) predecessor(reason string, tick time.Time) {
	name, what, _ := strings.Cut(reason, " ")
	st, known := a.Others[name]
	if !known {
		a.say(Predecessor, "it was skipped: %s", format.Brief(reason))
		return
	}
	if what != string(event.Failed) && what != string(event.Stalled) {
		what = "was " + what
	}
	a.say(Predecessor, "its predecessor %s did not succeed: it %s", name, format.Brief(what))
	for i := range st.Record.History {
		o := &st.Record.History[i]
		if o.Request == "" && isOf(o, tick) {
			a.know("%s: %s", name, format.Outcome(o))
			return
		}
	}
	a.open("why: the record of %s does not have that outcome any more; why %s %s may tell", name, name, tick.UTC().Format(time.RFC3339))
}

// missed answers for a tick that no replica ran.
func (a *asking) missed(o *event.Outcome, tick time.Time) {
	switch name, ok := strings.CutPrefix(o.Reason, "the outcome of "); {
	case o.Reason == scheduleChanged:
		a.changed(o)
	case ok && strings.HasSuffix(name, " is not known"):
		a.say(Predecessor, "the outcome of its predecessor %s had left the record before a replica looked", format.Brief(strings.TrimSuffix(name, " is not known")))
	case o.Reason == "too many were due":
		a.say(TooMany, "more ticks were due than are made up for, and this one was too old")
		a.know("the job has Missed: RunAll")
	case o.Reason == "past the starting deadline":
		text := "no replica ran it in time"
		switch {
		case a.Job.Late.Start > 0:
			a.know("its starting deadline is %s", a.Job.Late.Start)
		case a.Job.Late.Missed == soloist.SkipMissed:
			a.know("the job has Missed: SkipMissed, so a tick is not run later than a lease")
		}
		a.absent(tick, text)
	default:
		a.absent(tick, "no replica ran it before a newer tick was due")
	}
}

// changed answers for ticks of a definition that another one has replaced.
func (a *asking) changed(o *event.Outcome) {
	since, with := a.Status.Record.Definition.Since, ""
	for _, name := range slices.Sorted(maps.Keys(a.replicas())) {
		if r := a.replicas()[name]; r.Started.Sub(since).Abs() < 2*time.Second { // it may have read the clock a moment later
			with = ", with " + name
			if version := format.Join(r.Version, r.Revision); version != "-" {
				with += " (" + version + ")"
			}
			with += ", which started at " + format.Stamp(r.Started)
			break
		}
	}
	a.say(Definition, "the definition of the job changed at %s%s, before a replica ran it", format.Stamp(o.Tick.Add(time.Second-1)), with)
	a.know("the definition in force is of a replica that started at %s", format.Stamp(since))
	a.open("which ticks the definition before had: its record has a hash of that alone")
}
