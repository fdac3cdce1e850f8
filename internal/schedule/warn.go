package schedule

import (
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Warnings returns what people often get wrong about such a text; nil is the usual answer. The next gap and fold of the
// zone are sought within five years from now.
func (s *Schedule) Warnings(now time.Time) []string {
	list := append([]string(nil), s.static...)
	if s.every > 0 || !s.fixed && bits.OnesCount64(s.clock.hour) == 24 {
		return list // elapsed time through all hours is what anybody expects
	}
	var gap, fold bool
	end := now.AddDate(5, 0, 0).Unix()
	for i := s.spans.index(now.Unix()) + 1; i < len(s.spans) && s.spans[i].from < end; i++ {
		a, b := s.spans[i].from+s.spans[i-1].off, s.spans[i].from+s.spans[i].off
		if w, ok := s.ahead(min(a, b), max(a, b)-1); !ok {
			continue
		} else if a < b && !gap {
			list, gap = append(list, s.gap(w, b)), true
		} else if a > b && !fold {
			list, fold = append(list, s.fold(w)), true
		}
	}
	return list
}

func (s *Schedule) gap(w, b int64) string {
	text := wall(w, "15:04 on 2006-01-02") + " does not exist in " + s.zone + ", where clocks go forward: "
	if !s.fixed {
		return text + "no run for it"
	}
	return text + "it runs at " + wall(b, "15:04 on 2006-01-02")
}

func (s *Schedule) fold(w int64) string {
	text := wall(w, "15:04 on 2006-01-02") + " occurs twice in " + s.zone + ", where clocks go back: "
	if !s.fixed {
		return text + "it runs both times"
	}
	return text + "it runs the first time only"
}

// wall formats a wall reading.
func wall(w int64, layout string) string { return time.Unix(w, 0).UTC().Format(layout) }

// note warns about one item of a field.
func (p *fieldReader) note(k *kind, text string, it item) {
	switch n := k.max - k.min + 1; {
	case it.step == 0 || strings.HasPrefix(text, "*/1") && it.step == 1:
	case it.lo+it.step > it.hi:
		p.notes = append(p.notes, fmt.Sprintf("%s field: the step in %s is longer than its range: %d alone matches", k.name, text, it.lo))
	case text[0] == '*' && n%it.step != 0:
		last := it.lo + (it.hi-it.lo)/it.step*it.step
		p.notes = append(p.notes, fmt.Sprintf("%s field: %s is uneven: it begins again at %d, the last before is %d", k.name, text, it.lo, last))
	}
}

// notes warns about a whole text, given its six canonical fields.
func (s *Schedule) notes(canon []string, and bool) []string {
	var list []string
	add := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	switch {
	case s.anyDom || s.anyDow:
	case and:
		add("both day-of-month and day-of-week are set: both must match, in cron either would do")
	case strings.Contains(canon[3]+canon[5], "/"):
		add("both day-of-month and day-of-week are set: either will do, though Vixie cron wants both where one begins with *")
	default:
		add("both day-of-month and day-of-week are set: either will do, in ncrontab both must match")
	}
	if canon[0] == "*" && canon[1] != "*" {
		add("* in the second field: 60 runs in each minute that matches")
	}
	if canon[1] == "*" && canon[2] != "*" {
		add("* in the minute field: 60 runs in each hour that matches")
	}
	if !s.anyDom && (s.anyDow || and) && !strings.Contains(canon[3], "/") {
		list = append(list, s.short()...)
	}
	return list
}

// short warns about days that not every month has.
func (s *Schedule) short() []string {
	var out []string
	for m := 1; m <= 12; m++ {
		full := uint64(2)<<length(2000, m) - 2
		if s.dates.month>>m&1 == 1 && s.dates.dom&^full != 0 && s.dates.dom>>1 != 1<<31-1 {
			out = append(out, title(kinds[4].names[m-1]))
		}
	}
	switch feb := s.dates.month == 1<<2; {
	case feb && s.dates.dom&(1<<29-1) == 0:
		return []string{"29 February: it runs in leap years only"}
	case len(out) > 0:
		return []string{fmt.Sprintf("day %d does not occur in %s: no run for it there", high(s.dates.dom), join(out))}
	case s.dates.month>>2&1 == 1 && high(s.dates.dom) == 29:
		return []string{"day 29 occurs in February in leap years only: no run for it in other years"}
	}
	return nil
}
