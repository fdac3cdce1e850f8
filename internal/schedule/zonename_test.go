package schedule_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/schedule"
)

// TestZoneAdvice has names that are no zones, and which zones are advised instead; empty: none.
func TestZoneAdvice(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"utc", "UTC"},
		{" UTC", "UTC"},
		{"Z", "UTC"},
		{"berlin", "Europe/Berlin"},
		{"New York", "America/New_York"},
		{"America/New York", "America/New_York"},
		{"Central", "Canada/Central"}, // and US/Central shows the same
		{"Europe/Berln", "Europe/Berlin"},
		{"Erope/Paris", "Europe/Paris"},
		{"Asia/Delhi", ""}, // two letters from Dili, and 3:30 h
		{"Asia/Hanoi", ""},
		{"Europe/Milan", ""},
		{"China", ""},
		{"Mars/Olympus", ""},

		{"PST", "America/Los_Angeles"},
		{"BST", "Europe/London"},
		{"IST", "Asia/Kolkata, Asia/Jerusalem or Europe/Dublin"},
		{"CEST", "Europe/"},
		{"msk", "Europe/Moscow"},
		{"CST", "America/Chicago"},
		{"XST", ""},
		{"LMT", ""},

		{"UTC+3", "Etc/GMT-3"},
		{"Etc/UTC-11", "Etc/GMT+11"},
		{"+03:00", "Etc/GMT-3"},
		{"-0800", "Etc/GMT+8"},
		{"UTC+00:00", "UTC"},
		{"UTC +3", "Etc/GMT-3"},
		{"GMT+5:30", "Asia/Kolkata"},
		{"+0545", "Asia/Kathmandu"},
		{"UTC+5:17", ""},
		{"UTC-13", ""},

		{"w. europe standard time", "Europe/Berlin"},
		{"Pacific Standard Time (Mexico)", "America/Tijuana"},
		{"UTC+13", "Etc/GMT-13"},
		{"W. Europe Daylight Time", ""},
	} {
		_, err := schedule.LoadZone(test.name)
		if err == nil {
			t.Errorf("%q is a zone", test.name)
			continue
		}
		_, advice, _ := strings.Cut(err.Error(), "did you mean ")
		advice, _, _ = strings.Cut(advice, "?")
		if !strings.Contains(advice, test.want) || test.want == "" && advice != "" || strings.ContainsFunc(err.Error(), func(r rune) bool { return r == '\n' }) {
			t.Errorf("%q: %v; want advice %q", test.name, err, test.want)
		}
		checkAdvised(t, test.name, advice)
	}
}

// checkAdvised wants zones that exist, and that show an abbreviation which was asked for.
func checkAdvised(t *testing.T, name, advice string) {
	t.Helper()
	abbreviation := regexp.MustCompile(`^[A-Z]{3,4}$`).MatchString(name)
	for zone := range strings.FieldsFuncSeq(advice, func(r rune) bool { return r == ',' || r == ' ' }) {
		if zone == "or" {
			continue
		}
		loc, err := schedule.LoadZone(zone)
		if err != nil {
			t.Errorf("%q: advised is %s: %v", name, zone, err)
			continue
		}
		winter, _ := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).In(loc).Zone()
		summer, _ := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC).In(loc).Zone()
		if abbreviation && winter != name && summer != name {
			t.Errorf("%s: advised is %s, which shows %s and %s", name, zone, winter, summer)
		}
	}
}

// TestWindowsNames wants each row of the table to name a zone.
func TestWindowsNames(t *testing.T) {
	text, err := os.ReadFile("windows.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		name, zone, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			continue
		}
		n++
		if _, err := schedule.LoadZone(zone); err != nil {
			t.Errorf("%s: %s: %v", name, zone, err)
		}
		if _, err := schedule.LoadZone(name); name != "UTC" && (err == nil || !strings.Contains(err.Error(), "did you mean "+zone+"?")) {
			t.Errorf("%s: %v, want %s", name, err, zone)
		}
	}
	if n < 139 {
		t.Errorf("%d names, want 139", n)
	}
}
