package format

import (
	"fmt"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/event"
)

// Outcome says what became of a tick, or of a range of them, with a reason that a table can take.
func Outcome(f *event.Outcome) string { return outcome(f, Brief) }

// WholeOutcome is Outcome with all that is kept of the reason.
func WholeOutcome(f *event.Outcome) string { return outcome(f, Line) }

// Fate is what became of a tick, or of how many, without how and why.
func Fate(f *event.Outcome) string {
	if !f.From.IsZero() && f.Count > 1 {
		return counted(f) + " " + string(f.Status)
	}
	return string(f.Status)
}

// Ran is how long a run took; zero: it did not run, or that is not known.
func Ran(f *event.Outcome) time.Duration {
	if f.Start.IsZero() || !f.End.After(f.Start) {
		return 0
	}
	return f.End.Sub(f.Start)
}

// In is how long a run took, after a blank; empty: it did not run, or that is not known.
func In(f *event.Outcome) string {
	if took := Ran(f); took > 0 {
		return " in " + Lasted(took)
	}
	return ""
}

func outcome(f *event.Outcome, reason func(string) string) string {
	text := Fate(f) + In(f)
	if f.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", f.Attempt)
	}
	if seq := event.BackfillOf(f.Request); seq != 0 {
		text += fmt.Sprintf(", backfill %d", seq)
	}
	if f.Reason != "" {
		text += " (" + reason(f.Reason) + ")"
	}
	return text
}

// Moment is when an outcome was: its tick, or for a singleton the start of its term.
func Moment(f *event.Outcome) time.Time {
	if f.Tick.IsZero() {
		return f.Start
	}
	return f.Tick
}

// PlainOutcome is an outcome as JSON shows it.
func PlainOutcome(f event.Outcome) event.Outcome {
	f.Tick, f.From, f.Start, f.End = UTC(f.Tick), UTC(f.From), UTC(f.Start), UTC(f.End)
	return f
}

// PlainOutcomes are outcomes as JSON shows them, and a list even if there are none.
func PlainOutcomes(all []event.Outcome) []event.Outcome {
	plain := make([]event.Outcome, 0, len(all))
	for _, f := range all {
		plain = append(plain, PlainOutcome(f))
	}
	return plain
}

// Span is the tick of an outcome, or what is known of a range of them.
func (c Clock) Span(f *event.Outcome) string {
	if f.From.IsZero() {
		return c.Stamp(f.Tick)
	}
	count := "not counted"
	if f.Count > 0 {
		count = counted(f)
	}
	return "after " + c.Stamp(f.From) + " .. " + c.Stamp(f.Tick) + " (" + count + ")"
}

// counted is the number of ticks of a range. The count of a long one stops.
func counted(f *event.Outcome) string {
	if f.AtLeast {
		return fmt.Sprintf("at least %d", f.Count)
	}
	return strconv.Itoa(f.Count)
}

// Took is how long a run lasted, if it has ended.
func Took(f *event.Outcome) string {
	if f.Start.IsZero() || f.End.Before(f.Start) {
		return "-"
	}
	return f.End.Sub(f.Start).Round(time.Millisecond).String()
}

// Number is the number of what there can be none of.
func Number(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// outcomes are those that a tick can have, the wanted one first.
var outcomes = []event.Status{event.Succeeded, event.Failed, event.Stalled, event.Abandoned, event.Cancelled, event.Skipped, event.Missed}

// Outcomes are the names of those that a tick can have, the wanted one first.
func Outcomes() (names []string) {
	for _, s := range outcomes {
		names = append(names, string(s))
	}
	return names
}

// Tally says how often each outcome came.
func Tally(counts map[event.Status]int64) string {
	var all []string
	for _, s := range outcomes {
		if n := counts[s]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, s))
		}
	}
	return Join(all...)
}
