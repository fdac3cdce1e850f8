package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/calendar"
	"github.com/soloist-go/soloist/host/local"
)

// Which of several definitions of a job is in force.
func TestDefinitions(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a changed schedule starts from now": func(c *cluster) {
			old := c.start("old", work("@every 10s", time.Second))
			time.Sleep(25 * time.Second)
			young := c.start("new", work("@every 7s", time.Second))
			time.Sleep(20 * time.Second) // ticks at 30, 37, 44: multiples of 7 s since 1970
			c.wantTicks(ranBy(c, "new", time.Time{}), "05", "30", "37", "44")
			c.wantRan("old", time.Now().Add(-20*time.Second), false)
			wantError(c.t, old.Health().Broken["work"], "another schedule")
			young.wantLines(1, "level=INFO", "the schedule has changed")
			old.wantLines(1, "level=ERROR", "another schedule")
		},
		"a job that was taken back is given up to a younger replica that returns": func(c *cluster) {
			stays := c.start("stays", work("@every 10s", 0))
			time.Sleep(time.Minute)
			gone := c.start("gone", work("@every 7s", 0))
			time.Sleep(time.Minute)
			gone.stop()
			stopped := time.Now()
			time.Sleep(4 * time.Minute)
			c.wantRan("stays", stopped, false)
			time.Sleep(takenBack - 4*time.Minute + 2*D)
			c.wantRan("stays", stopped, true)
			stays.wantLines(1, "level=WARN", "takes the job back")
			c.start("back", work("@every 7s", 0))
			time.Sleep(time.Minute)
			for _, r := range c.all()[len(c.all())-5:] {
				c.wrong(r.replica != "back", "%s runs tick %s", r.replica, r.Tick)
			}
			once(c.t, c.all())
		},
		"the youngest that is up keeps the job, though its schedule has no tick for months": func(c *cluster) {
			// It answers those that ask.
			old := c.start("oldest", work("@every 10s", 0))
			time.Sleep(5 * time.Minute)
			c.start("middle", work("0 * * * *", 0))
			time.Sleep(5*time.Minute + 5*time.Second)
			young := c.start("youngest", work("0 0 1 7 *", 0))
			started := time.Now()
			time.Sleep(24 * time.Hour)
			c.wantRan("oldest", started, false)
			c.wantRan("middle", started, false)
			old.wantLines(0, "takes the job back")
			answers := len(young.log.lines("answered a replica with an older definition"))
			least, most := 24*12, 24*31
			c.wrong(answers < least || answers > most, "%d answers in a day, want %d to %d", answers, least, most)
		},
		"of two that are left the younger one takes the job back": func(c *cluster) {
			// Three definitions are up and the youngest goes. The next one takes the job back however seldom its ticks are.
			c.start("oldest", work("@every 1m", 0))
			time.Sleep(5 * time.Minute)
			middle := c.start("middle", work("0 * * * *", 0))
			time.Sleep(5 * time.Minute)
			youngest := c.start("youngest", work("@every 2m", 0))
			time.Sleep(5 * time.Minute)
			youngest.kill()
			gone := time.Now()
			time.Sleep(3 * time.Hour)
			m, o := ranBy(c, "middle", gone), ranBy(c, "oldest", gone)
			c.wrong(len(m) != 3 || len(o) > 0, "the younger one runs %d ticks of 3, the oldest one %d", len(m), len(o))
			middle.wantWell()
			middle.kill()
			gone = time.Now()
			time.Sleep(takenBack + answeredFor)
			c.wantRan("oldest", gone, true)
		},
		"the youngest is in force, also where its first answer takes longer than its lead": func(c *cluster) {
			time.Sleep(10 * time.Second)
			c.start("old", leased(time.Minute, work("@every 1m", 0)))
			time.Sleep(5 * time.Second)
			var once sync.Once
			r := c.launch(c.replica("young", leased(time.Minute, work("@every 2m", 0))).meets(func(_ string, apply func() error) error {
				defer once.Do(func() { time.Sleep(8 * time.Second) })
				return apply()
			}))
			time.Sleep(10 * time.Minute)
			r.wantWell()
		},
		"the older one leaves the job alone if other days have one name": func(c *cluster) {
			// The older one says within a minute what differs.
			closed := func(dates ...string) soloist.Job {
				j := work("* * * * *", time.Second)
				j.Days.Except = []soloist.Calendar{&renamed{"closed", calendar.Dates("closed", dates...)}}
				return j
			}
			old := c.start("old", closed("2026-05-01"))
			time.Sleep(150 * time.Second)
			c.start("young", closed("2026-05-01", "2026-05-02"))
			change := time.Now()
			time.Sleep(time.Minute)
			wantError(c.t, old.Health().Broken["work"],
				"another schedule for this job (the same text, but the days of the calendars differ)")
			time.Sleep(10 * time.Minute)
			c.wantRan("old", change.Add(time.Minute), false)
			runs := ranBy(c, "young", change)
			c.wrong(len(runs) < 9, "the young replica ran %d ticks", len(runs))
			once(c.t, c.all())
		},
	})
}

