package ical

import (
	"fmt"
	"slices"
	"strings"
	"time"

	ics "github.com/arran4/golang-ical"
	"github.com/teambition/rrule-go"

	"github.com/soloist-go/soloist/calendar"
)

// end is the last day that calendars are asked for.
var end = time.Date(calendar.LastYear, 12, 31, 0, 0, 0, 0, time.UTC)

// recurrences returns the days on which an event begins: the first one, those of RRULE and RDATE, less those of EXDATE.
func (r *reader) recurrences(e *ics.VEvent, first time.Time) (begins []time.Time, err error) {
	begins = []time.Time{first}
	switch rules := e.GetProperties(ics.ComponentPropertyRrule); {
	case len(rules) > 1:
		return nil, fmt.Errorf("it has %d of RRULE, want one", len(rules))
	case len(rules) == 1:
		if begins, err = r.ruleDays(rules[0].Value, first); err != nil {
			return nil, err
		}
	}
	more, err := datesOf(e, ics.ComponentPropertyRdate)
	if err != nil {
		return nil, err
	}
	less, err := datesOf(e, ics.ComponentPropertyExdate)
	if err != nil {
		return nil, err
	}
	out := map[time.Time]bool{}
	for _, at := range less {
		out[at] = true
	}
	return slices.DeleteFunc(append(begins, more...), func(at time.Time) bool { return out[at] }), nil
}

// ruleDays returns the days of a rule, from the first day on. A rule that matches none of them is refused: the library
// would look for one until the year 9999, for each such rule.
func (r *reader) ruleDays(text string, first time.Time) (begins []time.Time, err error) {
	if first.After(end) {
		return nil, nil
	}
	if len(text) > maxRule {
		return nil, fmt.Errorf("RRULE is %.80q...: it has %d bytes, want %d at most", text, len(text), maxRule)
	}
	if r.rules += len(text) * (1 + end.Year() - first.Year()); r.rules > maxRules {
		return nil, fmt.Errorf("the rules until there are too many to be worked out until %d: want fewer, shorter ones or a later DTSTART", end.Year())
	}
	o, err := rrule.StrToROptionInLocation(text, time.UTC)
	if err != nil {
		return nil, fmt.Errorf("RRULE is %.80q: %w", text, err)
	}
	if o.Freq > rrule.DAILY || len(o.Byhour)+len(o.Byminute)+len(o.Bysecond) > 0 {
		return nil, fmt.Errorf("RRULE is %.80q: want one of whole days", text)
	}
	o.Dtstart = first
	if o.Until.IsZero() || o.Until.After(end) {
		o.Until = end
	}
	rule, err := rrule.NewRRule(*o)
	if err != nil {
		return nil, fmt.Errorf("RRULE is %.80q: %w", text, err)
	}
	if begins = rule.All(); len(begins) == 0 { // those that match end with the last year
		return nil, fmt.Errorf("RRULE is %.80q: no day until %d matches it", text, end.Year())
	}
	return begins, nil
}

// datesOf reads all dates of a property that may be there several times, with several dates each.
func datesOf(e *ics.VEvent, name ics.ComponentProperty) (all []time.Time, err error) {
	for _, p := range e.GetProperties(name) {
		for text := range strings.SplitSeq(p.Value, ",") {
			at, err := readDate(string(name), text)
			if err != nil {
				return nil, err
			}
			all = append(all, at)
		}
	}
	return all, nil
}
