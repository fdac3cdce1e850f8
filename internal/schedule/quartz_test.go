package schedule_test

import (
	"strings"
	"testing"
)

// TestQuartz has what Quartz documents of L, W and #. The sources are
//
//	tutorial  https://www.quartz-scheduler.org/documentation/quartz-2.5.x/tutorials/crontrigger.html
//	lesson 6  https://www.quartz-scheduler.org/documentation/quartz-2.5.x/tutorials/tutorial-lesson-06.html
//	javadoc   org.quartz.CronExpression 2.5
//	test      org.quartz.CronExpressionTest 2.5
//
// Texts are the same but for the numbers of the days of the week: Quartz counts from 1 for Sunday, cron from 0.
func TestQuartz(t *testing.T) {
	for _, test := range []struct{ source, theirs, ours, from, days, why string }{
		{"tutorial", "0 15 10 L * ?", "0 15 10 L * ?", "2026-01-01", "2026-01-31 2026-02-28 2026-03-31", ""},
		{"javadoc, day 31 for January, day 28 for February", "0 15 10 L 1,2 ?", "0 15 10 L 1,2 ?", "2027-01-01", "2027-01-31 2027-02-28", ""},
		{"test, last day less 2", "0 15 10 L-2 * ? 2010", "0 15 10 L-2 * ?", "2010-10-01", "2010-10-29", "there is no year"},
		{"javadoc, the third-to-last day: its code, too, takes 3 from the last", "0 0 0 L-3 * ?", "0 0 0 L-3 * ?", "2026-01-01", "2026-01-28", ""},
		{"test, last day less 5", "0 15 10 L-5W * ? 2010", "0 15 10 L-5W * ?", "2010-10-01", "2010-10-26", "there is no year"},
		{"test, the 29th is a Friday", "0 15 10 L-1W * ? 2010", "0 15 10 L-1W * ?", "2010-10-01", "2010-10-29", "there is no year"},
		{"tutorial", "0 0 0 LW * ?", "0 0 0 LW * ?", "2026-01-01", "2026-01-30 2026-02-27 2026-03-31", ""},
		{"tutorial, the 15th is a Saturday", "0 0 0 15W * ?", "0 0 0 15W * ?", "2026-08-01", "2026-08-14", ""},
		{"tutorial, the 15th is a Sunday", "0 0 0 15W * ?", "0 0 0 15W * ?", "2026-02-01", "2026-02-16", ""},
		{"tutorial, the 15th is a Tuesday", "0 0 0 15W * ?", "0 0 0 15W * ?", "2026-09-01", "2026-09-15", ""},
		{"tutorial, the 1st is a Saturday", "0 0 0 1W * ?", "0 0 0 1W * ?", "2026-08-01", "2026-08-03", ""},
		{"tutorial, last Friday", "0 15 10 ? * 6L", "0 15 10 ? * 5L", "2026-01-01", "2026-01-30 2026-02-27", "Friday is 5"},
		{"lesson 6", "0 0 0 ? * FRIL", "0 0 0 ? * FRIL", "2026-01-01", "2026-01-30 2026-02-27", ""},
		{"tutorial, third Friday", "0 15 10 ? * 6#3", "0 15 10 ? * 5#3", "2026-01-01", "2026-01-16 2026-02-20", "Friday is 5"},
		{"lesson 6", "0 0 0 ? * FRI#3", "0 0 0 ? * FRI#3", "2026-01-01", "2026-01-16 2026-02-20", ""},
		{"tutorial, first Monday", "0 0 0 ? * 2#1", "0 0 0 ? * 1#1", "2026-01-01", "2026-01-05 2026-02-02", "Monday is 1"},
		{"tutorial, fifth Wednesday, none in some months", "0 0 0 ? * 4#5", "0 0 0 ? * 3#5", "2026-01-01", "2026-04-29 2026-07-29", "Wednesday is 3"},
		{"javadoc, refused there", "0 0 0 ? * 3#1,6#3", "0 0 0 ? * 2#1,5#3", "2026-01-01", "2026-01-06 2026-01-16", "a list is plain: either will do"},
		{"javadoc, confusing there", "0 43 9 1,5,29,L * ?", "0 43 9 1,5,29,L * ?", "2026-01-01", "2026-01-01 2026-01-05 2026-01-29 2026-01-31", "a list is plain"},
		{"javadoc, refused there", "0 0 0 L * 6#3", "0 0 0 L * 5#3", "2026-01-01", "2026-01-16 2026-01-31", "both day fields may be set, as in cron"},
	} {
		if test.theirs != test.ours && test.why == "" {
			t.Errorf("%s: %s is %s here, and nothing says why", test.source, test.theirs, test.ours)
		}
		if got := days(t, test.ours, test.from, strings.Count(test.days, " ")+1); got != test.days {
			t.Errorf("%s: %s: got %s, want %s", test.source, test.ours, got, test.days)
		}
	}
}

// days lists the dates of the next n ticks in UTC.
func days(t *testing.T, text, from string, n int) string {
	t.Helper()
	s, at := parse(t, text, ""), utc(t, from+" 00:00:00").Add(-1)
	var list []string
	for range n {
		at = s.Next(at)
		list = append(list, at.Format("2006-01-02"))
	}
	return strings.Join(list, " ")
}
