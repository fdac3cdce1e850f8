// Package holidays makes a calendar of public holidays, as github.com/rickar/cal/v2 knows them for some forty countries:
//
//	import "github.com/rickar/cal/v2/de"
//
//	Days: soloist.Days{Except: []soloist.Calendar{holidays.Of("holidays", de.HolidaysBY...)}}
//
// What a law changes reaches a program with a newer version of that module: replicas with different versions may have other
// days, and are distinguished by the definition of the job.
package holidays

import (
	"errors"
	"fmt"
	"time"

	"github.com/rickar/cal/v2"

	"github.com/soloist-go/soloist/calendar"
)

// days is the days of some holidays.
type days struct {
	name string
	has  map[calendar.Day]bool
	err  error
}

func (d *days) Name() string                   { return d.name }
func (d *days) Contains(day calendar.Day) bool { return d.has[day] }

// Err returns why there are no days; nil: there are.
func (d *days) Err() error { return d.err }

// Of returns the days of holidays: each day itself and, where a law moves the day off from a weekend, the day on which it is
// observed too.
func Of(name string, list ...*cal.Holiday) calendar.Calendar {
	d := &days{name: name, has: map[calendar.Day]bool{}}
	d.err = d.add(list)
	return d
}

// add asks each holiday for each year. A holiday near the turn of a year may be observed in another one.
func (d *days) add(list []*cal.Holiday) (err error) {
	var h *cal.Holiday
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("has %.60q, which panicked: %.200v", h.Name, p)
		}
	}()
	for _, h = range list {
		if h == nil {
			return errors.New("has a holiday that is nil")
		}
		for year := calendar.FirstYear - 1; year <= calendar.LastYear+1; year++ {
			for _, at := range each(h.Calc(year)) {
				d.has[at] = true
			}
		}
	}
	if len(d.has) == 0 {
		return errors.New("has no days")
	}
	return nil
}

// each returns the dates of some days. They begin at midnight of the machine's own zone, or an hour before that where there is
// no such midnight, so noon says which day is meant.
func each(actual, observed time.Time) (all []calendar.Day) {
	for _, at := range []time.Time{actual, observed} {
		if !at.IsZero() {
			all = append(all, calendar.DayOf(at.Add(12*time.Hour)))
		}
	}
	return all
}
