package schedule

import (
	"slices"
	"strings"
	"time"
)

// Schedule names the ticks of one job: those of all of its texts, and none if there is no text. It is immutable and safe for
// concurrent use.
type Schedule struct {
	zone  *zone // of the texts that name none
	parts []*part
	notes []string // warnings about the whole that need no date
}

// A part is one of the texts of a schedule.
type part struct {
	canon  string // canonical text without zone and dialect
	and    bool   // the ncrontab dialect
	zone   *zone
	every  int64 // seconds; 0 for a text of fields
	clock  clock
	dates  dates
	fixed  bool     // see the package comment: fixed or elapsed time
	anyDom bool     // day-of-month restricts nothing
	anyDow bool     // day-of-week restricts nothing
	notes  []string // warnings that need no date
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
	return instant(s.next(t))
}

// next is Next in seconds.
func (s *Schedule) next(t int64) (first int64, ok bool) {
	for _, p := range s.parts {
		if at, found := p.next(t); found && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// Last returns the newest tick at or before the instant, in UTC, or the zero time if there is none.
func (s *Schedule) Last(at time.Time) time.Time { return Latest(at, s.next) }

// Latest returns the newest tick at or before an instant, in UTC, given what returns the first one after another instant; zero:
// there is none in 127 years, more than twice as long as a tick is sought ahead. It looks further and further back until it finds
// a tick, and then halves the time after that: so there is one rule for what a tick is, and not a second one for the way back.
func Latest(at time.Time, next func(after int64) (int64, bool)) time.Time {
	t := min(at.Unix(), maxUnix)
	for back := int64(60); back < 1<<32 && t >= minUnix; back *= 4 {
		tick, ok := next(t - back)
		for end := t; ok && tick <= t; { // no tick is after end and up to t
			later, more := next(tick)
			if !more || later > t {
				return instant(tick, true)
			}
			tick = later
			mid := tick + (end-tick)/2
			if later, more = next(mid); more && later <= t {
				tick = later
			} else {
				end = mid
			}
		}
	}
	return time.Time{}
}

// Count returns the number of ticks in (after, to], at most limit: it stops counting there.
func (s *Schedule) Count(after, to time.Time, limit int) (n int) {
	for t := s.Next(after); n < limit && !t.IsZero() && !t.After(to); t = s.Next(t) {
		n++
	}
	return n
}

// String returns the canonical text: zone included, H replaced by its numbers. Parsed again, it gives the same ticks.
func (s *Schedule) String() string {
	if len(s.parts) == 0 {
		return manualText
	}
	list := make([]string, len(s.parts))
	for i, p := range s.parts {
		list[i] = p.prefix(s.zone) + p.canon
	}
	text := s.parts[0].dialect() + strings.Join(list, " ; ")
	if s.Interval() {
		return text // ticks of @every are the same in all zones
	}
	return "CRON_TZ=" + s.zone.name() + " " + text
}

// String returns the canonical text without the zone.
func (p *part) String() string { return p.dialect() + p.canon }

// dialect is the word before the first text, which counts for all texts.
func (p *part) dialect() string {
	if p.and {
		return "ncrontab "
	}
	return ""
}

// prefix is what the canonical text begins with if its zone matters and is not the whole's.
func (p *part) prefix(whole *zone) string {
	if p.zone == whole || p.every > 0 {
		return ""
	}
	return "CRON_TZ=" + p.zone.name() + " "
}

// Interval reports whether all ticks are from @every, which has the same ticks in all zones, or there are no ticks.
func (s *Schedule) Interval() bool { return len(s.zones()) == 0 }

// zones returns the zones that matter to the ticks, each once.
func (s *Schedule) zones() (all []*zone) {
	for _, p := range s.parts {
		if p.every == 0 && !slices.Contains(all, p.zone) {
			all = append(all, p.zone)
		}
	}
	return all
}

// Zones returns the zones that matter to the ticks, each once; none if they are the same in all zones.
func (s *Schedule) Zones() (names []string) {
	for _, z := range s.zones() {
		names = append(names, z.name())
	}
	return names
}

// Walls returns the walls of Location and of all other zones that matter to the ticks.
func (s *Schedule) Walls() []Wall {
	all := []Wall{s.zone.wall}
	for _, z := range s.zones() {
		if z != s.zone {
			all = append(all, z.wall)
		}
	}
	return all
}

// Location returns the zone that the text is meant in, named in the text or given with it; for several texts, the zone of the
// texts that name none.
func (s *Schedule) Location() *time.Location { return s.zone.loc }

// next returns the first tick of the text after an instant.
func (p *part) next(t int64) (int64, bool) {
	switch {
	case p.every > 0:
		return (floor(t, p.every) + 1) * p.every, true
	case p.fixed:
		// The furthest reading shown so far decides: a second pass of a fold does not exceed it, so it names nothing again.
		w, ok := p.ahead(p.zone.wall.Peak(t)+1, t+horizon)
		return p.zone.wall.Reach(w), ok
	}
	t++
	end, wall := t+horizon, p.zone.wall
	for i := wall.index(t); t < end; i++ {
		off, until := wall[i].off, min(wall.end(i), end)
		if w, ok := p.ahead(t+off, until-1+off); ok {
			return w - off, true
		}
		t = until
	}
	return 0, false
}

// ahead returns the first matching wall reading in [w, limit].
func (p *part) ahead(w, limit int64) (int64, bool) {
	d := floor(w, day)
	y, m, dom := civil(d)
	first := d - int64(dom) + 1
	days := p.dates.in(y, m, first)
	if days>>dom&1 == 1 {
		if sod, ok := p.clock.next(int(w - d*day)); ok {
			w = d*day + int64(sod)
			return w, w <= limit
		}
	}
	days &= ^uint64(0) << (dom + 1)
	for first*day <= limit {
		if days != 0 {
			w = (first+int64(low(days))-1)*day + int64(p.clock.first())
			return w, w <= limit
		}
		first += int64(length(y, m))
		if m++; m > 12 {
			y, m = y+1, 1
		}
		days = p.dates.in(y, m, first)
	}
	return 0, false
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
