package ticks

// first returns the first tick after an instant in the group of a day.
func (y *days) first(e, after int64) (best int64, found bool) {
	for p := y.wall.Pieces(e); p.Next() && !found; {
		if t, ok := y.next(max(after, p.From-1)); ok && t < p.To {
			best, found = t, true
		}
	}
	from := max(0, y.wall.Peak(after)+1-e*daySeconds) // the first time of day that is after the instant
	step := y.step()
	for d := e + step; y.moves(d, e) && from < daySeconds; d += step {
		for p := y.wall.Pieces(d); p.Next(); {
			t, ok := y.next(max(p.From, d*daySeconds+from-p.Off) - 1)
			if !ok || t >= p.To {
				continue
			}
			if t = y.wall.Reach(t + p.Off + (e-d)*daySeconds); !found || t < best {
				best, found = t, true
			}
		}
	}
	return best, found
}

// newest returns the last tick up to an instant in the group of a day.
func (y *days) newest(e, at int64) (best int64, found bool) {
	for p := y.wall.Pieces(e); p.Next(); {
		if t, ok := y.last(min(at, p.To-1)); ok && t >= p.From {
			best, found = t, true
		}
	}
	to := min(daySeconds-1, y.wall.Peak(at)-e*daySeconds) // the last time of day that is not after the instant
	step := y.step()
	for d := e + step; y.moves(d, e) && to >= 0; d += step {
		for p := y.wall.Pieces(d); p.Next(); {
			t, ok := y.last(min(p.To-1, d*daySeconds+to-p.Off))
			if !ok || t < p.From {
				continue
			}
			if t = y.wall.Reach(t + p.Off + (e-d)*daySeconds); !found || t > best {
				best, found = t, true
			}
		}
	}
	return best, found
}

// step returns the way from a day to those whose ticks move to it.
func (y *days) step() int64 {
	switch y.shift {
	case ShiftNext:
		return -1
	case ShiftPrevious:
		return 1
	}
	return 0
}

// moves reports whether the ticks of one day move to another, if the ticks in between do.
func (y *days) moves(d, e int64) bool { return y.out.has(d) && max(d-e, e-d) <= MaxShift }
