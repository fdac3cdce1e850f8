package schedule

import (
	"math/bits"
	"slices"
	"time"
)

// Schedule names the ticks of one job. It is immutable and safe for concurrent use.
type Schedule struct {
	canon  string // canonical text without the zone
	zone   string
	loc    *time.Location
	spans  spans
	every  int64 // seconds; 0 for a schedule of fields
	manual bool  // there is no tick
	clock  clock
	dates  dates
	fixed  bool        // see the package comment: fixed or elapsed time
	anyDom bool        // day-of-month restricts nothing
	anyDow bool        // day-of-week restricts nothing
	static []string    // warnings that need no date
	parts  []*Schedule // the texts of a union; nil: this is one text
}

const (
	minUnix = -62135596799   // one second after time.Time's zero, which means "none"
	maxUnix = 253402300799   // the end of the year 9999
	horizon = 60 * 366 * day // 29 February on a given weekday may be 40 years away, around 2100
)

// Next returns the first tick strictly after the instant, in UTC, or the zero time if there is none.
func (s *Schedule) Next(after time.Time) time.Time {
	t := max(after.Unix(), minUnix)
	if t >= maxUnix {
		return time.Time{}
	}
	return instant(s.next(t, s.spans.index(t)))
}

// next is Next in seconds, i being the span of t.
func (s *Schedule) next(t int64, i int) (int64, bool) {
	switch {
	case s.manual:
		return 0, false
	case s.parts != nil:
		return s.nextOfParts(t, i)
	case s.every > 0:
		return (floor(t, s.every) + 1) * s.every, true
	case s.fixed:
		return s.nextFixed(t, i)
	}
	return s.nextElapsed(t, i)
}

// Last returns the newest tick at or before the instant, in UTC, or the zero time if there is none.
func (s *Schedule) Last(at time.Time) time.Time {
	t := min(at.Unix(), maxUnix)
	if t < minUnix {
		return time.Time{}
	}
	return instant(s.last(t, s.spans.index(t)))
}

// last is Last in seconds, i being the span of t.
func (s *Schedule) last(t int64, i int) (int64, bool) {
	switch {
	case s.manual:
		return 0, false
	case s.parts != nil:
		return s.lastOfParts(t, i)
	case s.every > 0:
		return floor(t, s.every) * s.every, true
	case s.fixed:
		return s.lastFixed(t, i)
	}
	return s.lastElapsed(t, i)
}

// Count returns the number of ticks in (after, to], at most limit: it stops counting there.
func (s *Schedule) Count(after, to time.Time, limit int) int {
	if limit <= 0 || !after.Before(to) {
		return 0
	}
	if s.every > 0 {
		from := max(after.Unix(), minUnix-1)
		till := max(min(to.Unix(), maxUnix), from)
		return int(min(floor(till, s.every)-floor(from, s.every), int64(limit)))
	}
	n := 0
	for t := s.Next(after); n < limit && !t.IsZero() && !t.After(to); t = s.Next(t) {
		n++
	}
	return n
}

// String returns the canonical text: zone included, H replaced by its numbers. Parsed again, it gives the same ticks.
func (s *Schedule) String() string {
	if s.zoneless() {
		return s.canon // ticks of @every are the same in all zones
	}
	return "CRON_TZ=" + s.zone + " " + s.canon
}

// zoneless reports whether the ticks are the same in all zones.
func (s *Schedule) zoneless() bool {
	for _, p := range s.parts {
		if p.every == 0 {
			return false
		}
	}
	return s.manual || s.every > 0 || s.parts != nil
}

// Zones returns the zones that matter to the ticks, each once; none if they are the same in all zones.
func (s *Schedule) Zones() (zones []string) {
	for _, p := range s.parts {
		for _, zone := range p.Zones() {
			if !slices.Contains(zones, zone) {
				zones = append(zones, zone)
			}
		}
	}
	if s.parts == nil && !s.zoneless() {
		zones = []string{s.zone}
	}
	return zones
}

