package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// fields has the days of cron text.
type fields struct {
	text string
	days []*schedule.Schedule // each is due all day, so also at midnight, UTC, of its days
	err  error
}

// Fields returns the days of cron text, which is the calendar's name, too: "* * 25 12 *" is each 25 December. The fields of
// the time of day must be *, since a day is excluded as a whole; the day fields mean what they mean in a schedule.
// Several texts with " ; " between them are the days of all of them.
func Fields(text string) Calendar {
	f := &fields{text: strings.Join(strings.Fields(text), " ")}
	if len(text) > maxText {
		f.err = fmt.Errorf("has %d bytes: allowed are %d", len(text), maxText)
		return f
	}
	for part := range strings.SplitSeq(text, ";") {
		s, err := readFields(part)
		if err != nil {
			f.err = fmt.Errorf("is not the day fields of a schedule: %w", err)
			return f
		}
		f.days = append(f.days, s)
	}
	return f
}

// readFields reads one text.
func readFields(text string) (*schedule.Schedule, error) {
	words := strings.Fields(text)
	if len(words) > 0 && words[0] == "ncrontab" {
		words = words[1:]
	}
	if len(words) != 5 && len(words) != 6 {
		return nil, fmt.Errorf("%d fields, want 5 (minute hour day-of-month month day-of-week) or 6 (second first)", len(words))
	}
	for _, word := range words[:len(words)-3] {
		if word != "*" {
			return nil, fmt.Errorf("%q in a field of the time of day, want *: a day is excluded as a whole", word)
		}
	}
	return schedule.Parse(text, "UTC", "")
}

func (f *fields) Name() string { return f.text }

// Err returns what is wrong with the text, nil if nothing is.
func (f *fields) Err() error { return f.err }

func (f *fields) Contains(day Day) bool {
	at := day.midnight()
	for _, s := range f.days {
		if s.Next(at.Add(-time.Second)).Equal(at) {
			return true
		}
	}
	return false
}
