package schedule

import (
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"time"
)

// Warnings returns what people often get wrong about such a text; nil is the usual answer. The next gap and fold of the
// zone are sought within five years from now.
func (s *Schedule) Warnings(now time.Time) []string {
	list := append([]string(nil), s.static...)
	for _, p := range s.parts {
		for _, text := range p.Warnings(now) {
			list = append(list, fmt.Sprintf("%q: %s", p.canon, text))
		}
	}
	if s.parts != nil {
		return list
	}
	if s.Interval() || !s.fixed && bits.OnesCount64(s.clock.hour) == 24 {
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

// quartzDay finds a number of a day of the week.
var quartzDay = regexp.MustCompile(`(^|[,-])[0-9]`)

// notes warns about a whole text, given its six fields and the words as they were written.
func (s *Schedule) notes(all []field, words []string) []string {
	var list []string
	add := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	and := strings.HasPrefix(s.canon, "ncrontab ")
	dow := words[len(words)-1]
	if len(words) == 6 && words[3] == "?" && quartzDay.MatchString(dow) {
		add("day-of-week field: with ? it may be Quartz's, where Sunday is 1; here %s is %s: write names", dow, s.dates.dow.words())
	}
	switch {
	case s.anyDom || s.anyDow:
	case and:
		add("both day-of-month and day-of-week are set: both must match, in cron either would do")
	case words[len(words)-3][0] == '*' || dow[0] == '*':
		add("both day-of-month and day-of-week are set: either will do, as in robfig/cron; crontab(5) wants both, since one begins with *")
	default:
		add("both day-of-month and day-of-week are set: either will do, in ncrontab both must match")
	}
	if all[0].text == "*" && all[1].text != "*" {
		add("* in the second field: 60 runs in each minute that matches")
	}
	if all[1].text == "*" && all[2].text != "*" {
		add("* in the minute field: 60 runs in each hour that matches")
	}
	if !s.anyDom && (s.anyDow || and) && !strings.Contains(all[3].text, "/") {
		list = append(list, s.short()...)
	}
	for rest := s.dates.dow.nth >> 28; rest != 0 && !s.anyDow; rest &= rest - 1 {
		add("not every month has a 5th %s: no run for it in the others", weekdayName(low(rest)))
	}
	return list
}

// short warns about days that not every month has.
func (s *Schedule) short() (list []string) {
	d := &s.dates.dom
	for _, it := range []struct {
		set          uint64 // bit n: a day that a month of n days has, and no shorter one
		before, name string
		from         int
	}{{d.plain, "day ", "", 0}, {d.near, "", "W", 0}, {d.last << 1, "L-", "", 1}, {d.nearLast << 1, "L-", "W", 1}} {
		if it.set>>1 != 1<<31-1 && it.set>>29 != 0 {
			list = append(list, s.lacking(high(it.set), fmt.Sprintf("%s%d%s", it.before, high(it.set)-it.from, it.name))...)
		}
	}
	return list
}

// lacking warns about one day that only months of n days have.
func (s *Schedule) lacking(n int, name string) []string {
	var out []string
	for m := 1; m <= 12; m++ {
		if s.dates.month>>m&1 == 1 && length(2000, m) < n {
			out = append(out, title(kinds[4].names[m-1]))
		}
	}
	switch {
	case s.dates.month == 1<<2 && s.dates.days[0] == [7]uint64{}:
		return []string{name + " of February: it runs in leap years only"}
	case len(out) > 0:
		return []string{fmt.Sprintf("%s does not occur in %s: no run for it there", name, join(out))}
	case s.dates.month>>2&1 == 1 && n == 29:
		return []string{name + " occurs in February in leap years only: no run for it in other years"}
	}
	return nil
}
