// Package duration reads the spans of time that people write.
package duration

import (
	"strconv"
	"strings"
	"time"
)

// mostDays, 179 years, fit a Duration.
const mostDays = 1<<16 - 1

// Parse is [time.ParseDuration] which also knows days of 24 hours, before the smaller units: 30d, 1d12h.
func Parse(text string) (time.Duration, error) {
	before, rest, ok := strings.Cut(text, "d")
	if !ok {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseUint(before, 10, 64)
	if err != nil {
		return 0, err
	}
	if days > mostDays {
		return 0, strconv.ErrRange
	}
	d := time.Duration(days) * 24 * time.Hour
	if rest == "" {
		return d, nil
	}
	if strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "+") {
		return 0, strconv.ErrSyntax
	}
	more, err := time.ParseDuration(rest)
	if err != nil {
		return 0, err
	}
	if more > 24*time.Hour { // 1d36h is a slip, and the sum has to fit
		return 0, strconv.ErrRange
	}
	return d + more, nil
}
