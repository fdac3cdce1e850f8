// Package ical reads the days of an iCalendar file (RFC 5545), as programs for calendars and many public offices write them.
//
//	Days: soloist.Days{Except: []soloist.Calendar{ical.File("school holidays", "holidays.ics")}}
//
// The days of all events count, also if an event lasts several days or recurs. Events have to last whole days:
// they begin at a date without a time of day, so no zone matters. What is not understood is an error, since a day that is
// left out in silence would be a run on a holiday: events with a time of day, changed instances of a recurring event
// (RECURRENCE-ID), tasks, journals. Events that are cancelled have no days, and descriptions of time zones and alarms do
// not matter.
//
// Replicas that read files of their own may have other days. The definition of the job distinguishes them.
package ical

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

const (
	maxSize = 1 << 20 // bytes of a file
	maxDays = 366     // of one event
	maxAll  = 200_000 // days of all events together, as they recur

	firstYear, lastYear = 1900, 2199 // of the dates in a file
)

// days is a calendar of days that were read.
type days struct {
	name string
	has  map[calendar.Day]bool
	err  error
}

func (d *days) Name() string                   { return d.name }
func (d *days) Contains(day calendar.Day) bool { return d.has[day] }

// Err returns why the days could not be read; nil: they could.
func (d *days) Err() error { return d.err }

// File reads a file, of up to 1 MiB and 10,000 events.
func File(name, path string) calendar.Calendar {
	text, err := readFile(path)
	if err != nil {
		return &days{name: name, err: fmt.Errorf("cannot be read: %w", err)}
	}
	return Parse(name, text)
}

func readFile(path string) ([]byte, error) {
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path) // a pipe may never be opened
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

// Parse reads the text of such a file.
func Parse(name string, text []byte) calendar.Calendar {
	r := reader{has: map[calendar.Day]bool{}}
	if err := r.read(text); err != nil {
		return &days{name: name, err: fmt.Errorf("is not a calendar of whole days: %w", err)}
	}
	return &days{name: name, has: r.has}
}

// A reader collects the days of events.
type reader struct {
	has map[calendar.Day]bool
	all int // days so far, also those that are there twice

	steps int // of the library, for all rules so far
}

func (r *reader) read(text []byte) (err error) {
	defer func() { // the library is given what anybody may have written
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be understood: %.200v", p)
		}
	}()
	if len(text) > maxSize {
		return fmt.Errorf("it is larger than %d bytes", maxSize)
	}
	return scan(bytes.TrimPrefix(text, []byte("\ufeff")), func(n int, e event) error {
		if err := r.event(e); err != nil {
			return fmt.Errorf("event %d, %.60q: %w", n, e.value("SUMMARY"), err)
		}
		return nil
	})
}

// event adds the days of an event.
func (r *reader) event(e event) error {
	for _, name := range []string{"RECURRENCE-ID", "EXRULE"} {
		if e[name] != nil {
			return fmt.Errorf("%s is not supported", name)
		}
	}
	if strings.EqualFold(e.value("STATUS"), "CANCELLED") {
		return nil
	}
	first, err := dateOf(e, "DTSTART")
	if err != nil {
		return err
	}
	length, err := lengthOf(e, first)
	if err != nil {
		return err
	}
	begins, err := r.recurrences(e, first)
	if err != nil {
		return err
	}
	for _, begin := range begins {
		if r.all += length; r.all > maxAll {
			return fmt.Errorf("the events have more than %d days", maxAll)
		}
		for i := range length {
			r.has[calendar.DayOf(begin.AddDate(0, 0, i))] = true
		}
	}
	return nil
}

// dateOf reads a property that has to be a date without a time of day.
func dateOf(e event, name string) (time.Time, error) {
	if n := len(e[name]); n != 1 {
		return time.Time{}, fmt.Errorf("it has %d of %s, want one", n, name)
	}
	return readDate(name, e.value(name))
}

func readDate(name, text string) (time.Time, error) {
	at, err := time.Parse("20060102", strings.TrimSpace(text))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is %.40q, want a date without a time of day, such as 20260501", name, text)
	}
	if at.Year() < firstYear || at.Year() > lastYear {
		return time.Time{}, fmt.Errorf("%s is %.40q, want a year from %d to %d", name, text, firstYear, lastYear)
	}
	return at, nil
}

// lengthOf returns how many days an event lasts: one, unless it has an end or a duration. An end is the first day after it.
func lengthOf(e event, first time.Time) (days int, err error) {
	ended, duration := e["DTEND"] != nil, e.value("DURATION")
	switch {
	case ended && duration != "":
		return 0, errors.New("it has both DTEND and DURATION")
	case ended:
		after, err := dateOf(e, "DTEND")
		if err != nil {
			return 0, err
		}
		days = int(after.Sub(first) / (24 * time.Hour))
	case duration != "":
		if days, err = readDuration(duration); err != nil {
			return 0, err
		}
	default:
		days = 1
	}
	if days < 1 || days > maxDays {
		return 0, fmt.Errorf("it lasts %d days, want 1 to %d", days, maxDays)
	}
	return days, nil
}

// readDuration reads a duration of whole days or weeks.
func readDuration(text string) (days int, err error) {
	var unit rune
	n, err := fmt.Sscanf(text, "P%d%c", &days, &unit)
	if err == nil && n == 2 && fmt.Sprintf("P%d%c", days, unit) == text && days <= maxDays {
		switch unit {
		case 'D':
			return days, nil
		case 'W':
			return 7 * days, nil
		}
	}
	return 0, fmt.Errorf("DURATION is %.40q, want days or weeks such as P3D or P1W", text)
}