// takenBack is how soon older replicas take a job back: a look until the mark,
// four minutes without an answer, and a look.
const takenBack = 4*time.Minute + 2*maxLook + time.Second

// maxLook is how often a replica looks at a job of a younger definition.
const maxLook = 30 * time.Second

// offTick is when a younger replica starts: at a tick it may see a run, and looks
// again a minute later.
const offTick = time.Minute + 5*time.Second

// answeredFor is how long a mark is not repeated after an answer.
const answeredFor = 2 * time.Minute

// A younger definition comes into force soon. Where each run takes most of its period, the entry is free for a moment only; where
// a lease is kept from tick to tick, it is given up now and then.
func TestYoungerDefinitionIsInForceSoon(t *testing.T) {
	for _, tt := range []struct {
		old, young string
		takes      time.Duration
	}{
		{"@every 1m", "0 0 1 7 *", 50 * time.Second},
		{"@every 1s", "@every 2s", 10 * time.Millisecond},
		{"@every 1s", "@every 2s", 300 * time.Millisecond},
		{"@every 1s", "@every 2s", 700 * time.Millisecond},
	} {
		inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
			c.startAll(ahead(claims, work(tt.old, tt.takes)), "a", "b")
			until(time.Minute + 1300*time.Millisecond)
			begin, spec := time.Now(), c.record("work").Definition.Spec
			c.start("young", ahead(claims, work(tt.young, tt.takes)))
			for c.record("work").Definition.Spec == spec && time.Since(begin) < 20*time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			took := time.Since(begin)
			c.wrong(took > 2*time.Minute, "runs of %s: it took %s", tt.takes, took)
		})
	}
}

// A job is not taken back from a younger replica that is up.
func TestNoTakeBack(t *testing.T) {
	for name, tt := range map[string]struct {
		phases int
		old    func(c *cluster, phase time.Duration) *replica
	}{
		// It cannot answer in an outage that hits both, whenever it starts, so the time in it does not count.
		"outage": {60, func(c *cluster, phase time.Duration) *replica {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(offTick)
			young := c.start("young", work("0 0 1 7 *", 0))
			time.Sleep(10*time.Minute + phase*2777*time.Millisecond)
			old.kill()
			young.kill()
			time.Sleep(5*time.Minute + phase*777*time.Millisecond)
			old.tap.cut.Store(false)
			time.Sleep(maxLook)
			young.tap.cut.Store(false)
			time.Sleep(10 * time.Minute)
			return old
		}},
		// A replica that was not well decides by what it reads now.
		"old record": {10, func(c *cluster, phase time.Duration) *replica {
			hang := named("hang", deaf(10*time.Minute))
			hang.Timeout = time.Second
			old := c.start("old", work("@every 10s", 0), hang)
			time.Sleep(50*time.Second + phase*time.Second)
			c.start("young", work("@every 7s", 0))
			time.Sleep(20 * time.Minute)
			return old
		}},
		// Between two runs of a backlog the entry is free, and its tick long overdue.
		"backlog": {1, func(c *cluster, _ time.Duration) *replica {
			job, young := work("@every 1m", 500*time.Millisecond), work("@every 30s", 2*time.Minute)
			job.Late.Missed, young.Late.Missed = soloist.RunAll, soloist.RunAll
			c.start("old", job).stop()
			time.Sleep(10 * time.Minute)
			old := c.start("old2", job)
			time.Sleep(offTick)
			c.start("young", young).meets(halves(40 * time.Millisecond))
			time.Sleep(24 * time.Hour)
			return old
		}},
	} {
		for phase := range tt.phases {
			inCase(t, fmt.Sprint(name, " ", phase), func(_ *testing.T, c *cluster) {
				tt.old(c, time.Duration(phase)).wantLines(0, "takes the job back")
			})
		}
	}
}