// Location returns the zone that the text is meant in, named in the text or given with it; for several texts, the zone of the
// texts that name none.
func (s *Schedule) Location() *time.Location { return s.loc }

// spanOf returns the span of t in the zone of a part, i being its span in the zone of the whole.
func (s *Schedule) spanOf(p *Schedule, t int64, i int) int {
	if p.zone != s.zone {
		return p.spans.index(t)
	}
	return i
}

func (s *Schedule) nextOfParts(t int64, i int) (first int64, ok bool) {
	for _, p := range s.parts {
		if at, found := p.next(t, s.spanOf(p, t, i)); found && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

func (s *Schedule) lastOfParts(t int64, i int) (newest int64, ok bool) {
	for _, p := range s.parts {
		if at, found := p.last(t, s.spanOf(p, t, i)); found && (!ok || at > newest) {
			newest, ok = at, true
		}
	}
	return newest, ok
}

// The furthest reading shown so far decides: a second pass of a fold does not exceed it, so it names nothing again.
func (s *Schedule) nextFixed(t int64, i int) (int64, bool) {
	w, ok := s.ahead(s.spans.peak(t, i)+1, t+horizon)
	return s.spans.reach(w), ok
}

func (s *Schedule) lastFixed(t int64, i int) (int64, bool) {
	w, ok := s.behind(s.spans.peak(t, i), t-horizon)
	return s.spans.reach(w), ok
}

func (s *Schedule) nextElapsed(t int64, i int) (int64, bool) {
	t++
	end := t + horizon
	for ; t < end; i++ {
		off, until := s.spans[i].off, min(s.spans.end(i), end)
		if w, ok := s.ahead(t+off, until-1+off); ok {
			return w - off, true
		}
		t = until
	}
	return 0, false
}

func (s *Schedule) lastElapsed(t int64, i int) (int64, bool) {
	begin := t - horizon
	for ; t >= begin; i-- {
		off, from := s.spans[i].off, max(s.spans[i].from, begin)
		if w, ok := s.behind(t+off, from+off); ok {
			return w - off, true
		}
		t = from - 1
	}
	return 0, false
}

// ahead returns the first matching wall reading in [w, limit].
func (s *Schedule) ahead(w, limit int64) (int64, bool) {
	d := floor(w, day)
	y, m, dom := civil(d)
	days := s.dates.in(y, m)
	if days>>dom&1 == 1 {
		if sod, ok := s.clock.next(int(w - d*day)); ok {
			w = d*day + int64(sod)
			return w, w <= limit
		}
	}
	days &= ^uint64(0) << (dom + 1)
	for first := d - int64(dom) + 1; first*day <= limit; {
		if days != 0 {
			w = (first+int64(bits.TrailingZeros64(days))-1)*day + int64(s.clock.first)
			return w, w <= limit
		}
		first += int64(length(y, m))
		if m++; m > 12 {
			y, m = y+1, 1
		}
		days = s.dates.in(y, m)
	}
	return 0, false
}

// behind returns the last matching wall reading in [limit, w].
func (s *Schedule) behind(w, limit int64) (int64, bool) {
	d := floor(w, day)
	y, m, dom := civil(d)
	days := s.dates.in(y, m)
	if days>>dom&1 == 1 {
		if sod, ok := s.clock.prev(int(w - d*day)); ok {
			w = d*day + int64(sod)
			return w, w >= limit
		}
	}
	days &= 1<<dom - 1
	for first := d - int64(dom) + 1; ; {
		if days != 0 {
			w = (first+int64(bits.Len64(days))-2)*day + int64(s.clock.last)
			return w, w >= limit
		}
		if first*day <= limit {
			return 0, false
		}
		if m--; m < 1 {
			y, m = y-1, 12
		}
		first -= int64(length(y, m))
		days = s.dates.in(y, m)
	}
}

func instant(t int64, ok bool) time.Time {
	if !ok || t < minUnix || t > maxUnix {
		return time.Time{}
	}
	return time.Unix(t, 0).UTC()
}

// floor divides towards minus infinity: instants before the token are negative.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
