package schedule

import "slices"

// A Wall is what the clock on the wall shows in a zone. A reading is what the clock shows, in seconds, as if the zone were
// UTC; a day is a number of days since 1970-01-01.
type Wall struct{ spans spans }

// WallOf returns the wall of an IANA zone.
func WallOf(zone string) (Wall, error) {
	z, err := openZone(zone)
	if err != nil {
		return Wall{}, err
	}
	return Wall{z.spans}, nil
}

// At returns the reading at an instant.
func (w Wall) At(t int64) int64 { return t + w.spans[w.spans.index(t)].off }

// Day returns the day that is shown at an instant.
func (w Wall) Day(t int64) int64 { return floor(w.At(t), day) }

// Peak returns the furthest reading that was shown up to an instant.
func (w Wall) Peak(t int64) int64 { return w.spans.peak(t, w.spans.index(t)) }

// Reach returns the first instant that shows a reading or a later one.
func (w Wall) Reach(reading int64) int64 { return w.spans.reach(reading) }

// A Piece is a stretch of time in which one day is shown, at one offset: instants from From on, and before To. A day has one
// of them, more if clocks change on it, and none if the zone leaves it out.
type Piece struct {
	From, To, Off int64
	spans         spans
	day           int64
	next          int // span to look at next
}

// Pieces returns the pieces of a day; call Next for each.
func (w Wall) Pieces(d int64) Piece {
	return Piece{spans: w.spans, day: d, next: w.spans.index(d*day - drift)}
}

// Next goes to the next piece, in the order of time. It returns false if there is none.
func (p *Piece) Next() bool {
	z := p.spans
	for i := p.next; i < len(z) && (i == 0 || z[i].from < (p.day+1)*day+drift); i++ {
		from, to := max(p.day*day-z[i].off, z[i].from), min((p.day+1)*day-z[i].off, z.end(i))
		if from < to {
			p.From, p.To, p.Off, p.next = from, to, z[i].off, i+1
			return true
		}
	}
	p.next = len(z)
	return false
}

// Rules calls f for the offset at an instant, and for each later one before another instant, with the instant from which on
// it counts.
func (w Wall) Rules(from, to int64, f func(at, off int64)) {
	for i := w.spans.index(from); i < len(w.spans) && w.spans[i].from < to; i++ {
		f(max(w.spans[i].from, from), w.spans[i].off)
	}
}

// Missing calls f for each day that the zone leaves out: its clock has gone over all of it.
func (w Wall) Missing(f func(d int64)) {
	for i := 1; i < len(w.spans); i++ {
		before, after := w.spans[i].from+w.spans[i-1].off, w.spans[i].from+w.spans[i].off
		for d := floor(before+day-1, day); (d+1)*day <= after; d++ {
			f(d)
		}
	}
}

// Interval reports whether all ticks are from @every, which has the same ticks in all zones, or there are no ticks.
func (s *Schedule) Interval() bool {
	if s.parts != nil {
		return !slices.ContainsFunc(s.parts, func(p *Schedule) bool { return !p.Interval() })
	}
	return s.manual || s.every > 0
}
