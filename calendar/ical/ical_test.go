package ical_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/calendar/ical"
)

// file is an iCalendar file with one event of each list of lines.
func file(events ...string) string {
	var text strings.Builder
	text.WriteString("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:test\n")
	for _, e := range events {
		text.WriteString("BEGIN:VEVENT\nUID:1\nSUMMARY:a day\n" + e + "\nEND:VEVENT\n")
	}
	return strings.ReplaceAll(text.String()+"END:VCALENDAR\n", "\n", "\r\n")
}

func days(text string) (all []calendar.Day) {
	for one := range strings.FieldsSeq(text) {
		at, err := time.Parse(time.DateOnly, one)
		if err != nil {
			panic(err)
		}
		all = append(all, calendar.DayOf(at))
	}
	return all
}

func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, text, in, out string }{
		{"one day", file("DTSTART;VALUE=DATE:20260501"), "2026-05-01", "2026-04-30 2026-05-02"},
		{"the end is the day after", file("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227"), "2026-12-24 2026-12-25 2026-12-26", "2026-12-23 2026-12-27"},
		{"a duration", file("DTSTART;VALUE=DATE:20261224\nDURATION:P1W"), "2026-12-24 2026-12-30", "2026-12-31"},
		{"each year", file("DTSTART;VALUE=DATE:20001225\nDTEND;VALUE=DATE:20001227\nRRULE:FREQ=YEARLY"), "2000-12-25 2000-12-26 2026-12-26 2099-12-25", "2026-12-24"},
		{"until a year", file("DTSTART;VALUE=DATE:20200501\nRRULE:FREQ=YEARLY;UNTIL=20250501"), "2025-05-01", "2026-05-01"},
		{"so often", file("DTSTART;VALUE=DATE:20200501\nRRULE:FREQ=YEARLY;COUNT=2"), "2021-05-01", "2022-05-01"},
		{"from before the first year", file("DTSTART;VALUE=DATE:19700101\nRRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=2SU"), "2026-05-10", "2026-05-17"},
		{"each month", file("DTSTART;VALUE=DATE:20260131\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1"), "2026-02-28 2026-04-30", "2026-03-30"},
		{"less and more", file("DTSTART;VALUE=DATE:20200501\nRRULE:FREQ=YEARLY\nEXDATE;VALUE=DATE:20260501,20270501\nRDATE;VALUE=DATE:20260504"), "2025-05-01 2026-05-04", "2026-05-01 2027-05-01"},
		{"cancelled", file("DTSTART;VALUE=DATE:20260501\nSTATUS:CANCELLED", "DTSTART;VALUE=DATE:20260502"), "2026-05-02", "2026-05-01"},
		{"each leap year", file("DTSTART:20040229\nRRULE:FREQ=YEARLY"), "2028-02-29 2096-02-29", "2027-02-28 2027-03-01"},
		{"every other week", file("DTSTART:20260102\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=FR"), "2026-11-20 2026-12-04", "2026-11-27"},
		{"of a week of the year", file("DTSTART:20000103\nRRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO"), "2026-12-28", "2027-01-04 2025-12-29"},
		{"the last weekday", file("DTSTART:20260130\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1,-1,99"), "2026-01-30 2026-05-29", "2026-05-31"},
		{"lines that go on", strings.Replace(file("DTSTART;X=\"a:b;c\";VALUE=DATE:20260501"), "2026", "20\r\n 26", 1), "2026-05-01", ""},
		{"parts of an event and zones", file("BEGIN:VALARM\nDTSTART:20270501\nEND:VALARM\nDTSTART:20260501\nEND:VEVENT\nBEGIN:VTIMEZONE\nBEGIN:DAYLIGHT\n" +
			"DTSTART:20270502T000000\nEND:DAYLIGHT\nEND:VTIMEZONE\nBEGIN:VEVENT\nDTSTART:20260503"), "2026-05-01 2026-05-03", "2027-05-01 2027-05-02"},
		{"small letters", strings.ToLower(file("DTSTART:20260501")), "2026-05-01", ""},
		{"40,000 parameters", file("DTSTART" + strings.Repeat(";A=b", 40_000) + ":20260501"), "2026-05-01", ""},
		{"after the last year", file("DTSTART:21500501\nRRULE:FREQ=YEARLY"), "", "2099-05-01"},
		{"a mark before it", "\ufeff" + file("DTSTART:20260501"), "2026-05-01", ""},
	} {
		c := ical.Parse("days", []byte(tt.text))
		if err := c.(interface{ Err() error }).Err(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, day := range days(tt.in) {
			if !c.Contains(day) {
				t.Errorf("%s: %s is out, want in", tt.name, day)
			}
		}
		for _, day := range days(tt.out) {
			if c.Contains(day) {
				t.Errorf("%s: %s is in, want out", tt.name, day)
			}
		}
	}
}

