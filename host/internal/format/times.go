package format

import (
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/duration"
)

// Times are shown in UTC, as ticks are named.
const timeFormat = "2006-01-02 15:04:05Z"

// Stamp is an instant, or a dash.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(timeFormat)
}

// A Clock is the present, and the zone in which instants are shown.
type Clock struct {
	Now   time.Time
	Zone  *time.Location // nil: UTC
	Short bool           // in a few characters
	Spans bool           // as spans from now, in no zone
}

// Stamp is an instant, or a dash.
func (c Clock) Stamp(t time.Time) string {
	switch {
	case c.Spans && !t.IsZero():
		return c.Relative(t)
	case c.Short && !t.IsZero():
		return c.Brief(t)
	case c.Zone == nil, c.Zone == time.UTC, t.IsZero():
		return Stamp(t)
	}
	return t.In(c.Zone).Format("2006-01-02 15:04:05 -07:00")
}

// Brief is an instant of today, of these months, or of another year, in a few characters.
func (c Clock) Brief(t time.Time) string {
	t, now := t.In(c.zone()), c.Now.In(c.zone())
	clock := "15:04"
	if t.Second() != 0 {
		clock = time.TimeOnly
	}
	switch {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format(clock)
	case t.Sub(now).Abs() < briefly:
		return t.Format("Jan 2 " + clock)
	}
	return t.Format(time.DateOnly)
}

// briefly is for how long a date without its year is clear.
const briefly = 180 * 24 * time.Hour

func (c Clock) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// Both is an instant with its span from now; only the span where instants are shown as spans.
func (c Clock) Both(instant, span string) string {
	if c.Spans {
		return span
	}
	return instant + " " + span
}

// Date is an instant that stays one where others are shown as spans.
func (c Clock) Date(t time.Time) string {
	c.Spans = false
	return c.Stamp(t)
}

// Relative says how far t is from now.
func (c Clock) Relative(t time.Time) string { return Relative(t, c.Now) }

// Ahead is relative for what has not been done yet.
func (c Clock) Ahead(t time.Time) string { return Ahead(t, c.Now) }

// Since is how long ago t was.
func (c Clock) Since(t time.Time) string { return Roughly(c.Now.Sub(t)) }

// Relative says how far t is from now.
func Relative(t, now time.Time) string {
	if d := t.Sub(now); d > 0 {
		return "in " + Roughly(d)
	}
	return Roughly(now.Sub(t)) + " ago"
}

// Ahead is relative for what has not been done yet.
func Ahead(t, now time.Time) string {
	if !t.After(now) {
		return "due"
	}
	return Relative(t, now)
}

// Roughly shows a duration in its largest unit; if that is less than ten of them, also in the next one, 1h59m, since
// what is left out would matter. A negative duration comes from two clocks that differ, and is shown as 0s.
func Roughly(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 48*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	}
	return units(d, 24*time.Hour, "d", time.Hour, "h")
}

// units shows a duration in a large unit and perhaps a small one.
func units(d, large time.Duration, big string, small time.Duration, little string) string {
	text := fmt.Sprint(int64(d/large), big)
	if rest := d % large / small; rest > 0 && d < 10*large {
		text += fmt.Sprint(int64(rest), little)
	}
	return text
}

// Lasted is how long something took, in two units at most: to the millisecond below ten seconds.
func Lasted(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return Roughly(d)
}

// UTC is an instant as JSON shows it.
func UTC(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Times that flags and parameters take: a span such as 24h or 7d, a day of the clock's zone, or an instant.

// maxSpan is the longest span that is taken.
const maxSpan = 100 * 365 * 24 * time.Hour

// Ago reads when something began: a span before now, the midnight of a day, or an instant.
func (c Clock) Ago(text string) (time.Time, error) {
	at, err := c.moment(text, -1)
	if err == nil && at.After(c.Now) {
		return at, errors.New("want a time that has passed")
	}
	return at, err
}

// Later reads when something ends: a span from now on, the midnight of a day, or an instant.
func (c Clock) Later(text string) (time.Time, error) {
	at, err := c.moment(text, 1)
	if err == nil && !at.After(c.Now) {
		return at, errors.New("want a time to come")
	}
	return at, err
}

// moment reads a span from now on, forward or back, a day, or an instant.
func (c Clock) moment(text string, direction time.Duration) (time.Time, error) {
	if d, ok := ReadSpan(text); ok {
		return c.Now.Add(direction * d), nil
	}
	if at, ok := Instant(text); ok {
		return at, nil
	}
	today := c.Now.In(c.zone())
	switch text {
	case "today":
		return Midnight(today, c.zone()), nil
	case "yesterday":
		return Midnight(today.AddDate(0, 0, -1), c.zone()), nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return Midnight(day, c.zone()), nil
	}
	return time.Time{}, errors.New("want a span such as 90m, 24h or 7d, a date such as 2026-03-29, today, yesterday, " +
		"or an instant such as 2026-03-29T01:00:00Z")
}

// Midnight is the first instant of a day in a zone.
func Midnight(day time.Time, zone *time.Location) time.Time {
	at, _, _ := Shown(time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, time.UTC), zone)
	return at.In(zone)
}

// Shown is when the clock of a zone shows a time, whose fields are given in UTC, and when it does so again, if it does. Where it
// skips that time, at is the first instant after the gap.
func Shown(wall time.Time, zone *time.Location) (at, again time.Time, skips bool) {
	by := func(probe time.Duration) (at time.Time, isShown bool) { // by the offset of that time
		_, offset := wall.Add(probe).In(zone).Zone()
		at = wall.Add(-time.Duration(offset) * time.Second)
		return at, at.In(zone).Format(time.DateTime) == wall.Format(time.DateTime)
	}
	first, before := by(-24 * time.Hour) // a clock changes at most once from then
	second, after := by(24 * time.Hour)
	switch {
	case before && after && !first.Equal(second):
		return first, second, false
	case before:
		return first, time.Time{}, false
	case after:
		return second, time.Time{}, false
	}
	at, _ = first.In(zone).ZoneBounds() // by the clock before the change it is after that
	return at, time.Time{}, true
}

// ReadSpan reads a duration of more than zero.
func ReadSpan(text string) (time.Duration, bool) {
	d, err := Duration(text)
	return d, err == nil && d > 0 && d <= maxSpan
}

// Duration is [time.ParseDuration] which also knows days, such as 30d or 1d12h.
func Duration(text string) (time.Duration, error) { return duration.Parse(text) }

// Instant reads an instant as JSON or as a table shows it.
func Instant(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

const (
	SkewShown = time.Second     // by so much the clock may be off without a word
	SkewWrong = 5 * time.Second // by more it is warned of
)

// SkewWords says how far the clock is off.
func SkewWords(skew time.Duration) string {
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the store's", skew.Abs().Round(100*time.Millisecond), way)
}

// SkewNote is [SkewWords] where that is worth a word.
func SkewNote(skew time.Duration) string {
	if skew.Abs() <= SkewShown {
		return ""
	}
	return SkewWords(skew)
}

// SkewSeconds is the skew in JSON.
func SkewSeconds(skew time.Duration) float64 { return skew.Round(time.Millisecond).Seconds() }
