package schedule

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ZoneData says which rules of time zones are in use, and of which version: where package time looks first.
func ZoneData() string {
	for _, dir := range []string{os.Getenv("ZONEINFO"), "/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/usr/lib/locale/TZ", "/etc/zoneinfo"} {
		if _, err := os.Stat(dir); dir != "" && err == nil {
			return "zone data " + versionIn(dir) + " of " + dir
		}
	}
	return "zone data within the program, those of " + runtime.Version()
}

// versionIn returns the version of a directory of zones, such as 2026a.
func versionIn(dir string) string {
	for _, file := range []string{"+VERSION", "version", "tzdata.zi"} {
		if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
			line, _, _ := strings.Cut(string(text), "\n")
			return strings.TrimPrefix(strings.TrimSpace(line), "# version ")
		}
	}
	return "of an unknown version"
}
