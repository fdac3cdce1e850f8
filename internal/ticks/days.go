package ticks

import "time"

// Ticks of a job with calendars are found by groups. The group of a day that is not excluded has the ticks on that day and,
// with a shift, those that move to it: from the run of excluded days before it, or after it for ShiftPrevious.

// base returns the first tick of the schedule after an instant, in seconds.
func (t *Ticks) base(after int64) (int64, bool) {
	tick := t.Schedule.Next(time.Unix(after, 0))
	return tick.Unix(), !tick.IsZero()
}

// allowed returns the first tick of all groups after an instant.
func (t *Ticks) allowed(after int64) (best int64, found bool) {
	d := t.wall.Day(after) - 1 // clocks may go back over midnight, and show the day before once more
	for e, ok := t.out.freeFrom(d); ok; {
		if first, has := t.first(e, after); has && (!found || first < best) {
			best, found = first, true
		}
		if !found {
			e, ok = t.groupAfter(e)
			continue
		}
		if e, ok = t.out.freeFrom(e + 1); ok && t.wall.Reach(e*daySeconds) > best {
			break
		}
	}
	return best, found
}

// groupAfter returns the first group that may have a tick after a day's group.
func (t *Ticks) groupAfter(e int64) (int64, bool) {
	at, ok := t.base(t.wall.Reach((e+1)*daySeconds) - 1)
	for ; ok; at, ok = t.base(at) {
		d := t.wall.Day(at)
		if d <= e { // the day is shown once more
			continue
		}
		if !t.out.has(d) {
			return d, true
		}
		// The tick may move to the last free day before it. If that is the day before, it may also be shown once more.
		if free, some := t.out.freeUpTo(d - 1); some && free > e && (t.limits.Shift == ShiftPrevious || free == d-1) {
			return free, true
		}
		free, some := t.out.freeFrom(d + 1)
		if !some || t.limits.Shift == ShiftNext {
			return free, some
		}
		at = max(at, t.wall.Reach(free*daySeconds)-1)
	}
	return 0, false
}

// first returns the first tick after an instant in the group of a day.
func (t *Ticks) first(e, after int64) (best int64, found bool) {
	for p := range t.wall.Pieces(e) {
		if at, ok := t.base(max(after, p.From-1)); ok && at < p.To {
			best, found = at, true
			break
		}
	}
	from := max(0, t.wall.Peak(after)+1-e*daySeconds) // the first time of day that is after the instant
	step := t.step()
	for d := e + step; t.moves(d, e) && from < daySeconds; d += step {
		for p := range t.wall.Pieces(d) {
			at, ok := t.base(max(p.From, d*daySeconds+from-p.Off) - 1)
			if !ok || at >= p.To {
				continue
			}
			if at = t.wall.Reach(at + p.Off + (e-d)*daySeconds); !found || at < best {
				best, found = at, true
			}
		}
	}
	return best, found
}

// step returns the way from a day to those whose ticks move to it.
func (t *Ticks) step() int64 {
	switch t.limits.Shift {
	case ShiftNext:
		return -1
	case ShiftPrevious:
		return 1
	}
	return 0
}

// moves reports whether the ticks of one day move to another, if the ticks in between do.
func (t *Ticks) moves(d, e int64) bool { return t.out.has(d) && max(d-e, e-d) <= MaxShift }

// target returns the day that ticks on an excluded day move to.
func (t *Ticks) target(d int64) (e int64, ok bool) {
	switch t.limits.Shift {
	case ShiftNext:
		e, ok = t.out.freeFrom(d)
	case ShiftPrevious:
		e, ok = t.out.freeUpTo(d)
	}
	return e, ok && max(d-e, e-d) <= MaxShift
}
