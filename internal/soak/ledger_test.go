package soak_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// An account says what became of each tick of a job. It reads the records in the order in which the service took them,
// since a record forgets its oldest outcomes.
type account struct {
	job      string
	chapters []chapter
	outcomes []string // of each minute; empty: none
	counts   map[event.Status]int64
	last     record.Record
	bad      func(format string, args ...any)
}

// A chapter is the time in which one schedule was in force. It begins after a tick.
type chapter struct {
	after time.Time
	calendar
}

const changed = "the schedule changed"

// write adds a record, written by a replica that has the job with the calendar c.
func (a *account) write(r *record.Record, c calendar) {
	if len(a.chapters) == 0 {
		a.outcomes, a.counts = make([]string, len(c.due)), map[event.Status]int64{}
		a.chapters, a.last = []chapter{{r.Watermark, c}}, *r
		return
	}
	if r.Watermark.Before(a.last.Watermark) {
		a.bad("%s: the watermark moves back from %s to %s", a.job, a.last.Watermark, r.Watermark)
	}
	n := len(a.chapters)
	for _, f := range slices.Backward(news(a.last.History, r.History)) {
		a.enter(f)
		if f.Reason == changed {
			a.chapters = append(a.chapters, chapter{f.Tick, c})
		}
	}
	if r.Definition.Spec != a.last.Definition.Spec && n == len(a.chapters) { // no tick of the old schedule was open
		a.chapters = append(a.chapters, chapter{r.Watermark, c})
	}
	a.last = *r
}

// enter adds one outcome: of a tick, or of all ticks in a range.
func (a *account) enter(f event.Outcome) {
	reason, _, _ := strings.Cut(f.Reason, ": ") // the rest differs each time
	what := strings.TrimSpace(fmt.Sprint(f.Status, " ", reason))
	now := a.chapters[len(a.chapters)-1].calendar
	if f.From.IsZero() {
		if !now.has(f.Tick) {
			a.bad("%s: %s is no tick, and %s", a.job, f.Tick, what)
			return
		}
		a.set(now.minute(f.Tick), what)
		a.counts[f.Status]++
		return
	}
	n := 0
	for m := now.minute(f.From.Add(1)); m < len(now.due) && !now.at(m).After(f.Tick); m++ {
		if now.due[m] {
			a.set(m, what)
			n++
		}
	}
	if f.Reason != changed && f.Count != n {
		a.bad("%s: %d ticks are %s after %s up to %s, and %d were due", a.job, f.Count, what, f.From, f.Tick, n)
	}
	a.counts[f.Status] += int64(f.Count)
}

func (a *account) set(minute int, what string) {
	if old := a.outcomes[minute]; old != "" {
		a.bad("%s: the tick %s is %s and %s", a.job, a.chapters[0].at(minute), old, what)
	}
	a.outcomes[minute] = what
}

// news is what stands in front of the old history in the new one, of which the oldest may have been cut off. The end of a
// run may be added later.
func news(old, now []event.Outcome) []event.Outcome {
	same := func(a, b event.Outcome) bool { a.End, b.End = time.Time{}, time.Time{}; return a == b }
	for n := range now {
		if rest := now[n:]; len(rest) <= len(old) && slices.EqualFunc(rest, old[:len(rest)], same) {
			return now[:n]
		}
	}
	return now
}

// sum compares the ticks that were due up to to with those that have an outcome, and returns how many have which.
func (a *account) sum(to time.Time) map[string]int {
	all, due := map[string]int{}, map[int]bool{}
	for i, c := range a.chapters {
		end := to
		if i+1 < len(a.chapters) {
			end = a.chapters[i+1].after.Add(1)
		}
		for m := c.minute(c.after.Add(1)); m < min(len(c.due), c.minute(end)); m++ {
			due[m] = due[m] || c.due[m]
		}
	}
	for m, what := range a.outcomes {
		switch {
		case due[m] && what == "":
			a.bad("%s: the tick %s has no outcome", a.job, a.chapters[0].at(m))
		case !due[m] && what != "" && a.chapters[0].at(m).Before(to):
			a.bad("%s: %s is %s, and it was not due", a.job, a.chapters[0].at(m), what)
		case due[m]:
			all[what]++
		}
	}
	for status, n := range a.counts {
		if a.last.Counts[status] != n {
			a.bad("%s: the record counts %d ticks %s, and has had %d", a.job, a.last.Counts[status], status, n)
		}
	}
	return all
}
