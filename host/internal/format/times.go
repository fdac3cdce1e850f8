package format

import (
	"fmt"
	"time"
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

// UTC is an instant as JSON shows it.
func UTC(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
