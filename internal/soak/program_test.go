package soak_test

import (
	"slices"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	everyMinute   = rule{"* * * * *", func(time.Time) bool { return true }, false}
	everyFive     = rule{"*/5 * * * *", func(t time.Time) bool { return t.Minute()%5 == 0 }, false}
	everyQuarter  = rule{"*/15 * * * *", func(t time.Time) bool { return t.Minute()%15 == 0 }, false}
	onTheHour     = rule{"0 * * * *", func(t time.Time) bool { return t.Minute() == 0 }, false}
	atHalfPast    = rule{"30 * * * *", func(t time.Time) bool { return t.Minute() == 30 }, false}
	atTwenty      = rule{"20 * * * *", func(t time.Time) bool { return t.Minute() == 20 }, false}
	atQuarterTo   = rule{"45 * * * *", func(t time.Time) bool { return t.Minute() == 45 }, false}
	everySixHours = rule{"0 */6 * * *", func(t time.Time) bool { return t.Minute() == 0 && t.Hour()%6 == 0 }, false}
	atNight       = rule{"*/20 2-3 * * *", func(t time.Time) bool {
		return t.Minute()%20 == 0 && (t.Hour() == 2 || t.Hour() == 3)
	}, false}

	nightly       = rule{"30 2 * * *", clock(2, 30), true}
	afterMidnight = rule{"10 1 * * *", clock(1, 10), true}
	inTheMorning  = rule{"55 9 * * *", clock(9, 55), true}
	mondays       = rule{"0 6 * * mon", func(t time.Time) bool { return clock(6, 0)(t) && t.Weekday() == time.Monday }, true}
	monthEnds     = rule{"0 4 31 * *", func(t time.Time) bool { return clock(4, 0)(t) && t.Day() == 31 }, true}
	leapDay       = rule{"15 4 29 2 *", func(t time.Time) bool {
		return clock(4, 15)(t) && t.Day() == 29 && t.Month() == time.February
	}, true}

	rules = []rule{everyMinute, everyFive, everyQuarter, onTheHour, atHalfPast, atTwenty, atQuarterTo, everySixHours, atNight,
		nightly, afterMidnight, inTheMorning, mondays, monthEnds, leapDay}
)

func clock(hour, minute int) func(time.Time) bool {
	return func(t time.Time) bool { return t.Hour() == hour && t.Minute() == minute }
}

// A task is a job of the program, what its schedule means, and what it does.
type task struct {
	trace.Definition
	rule rule
	do   func(*work) error
}

// program is its first version; what is due each minute is left out of a shorter
// time than a year.
func program(long bool) []task {
	all := []task{
		{trace.Definition{Name: "report", Timeout: time.Hour}, nightly, (*work).report},
		{trace.Definition{Name: "sync", Missed: soloist.SkipMissed, StartingDeadline: 10 * time.Minute, HeartbeatTimeout: time.Minute}, onTheHour, (*work).sync},
		{trace.Definition{Name: "poll", Missed: soloist.RunAll, MaxTries: 2, Backoff: 4 * time.Second}, everyFive, (*work).poll},
		{trace.Definition{Name: "weekly", StartingDeadline: 12 * time.Hour}, mondays, (*work).plain},
		{trace.Definition{Name: "month-end", Missed: soloist.RunAll}, monthEnds, (*work).plain},
		{trace.Definition{Name: "leap-day"}, leapDay, (*work).plain},
		{trace.Definition{Name: "billing", Interrupted: soloist.Rerun, Missed: soloist.RunAll}, afterMidnight, (*work).billing},
		{trace.Definition{Name: "import", Interrupted: soloist.Rerun}, everySixHours, (*work).load},
		{trace.Definition{Name: "slow", Lease: time.Minute}, atNight, (*work).slow},
		{trace.Definition{Name: "legacy"}, atQuarterTo, (*work).plain},
		{trace.Definition{Name: "seasonal"}, atTwenty, (*work).plain},
		{trace.Definition{Name: "cache", EveryReplica: true}, everyQuarter, (*work).refresh},
	}
	if long {
		all = append(all, task{trace.Definition{Name: "feed"}, everyMinute, (*work).feed})
	}
	return all
}

// A change is what makes a version of the program differ from the one before.
type change struct {
	name  string
	apply func([]task) []task
}

// changes come in this order, with a deploy each.
var changes = []change{
	{"sync at half past the hour", edit("sync", func(t *task) { t.rule = atHalfPast })},
	{"audit is new", func(all []task) []task {
		return append(all, task{trace.Definition{Name: "audit"}, inTheMorning, (*work).audit})
	}},
	{"poll is paused", edit("poll", func(t *task) { t.Paused = true })},
	{"poll goes on", edit("poll", func(t *task) { t.Paused = false })},
	{"seasonal is removed", remove("seasonal")},
	{removal, remove("legacy")},
	{"seasonal is back", func(all []task) []task {
		return append(all, task{trace.Definition{Name: "seasonal"}, atTwenty, (*work).plain})
	}},
	{"sync at the hour", edit("sync", func(t *task) { t.rule = onTheHour })},
}

// removal is for good: nobody settles what came due of it later.
const removal = "legacy is removed"

func edit(job string, f func(*task)) func([]task) []task {
	return func(all []task) []task {
		f(&all[slices.IndexFunc(all, func(t task) bool { return t.Name == job })])
		return all
	}
}

func remove(job string) func([]task) []task {
	return func(all []task) []task {
		return slices.DeleteFunc(all, func(t task) bool { return t.Name == job })
	}
}

// leader is the one singleton.
const (
	leader      = "leader"
	leaderLease = time.Minute
)
