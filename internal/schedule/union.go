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
		part, err := member(s, strings.TrimSpace(piece), at, r)
		if err != nil {
			return err
		}
		if first, ok := begins[part.prefix(s)+part.canon]; ok {
			return fmt.Errorf("byte %d: this text says the same as the text at byte %d, want it once", at, first)
		}
		begins[part.prefix(s)+part.canon] = at
		s.parts, canons = append(s.parts, part), append(canons, part.prefix(s)+strings.TrimPrefix(part.canon, "ncrontab "))
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

// member reads one text of a union, which may have a zone of its own.
func member(whole *Schedule, text string, at int, r reader) (*Schedule, error) {
	h, n := split(text)
	switch {
	case h.and:
		return nil, fmt.Errorf("byte %d: ncrontab counts for all texts, want it once, before the first", at)
	case !h.has:
		s := &Schedule{zone: whole.zone, loc: whole.loc, spans: whole.spans}
		return s, s.one(text, at, r)
	case n == len(text):
		return nil, noText(at+n, false)
	}
	h.at += at
	s, err := h.open(r.given)
	if err != nil {
		return nil, err
	}
	r.zoned = true
	return s, s.one(text[n:], at+n, r)
}

// prefix is what the canonical text of a part begins with if its zone is not the whole's.
func (s *Schedule) prefix(whole *Schedule) string {
	if s.zone == whole.zone || s.zoneless() {
		return ""
	}
	return "CRON_TZ=" + s.zone + " "
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
	if s.fixed != o.fixed || s.zone != o.zone {
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