// The storage is in reach for a replica that may lease an entry and not write it: a mark that is refused is that job's trouble.
// For a replica that may not even lease the entry it is not.
func TestRefusedMarkIsNoOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		refused fault
		outage  bool
	}{
		"the write is refused": {failWrites(fs.ErrPermission), false},
		"the lease is refused": {fail(fs.ErrPermission, "acquire"), true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.start("old", work("@every 10s", 0))
			time.Sleep(offTick)
			young := c.start("young", work("0 0 1 7 *", 0))
			time.Sleep(20 * time.Second)
			young.stop()
			old.tap.meet(tt.refused)
			old.tap.counts()
			time.Sleep(20 * time.Minute)
			h := old.Health()
			c.wrong(errors.Is(h.Storage, fs.ErrPermission) != tt.outage || errors.Is(h.Broken["work"], fs.ErrPermission) == tt.outage,
				"health is %+v", h)
			n := old.tap.counts()["acquire"]
			c.wrong(n < 3, "it has asked for the lease %d times", n)
			old.tap.meet(nil)
			healed := time.Now()
			time.Sleep(time.Minute + takenBack + 2*D)
			c.wantRan("old", healed, true)
			old.wantWell()
		})
	}
}

// A replica whose first calls fail has nothing but its wall clock, which is two hours ahead, and must not tell others by that
// when it started. If it is gone, they must not look for it in a circle.
func TestStartInOutageIgnoresWallClock(t *testing.T) {
	inRows(t, map[string]bool{"it is up": false, "it is gone": true}, func(c *cluster, _ string, gone bool) {
		old := c.launch(c.replica("old", work("@every 10s", 0)).skewed(2 * time.Hour).meets(fail(context.DeadlineExceeded)))
		time.Sleep(time.Minute)
		old.tap.meet(nil)
		time.Sleep(time.Minute)
		since := c.record("work").Definition.Since
		c.wrong(since.After(time.Now()), "the record says that a replica started at %s, and it is %s", since, time.Now().UTC())
		if gone {
			old.stop()
		}
		c.start("young", work("@every 7s", 0))
		time.Sleep(time.Minute)
		c.wrong(c.last().replica != "young", "the younger definition does not count: %+v", c.last())
	})
}

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

// Each mistake in the limits of a job is refused, with what is allowed.
func TestWrongLimits(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 5, day, 0, 0, 0, 0, time.UTC) }
	list := func(all ...soloist.Calendar) []soloist.Calendar { return all }
	for name, tt := range map[string]struct {
		job  soloist.Job
		want string // parts of the error, with | between them; empty: there is no error
	}{
		"none":          {soloist.Job{}, ""},
		"all":           {soloist.Job{Days: soloist.Days{From: at(1), Until: at(9), Except: list(calendar.Weekends()), Shift: soloist.ShiftPrevious}}, ""},
		"over long ago": {soloist.Job{Days: soloist.Days{Until: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)}}, ""},
		"until before from": {soloist.Job{Days: soloist.Days{From: at(2), Until: at(2)}},
			"Days.Until is 2026-05-02T00:00:00Z: allowed is an instant after Days.From, 2026-05-02T00:00:00Z"},
		"from too far": {soloist.Job{Days: soloist.Days{From: at(1).AddDate(8000, 0, 0)}},
			"Days.From is in the year 10026: allowed are years from 1970 to 2199"},
		"no tick between": {soloist.Job{Days: soloist.Days{From: at(2).Add(time.Hour), Until: at(3)}}, "Days.From and Days.Until leave no tick: the schedule, " +
			"at 00:00 every day, UTC, has none from 2026-05-02T01:00:00Z until 2026-05-03T00:00:00Z"},
		"no day": {soloist.Job{Schedule: "0 0 25 12 *", Days: soloist.Days{Except: list(calendar.Fields("* * 20-26 12 *"))}},
			"Days.Except and Days.Only leave no tick: from 2000-01-01 to 2099, every day on which the schedule, " +
				"at 00:00 on day 25 of the month in December, UTC, has one is excluded"},
		"no day to move to": {soloist.Job{Days: soloist.Days{Except: list(calendar.Dates("all", "2000-01-01..2099-12-31")), Shift: soloist.ShiftNext}},
			"Days.Except and Days.Only leave no tick"},
		"only in years without a calendar": {soloist.Job{Days: soloist.Days{Only: list(calendar.Weekends()), From: at(1).AddDate(100, 0, 0)}},
			"Days.Except and Days.Only leave no tick"},
		"unknown shift": {soloist.Job{Days: soloist.Days{Except: list(calendar.Weekends()), Shift: "nearest"}},
			`Days.Shift is "nearest": allowed is none, ShiftNext or ShiftPrevious`},
		"shift alone": {soloist.Job{Days: soloist.Days{Shift: soloist.ShiftNext}}, `Days.Shift is "next": allowed is none without Except and Only`},
		"nil":         {soloist.Job{Days: soloist.Days{Except: list(calendar.Weekends(), nil)}}, "Days.Except[1] is nil: want a calendar"},
		"no name": {soloist.Job{Days: soloist.Days{Only: list(calendar.Dates("", "2026-05-01"))}},
			`Days.Only[0] has the name "": allowed are 1 to 100 printable ASCII characters`},
		"panics": {soloist.Job{Days: soloist.Days{Except: list(panics{})}},
			`Days.Except: the calendar "broken" panicked when it was asked for 2000-01-01: runtime error: index out of range`},
		"panics when asked for its error": {soloist.Job{Days: soloist.Days{Except: list(fails{})}},
			`Days.Except: the calendar "broken" panicked when it was asked for its error: boom`},
		"no date": {soloist.Job{Days: soloist.Days{Except: list(calendar.Dates("closed", "2026-02-30"))}}, `Days.Except: the calendar "closed" has ` +
			`"2026-02-30": "2026-02-30" is not a date; want one such as 2026-05-01, or two with .. between them`},
		"a time of day": {soloist.Job{Days: soloist.Days{Except: list(calendar.Fields("0 2 25 12 *"))}},
			`the calendar "0 2 25 12 *" is not the day fields of a schedule: "0" in a field of the time of day, want *`},
		"all mistakes": {soloist.Job{Schedule: "@never", Days: soloist.Days{From: at(2), Until: at(1), Except: list(panics{}), Shift: "x"}},
			`Schedule is "@never"|Days.Until is|Days.Shift is|panicked`},
		"of a follower": {soloist.Job{After: soloist.After{Jobs: []string{"first"}}, Days: soloist.Days{From: at(1)}},
			"Days is set: allowed is none beside After"},
	} {
		t.Run(name, func(t *testing.T) {
			j := named("work", tt.job)
			if j.Do = nothing; len(j.After.Jobs) == 0 {
				j.Schedule = cmp.Or(j.Schedule, "@daily")
			}
			s := soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{j, {Name: "first", Schedule: "@daily", Do: nothing}}}
			err := s.Validate()
			if tt.want == "" && err != nil {
				t.Error(err)
			} else if tt.want != "" {
				wantError(t, err, strings.Split(tt.want, "|")...)
			}
		})
	}
}

