package soloist_test

import (
	"context"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host/local"
)

// panics is a calendar with a mistake.
type panics struct{}

func (panics) Name() string                   { return "broken" }
func (panics) Contains(day calendar.Day) bool { return []bool{}[day.Day] }

// fails is a calendar that cannot tell what is wrong with it.
type fails struct{ panics }

func (fails) Err() error { panic("boom") }

// renamed is a calendar of another name.
type renamed struct {
	name string
	calendar.Calendar
}

func (n *renamed) Name() string { return n.name }

func TestWrongLimits(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC) }
	list := func(all ...soloist.Calendar) []soloist.Calendar { return all }
	for name, tt := range map[string]struct {
		change func(j *soloist.Job)
		want   []string // parts of the error; none: there is no error
	}{
		"none": {change: func(*soloist.Job) {}},
		"all": {change: func(j *soloist.Job) {
			j.From, j.Until, j.Except, j.Shift = at(1), at(9), list(calendar.Weekends()), soloist.ShiftPrevious
		}},
		"over long ago": {change: func(j *soloist.Job) { j.Until = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) }},
		"until before from": {change: func(j *soloist.Job) { j.From, j.Until = at(2), at(2) },
			want: []string{"Until is 2026-05-02T00:00:00Z: allowed is an instant after From, 2026-05-02T00:00:00Z"}},
		"from too far": {change: func(j *soloist.Job) { j.From = at(1).AddDate(8000, 0, 0) },
			want: []string{"From is in the year 10026: allowed are years from 1970 to 2199"}},
		"no tick between": {change: func(j *soloist.Job) { j.From, j.Until = at(2).Add(time.Hour), at(3) },
			want: []string{"From and Until leave no tick: the schedule, at 00:00 every day, UTC, " +
				"has none from 2026-05-02T01:00:00Z until 2026-05-03T00:00:00Z"}},
		"no day": {change: func(j *soloist.Job) { j.Schedule, j.Except = "0 0 25 12 *", list(calendar.Fields("* * 20-26 12 *")) },
			want: []string{"Except and Only leave no tick: from 2000-01-01 to 2099, every day on which the schedule, " +
				"at 00:00 on day 25 of the month in December, UTC, has one is excluded"}},
		"no day to move to": {change: func(j *soloist.Job) {
			j.Except, j.Shift = list(calendar.Dates("all", "2000-01-01..2099-12-31")), soloist.ShiftNext
		}, want: []string{"Except and Only leave no tick"}},
		"only in years without a calendar": {change: func(j *soloist.Job) {
			j.Only, j.From = list(calendar.Weekends()), at(1).AddDate(100, 0, 0)
		}, want: []string{"Except and Only leave no tick"}},
		"unknown shift": {change: func(j *soloist.Job) { j.Except, j.Shift = list(calendar.Weekends()), "nearest" },
			want: []string{`Shift is "nearest": allowed is none, ShiftNext or ShiftPrevious`}},
		"shift alone": {change: func(j *soloist.Job) { j.Shift = soloist.ShiftNext },
			want: []string{`Shift is "next": allowed is none for a job without Except and Only`}},
		"nil": {change: func(j *soloist.Job) { j.Except = list(calendar.Weekends(), nil) },
			want: []string{"Except[1] is nil: want a calendar"}},
		"no name": {change: func(j *soloist.Job) { j.Only = list(calendar.Dates("", "2026-05-01")) },
			want: []string{`Only[0] has the name "": allowed are 1 to 100 printable ASCII characters`}},
		"panics": {change: func(j *soloist.Job) { j.Except = list(panics{}) },
			want: []string{`Except: the calendar "broken" panicked when it was asked for 2000-01-01: runtime error: index out of range`}},
		"panics when asked for its error": {change: func(j *soloist.Job) { j.Except = list(fails{}) },
			want: []string{`Except: the calendar "broken" panicked when it was asked for its error: boom`}},
		"no date": {change: func(j *soloist.Job) { j.Except = list(calendar.Dates("closed", "2026-02-30")) },
			want: []string{`Except: the calendar "closed" has "2026-02-30": "2026-02-30" is not a date; want one such as 2026-05-01, ` +
				`or two with .. between them`}},
		"a time of day": {change: func(j *soloist.Job) { j.Except = list(calendar.Fields("0 2 25 12 *")) },
			want: []string{`the calendar "0 2 25 12 *" is not the day fields of a schedule: "0" in a field of the time of day, want *`}},
		"all mistakes": {change: func(j *soloist.Job) {
			j.Schedule, j.From, j.Until, j.Except, j.Shift = "@never", at(2), at(1), list(panics{}), "x"
		}, want: []string{`Schedule is "@never"`, "Until is", "Shift is", "panicked"}},
		"of a follower": {change: func(j *soloist.Job) { j.Schedule, j.After, j.From = "", "first", at(1) },
			want: []string{"From, Until, Except, Only or Shift is set: allowed is none of them beside After"}},
	} {
		t.Run(name, func(t *testing.T) {
			do := func(context.Context, *soloist.Run) error { return nil }
			j := soloist.Job{Name: "work", Schedule: "@daily", Do: do}
			tt.change(&j)
			s := soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{j, {Name: "first", Schedule: "@daily", Do: do}}}
			err := s.Validate()
			if wantError(t, err, tt.want...); len(tt.want) == 0 && err != nil {
				t.Error(err)
			}
		})
	}
}

