package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// What calendars leave out, or move, is told with the reason.
func TestNextTellsExcludedDays(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop")
	do := func(context.Context, *soloist.Run) error { return nil }
	closed := calendar.Dates("closed", "2026-03-30..2026-04-06")
	p := host.Program{Now: spring, Work: []soloist.Work{
		soloist.Job{Name: "report", Schedule: "0 9,17 * * *", Do: do, Until: spring().AddDate(0, 0, 13),
			Except: []soloist.Calendar{calendar.Weekends(), closed}},
		soloist.Job{Name: "pay", Schedule: "0 6 1 * *", Do: do, Except: []soloist.Calendar{closed}, Shift: soloist.ShiftPrevious},
	}}
	got := run(t.Context(), p, "next", "-n", "2")
	goldenWant(t, "next", got.out, `
		report: at 09:00 and 17:00 every day, UTC, except on days of closed or weekends, until 2026-04-10T12:00:00Z
		text: CRON_TZ=UTC 0 9,17 * * * | until 2026-04-10T12:00:00Z | except closed | except weekends | days of UTC

		TICK                  FROM NOW
		2026-04-07 09:00:00Z  in 9d21h
		2026-04-07 17:00:00Z  in 10d

		excluded days:
		  Sat 2026-03-28: 1 tick left out, a day of weekends
		  Sun 2026-03-29: 2 ticks left out, a day of weekends
		  Mon 2026-03-30: 2 ticks left out, a day of closed
		  Tue 2026-03-31: 2 ticks left out, a day of closed
		  Wed 2026-04-01: 2 ticks left out, a day of closed
		  Thu 2026-04-02: 2 ticks left out, a day of closed
		  Fri 2026-04-03: 2 ticks left out, a day of closed
		  Sat 2026-04-04: 2 ticks left out, a day of closed, weekends
		  Sun 2026-04-05: 2 ticks left out, a day of closed, weekends
		  Mon 2026-04-06: 2 ticks left out, a day of closed

		pay: at 06:00 on day 1 of the month, UTC, except on days of closed, else on the last day before that is not excluded
		text: CRON_TZ=UTC 0 6 1 * * | except closed | days of UTC | shift previous

		TICK                  FROM NOW
		2026-03-29 06:00:00Z  in 18h  moved from Wed 2026-04-01
		2026-05-01 06:00:00Z  in 33d

		excluded days:
		  Wed 2026-04-01: 1 tick moved to Sun 2026-03-29, a day of closed
	`)
	var answer struct {
		Jobs []struct {
			Ticks   []struct{ MovedFrom string }
			LeftOut []struct {
				Day     string
				By      []string
				MovedTo string
			}
		}
	}
	js := run(t.Context(), p, "next", "pay", "-n", "2", "--json")
	if err := json.Unmarshal([]byte(js.out), &answer); err != nil {
		t.Fatal(err)
	}
	if j := answer.Jobs[0]; j.Ticks[0].MovedFrom != "2026-04-01" || len(j.LeftOut) != 1 || j.LeftOut[0].Day != "2026-04-01" || j.LeftOut[0].By[0] != "closed" || j.LeftOut[0].MovedTo != "2026-03-29" {
		t.Errorf("got %+v", j)
	}
}

// A job that is over says so, and so does one that is to begin. Neither is in trouble.
func TestStatusOfBoundedJobs(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop")
	do := func(context.Context, *soloist.Run) error { return nil }
	p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "past", Schedule: "0 9 * * *", Do: do, Until: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)},
		soloist.Job{Name: "future", Schedule: "0 9 * * *", Do: do, From: time.Date(2150, 5, 1, 0, 0, 0, 0, time.UTC)},
	}}
	if got := run(t.Context(), p, "tick"); got.code != 0 {
		t.Fatalf("tick: %+v", got)
	}
	got := run(t.Context(), p, "status")
	for _, want := range []string{"over since 2026-01-04 09:00:00Z", "idle, begins 2150-05-01 09:00:00Z"} {
		if !strings.Contains(got.out, want) || got.code != 0 {
			t.Errorf("code %d, want %q in\n%s", got.code, want, got.out)
		}
	}
}
