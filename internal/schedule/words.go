package schedule

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Words explains the schedule in English, as in "at 02:30 every day, Europe/Berlin". A zone that all texts share comes last.
func (s *Schedule) Words() string {
	zones := s.zones()
	if len(s.parts) == 0 {
		return "by hand alone"
	}
	list := make([]string, len(s.parts))
	for i, p := range s.parts {
		if list[i] = p.words(); len(zones) > 1 && p.every == 0 {
			list[i] += ", " + p.zone.name()
		}
	}
	if last := len(list) - 1; last > 0 {
		list[last] = "and " + list[last]
	}
	if len(zones) == 1 {
		list = []string{strings.Join(list, "; ") + ", " + zones[0].name()}
	}
	return strings.Join(list, "; ")
}

// words leaves out the zone.
func (p *part) words() string {
	if p.every > 0 {
		from := "1970-01-01 00:00 UTC"
		if p.every%(7*day) == 0 {
			from = "Thursday " + from
		}
		return interval(p.every) + ", counted from " + from
	}
	text := p.clock.words()
	if days := p.dates.words(p.anyDom, p.anyDow); days != "" {
		text += " " + days
	} else if !strings.Contains(text, "every") {
		text += " every day"
	}
	return text
}

// interval names seconds by one unit if it can, else as package time writes them.
func interval(n int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{day, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		switch {
		case n == u.n:
			return "every " + u.name
		case n%u.n == 0 && (u.n > 1 || n < 120):
			return fmt.Sprintf("every %d %ss", n/u.n, u.name)
		}
	}
	return "every " + (time.Duration(n) * time.Second).String()
}

// words names a few times one by one, and else goes from the finest unit to the hour.
func (c *clock) words() string {
	if bits.OnesCount64(c.sec)*bits.OnesCount64(c.min)*bits.OnesCount64(c.hour) <= 4 {
		return "at " + join(c.times())
	}
	units := []unit{newUnit(c.sec, 60, "second"), newUnit(c.min, 60, "minute"), newUnit(c.hour, 24, "hour")}
	if c.sec == 1 {
		units = units[1:]
		if c.min == 1 && units[1].step > 0 {
			units = units[1:]
		}
	}
	text := "at " + units[0].plain
	if units[0].step > 0 {
		text = "every " + units[0].plain
	}
	for i, u := range units[1:] {
		switch {
		case u.step == 1 && units[i].step > 0: // every minute of every hour
		case u.step == 1:
			text += " of every " + u.plain
		case u.step > 1:
			text += " of every " + ordinal(u.step) + " " + u.name
		default:
			text += " of " + u.plain
		}
	}
	return text
}

// unit is one clock field in words; its step is above 0 if the field matches evenly all through.
type unit struct {
	name, plain string
	step        int
}

func newUnit(set uint64, n int, name string) unit {
	count := bits.OnesCount64(set)
	switch {
	case count == n:
		return unit{name, name, 1}
	case count == 1:
		return unit{name, name + " " + strconv.Itoa(low(set)), 0}
	}
	if all := members(set); all[0] == 0 && all[1]*count == n && even(all) {
		return unit{name, fmt.Sprintf("%d %ss", all[1], name), all[1]}
	}
	return unit{name, name + "s " + values(set, strconv.Itoa), 0}
}

// times lists a handful of times of day.
func (c *clock) times() []string {
	layout := "15:04"
	if c.sec != 1 {
		layout = "15:04:05"
	}
	var list []string
	for sod, ok := c.next(0); ok; sod, ok = c.next(sod + 1) {
		list = append(list, reading(int64(sod), layout))
	}
	return list
}

func (d *dates) words(anyDom, anyDow bool) string {
	var parts []string
	if !anyDom {
		parts = append(parts, "on "+d.dom.words()+" of the month")
	}
	if !anyDow {
		switch names := d.dow.words(); {
		case anyDom:
			parts = append(parts, "on "+names)
		case d.and:
			parts = append(parts, "if it is "+names)
		default:
			parts = append(parts, "or on "+names)
		}
	}
	if d.month != 1<<13-2 {
		parts = append(parts, "in "+values(d.month, func(n int) string { return title(kinds[4].names[n-1]) }))
	}
	return strings.Join(parts, " ")
}

// words completes "on ... of the month".
func (d *monthDays) words() string {
	var list []string
	if n := bits.OnesCount64(d.plain); n == 1 {
		list = append(list, "day "+values(d.plain, strconv.Itoa))
	} else if n > 1 {
		list = append(list, "days "+values(d.plain, strconv.Itoa))
	}
	for _, n := range members(d.near) {
		list = append(list, "the weekday nearest to day "+strconv.Itoa(n))
	}
	for _, n := range members(d.last) {
		list = append(list, beforeLast(n))
	}
	for _, n := range members(d.nearLast) {
		if n == 0 {
			list = append(list, "the last weekday")
		} else {
			list = append(list, "the weekday nearest to "+beforeLast(n))
		}
	}
	return join(list)
}

func beforeLast(n int) string {
	switch n {
	case 0:
		return "the last day"
	case 1:
		return "the day before the last"
	}
	return fmt.Sprintf("the day %d days before the last", n)
}

// words completes "on ...".
func (d *weekDays) words() string {
	var list []string
	if d.plain != 0 {
		// Monday comes first in words, Sunday is 0 in the field.
		list = append(list, values(d.plain>>1|d.plain&1<<6, func(n int) string { return weekdayName((n + 1) % 7) }))
	}
	for _, n := range members(d.nth) {
		list = append(list, "the "+ordinal(n/7+1)+" "+weekdayName(n%7))
	}
	for _, n := range members(d.last) {
		list = append(list, "the last "+weekdayName(n))
	}
	text := join(list)
	if d.nth|d.last != 0 {
		text += " of the month"
	}
	return text
}

func weekdayName(n int) string { return title(kinds[5].names[n]) }

// values lists a set: runs of three and more as "1 to 7", long progressions as "1, 3, 5 ... 31".
func values(set uint64, name func(int) string) string {
	all := members(set)
	if n := len(all); n >= 5 && all[1]-all[0] > 1 && even(all) {
		return fmt.Sprintf("%s, %s, %s ... %s", name(all[0]), name(all[1]), name(all[2]), name(all[n-1]))
	}
	var list []string
	for i, j := 0, 0; i < len(all); i = j + 1 {
		for j = i; j+1 < len(all) && all[j+1] == all[j]+1; j++ {
		}
		if j < i+2 {
			j = i
			list = append(list, name(all[i]))
		} else {
			list = append(list, name(all[i])+" to "+name(all[j]))
		}
	}
	return join(list)
}

// members returns the numbers in a set, in order.
func members(set uint64) (all []int) {
	for rest := set; rest != 0; rest &= rest - 1 {
		all = append(all, low(rest))
	}
	return all
}

func even(all []int) bool {
	for i := 2; i < len(all); i++ {
		if all[i]-all[i-1] != all[1]-all[0] {
			return false
		}
	}
	return true
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "1st"
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return strconv.Itoa(n) + "th" // other steps divide 24 or 60, so they are 30 or below 21
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func join(list []string) string { return joinBy(" and ", list) }

// joinBy puts commas between the items of a list, and a word before the last one.
func joinBy(word string, list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + word + list[len(list)-1]
}
