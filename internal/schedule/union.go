package schedule

import (
	"fmt"
	"strings"
)

// union reads several texts with semicolons between them, the first of which begins at byte pos.
func (s *Schedule) union(text string, pos int, r reader) error {
	var canons []string
	begins := map[string]int{}
	for piece := range strings.SplitSeq(text, ";") {
		at := pos + skip(piece)
		if pos += len(piece) + 1; strings.TrimSpace(piece) == "" {
			return noText(at, len(canons) == 0)
		}
		part := &Schedule{zone: s.zone, loc: s.loc, spans: s.spans}
		if err := part.member(strings.TrimSpace(piece), at, r); err != nil {
			return err
		}
		if first, ok := begins[part.canon]; ok {
			return fmt.Errorf("byte %d: this text says the same as the text at byte %d, want it once", at, first)
		}
		begins[part.canon] = at
		s.parts, canons = append(s.parts, part), append(canons, strings.TrimPrefix(part.canon, "ncrontab "))
	}
	s.canon = strings.Join(canons, " ; ")
	if r.and {
		s.canon = "ncrontab " + s.canon
	}
	s.static = s.idle()
	return nil
}

func noText(at int, first bool) error {
	if first {
		return fmt.Errorf("byte %d: no text before ;, want one such as 30 2 * * * or @daily", at)
	}
	return fmt.Errorf("byte %d: no text after ;, want one such as 30 2 * * * or @daily", at)
}

// member reads one text of a union.
func (s *Schedule) member(text string, at int, r reader) error {
	if h, _ := split(text); h.has || h.and {
		return fmt.Errorf("byte %d: CRON_TZ=, TZ= and ncrontab count for all texts, want them once, before the first", at)
	}
	return s.one(text, at, r)
}

// idle warns of texts that add no tick to another one.
func (s *Schedule) idle() (list []string) {
	for i, a := range s.parts {
		for _, b := range s.parts[:i] {
			switch {
			case b.covers(a):
				list = append(list, fmt.Sprintf("%q adds no tick to %q", a.canon, b.canon))
			case a.covers(b):
				list = append(list, fmt.Sprintf("%q adds no tick to %q", b.canon, a.canon))
			}
		}
	}
	return list
}

// covers reports whether the fields show that each tick of another text is one of this, too.
func (s *Schedule) covers(o *Schedule) bool {
	if s.every > 0 || o.every > 0 {
		return s.every > 0 && o.every > 0 && o.every%s.every == 0
	}
	if s.fixed != o.fixed {
		return false
	}
	more := o.clock.sec&^s.clock.sec | o.clock.min&^s.clock.min | o.clock.hour&^s.clock.hour | o.dates.month&^s.dates.month
	for i := range s.dates.days {
		for w := range s.dates.days[i] {
			more |= o.dates.days[i][w] &^ s.dates.days[i][w]
		}
	}
	return more == 0
}
