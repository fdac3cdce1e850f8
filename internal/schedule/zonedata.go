package schedule

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// embedded is the version of the data in package time/tzdata, by the release of Go: lib/time/update.bash of its source names it.
var embedded = map[string]string{"go1.26": "2025c"}

// ZoneData says which rules of time zones are in use, where package time looks first, and how old they are.
func ZoneData(now time.Time) string {
	for _, dir := range []string{os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			return dated(versionIn(dir), now) + ", in " + dir
		}
	}
	release := strings.Join(strings.SplitN(runtime.Version(), ".", 3)[:2], ".")
	return dated(embedded[release], now) + ", within the program, of " + runtime.Version()
}

// dated adds its age to a version such as 2026a: the year is known, the day is not.
func dated(version string, now time.Time) string {
	year, err := strconv.Atoi(version[:min(len(version), 4)])
	switch age := now.Year() - year; {
	case err != nil:
		return "zone data of an unknown version"
	case age <= 0:
		return "zone data " + version + " of this year"
	case age == 1:
		return "zone data " + version + " of last year"
	default:
		return fmt.Sprintf("zone data %s, %d years old", version, age)
	}
}

// versionIn returns the version of a directory of zones, such as 2026a; empty: it is not known.
func versionIn(dir string) string {
	for _, file := range []string{"+VERSION", "version", "tzdata.zi"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			line, _, _ := strings.Cut(string(text), "\n")
			return strings.TrimPrefix(strings.TrimSpace(line), "# version ")
		}
	}
	return ""
}
