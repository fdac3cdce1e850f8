// Package duration reads the spans of time that people write.
package duration

import (
	"strconv"
	"strings"
	"time"
)

// Parse is [time.ParseDuration] which also knows days of 24 hours, before the smaller units: 30d, 1d12h.
func Parse(text string) (time.Duration, error) {
	if number, rest, ok := strings.Cut(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 16) // 16 bits of days, 179 years, fit
		if err != nil {
			return 0, err
		}
		text = strconv.FormatUint(24*days, 10) + "h" + rest
	}
	return time.ParseDuration(text)
}
