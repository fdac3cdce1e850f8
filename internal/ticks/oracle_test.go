package ticks_test

import (
	"slices"
	"sort"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/ticks"
)

// The oracle is written from docs/schedules.md alone. It is given all ticks of a schedule, looks at each one, asks package
// time what the clock on the wall shows, and knows nothing of offsets or bit sets.

const minute = 60

// stretch is what the clock of one zone shows during some weeks, minute by minute.
type stretch struct {
	loc    *time.Location
	begin  int64   // seconds; the first minute
	far    []int64 // at each minute the furthest reading so far, in seconds as if the zone were UTC
	exists map[calendar.Day]bool
}

func newStretch(loc *time.Location, begin, end time.Time) *stretch {
	s := &stretch{loc: loc, begin: begin.Unix() / minute * minute, exists: map[calendar.Day]bool{}}
	var far int64
	for t := s.begin; t <= end.Unix(); t += minute {
		w := time.Unix(t, 0).In(loc)
		far = max(far, time.Date(w.Year(), w.Month(), w.Day(), w.Hour(), w.Minute(), w.Second(), 0, time.UTC).Unix())
		s.far = append(s.far, far)
		s.exists[calendar.DayOf(w)] = true
	}
	return s
}

// reach returns the first instant at which the clock shows a date and time, or has passed it.
func (s *stretch) reach(day calendar.Day, sod int64) int64 {
	want := time.Date(day.Year, day.Month, day.Day, 0, 0, 0, 0, time.UTC).Unix() + sod
	i := sort.Search(len(s.far), func(i int) bool { return s.far[i] >= want/minute*minute })
	at := s.begin + int64(i)*minute
	if i < len(s.far) && s.far[i] < want {
		return at + want%minute
	}
	return at
}

// move returns where a tick on an excluded day goes; zero: nowhere.
func (s *stretch) move(at time.Time, by int, excluded func(calendar.Day) bool) int64 {
	w := at.In(s.loc)
	for n := 1; n <= 31; n++ {
		day := calendar.DayOf(time.Date(w.Year(), w.Month(), w.Day()+by*n, 0, 0, 0, 0, time.UTC))
		if s.exists[day] && !excluded(day) {
			return s.reach(day, int64(w.Hour()*3600+w.Minute()*60+w.Second()))
		}
	}
	return 0
}

// ticks returns what is left of the ticks of a schedule within the stretch, in order.
func (s *stretch) ticks(base []time.Time, l ticks.Limits) (left []int64) {
	excluded := func(day calendar.Day) bool {
		has := func(c calendar.Calendar) bool { return day.Year >= 2000 && day.Year <= 2099 && c.Contains(day) }
		return slices.ContainsFunc(l.Except, has) || len(l.Only) > 0 && !slices.ContainsFunc(l.Only, has)
	}
	for _, at := range base {
		t := at.Unix()
		if excluded(calendar.DayOf(at.In(s.loc))) {
			switch l.Shift {
			case ticks.NoShift:
				continue
			case ticks.ShiftNext:
				t = s.move(at, 1, excluded)
			case ticks.ShiftPrevious:
				t = s.move(at, -1, excluded)
			}
		}
		tick := time.Unix(t, 0)
		if t != 0 && !tick.Before(l.From) && (l.Until.IsZero() || tick.Before(l.Until)) {
			left = append(left, t)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}
