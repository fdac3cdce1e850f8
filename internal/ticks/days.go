package ticks

import (
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// A Shift says what becomes of a tick on an excluded day.
type Shift string

// The constants of the root explain them.
const (
	NoShift       Shift = ""
	ShiftNext     Shift = "next"
	ShiftPrevious Shift = "previous"
)

// MaxShift is how many days a tick moves at most.
const MaxShift = 31

// days leaves out the ticks of a schedule that are on excluded days, or moves them.
//
// With a shift, ticks are found by groups. The group of a day that is not excluded has the ticks on that day and those that
// move to it: from the run of excluded days before it, or after it for ShiftPrevious.
type days struct {
	base  *schedule.Schedule
	wall  schedule.Wall
	out   *set // the excluded days
	shift Shift
}

// next and last ask the schedule, in seconds.
func (y *days) next(after int64) (int64, bool) {
	t := y.base.Next(time.Unix(after, 0))
	return t.Unix(), !t.IsZero()
}

func (y *days) last(at int64) (int64, bool) {
	t := y.base.Last(time.Unix(at, 0))
	return t.Unix(), !t.IsZero()
}

// after returns the first tick after an instant.
func (y *days) after(t int64) (int64, bool) {
	if y.shift == NoShift {
		return y.allowedAfter(t)
	}
	d := y.wall.Day(t)
	if y.endOf(d-1) > t { // clocks went back over midnight, and show the day before once more
		d--
	}
	var best int64
	found := false
	for e, ok := y.out.freeFrom(d); ok; {
		if first, has := y.first(e, t); has && (!found || first < best) {
			best, found = first, true
		}
		if !found {
			e, ok = y.groupAfter(e)
			continue
		}
		if e, ok = y.out.freeFrom(e + 1); ok && y.wall.Reach(e*daySeconds) > best {
			break
		}
	}
	return best, found
}

// before returns the last tick at or before an instant.
func (y *days) before(t int64) (int64, bool) {
	if y.shift == NoShift {
		return y.allowedUpTo(t)
	}
	d := y.wall.Day(y.wall.Reach(y.wall.Peak(t))) // the furthest day so far
	var best int64
	found := false
	for e, ok := y.out.freeUpTo(d); ok; {
		if last, has := y.newest(e, t); has && (!found || last > best) {
			best, found = last, true
		}
		if !found {
			e, ok = y.groupBefore(e)
			continue
		}
		if e, ok = y.out.freeUpTo(e - 1); ok && y.endOf(e) <= best {
			break
		}
	}
	return best, found
}

// allowedAfter returns the first tick after an instant on a day that is not excluded.
func (y *days) allowedAfter(t int64) (int64, bool) {
	t, ok := y.next(t)
	for ok {
		d := y.wall.Day(t)
		if !y.out.has(d) {
			return t, true
		}
		to, again := y.begins(d-1, t)
		if free, some := y.out.freeFrom(d + 1); !again && some {
			to = y.wall.Reach(free * daySeconds)
		} else if !again {
			return 0, false
		}
		t, ok = y.next(max(t, to-1))
	}
	return 0, false
}

// allowedUpTo returns the last tick up to an instant on a day that is not excluded.
func (y *days) allowedUpTo(t int64) (int64, bool) {
	t, ok := y.last(t)
	for ok {
		d := y.wall.Day(t)
		if !y.out.has(d) {
			return t, true
		}
		from, already := y.ends(d+1, t)
		if free, some := y.out.freeUpTo(d - 1); !already && some {
			from = y.endOf(free)
		} else if !already {
			return 0, false
		}
		t, ok = y.last(min(t, from) - 1)
	}
	return 0, false
}

// begins returns the first instant after another from which on a day is shown; false if there is none, or the day is
// excluded. Asked at a tick for the day before the tick's, it says whether clocks go back over midnight after the tick.
func (y *days) begins(d, after int64) (int64, bool) {
	if y.out.has(d) {
		return 0, false
	}
	for p := y.wall.Pieces(d); p.Next(); {
		if p.From > after {
			return p.From, true
		}
	}
	return 0, false
}

// ends returns the last instant up to another at which a day is no longer shown; false if there is none, or the day is
// excluded. Asked at a tick for the day after the tick's, it says whether clocks went back over midnight before the tick.
func (y *days) ends(d, upTo int64) (end int64, found bool) {
	if y.out.has(d) {
		return 0, false
	}
	for p := y.wall.Pieces(d); p.Next() && p.To <= upTo; {
		end, found = p.To, true
	}
	return end, found
}

// endOf returns the first instant from which on the clock shows neither a day nor an earlier day.
func (y *days) endOf(d int64) int64 {
	end := y.wall.Reach((d + 1) * daySeconds)
	for p := y.wall.Pieces(d); p.Next(); {
		end = max(end, p.To)
	}
	return end
}

// groupAfter returns the first group that may have a tick after a day's group.
func (y *days) groupAfter(e int64) (int64, bool) {
	t, ok := y.next(y.wall.Reach((e+1)*daySeconds) - 1)
	for ok {
		d := y.wall.Day(t)
		switch {
		case d <= e: // the day is shown once more
		case !y.out.has(d):
			return d, true
		case y.shift == ShiftNext:
			if _, again := y.begins(d-1, t); again && d-1 > e {
				return d - 1, true
			}
			return y.out.freeFrom(d + 1)
		default:
			if free, some := y.out.freeUpTo(d - 1); some && free > e {
				return free, true
			}
			free, some := y.out.freeFrom(d + 1)
			if !some {
				return 0, false
			}
			t = max(t, y.wall.Reach(free*daySeconds)-1)
		}
		t, ok = y.next(t)
	}
	return 0, false
}

// groupBefore returns the last group that may have a tick before a day's group.
func (y *days) groupBefore(e int64) (int64, bool) {
	t, ok := y.last(y.endOf(e-1) - 1)
	for ok {
		d := y.wall.Day(t)
		switch {
		case d >= e: // clocks went back over the midnight before e
		case !y.out.has(d):
			return d, true
		case y.shift == ShiftPrevious:
			if _, already := y.ends(d+1, t); already && d+1 < e {
				return d + 1, true
			}
			return y.out.freeUpTo(d - 1)
		default:
			if free, some := y.out.freeFrom(d + 1); some && free < e {
				return free, true
			}
			free, some := y.out.freeUpTo(d - 1)
			if !some {
				return 0, false
			}
			t = min(t, y.endOf(free))
		}
		t, ok = y.last(t - 1)
	}
	return 0, false
}
