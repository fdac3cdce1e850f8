package ticks

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

// A Left is an excluded day on which the schedule has ticks.
type Left struct {
	Day   calendar.Day
	Ticks int          // of the schedule on that day; at most countMost
	By    []string     // the calendars that exclude it: the calendars of Except that contain it, or all of Only
	Only  bool         // By are calendars of Only, none of which contains it
	To    calendar.Day // where its ticks move to; zero: they do not exist
}

const (
	countMost = 1000   // ticks of a day that are counted
	lookMost  = 20_000 // ticks of a schedule that are looked at for the days which are excluded
)

// LeftOut returns the first excluded days after an instant on which the schedule has ticks, up to the day of another instant:
// at most so many.
func (t *Ticks) LeftOut(after, to time.Time, most int) (all []Left) {
	if t.out == nil {
		return nil
	}
	begin, end := after.Unix(), to.Unix()
	at, ok := t.base(begin)
	for n := 0; ok && at <= end && n < lookMost && len(all) < most; n++ {
		d := t.wall.Day(at)
		if t.out.has(d) && !told(all, dayOf(d)) {
			all = append(all, t.explain(Left{Day: dayOf(d), Ticks: t.onDay(d, begin)}, d))
		}
		at, ok = t.base(max(at, t.wall.Reach((d+1)*daySeconds)-1)) // not the end of the day: that may be after one of the next
	}
	return all
}

// told reports whether a day is among others.
func told(all []Left, d calendar.Day) bool {
	return slices.ContainsFunc(all, func(l Left) bool { return l.Day == d })
}

// onDay counts the ticks of the schedule on a day, after an instant. Another day may be shown in between.
func (t *Ticks) onDay(d, after int64) (n int) {
	for p := range t.wall.Pieces(d) {
		n += t.Schedule.Count(time.Unix(max(after, p.From-1), 0), time.Unix(p.To-1, 0), countMost-n)
	}
	return n
}

// explain adds who excludes a day, and where its ticks go.
func (t *Ticks) explain(l Left, d int64) Left {
	var only []string
	for _, c := range t.calendars {
		switch {
		case c.only:
			only = append(only, c.name)
		case c.days.has(d):
			l.By = append(l.By, c.name)
		}
	}
	if len(l.By) == 0 {
		l.By, l.Only = only, true
	}
	if e, ok := t.target(d); ok {
		l.To = dayOf(e)
	}
	return l
}

// MovedFrom returns the day that a tick has moved from; zero: the schedule itself names the tick.
func (t *Ticks) MovedFrom(tick time.Time) (from calendar.Day) {
	if t.out == nil || t.limits.Shift == NoShift {
		return from
	}
	shown, step := t.wall.Day(tick.Unix()), t.step()
	if t.Schedule.Next(tick.Add(-1)).Equal(tick) && !t.out.has(shown) {
		return from
	}
	for _, e := range [...]int64{shown, shown - 1} { // clocks that go forward to midnight show the day after the one it moved to
		for d := e + step; !t.out.has(e) && t.moves(d, e); d += step {
			if t.movesTo(d, e, tick.Unix()) {
				return dayOf(d)
			}
		}
	}
	return from
}

// movesTo reports whether a tick on one day moves to an instant on another.
func (t *Ticks) movesTo(d, e, tick int64) bool {
	for p := range t.wall.Pieces(d) {
		from := t.wall.Peak(tick-1) + 1 - p.Off + (d-e)*daySeconds // whatever is before it moves to before the tick
		at, ok := t.base(max(from, p.From) - 1)
		if ok && at < p.To && t.wall.Reach(at+p.Off+(e-d)*daySeconds) == tick {
			return true
		}
	}
	return false
}