// What is not understood is an error: no day is left out in silence.
func TestNotUnderstood(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "does not end with END:VCALENDAR"},
		{strings.TrimSuffix(file("DTSTART:20260501"), "END:VCALENDAR\r\n"), "does not end with END:VCALENDAR"},
		{"<html>END:VCALENDAR", "is not a calendar of whole days"},
		{file(), "it has no events"},
		{strings.Repeat(" ", 1<<20) + file(), "it is larger than 1048576 bytes"},
		{strings.ReplaceAll(file("DTSTART:20260501"), "VEVENT", "VTODO"), "want events alone"},
		{file("SUMMARY:no start"), "it has 0 of DTSTART, want one"},
		{file("DTSTART:20260501T100000Z"), `event 1, "a day": DTSTART is "20260501T100000Z", want a date without a time of day`},
		{file("DTSTART:20260501\nDTEND:20260501"), "it lasts 0 days, want 1 to 366"},
		{file("DTSTART:20260501\nDTEND:20280501"), "it lasts 731 days, want 1 to 366"},
		{file("DTSTART:20260501\nDURATION:PT1H"), `DURATION is "PT1H", want days or weeks`},
		{file("DTSTART:20260501\nDTEND:20260502\nDURATION:P1D"), "it has both DTEND and DURATION"},
		{file("DTSTART:20260501\nRRULE:FREQ=HOURLY"), "want one of whole days"},
		{file("DTSTART:20260501\nRRULE:FREQ=SOMETIMES"), `RRULE is "FREQ=SOMETIMES"`},
		{file("DTSTART:20260501\nRRULE:FREQ=YEARLY;BYMOON=1"), `RRULE is "FREQ=YEARLY;BYMOON=1"`},
		{file("DTSTART:20260501\nRRULE:FREQ=YEARLY\nRRULE:FREQ=DAILY"), "it has 2 of RRULE, want one"},
		{file("DTSTART:00010101\nRRULE:FREQ=DAILY"), `DTSTART is "00010101", want a year from 1900 to 2199`},
		{file("DTSTART:20260501\nEXDATE:20260501T100000Z"), "EXDATE is"},
		{file("DTSTART:20260501\nRECURRENCE-ID:20260501"), "RECURRENCE-ID is not supported"},
		{file("DTSTART:20260501\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"), `event 1, "a day": RRULE is "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30": no day until 2099 matches it`},
		{file("DTSTART:20260501\nRRULE:FREQ=YEARLY;UNTIL=18000101"), "no day until 2099 matches it"},
		{file("DTSTART:20260501\nRRULE:FREQ=YEARLY;BYSETPOS=1" + strings.Repeat(",1", 300)), "it has 622 bytes, want 500 at most"},
		{file(slices.Repeat([]string{"DTSTART:19000101\nRRULE:FREQ=YEARLY;BYMONTH=1;BYYEARDAY=" + numbers(1, 110)}, 30)...), "the rules until there are too many to be worked out"},
		{file(slices.Repeat([]string{"DTSTART:20400101\nRRULE:FREQ=YEARLY;BYSETPOS=" + numbers(1, 145)}, 70)...), "the rules until there are too many to be worked out"},
		{file("DTSTART:19000101\nRRULE:FREQ=DAILY;BYSETPOS=" + numbers(2, 120)), "no day until 2099 matches it"},
		{file("DTSTART:19000101\nRRULE:FREQ=MONTHLY;BYSETPOS=" + numbers(-150, -50)), "no day until 2099 matches it"},
		{file("DTSTART:19000101\nRRULE:FREQ=YEARLY;BYMONTH=1;BYSETPOS=" + numbers(250, 360)), "no day until 2099 matches it"},
		{file("DTSTART:20260501\nRRULE:FREQ=YEARLY;BYEASTER=1"), "want one of whole days"},
		{"BEGIN:VCALENDAR\r\n" + strings.Repeat("BEGIN:VEVENT\r\n", 20_000) + "END:VCALENDAR\r\n", "something within it has not ended"},
		{"BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR", "it has END:VCALENDAR, and that has not begun, or something within it has not ended"},
		{"BEGIN:VEVENT\nEND:VEVENT\nEND:VCALENDAR", "it does not begin with BEGIN:VCALENDAR"},
		{"VERSION:2.0\nEND:VCALENDAR", "it does not begin with BEGIN:VCALENDAR"},
		{file("DTSTART:20260501") + "X:1", "it goes on after END:VCALENDAR"},
		{file("DTSTART" + strings.Repeat("x", 115_000)), "want a property such as DTSTART:20260501"},
		{file(strings.Repeat("X:1\nEND:VEVENT\nBEGIN:VEVENT\nDTSTART:20260501\n", 10_001)), `event 1, "a day": it has 0 of DTSTART`},
		{file(slices.Repeat([]string{"DTSTART:20260501"}, 10_001)...), "it has more than 10000 events"},
		{file("DTSTART:20000101\nDTEND:20010101\nRRULE:FREQ=DAILY"), "the events have more than 200000 days"},
	} {
		err := ical.Parse("days", []byte(tt.text)).(interface{ Err() error }).Err()
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
			t.Errorf("%.60q: got %v, want %q", tt.text, err, tt.want)
		}
	}
}

// numbers lists all numbers from one to another.
func numbers(from, to int) string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, ",")
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "days.ics")
	if err := ical.File("days", path).(interface{ Err() error }).Err(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(path, []byte(file("DTSTART:20260501")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ical.File("days", filepath.Dir(path)).(interface{ Err() error }).Err(); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("of a directory: %v", err)
	}
	if c := ical.File("days", path); c.Name() != "days" || !c.Contains(days("2026-05-01")[0]) {
		t.Error("the file was not read")
	}
}
