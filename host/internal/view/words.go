package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/host/internal/format"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
)

// StateWords is the state, and who runs what since when.
func (v Job) StateWords(c format.Clock) string {
	text := string(v.State) + v.waitWords(c)
	if v.State == paused {
		text += v.pauseWords(c)
	}
	if v.Replica != "" {
		text += " on " + format.Line(v.Replica)
	}
	if since := cmp.Or(v.Lost, v.Claimed); !since.IsZero() {
		text += " since " + c.Since(since)
	}
	if v.TimedOut {
		text += ", over its time-out by " + c.Since(v.TimesOut)
	}
	if told := v.progressWords(c); told != "" {
		text += " (" + told + ")"
	}
	if v.State != paused {
		text += v.pauseWords(c)
	}
	return text + v.failureWords() + v.lateWords(c) + v.boundWords(c)
}

// boundWords complete the state of a job that has no tick now, since it has not begun or is over.
func (v Job) boundWords(c format.Clock) string {
	switch {
	case !v.Begins.IsZero():
		return ", begins " + c.Stamp(v.Begins)
	case v.Over.IsZero():
		return ""
	case v.State == over:
		return " since " + c.Stamp(v.Over)
	}
	return ", over since " + c.Stamp(v.Over)
}

// failureWords completes the state: how often the job has failed in a row.
func (v Job) failureWords() string {
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

// waitWords says until when no replica takes over a job that was unlocked.
func (v Job) waitWords(c format.Clock) string {
	switch {
	case v.Waits.IsZero():
		return ""
	case v.Waits.After(c.Now):
		return " after unlock until about " + c.Both(c.Stamp(v.Waits)+",", c.Relative(v.Waits))
	}
	return " after unlock: no replica has taken over yet"
}

// progressWords is the last progress report of the run, and how old it is.
func (v Job) progressWords(c format.Clock) string {
	if v.Progress == nil {
		return ""
	}
	return cmp.Or(format.Line(v.Progress.Note), "heartbeat") + ", " + c.Relative(v.Progress.At)
}

// LastWords is the last tick, what became of it, and how long ago.
func (v Job) LastWords(c format.Clock) string {
	if v.Last == nil {
		return "-"
	}
	at := format.Moment(v.Last)
	text := c.Stamp(at) + " " + format.WholeOutcome(v.Last)
	if v.Last.Replica != "" {
		text += " on " + format.Line(v.Last.Replica)
	}
	if c.Spans { // it has it already
		return text
	}
	return text + ", " + c.Relative(at)
}

// lastBrief is what became of the last tick, how long ago that was, and why, for a table. A run of hours that has just failed
// has not failed hours ago.
func (v Job) lastBrief(c format.Clock) string {
	if v.Last == nil {
		return "-"
	}
	ago := c.Since(cmp.Or(v.Last.End, format.Moment(v.Last))) + " ago"
	if v.Last.Reason != "" {
		return format.Fate(v.Last) + " " + ago + ": " + format.Brief(strings.TrimPrefix(v.Last.Reason, string(v.Last.Status)+": "))
	}
	return format.Fate(v.Last) + format.In(v.Last) + ", " + ago
}

// NextWords is the next tick, and how far it is.
func (v Job) NextWords(c format.Clock) string {
	switch {
	case v.Next.IsZero():
		return "-"
	case v.Awaits != "" && c.Short:
		return AwaitWords(v.Awaits)
	case v.Awaits != "":
		return c.Stamp(v.Next) + " " + AwaitWords(v.Awaits)
	}
	return c.Both(c.Stamp(v.Next), c.Ahead(v.Next))
}

// lateWords completes the state: since when the job is late, and how many ticks have not succeeded.
func (v Job) lateWords(c format.Clock) string {
	if v.Late == nil {
		return ""
	}
	words := ", late since " + c.Stamp(v.Late.Since)
	if v.Late.Count > 1 {
		words += fmt.Sprintf(" with %d ticks", v.Late.Count)
	}
	return words
}

// pauseWords completes the state: who has paused the job, until when and why.
func (v Job) pauseWords(c format.Clock) string {
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
		if c.Spans {
			text += ", ending " + c.Relative(v.Pause.Until)
		} else {
			text += " until " + c.Stamp(v.Pause.Until) + ", " + c.Relative(v.Pause.Until)
		}
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
	next := "the next tick of that is not known"
	if !st.Next.IsZero() {
		next = "the next tick of that is " + format.Stamp(st.Next)
	}
	switch {
	case st.Shard.Count > 0:
		return fmt.Sprintf("this environment's schedule or number of shards is not the one in force: %d shards here; %s", st.Shard.Count, next)
	case st.Schedule != "":
		return "this environment's schedule is not the one in force: " + st.Schedule + " here; " + next
	}
	return "this environment's schedule is not the one in force: " + next
}
