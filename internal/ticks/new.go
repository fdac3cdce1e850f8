package ticks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
)

const (
	maxCalendars = 100 // of each kind, in one job
	maxName      = 100 // bytes of the name of a calendar
)

// The first and the last instant at which ticks can begin or end: the rules of zones are read for these years.
var (
	earliest = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// New limits the ticks of a schedule. The error joins all that is wrong with the limits, each part with the name of its
// field.
func New(s *schedule.Schedule, l Limits) (*Ticks, error) {
	out, calendars, err := l.check()
	if err != nil {
		return nil, err
	}
	t := &Ticks{Schedule: s, limits: l}
	if out != nil || l.bounded() {
		t.limits.From, t.limits.Until = plain(l.From), plain(l.Until)
	}
	walls := s.Walls()
	t.wall = walls[0]
	if out != nil {
		t.sums.days = sumOf(out)
		t.wall.Missing(out.add)
		t.out, t.calendars = out, calendars
	}
	if t.out != nil || !s.Interval() {
		t.sums.zone = sumOfRules(walls...)
	}
	return t, t.fires()
}

// Check returns what is wrong with the limits whatever the schedule is.
func (l Limits) Check() error {
	_, _, err := l.check()
	return err
}

// check is Check. It also returns the excluded days, nil if there are no calendars, and these.
func (l *Limits) check() (*set, []named, error) {
	out, calendars, err := l.excluded()
	return out, calendars, errors.Join(l.checkBounds(), l.checkShift(), err)
}

// plain returns an instant without what is not part of it.
func plain(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Round(0).UTC()
}

func (l *Limits) checkBounds() error {
	var errs []error
	for _, b := range []struct {
		field string
		at    time.Time
	}{{"Days.From", l.From}, {"Days.Until", l.Until}} {
		if !b.at.IsZero() && (b.at.Before(earliest) || !b.at.Before(latest)) {
			errs = append(errs, fmt.Errorf("%s is in the year %d: allowed are years from 1970 to 2199", b.field, b.at.UTC().Year()))
		}
	}
	if !l.Until.IsZero() && !l.Until.After(l.From) {
		errs = append(errs, refused("Days.Until is %s: allowed is an instant after Days.From, %s", stamp(l.Until), stamp(l.From)))
	}
	return errors.Join(errs...)
}

func (l *Limits) checkShift() error {
	switch l.Shift {
	case NoShift:
		return nil
	case ShiftNext, ShiftPrevious:
		if len(l.Except)+len(l.Only) > 0 {
			return nil
		}
		return fmt.Errorf("Days.Shift is %q: allowed is none without Except and Only beside it", l.Shift)
	}
	return fmt.Errorf("Days.Shift is %.80q: allowed is none, ShiftNext or ShiftPrevious", l.Shift)
}

// A named calendar has been asked for its name and its days.
type named struct {
	name string
	days *set
	only bool // of the field Only
}

// excluded returns the excluded days, nil if no calendar says which, and the calendars in the order of their names.
func (l *Limits) excluded() (*set, []named, error) {
	if len(l.Except)+len(l.Only) == 0 {
		return nil, nil, nil
	}
	except, wrongExcept := askEach("Days.Except", l.Except)
	only, wrongOnly := askEach("Days.Only", l.Only)
	if err := errors.Join(wrongExcept, wrongOnly); err != nil {
		return nil, nil, err
	}
	out, in := &set{outside: len(only) > 0}, &set{}
	for _, c := range except {
		out.addAll(c.days)
	}
	for i := range only {
		only[i].only = true
		in.addAll(only[i].days)
	}
	if len(only) > 0 {
		out.addOthers(in)
	}
	return out, append(except, only...), nil
}

// askEach returns the calendars of a field.
func askEach(field string, calendars []calendar.Calendar) (all []named, err error) {
	if len(calendars) > maxCalendars {
		return nil, fmt.Errorf("%s has %d calendars: allowed are %d", field, len(calendars), maxCalendars)
	}
	var errs []error
	for i, c := range calendars {
		name, err := nameOf(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s[%d] %w", field, i, err))
			continue
		}
		days, err := ask(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: the calendar %.80q %w", field, name, err))
			continue
		}
		all = append(all, named{name: name, days: days})
	}
	slices.SortStableFunc(all, func(a, b named) int { return strings.Compare(a.name, b.name) })
	return all, errors.Join(errs...)
}

// nameOf returns the name of a calendar. It has to be fit for a line of a table.
func nameOf(c calendar.Calendar) (name string, err error) {
	if c == nil {
		return "", errors.New("is nil: want a calendar")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked when it was asked for its name: %.200v", p)
		}
	}()
	name = c.Name()
	odd := strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' })
	if name == "" || len(name) > maxName || odd || strings.TrimSpace(name) != name {
		return "", fmt.Errorf("has the name %.80q: allowed are 1 to %d printable ASCII characters, none of them a space at an end", name, maxName)
	}
	return name, nil
}

// fires refuses limits that leave no tick at all. It begins at a fixed year and asks no clock: a job that is over stays
// accepted.
func (t *Ticks) fires() error {
	if t.out == nil && !t.limits.bounded() {
		return nil
	}
	from := time.Date(calendar.FirstYear, 1, 1, 0, 0, 0, 0, time.UTC)
	if !t.limits.From.IsZero() {
		from = t.limits.From
	} else if until := t.limits.Until; !until.IsZero() && until.Before(from) {
		from = earliest
	}
	first, beyond := t.Next(from.Add(-1)), time.Date(calendar.LastYear+1, 1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case first.IsZero() && t.out == nil:
		return refused("Days.From and Days.Until leave no tick: the schedule, %s, has none %s", t.Schedule.Words(), t.limits.span())
	case first.IsZero(), t.out != nil && from.Before(beyond) && !first.Before(beyond):
		return refused("Days.Except and Days.Only leave no tick: from %s to %d, every day on which the schedule, %s, has one is excluded",
			from.Format(time.DateOnly), calendar.LastYear, t.Schedule.Words())
	}
	return nil
}

// refused returns an error that begins with the name of a field.
func refused(format string, args ...any) error { return fmt.Errorf(format, args...) }

// span says in words what the bounds are.
func (l *Limits) span() string {
	var parts []string
	if !l.From.IsZero() {
		parts = append(parts, "from "+stamp(l.From))
	}
	if !l.Until.IsZero() {
		parts = append(parts, "until "+stamp(l.Until))
	}
	return strings.Join(parts, " ")
}

// stamp writes an instant. A zero one is no bound.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format(time.RFC3339Nano)
}
