package host_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host"
)

// spring is the day before clocks go forward in Europe.
func spring() time.Time { return time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC) }

// TestNext needs no storage: none is set, and here that is wrong for all else.
func TestNext(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop", "SOLOIST_JOB_BEAT_PAUSED=true")
	p := host.Program{Work: append(append(work(), chain()...), here()[0]), Now: spring}
	for _, test := range []struct{ args, want string }{
		{"next -n 2", `
			beat: every minute, counted from 1970-01-01 00:00 UTC
			text: @every 1m0s
			paused: its ticks are skipped

			TICK                  FROM NOW
			2026-03-28 12:01:00Z  in 1m
			2026-03-28 12:02:00Z  in 2m

			night-report: at 02:30 every day, Europe/Berlin
			text: CRON_TZ=Europe/Berlin 30 2 * * *
			warning: 02:30 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2026-03-29
			warning: 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only

			TICK                  Europe/Berlin                   FROM NOW
			2026-03-29 01:00:00Z  Sun 2026-03-29 03:00:00 +02:00  in 13h  clock goes forward on 2026-03-29
			2026-03-30 00:30:00Z  Mon 2026-03-30 02:30:00 +02:00  in 36h

			import: every 10 minutes, counted from 1970-01-01 00:00 UTC
			text: @every 10m0s

			TICK                  FROM NOW
			2026-03-28 12:10:00Z  in 10m
			2026-03-28 12:20:00Z  in 20m

			report: after import, every 10 minutes, counted from 1970-01-01 00:00 UTC
			text: @every 10m0s

			TICK                  FROM NOW
			2026-03-28 12:10:00Z  in 10m
			2026-03-28 12:20:00Z  in 20m

			cache: every hour, UTC
			text: CRON_TZ=UTC 0 * * * *
			each replica runs it

			TICK                  FROM NOW
			2026-03-28 13:00:00Z  in 1h
			2026-03-28 14:00:00Z  in 2h
		`},
		{"next night-report -n 2 --at 2026-10-25", `
			night-report: at 02:30 every day, Europe/Berlin
			text: CRON_TZ=Europe/Berlin 30 2 * * *
			warning: 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only
			warning: 02:30 on 2027-03-28 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2027-03-28

			TICK                  Europe/Berlin                   FROM NOW
			2026-10-25 00:30:00Z  Sun 2026-10-25 02:30:00 +02:00  in 210d  clock goes back on 2026-10-25
			2026-10-26 01:30:00Z  Mon 2026-10-26 02:30:00 +01:00  in 211d
		`},
		{"next beat -n 1 --at 2026-10-25T02:30:00+02:00 --tz Asia/Tokyo", `
			beat: every minute, counted from 1970-01-01 00:00 UTC
			text: @every 1m0s
			paused: its ticks are skipped

			TICK                  Asia/Tokyo                      FROM NOW
			2026-10-25 00:30:00Z  Sun 2026-10-25 09:30:00 +09:00  in 210d
		`},
	} {
		wantRun(t, p, test.args, 0, test.want)
	}
}

// TestNextOfText has settings that are wrong: they do not matter.
func TestNextOfText(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong")
	p := host.Program{Now: spring}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--schedule", "0 12 * * *", "--tz", "Pacific/Apia", "-n", "3", "--at", "2011-12-29"}, `
			at 12:00 every day, Pacific/Apia
			text: CRON_TZ=Pacific/Apia 0 12 * * *
			warning: 12:00 on 2011-12-30 does not exist in Pacific/Apia, where clocks go forward: it runs at 00:00 on 2011-12-31

			TICK                  Pacific/Apia                    FROM NOW
			2011-12-29 22:00:00Z  Thu 2011-12-29 12:00:00 -10:00  5202d ago  clock goes forward on 2011-12-31
			2011-12-30 10:00:00Z  Sat 2011-12-31 00:00:00 +14:00  5202d ago  clock goes forward on 2011-12-31
			2011-12-30 22:00:00Z  Sat 2011-12-31 12:00:00 +14:00  5201d ago  clock goes forward on 2011-12-31
		`},
		{[]string{"nightly", "--schedule", "H H * * *", "-n", "1"}, `
			nightly: at 20:02 every day, UTC
			text: CRON_TZ=UTC 2 20 * * *

			TICK                  FROM NOW
			2026-03-28 20:02:00Z  in 8h2m
		`},
		{[]string{"--schedule", "@every 2500000h", "--at", "9990-01-01"}, `
			every 2500000 hours, counted from 1970-01-01 00:00 UTC
			text: @every 2500000h0m0s

			no tick from then on
		`},
	} {
		got := run(t.Context(), p, append([]string{"next"}, test.args...)...)
		goldenWant(t, strings.Join(test.args, " "), got.out+got.err, test.want)
		wantCode(t, got.code, 0)
	}
}

func TestNextInJSON(t *testing.T) {
	environment(t)
	zoned := soloist.Job{Name: "zoned", Schedule: "CRON_TZ=Europe/Berlin */30 2 * * *", Do: do}
	errs := wantJSON(t, host.Program{Work: []soloist.Work{zoned}, Now: spring}, "next --json -n 1", 0, `
		{"app":"demo","time":"2026-03-28T12:00:00Z","jobs":[{"job":"zoned",
		"schedule":"at 02:00 and 02:30 every day, Europe/Berlin","text":"CRON_TZ=Europe/Berlin */30 2 * * *","zone":"Europe/Berlin",
		"ticks":[{"tick":"2026-03-30T00:00:00Z","local":"2026-03-30T02:00:00+02:00"}],"warnings":[
		"02:00 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: no run for it",
		"02:00 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs both times"]}]}
	`)
	wantEqual(t, "standard error", errs, "")
}

// What calendars leave out, or move, is told with the reason.
func TestNextTellsExcludedDays(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop")
	do := func(context.Context, *soloist.Run) error { return nil }
	closed := calendar.Dates("closed", "2026-03-30..2026-04-06")
	p := host.Program{Now: spring, Work: []soloist.Work{
		soloist.Job{Name: "report", Schedule: "0 9,17 * * *", Do: do, Days: soloist.Days{Until: spring().AddDate(0, 0, 13),
			Except: []soloist.Calendar{calendar.Weekends(), closed}}},
		soloist.Job{Name: "pay", Schedule: "0 6 1 * *", Do: do, Days: soloist.Days{Except: []soloist.Calendar{closed}, Shift: soloist.ShiftPrevious}},
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
	got = run(t.Context(), p, "next", "pay", "-n", "2", "--json")
	wantText(t, "JSON", strings.Join(strings.Fields(got.out), ""), `"movedFrom":"2026-04-01"`,
		`"leftOut":[{"day":"2026-04-01","ticks":1,"by":["closed"],"movedTo":"2026-03-29"}]`)
}
