package ticks

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/internal/schedule"
)

// sums identify data that may differ between two replicas under the same names: the rules of a zone and the days of
// calendars. They cover fixed years, so a replica that has run for months has the same sums as one which begins today.
// Years before the first of them are past: files of holidays often leave out old years.
type sums struct{ zone, days string }

var (
	sumsFrom = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	sumsTo   = time.Date(calendar.LastYear+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// sumOfRules returns the sum of the offsets of zones, empty if all are always UTC.
func sumOfRules(walls ...schedule.Wall) string {
	var b []byte
	constant := true
	for _, w := range walls {
		w.Rules(sumsFrom, sumsTo, func(at, off int64) {
			b = binary.AppendVarint(binary.AppendVarint(b, at), off)
			constant = constant && off == 0
		})
	}
	if constant {
		return ""
	}
	return sum(b)
}

// sumOf returns the sum of the days of a set.
func sumOf(s *set) string {
	var b []byte
	for d := sumsFrom / daySeconds; d <= lastDay; d++ {
		if s.has(d) {
			b = binary.AppendVarint(b, d)
		}
	}
	return sum(b)
}

// sum returns 32 bits of a hash in hexadecimal digits.
func sum(b []byte) string {
	all := sha256.Sum256(b)
	return hex.EncodeToString(all[:4])
}

// Text returns the canonical text of the ticks, without what replicas may have under the same names.
func (t *Ticks) Text() string {
	text := t.Schedule.String()
	if span := t.limits.span(); span != "" {
		text += " | " + span
	}
	parts := []string{text}
	for _, c := range t.calendars {
		parts = append(parts, c.field()+" "+c.name)
	}
	if t.out != nil {
		parts = append(parts, "days of "+t.Location().String()) // the text of an interval has no zone
	}
	if t.limits.Shift != NoShift {
		parts = append(parts, "shift "+string(t.limits.Shift))
	}
	return strings.Join(parts, " | ")
}

// field returns the field that names the calendar.
func (c *named) field() string {
	if c.only {
		return "only"
	}
	return "except"
}

// ZoneSum distinguishes the rules of the zone from other rules under the same name; empty: they do not matter, or the zone
// is always UTC.
func (t *Ticks) ZoneSum() string { return t.sums.zone }

// DaysSum distinguishes the days of the calendars from others under the same names; empty: there are none.
func (t *Ticks) DaysSum() string { return t.sums.days }

// String returns the canonical text, with the sums: two jobs with the same one have the same ticks.
func (t *Ticks) String() string {
	text := t.Text()
	if t.sums.zone != "" {
		text += " | rules " + t.sums.zone
	}
	if t.sums.days != "" {
		text += " | days " + t.sums.days
	}
	return text
}

// calendarWords names the calendars of a field.
func (t *Ticks) calendarWords(word string, only bool) string {
	var names []string
	for _, c := range t.calendars {
		if c.only == only {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return word + " on days of " + strings.Join(names, " or ")
}

// Words explains the ticks in English.
func (t *Ticks) Words() string {
	text := t.Schedule.Words() + t.calendarWords(", except", false) + t.calendarWords(", only", true)
	switch t.limits.Shift {
	case ShiftNext:
		text += ", else on the next day that is not excluded"
	case ShiftPrevious:
		text += ", else on the last day before that is not excluded"
	}
	if t.limits.bounded() {
		text += ", " + t.limits.span()
	}
	return text
}
