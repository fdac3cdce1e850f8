package soloist_test

import (
	"context"
	"fmt"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host/local"
)

// Wages are paid on the last business day before a weekend or a holiday.
func ExampleShift() {
	pay := soloist.Job{Name: "pay", Schedule: "0 6 25 * *", Shift: soloist.ShiftPrevious,
		Except: []soloist.Calendar{calendar.Weekends(), calendar.Fields("* * 25,26 12 *")},
		Do:     func(context.Context, *soloist.Run) error { return nil }}
	s := soloist.Scheduler{Jobs: []soloist.Job{pay}, Store: &local.Memory{}}
	st, err := s.StatusOf(context.Background(), "pay")
	fmt.Println(st.Schedule, err)
	// Output: at 06:00 on day 25 of the month, UTC, except on days of * * 25,26 12 * or weekends, else on the last day before that is not excluded <nil>
}
