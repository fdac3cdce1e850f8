package holidays_test

import (
	"fmt"

	"github.com/rickar/cal/v2/us"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/calendar/holidays"
)

// 4 July 2026 is a Saturday, so 3 July is a day off, too.
func ExampleOf() {
	c := holidays.Of("US holidays", us.Holidays...)
	for d := 2; d <= 5; d++ {
		day := calendar.Day{Year: 2026, Month: 7, Day: d}
		fmt.Println(day, c.Contains(day))
	}
	// Output:
	// 2026-07-02 false
	// 2026-07-03 true
	// 2026-07-04 true
	// 2026-07-05 false
}
