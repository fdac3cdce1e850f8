package view

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/store"
)

// AllOrdered is [All], with the pauses that operators have ordered, and the settings that the
// replicas have published; nil: these are not known.
func AllOrdered(a *app.App, all []soloist.JobStatus, orders store.Control, fleet *Fleet) []Job {
	views := All(a, all)
	for i := range views {
		views[i].heed(a, &all[i], orders.Jobs[all[i].Name])
		views[i].meet(a, fleet)
	}
	return views
}

// meet shows the settings of the replicas.
func (v *Job) meet(a *app.App, fleet *Fleet) {
	job := a.Whole(v.Name) // all shards share their settings
	if !a.Serves {
		v.meetPause(fleet, job)
	}
	v.Differs = append(v.Differs, fleet.DiffersIn(job)...)
	if v.State == interrupted {
		v.sign(fleet.seen(v.Runner, v.Claimed))
	}
}

// meetPause shows a pause by the settings of the replicas. Where those are known, it does not
// matter what the record says of the last tick.
func (v *Job) meetPause(fleet *Fleet, job string) {
	paused, known := fleet.paused(job)
	if !known {
		return
	}
	v.Differs = slices.DeleteFunc(v.Differs, func(note string) bool { return note == skippedElsewhere || note == pausedHere })
	v.setPaused(paused || v.Pause != nil)
}

// heed shows the pause that is in force. A pause that is over may have skipped the
// newest tick: that is no pause now, and no difference to the settings.
func (v *Job) heed(a *app.App, st *soloist.JobStatus, ordered store.JobControl) {
	v.Pause = pauseOf(st, ordered, a.Now())
	if v.Pause == nil && !pausedByOrder(st, ordered) {
		return
	}
	v.Differs = slices.DeleteFunc(v.Differs, func(note string) bool { return note == skippedElsewhere })
	v.setPaused(v.Pause != nil || a.Serves && a.Paused(v.Name)) // a resume changes no settings
}

// setPaused corrects the state of a job in which nothing else happens.
func (v *Job) setPaused(on bool) {
	switch {
	case on && slices.Contains([]State{Idle, Failing, noRecord, onEach}, v.State):
		v.State = paused
	case on || v.State != paused:
	case v.EveryReplica:
		v.State = onEach
	case v.Failures > 0:
		v.State = Failing
	default:
		v.State = Idle
	}
}

// pausedByOrder reports whether the newest tick was skipped because of a pause that is
// over: a pause that an operator ordered, or the job's own pause after a resume.
func pausedByOrder(st *soloist.JobStatus, ordered store.JobControl) bool {
	if len(st.Record.History) == 0 {
		return false
	}
	tick := st.Record.History[0].Tick
	return !ordered.Resumed.At.IsZero() && !tick.After(ordered.Resumed.At) ||
		slices.ContainsFunc(ordered.Pauses, func(s store.Span) bool { return tick.After(s.From) && !tick.After(s.To) }) ||
		!ordered.Pause.Until.IsZero() && tick.After(ordered.Pause.At) && !tick.After(ordered.Pause.Until)
}

// PauseWords completes the state: who has paused the job, until when and why.
func (v Job) PauseWords(now time.Time) string {
	if v.Pause == nil {
		return ""
	}
	text := " by itself"
	if v.Pause.By != "" {
		text = " by " + format.Line(v.Pause.By)
	}
	if v.State != paused { // a run goes on
		text = ", paused" + text
	}
	if !v.Pause.Until.IsZero() {
		text += " until " + format.Stamp(v.Pause.Until) + ", " + format.Relative(v.Pause.Until, now)
	}
	if v.Pause.Reason != "" {
		text += ": " + format.Line(v.Pause.Reason)
	}
	return text
}