// Which ticks From, Until and Shift leave.
func TestDaysOfJob(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a tick at From is run, one at Until is not": func(c *cluster) {
			// Then the job is over, and that is no trouble.
			job, begin := work("@every 10s", time.Second), time.Now().Truncate(time.Minute)
			job.Days.From, job.Days.Until = begin.Add(time.Minute), begin.Add(2*time.Minute)
			r := c.start("a", job)
			time.Sleep(5 * time.Second)
			st, _ := r.StatusOf(c.t.Context(), "work")
			c.wrong(!st.Begins.Equal(job.Days.From) || !st.Over.IsZero() || !st.Next.Equal(job.Days.From), "before: %+v", st)
			time.Sleep(time.Hour)
			c.wantTicks(c.all(), "04:05", "01:00", "01:10", "01:20", "01:30", "01:40", "01:50")
			st, _ = r.StatusOf(c.t.Context(), "work")
			c.wrong(!st.Over.Equal(begin.Add(110*time.Second)) || !st.Begins.IsZero() || !st.Next.IsZero(), "after: %+v", st)
			h := r.Health()
			c.wrong(len(h.Broken)+len(h.Stuck) > 0, "a job that is over is in trouble: %+v", h)
		},
		"ticks that move to one day are one": func(c *cluster) {
			// 2000-01-01 is a Saturday: its tick and that of Sunday move to Monday, and are one with the tick of Monday.
			job := work("0 12 * * *", time.Second)
			job.Days.Except, job.Days.Shift = []soloist.Calendar{calendar.Weekends()}, soloist.ShiftNext
			c.startAll(job, "a", "b")
			time.Sleep(4*24*time.Hour + 13*time.Hour)
			c.wantTicks(c.all(), "Mon 02", "Mon 03", "Tue 04", "Wed 05")
		},
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
		tt.job.Name, tt.job.Do = "work", nothing
		if got := specOf(t, tt.job); !regexp.MustCompile("^" + tt.want + "$").MatchString(got) {
			t.Errorf("%s in %q: got %s, want %s", tt.job.Schedule, tt.job.TimeZone, got, tt.want)
		}
	}
}
