package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// StateWords is the state, and who runs what since when.
func (v Job) StateWords(now time.Time) string {
	text := string(v.State) + v.WaitWords(now)
	if v.State == paused {
		text += v.PauseWords(now)
	}
	if v.Replica != "" {
		text += " on " + format.Line(v.Replica)
	}
	if since := cmp.Or(v.Lost, v.Claimed); !since.IsZero() {
		text += " since " + format.Roughly(now.Sub(since))
	}
	if v.TimedOut {
		text += ", over its time-out by " + format.Roughly(now.Sub(v.TimesOut))
	}
	if told := v.ProgressWords(now); told != "" {
		text += " (" + told + ")"
	}
	if v.State != paused {
		text += v.PauseWords(now)
	}
	return text + v.FailureWords() + v.LateWords() + v.boundWords()
}

// boundWords complete the state of a job that has no tick now, since it has not begun or is over.
func (v Job) boundWords() string {
	switch {
	case !v.Begins.IsZero():
		return ", begins " + format.Stamp(v.Begins)
	case v.Over.IsZero():
		return ""
	case v.State == over:
		return " since " + format.Stamp(v.Over)
	}
	return ", over since " + format.Stamp(v.Over)
}

// FailureWords completes the state: how often the job has failed in a row.
func (v Job) FailureWords() string {
	switch {
	case v.Failures == 0:
		return ""
	case v.State == Failing:
		return fmt.Sprintf(" x%d", v.Failures)
	}
	return fmt.Sprintf(", failing x%d", v.Failures)
}

// Tone is the colour of the state in a table.
func (v Job) Tone() format.Tone {
	switch {
	case v.TimedOut, v.Failures > 0, v.Late != nil, v.State == broken, v.State == stalled:
		return format.Red
	case v.State == interrupted, v.State == Waiting, v.State == unknown, v.State == noRecord:
		return format.Yellow
	}
	return format.Normal
}

// WaitWords says until when no replica takes over a job that was unlocked.
func (v Job) WaitWords(now time.Time) string {
	switch {
	case v.Waits.IsZero():
		return ""
	case v.Waits.After(now):
		return " after unlock until about " + format.Stamp(v.Waits) + ", " + format.Relative(v.Waits, now)
	}
	return " after unlock: no replica has taken over yet"
}

// ProgressWords is the last progress report of the run, and how old it is.
func (v Job) ProgressWords(now time.Time) string {
	if v.Progress == nil {
		return ""
	}
	return cmp.Or(format.Line(v.Progress.Note), "heartbeat") + ", " + format.Relative(v.Progress.At, now)
}

// LastWords is the last tick, what became of it, and how long ago.
func (v Job) LastWords(now time.Time) string {
	if v.Last == nil {
		return "-"
	}
	at := format.Moment(v.Last)
	text := format.Stamp(at) + " " + format.Outcome(v.Last)
	if v.Last.Replica != "" {
		text += " on " + format.Line(v.Last.Replica)
	}
	return text + ", " + format.Relative(at, now)
}

// NextWords is the next tick, and how far it is.
func (v Job) NextWords(now time.Time) string {
	if v.Next.IsZero() {
		return "-"
	}
	if v.Awaits != "" {
		return format.Stamp(v.Next) + " " + AwaitWords(v.Awaits)
	}
	return format.Stamp(v.Next) + " " + format.Ahead(v.Next, now)
}

// LateWords completes the state: since when the job is late, and how many ticks have not succeeded.
func (v Job) LateWords() string {
	if v.Late == nil {
		return ""
	}
	words := ", late since " + format.Stamp(v.Late.Since)
	if v.Late.Count > 1 {
		words += fmt.Sprintf(" with %d ticks", v.Late.Count)
	}
	return words
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

// PauseReplaced says which pause a new one takes the place of; empty: none was in force.
func PauseReplaced(ordered record.JobControl, now time.Time) string {
	p := ordered.Pause
	if !p.On(now) {
		return ""
	}
	end := "a resume"
	if !p.Until.IsZero() {
		end = format.Stamp(p.Until)
	}
	return "this takes the place of the pause by " + format.Line(p.By) + " until " + end + ": " + cmp.Or(format.Line(p.Reason), "no reason given")
}

// foreignWords say which schedule is in force, as far as the record shows: it
// has a hash of the schedule, not its text.
func foreignWords(st *desk.Status) string {
	text := "this environment's schedule is not the one in force"
	if st.Shard.Count > 0 {
		text = fmt.Sprintf("this environment's schedule or number of shards (%d) is not the one in force", st.Shard.Count)
	} else if st.Schedule != "" {
		text = "this environment's schedule (" + st.Schedule + ") is not the one in force"
	}
	if st.Next.IsZero() {
		return text + ", whose next tick is not known"
	}
	return text + ", whose next tick is " + format.Stamp(st.Next)
}
