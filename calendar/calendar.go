// Package calendar names the days on which the ticks of a job do not exist, or on which alone they do.
// See [soloist.Days].
//
//	Days: soloist.Days{Except: []soloist.Calendar{
//		calendar.Weekends(), calendar.Dates("closed", "2026-12-24..2026-12-26", "2027-05-01")}}
//
// [Dates], [Fields] and [Weekends] need nothing but this module. Package [calendar/ical] reads files, and package
// [calendar/holidays] knows public holidays. They need further modules, which only programs get that import them.
//
// A calendar of a wrong text does not panic and returns no error of its own: what is wrong is an error of the job that
// names it, with all else that is wrong with the job.
//
// Calendars are asked once, when a program begins: for each day from [FirstYear] to [LastYear]. Later changes of what they
// would answer have no effect before the next start. Before and after these years a calendar has no day.
//
// [soloist.Days]: https://pkg.go.dev/github.com/soloist-go/soloist#Days
// [calendar/ical]: https://pkg.go.dev/github.com/soloist-go/soloist/calendar/ical
// [calendar/holidays]: https://pkg.go.dev/github.com/soloist-go/soloist/calendar/holidays
package calendar

import (
	"fmt"
	"time"
)

// A Calendar is a set of days. Implement it for days that no function of this package gives.
type Calendar interface {
	// Name names the calendar to people: in `next`, and in the definition of the job, so it must be
	// the same on each replica. It has 1 to 100 printable ASCII characters.
	Name() string

	// Contains reports whether a day is one of the calendar's. The answer must follow from the day
	// alone, and it has to come at once: a calendar that panics, or that takes longer than ten
	// seconds for all days, is an error.
	Contains(day Day) bool
}

// The years that calendars are asked for.
const (
	FirstYear = 2000
	LastYear  = 2099
)

// A Day is a date, as the clock of the job's time zone shows it. The date must exist.
type Day struct {
	Year  int
	Month time.Month
	Day   int // of the month
}

// DayOf returns the date of an instant in the instant's own location.
func DayOf(t time.Time) Day {
	y, m, d := t.Date()
	return Day{Year: y, Month: m, Day: d}
}

// Weekday returns the day of the week.
func (d Day) Weekday() time.Weekday { return d.midnight().Weekday() }

// YearDay returns the number of the day in its year, from 1.
func (d Day) YearDay() int { return d.midnight().YearDay() }

// String returns the day as in "2026-12-24".
func (d Day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// midnight stands for the day where package time has to reckon with it. UTC has no day without a midnight.
func (d Day) midnight() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }

// number counts days, so that two of them can be compared.
func (d Day) number() int { return int(d.midnight().Unix() / (24 * 60 * 60)) }

// weekends has Saturdays and Sundays.
type weekends struct{}

// Weekends returns all Saturdays and Sundays.
func Weekends() Calendar { return weekends{} }

func (weekends) Name() string { return "weekends" }

func (weekends) Contains(day Day) bool {
	w := day.Weekday()
	return w == time.Saturday || w == time.Sunday
}
