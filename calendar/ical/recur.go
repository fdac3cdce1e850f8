package ical

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/soloist-go/soloist/calendar"
)

// end is the last day that calendars are asked for.
var end = time.Date(calendar.LastYear, 12, 31, 0, 0, 0, 0, time.UTC)

// recurrences returns the days on which an event begins: the first day, and RRULE and RDATE without EXDATE.
func (r *reader) recurrences(e event, first time.Time) (begins []time.Time, err error) {
	begins = []time.Time{first}
	switch rules := e["RRULE"]; {
	case len(rules) > 1:
		return nil, fmt.Errorf("it has %d of RRULE, want one", len(rules))
	case len(rules) == 1:
		if begins, err = r.ruleDays(rules[0], first); err != nil {
			return nil, err
		}
	}
	more, err := datesOf(e, "RDATE")
	if err != nil {
		return nil, err
	}
	less, err := datesOf(e, "EXDATE")
	if err != nil {
		return nil, err
	}
	out := map[time.Time]bool{}
	for _, at := range less {
		out[at] = true
	}
	return slices.DeleteFunc(append(begins, more...), func(at time.Time) bool { return out[at] }), nil
}

// What the library may cost.
const (
	maxRule  = 500         // bytes
	maxSteps = 100_000_000 // of all rules, see stepsOf; about a second

	// The library looks for the days of a rule until the year 9999. The calendar repeats every 400 years, so a rule is worked
	// out for years not far from there.
	later = 19 * 400
)

// ruleDays returns the days of a rule, from the first day on. A rule that matches none of them is refused.
func (r *reader) ruleDays(text string, first time.Time) (begins []time.Time, err error) {
	if first.After(end) {
		return nil, nil
	}
	if len(text) > maxRule {
		return nil, fmt.Errorf("RRULE is %.80q...: it has %d bytes, want %d at most", text, len(text), maxRule)
	}
	o, err := rrule.StrToROptionInLocation(text, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("RRULE is %.80q: %.80w", text, err)
	}
	if o.Freq > rrule.DAILY || len(o.Byhour)+len(o.Byminute)+len(o.Bysecond)+len(o.Byeaster) > 0 {
		return nil, fmt.Errorf("RRULE is %.80q: want one of whole days", text)
	}
	if r.steps += stepsOf(o) * (1 + end.Year() - first.Year()); r.steps > maxSteps {
		return nil, fmt.Errorf("the rules until there are too many to be worked out until %d: want fewer, shorter ones or a later DTSTART", end.Year())
	}
	o.Dtstart = first.AddDate(later, 0, 0)
	if o.Until.IsZero() || o.Until.After(end) {
		o.Until = end
	}
	o.Until = o.Until.AddDate(later, 0, 0)
	rule, err := rrule.NewRRule(*o)
	if err != nil {
		return nil, fmt.Errorf("RRULE is %.80q: %.80w", text, err)
	}
	if begins = rule.All(); len(begins) == 0 { // those that match end with the last year
		return nil, fmt.Errorf("RRULE is %.80q: no day until %d matches it", text, end.Year())
	}
	for i, at := range begins {
		begins[i] = at.AddDate(-later, 0, 0)
	}
	return begins, nil
}

// stepsOf leaves out what adds nothing to a rule, and returns how many steps the rest takes for a year: the library compares
// each day with each number, and for each number of BYSETPOS it makes a list of the days.
func stepsOf(o *rrule.ROption) int {
	n := 1 + len(o.Byweekday)
	for _, list := range []*[]int{&o.Bymonth, &o.Byweekno, &o.Bymonthday, &o.Byyearday, &o.Bysetpos} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
		n += len(*list)
	}
	most := []int{366, 31, 7, 1}[o.Freq] // positions that there can be
	if some := slices.DeleteFunc(slices.Clone(o.Bysetpos), func(n int) bool { return n > most || n < -most }); len(some) > 0 {
		o.Bysetpos = some
	} else if len(o.Bysetpos) > 1 {
		o.Bysetpos = o.Bysetpos[:1] // one without a day is like all of them
	}
	return 366 * (n + 4*len(o.Bysetpos))
}

// datesOf reads all dates of a property that may be there several times, with several dates each.
func datesOf(e event, name string) (all []time.Time, err error) {
	for _, value := range e[name] {
		for text := range strings.SplitSeq(value, ",") {
			at, err := readDate(name, text)
			if err != nil {
				return nil, err
			}
			all = append(all, at)
		}
	}
	return all, nil
}
