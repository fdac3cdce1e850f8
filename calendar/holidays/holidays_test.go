package holidays_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rickar/cal/v2"
	"github.com/rickar/cal/v2/de"
	"github.com/rickar/cal/v2/us"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/calendar/holidays"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		c       calendar.Calendar
		in, out string
	}{
		{holidays.Of("de", de.Holidays...), "2026-01-01 2026-04-03 2026-04-06 2026-05-14 2026-10-03 2026-12-25 2026-12-26", "2026-04-05 2026-12-24 2026-11-01"},
		// 4 July 2026 is a Saturday; 1 January 2028 is one, so its day off is in the year before.
		{holidays.Of("us", us.Holidays...), "2026-07-04 2026-07-03 2026-11-26 2028-01-01 2027-12-31", "2026-07-02 2026-11-25"},
	} {
		if err := tt.c.(interface{ Err() error }).Err(); err != nil {
			t.Error(err)
		}
		for _, day := range days(tt.in) {
			if !tt.c.Contains(day) {
				t.Errorf("%s: %s is out, want in", tt.c.Name(), day)
			}
		}
		for _, day := range days(tt.out) {
			if tt.c.Contains(day) {
				t.Errorf("%s: %s is in, want out", tt.c.Name(), day)
			}
		}
	}
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

func TestWrongHolidays(t *testing.T) {
	for want, list := range map[string][]*cal.Holiday{
		"has no days":               nil,
		"has a holiday that is nil": {nil},
		`has "odd", which panicked`: {{Name: "odd", Func: func(*cal.Holiday, int) time.Time { panic("no") }}},
	} {
		c := holidays.Of("wrong", list...)
		if err := c.(interface{ Err() error }).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
