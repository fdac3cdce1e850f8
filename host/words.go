package host

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/soloist-go/soloist/store"
)

// Times are shown in UTC, as ticks are named.
const timeFormat = "2006-01-02 15:04:05Z"

func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(timeFormat)
}

// relative says how far t is from now.
func relative(t, now time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "in " + roughly(d)
	}
	return roughly(now.Sub(t)) + " ago"
}

// ahead is relative for what nobody has done yet.
func ahead(t, now time.Time) string {
	if !t.After(now) {
		return "due"
	}
	return relative(t, now)
}

// roughly tells a duration in its largest unit, as people do. A negative one comes
// from two clocks that differ, and is shown as 0s.
func roughly(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}

// outcome says what became of a tick, or of a range of them.
func outcome(f *store.Outcome) string {
	text := string(f.Status)
	if !f.From.IsZero() && f.Count > 1 {
		text = counted(f) + " " + text
	}
	if !f.Start.IsZero() && f.End.After(f.Start) {
		text += " in " + f.End.Sub(f.Start).Round(time.Millisecond).String()
	}
	if f.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", f.Attempt)
	}
	if f.Reason != "" {
		text += " (" + brief(f.Reason) + ")"
	}
	return text
}

// moment is when an outcome was: its tick, or for a singleton the start of its term.
func moment(f *store.Outcome) time.Time {
	if f.Tick.IsZero() {
		return f.Start
	}
	return f.Tick
}

// utc is how JSON tells an instant.
func utc(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// plainOutcomes are outcomes as JSON tells them, and a list even if there are none.
func plainOutcomes(all []store.Outcome) []store.Outcome {
	plain := make([]store.Outcome, 0, len(all))
	for _, f := range all {
		f.Tick, f.From, f.Start, f.End = utc(f.Tick), utc(f.From), utc(f.Start), utc(f.End)
		plain = append(plain, f)
	}
	return plain
}

// span is the tick of an outcome, or what is known of a range of them.
func span(f *store.Outcome) string {
	if f.From.IsZero() {
		return stamp(f.Tick)
	}
	count := "not counted"
	if f.Count > 0 {
		count = counted(f)
	}
	return "after " + stamp(f.From) + " .. " + stamp(f.Tick) + " (" + count + ")"
}

// counted is the number of ticks of a range. The count of a long one stops.
func counted(f *store.Outcome) string {
	if f.AtLeast {
		return fmt.Sprintf("at least %d", f.Count)
	}
	return strconv.Itoa(f.Count)
}

// took is how long a run lasted, if it has ended.
func took(f *store.Outcome) string {
	if f.Start.IsZero() || f.End.Before(f.Start) {
		return "-"
	}
	return f.End.Sub(f.Start).Round(time.Millisecond).String()
}

// some is the number of what there can be none of.
func some(n int64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// outcomes are those that a tick can have, the wanted one first.
var outcomes = []store.Status{store.Succeeded, store.Failed, store.Stalled, store.Abandoned, store.Skipped, store.Missed}

func tally(counts map[store.Status]int64) string {
	var all []string
	for _, s := range outcomes {
		if n := counts[s]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, s))
		}
	}
	return join(all...)
}

// brief is a line that a table can take: as much as a record keeps of a reason.
func brief(text string) string {
	const most = 100
	if r := []rune(line(text)); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return line(text)
}

// join lists what is not empty, "-" if all is.
func join(all ...string) string {
	var some []string
	for _, s := range all {
		if s != "" {
			some = append(some, s)
		}
	}
	if some == nil {
		return "-"
	}
	return strings.Join(some, ", ")
}

// plural counts things, no text for none.
func plural(n int, thing string) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