// A tick at From is run, one at Until is not. Then the job is over, and that is no trouble.
func TestFromAndUntil(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job, begin := work("@every 10s", time.Second), time.Now().Truncate(time.Minute)
		job.From, job.Until = begin.Add(time.Minute), begin.Add(2*time.Minute)
		r := c.start("a", job)
		time.Sleep(5 * time.Second)
		if st, _ := r.StatusOf(c.t.Context(), "work"); !st.Begins.Equal(job.From) || !st.Over.IsZero() || !st.Next.Equal(job.From) {
			t.Errorf("before: %+v", st)
		}
		time.Sleep(time.Hour)
		var got []string
		for _, r := range c.all() {
			got = append(got, r.Tick.Sub(begin).String())
		}
		if want := []string{"1m0s", "1m10s", "1m20s", "1m30s", "1m40s", "1m50s"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		st, _ := r.StatusOf(c.t.Context(), "work")
		if want := begin.Add(110 * time.Second); !st.Over.Equal(want) || !st.Begins.IsZero() || !st.Next.IsZero() {
			t.Errorf("after: over since %s, next %s, want over since %s and none", st.Over, st.Next, want)
		}
		h := r.Health()
		c.wrong(len(h.Broken)+len(h.Stuck) > 0, "a job that is over is in trouble: %+v", h)
	})
}

// 2000-01-01 is a Saturday: its tick and that of Sunday move to Monday, and are one with Monday's.
func TestShiftedTicksAreRunOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 12 * * *", time.Second)
		job.Except, job.Shift = []soloist.Calendar{calendar.Weekends()}, soloist.ShiftNext
		c.start("a", job)
		c.start("b", job)
		time.Sleep(4*24*time.Hour + 13*time.Hour)
		var got []string
		for _, r := range c.all() {
			got = append(got, r.Tick.Format("Mon 02"))
		}
		want := []string{"Mon 03", "Tue 04", "Wed 05"}
		c.wrong(!slices.Equal(got, want), "got %q, want %q", got, want)
		once(t, c.all())
	})
}

// Two replicas have other days under one name. The older one leaves the job alone, and says within a minute what differs.
func TestOtherDaysUnderOneName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		closed := func(dates ...string) soloist.Job {
			j := work("* * * * *", time.Second)
			j.Except = []soloist.Calendar{&renamed{"closed", calendar.Dates("closed", dates...)}}
			return j
		}
		old := c.start("old", closed("2026-05-01"))
		time.Sleep(150 * time.Second)
		c.start("young", closed("2026-05-01", "2026-05-02"))
		change := time.Now()
		time.Sleep(time.Minute)
		wantError(t, old.Health().Broken["work"], "another schedule for this job (the same text, but the days of the calendars differ)")
		time.Sleep(10 * time.Minute)
		late := ranBy(c, "old", change.Add(time.Minute))
		c.wrong(len(late) > 0, "the old replica still ran %v", late)
		runs := ranBy(c, "young", change)
		c.wrong(len(runs) < 9, "the young replica ran %d ticks", len(runs))
		once(t, c.all())
	})
}

// A job in UTC without limits has the definition that older programs wrote, so an update changes nothing for it. One in
// another zone has the rules of the zone beside it.
func TestSpecOfOlderPrograms(t *testing.T) {
	for _, tt := range []struct {
		job  soloist.Job
		want string
	}{
		{soloist.Job{Schedule: "* * * * *"}, "c792c7a9d93c"},
		{soloist.Job{Schedule: "@every 5m", TimeZone: "Europe/Berlin"}, "ef5a2343e691"},
		{soloist.Job{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin"}, `a1252dca08eb.z[0-9a-f]{8}`},
	} {
		tt.job.Name, tt.job.Do = "work", func(context.Context, *soloist.Run) error { return nil }
		if got := specOf(t, tt.job); !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
			t.Errorf("%s in %q: got %s, want %s", tt.job.Schedule, tt.job.TimeZone, got, tt.want)
		}
	}
}
