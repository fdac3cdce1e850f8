package format

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Times that flags and parameters take: a span such as 24h or 7d, a date, or an instant.

// maxSpan is the longest span that is taken.
const maxSpan = 100 * 365 * 24 * time.Hour

// Ago reads when something began: a span before now, a date in UTC, or an instant.
func Ago(text string, now time.Time) (time.Time, error) {
	at, err := readMoment(text, now, -1)
	if err == nil && at.After(now) {
		return at, errors.New("want a time that has passed")
	}
	return at, err
}

// Later reads when something ends: a span from now on, a date in UTC, or an instant.
func Later(text string, now time.Time) (time.Time, error) {
	at, err := readMoment(text, now, 1)
	if err == nil && !at.After(now) {
		return at, errors.New("want a time to come")
	}
	return at, err
}

// readMoment reads a span from now on, forward or back, a date in UTC, or an instant.
func readMoment(text string, now time.Time, direction time.Duration) (time.Time, error) {
	if d, ok := ReadSpan(text); ok {
		return now.Add(direction * d), nil
	}
	if at, ok := Instant(text); ok {
		return at, nil
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	return time.Time{}, errors.New("want a span such as 90m, 24h or 7d, a date such as 2026-03-29, or an instant such as 2026-03-29T01:00:00Z")
}

// ReadSpan reads a duration of more than zero.
func ReadSpan(text string) (time.Duration, bool) {
	d, err := Duration(text)
	return d, err == nil && d > 0 && d <= maxSpan
}

// Duration is [time.ParseDuration] which also knows days, such as 30d.
func Duration(text string) (time.Duration, error) {
	days, ok := strings.CutSuffix(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return min(time.Duration(n)*24*time.Hour, maxSpan+1), err
}

// Instant reads an instant as JSON or as a table shows it.
func Instant(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
