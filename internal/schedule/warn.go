package schedule

import (
	"fmt"
	"math/bits"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Warnings returns what people often get wrong about such a text; nil is the usual answer. The next gap and fold of the
// zone are sought within five years from now.
func (s *Schedule) Warnings(now time.Time) []string {
	list := slices.Clone(s.notes)
	for _, p := range s.parts {
		for _, text := range p.warnings(now) {
			if len(s.parts) > 1 {
				text = fmt.Sprintf("%q: %s", p, text)
			}
			list = append(list, text)
		}
	}
	return list
}

func (p *part) warnings(now time.Time) []string {
	list := slices.Clone(p.notes)
	if p.every > 0 || !p.fixed && bits.OnesCount64(p.clock.hour) == 24 {
		return list // elapsed time through all hours is what anybody expects
	}
	var gap, fold bool
	wall, end := p.zone.wall, now.AddDate(5, 0, 0).Unix()
	for i := wall.index(now.Unix()) + 1; i < len(wall) && wall[i].from < end; i++ {
		a, b := wall[i].from+wall[i-1].off, wall[i].from+wall[i].off
		if w, ok := p.ahead(min(a, b), max(a, b)-1); !ok {
			continue
		} else if a < b && !gap {
			list, gap = append(list, p.gap(w, b)), true
		} else if a > b && !fold {
			list, fold = append(list, p.fold(w)), true
		}
	}
	return list
}

func (p *part) gap(w, b int64) string {
	text := reading(w, "15:04 on 2006-01-02") + " does not exist in " + p.zone.name() + ", where clocks go forward: "
	if !p.fixed {
		return text + "no run for it"
	}
	return text + "it runs at " + reading(b, "15:04 on 2006-01-02")
}

func (p *part) fold(w int64) string {
	text := reading(w, "15:04 on 2006-01-02") + " occurs twice in " + p.zone.name() + ", where clocks go back: "
	if !p.fixed {
		return text + "it runs both times"
	}
	return text + "it runs the first time only"
}

// reading formats a wall reading.
func reading(w int64, layout string) string { return time.Unix(w, 0).UTC().Format(layout) }

// quartzDay finds a number of a day of the week.
var quartzDay = regexp.MustCompile(`(^|[,-])[0-9]`)

// warn warns about a whole text, given its six fields and the words as they were written.
func (p *part) warn(all []field, words []string) []string {
	var list []string
	add := func(format string, a ...any) { list = append(list, fmt.Sprintf(format, a...)) }
	dow := words[len(words)-1]
	if len(words) == 6 && words[3] == "?" && quartzDay.MatchString(dow) {
		add("day-of-week field: with ? it may be Quartz's, where Sunday is 1; here %s is %s: write names", dow, p.dates.dow.words())
	}
	switch {
	case p.anyDom || p.anyDow:
	case p.and:
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
	if !p.anyDom && (p.anyDow || p.and) && !strings.Contains(all[3].text, "/") {
		list = append(list, p.short()...)
	}
	if !p.anyDow {
		for _, n := range members(p.dates.dow.nth >> 28) {
			add("not every month has a 5th %s: no run for it in the others", weekdayName(n))
		}
	}
	return list
}

// short warns about days that not every month has.
func (p *part) short() (list []string) {
	d := &p.dates.dom
	for _, it := range []struct {
		set          uint64 // bit n: a day that a month of n days has, and no shorter one
		before, name string
		from         int
	}{{d.plain, "day ", "", 0}, {d.near, "", "W", 0}, {d.last << 1, "L-", "", 1}, {d.nearLast << 1, "L-", "W", 1}} {
		if it.set>>1 != 1<<31-1 && it.set>>29 != 0 {
			list = append(list, p.lacking(high(it.set), fmt.Sprintf("%s%d%s", it.before, high(it.set)-it.from, it.name))...)
		}
	}
	return list
}

// lacking warns about one day that only months of n days have.
func (p *part) lacking(n int, name string) []string {
	var out []string
	for m := 1; m <= 12; m++ {
		if p.dates.month>>m&1 == 1 && length(2000, m) < n {
			out = append(out, title(kinds[4].names[m-1]))
		}
	}
	switch {
	case p.dates.month == 1<<2 && p.dates.days[0] == [7]uint64{}:
		return []string{name + " of February: it runs in leap years only"}
	case len(out) > 0:
		return []string{fmt.Sprintf("%s does not occur in %s: no run for it there", name, join(out))}
	case p.dates.month>>2&1 == 1 && n == 29:
		return []string{name + " occurs in February in leap years only: no run for it in other years"}
	}
	return nil
}

// idle warns of texts that add no tick to another one.
func (s *Schedule) idle() (list []string) {
	for i, a := range s.parts {
		for _, b := range s.parts[:i] {
			switch {
			case b.covers(a):
				list = append(list, fmt.Sprintf("%q adds no tick to %q", a, b))
			case a.covers(b):
				list = append(list, fmt.Sprintf("%q adds no tick to %q", b, a))
			}
		}
	}
	return list
}

// covers reports whether the fields show that each tick of another text is one of this, too.
func (p *part) covers(o *part) bool {
	if p.every > 0 || o.every > 0 {
		return p.every > 0 && o.every > 0 && o.every%p.every == 0
	}
	if p.fixed != o.fixed || p.zone != o.zone {
		return false
	}
	more := o.clock.sec&^p.clock.sec | o.clock.min&^p.clock.min | o.clock.hour&^p.clock.hour | o.dates.month&^p.dates.month
	for i := range p.dates.days {
		for w := range p.dates.days[i] {
			more |= o.dates.days[i][w] &^ p.dates.days[i][w]
		}
	}
	return more == 0
}
