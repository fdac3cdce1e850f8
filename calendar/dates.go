package calendar

import (
	"fmt"
	"strings"
	"time"
)

const (
	maxDates = 10_000 // texts of one calendar
	maxText  = 512    // bytes of one text
)

// A span has all days from one to another, by their numbers.
type span struct{ from, to int }

// dates has days that are named one by one.
type dates struct {
	name  string
	spans []span
	err   error
}

// Dates returns the days of some texts: "2026-05-01" is one day, "2026-12-24..2026-12-26" has both ends and all days between.
// Up to 10,000 texts.
func Dates(name string, texts ...string) Calendar {
	d := &dates{name: name}
	switch {
	case len(texts) == 0:
		d.err = fmt.Errorf("has no days: want dates such as 2026-05-01 or 2026-12-24..2026-12-26")
	case len(texts) > maxDates:
		d.err = fmt.Errorf("has %d texts: allowed are %d", len(texts), maxDates)
	}
	for _, text := range texts {
		if d.err != nil {
			break
		}
		var s span
		s, d.err = readSpan(text)
		d.spans = append(d.spans, s)
	}
	return d
}

func (d *dates) Name() string { return d.name }

// Err returns what is wrong with the texts, nil if nothing is.
func (d *dates) Err() error { return d.err }

func (d *dates) Contains(day Day) bool {
	n := day.number()
	for _, s := range d.spans {
		if s.from <= n && n <= s.to {
			return true
		}
	}
	return false
}

// readSpan reads one text.
func readSpan(text string) (span, error) {
	first, last, ranged := strings.Cut(text, "..")
	from, err := readDate(first)
	if err != nil {
		return span{}, fmt.Errorf("has %.80q: %w", text, err)
	}
	to := from
	if ranged {
		if to, err = readDate(last); err != nil {
			return span{}, fmt.Errorf("has %.80q: %w", text, err)
		}
	}
	if to < from {
		return span{}, fmt.Errorf("has %.80q: it ends before it begins", text)
	}
	return span{from, to}, nil
}

// readDate reads a date within the years that calendars are asked for: another one is a slip of the pen.
func readDate(text string) (int, error) {
	at, err := time.Parse(time.DateOnly, strings.TrimSpace(text))
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a date; want one such as 2026-05-01, or two with .. between them", text)
	}
	if at.Year() < FirstYear || at.Year() > LastYear {
		return 0, fmt.Errorf("the year %d is out of range, want %d-%d", at.Year(), FirstYear, LastYear)
	}
	return DayOf(at).number(), nil
}
