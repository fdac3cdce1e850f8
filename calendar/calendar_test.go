package calendar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

func day(text string) calendar.Day {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		panic(err)
	}
	return calendar.DayOf(at)
}

func TestContains(t *testing.T) {
	for _, tt := range []struct {
		c       calendar.Calendar
		in, out string
	}{
		{calendar.Weekends(), "2026-11-21 2026-11-22", "2026-11-20 2026-11-23"},
		{calendar.Dates("d", "2026-05-01", " 2026-12-24 .. 2026-12-26 "), "2026-05-01 2026-12-24 2026-12-25 2026-12-26", "2026-04-30 2026-05-02 2026-12-23 2026-12-27 2027-05-01"},
		{calendar.Fields("* * 25 12 *"), "2026-12-25 2027-12-25", "2026-12-24 2026-12-26"},
		{calendar.Fields(" *\t* * *\tfri\r\n"), "2026-11-27", "2026-11-26"},
		{calendar.Fields("* * * 13 * 5"), "2026-11-13 2026-11-27", "2026-11-12"}, // either will do, as in a schedule
		{calendar.Fields("ncrontab * * 13 * 5"), "2026-11-13", "2026-11-27"},
		{calendar.Fields("* * 25 12 * ; * * 1 1 *"), "2026-12-25 2027-01-01", "2026-12-31"},
	} {
		for text := range strings.FieldsSeq(tt.in) {
			if !tt.c.Contains(day(text)) {
				t.Errorf("%s: %s is out, want in", tt.c.Name(), text)
			}
		}
		for text := range strings.FieldsSeq(tt.out) {
			if tt.c.Contains(day(text)) {
				t.Errorf("%s: %s is in, want out", tt.c.Name(), text)
			}
		}
	}
}

// Err says what is wrong with a text. The check of a job asks for it.
func TestWrongTexts(t *testing.T) {
	for _, tt := range []struct {
		c    calendar.Calendar
		want string
	}{
		{calendar.Dates("d"), "has no days"},
		{calendar.Dates("d", "1 May"), `"1 May" is not a date`},
		{calendar.Dates("d", "2026-05-02..2026-05-01"), "it ends before it begins"},
		{calendar.Dates("d", "2026-05-02..x"), `"x" is not a date`},
		{calendar.Dates("d", "0206-05-01"), "the year 206 is out of range, want 2000-2099"},
		{calendar.Dates("d", make([]string, 10_001)...), "has 10001 texts: allowed are 10000"},
		{calendar.Fields(""), "0 fields, want 5"},
		{calendar.Fields("25 12"), "2 fields, want 5"},
		{calendar.Fields("0 0 25 12 *"), `"0" in a field of the time of day, want *`},
		{calendar.Fields("* * 30 2 *"), "byte 4: never fires"},
		{calendar.Fields("* * * * * fri-mon"), "write * * * * * fri,sat,sun,mon"},
		{calendar.Fields("* * 25 12 * ;"), "0 fields, want 5"},
		{calendar.Fields(strings.Repeat("*", 600)), "has 600 bytes: allowed are 512"},
	} {
		if err := tt.c.(interface{ Err() error }).Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: got %v, want %q", tt.c.Name(), err, tt.want)
		}
		tt.c.Contains(day("2026-05-01")) // must not panic
	}
}

func TestDay(t *testing.T) {
	d := day("2028-12-31")
	if d.Weekday() != time.Sunday || d.YearDay() != 366 || d.String() != "2028-12-31" {
		t.Errorf("got %s, %s, %d", d, d.Weekday(), d.YearDay())
	}
}
