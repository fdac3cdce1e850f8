package ical_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/calendar/ical"
)

const closed = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//example//EN
BEGIN:VEVENT
UID:1
SUMMARY:closed
DTSTART;VALUE=DATE:20261224
DTEND;VALUE=DATE:20261227
RRULE:FREQ=YEARLY
END:VEVENT
END:VCALENDAR
`

// The event lasts from 24 to 26 December of each year: the end of an iCalendar event is the day
// after it.
func ExampleParse() {
	c := ical.Parse("closed", []byte(closed))
	for _, d := range []int{23, 24, 26, 27} {
		day := calendar.Day{Year: 2030, Month: 12, Day: d}
		fmt.Println(day, c.Contains(day))
	}
	// Output:
	// 2030-12-23 false
	// 2030-12-24 true
	// 2030-12-26 true
	// 2030-12-27 false
}

func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "closed.ics")
	if err := os.WriteFile(path, []byte(closed), 0o600); err != nil {
		fmt.Println(err)
	}
	c := ical.File("closed", path)
	fmt.Println(c.Name(), c.Contains(calendar.Day{Year: 2026, Month: 12, Day: 25}))
	// Output: closed true
}
