package calendar_test

import (
	"fmt"
	"time"

	"github.com/soloist-go/soloist/calendar"
)

// Three calendars, and the days of a week that they have.
func Example() {
	all := []calendar.Calendar{
		calendar.Weekends(),
		calendar.Fields("* * 25 12 *"),
		calendar.Dates("closed", "2026-12-24", "2026-12-28..2026-12-30"),
	}
	for d := range 7 {
		day := calendar.DayOf(time.Date(2026, 12, 24+d, 0, 0, 0, 0, time.UTC))
		fmt.Print(day, " ", day.Weekday())
		for _, c := range all {
			if c.Contains(day) {
				fmt.Print(", ", c.Name())
			}
		}
		fmt.Println()
	}
	// Output:
	// 2026-12-24 Thursday, closed
	// 2026-12-25 Friday, * * 25 12 *
	// 2026-12-26 Saturday, weekends
	// 2026-12-27 Sunday, weekends
	// 2026-12-28 Monday, closed
	// 2026-12-29 Tuesday, closed
	// 2026-12-30 Wednesday, closed
}

// evenDays are all days with an even number in their year.
type evenDays struct{}

func (evenDays) Name() string                   { return "even days" }
func (evenDays) Contains(day calendar.Day) bool { return day.YearDay()%2 == 0 }

// A calendar of one's own says for each day whether it has that day.
func ExampleDay() {
	day := calendar.DayOf(time.Date(2026, 2, 1, 23, 30, 0, 0, time.UTC))
	fmt.Println(day.String(), day.Weekday(), day.YearDay(), evenDays{}.Contains(day))
	// Output: 2026-02-01 Sunday 32 true
}
