package soloist_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

func nothing(context.Context, *soloist.Run) error { return nil }

func TestValidateTellsAllMistakes(t *testing.T) {
	s := &soloist.Scheduler{
		App:   "Größe",
		Grace: -time.Second,
		Store: &local.Memory{},
		Jobs: []soloist.Job{
			{Name: "Upper", Schedule: "@hourly", Do: nothing},
			{Name: "tick", Schedule: "@hourly", Do: nothing},
			{Name: "empty"},
			{Name: "twice", Schedule: "@hourly", Do: nothing},
			{Name: "negative", Schedule: "@hourly", Do: nothing, Timeout: -1, StartingDeadline: -time.Hour, FinishBy: -time.Minute, Retry: soloist.Retry{MaxTries: -1}},
			{Name: "long", Schedule: "@hourly", Do: nothing, Lease: 2 * time.Hour},
			{Name: "odd", Schedule: "@hourly", Do: nothing, Lease: 1500 * time.Millisecond},
			{Name: "policy", Schedule: "@hourly", Do: nothing, Missed: "sometimes", Overlap: "seldom", Interrupted: "maybe"},
			{Name: "zone", Schedule: "@hourly", Do: nothing, TimeZone: "Mars/Olympus"},
			{Name: "both", Schedule: "61 * * * *", Do: nothing, TimeZone: "No/Where"},
			{Name: "never", Schedule: "0 0 30 2 *", Do: nothing},
		},
		Singletons: []soloist.Singleton{{Name: "twice", Do: nothing}, {Name: "lead", Backoff: -1}},
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`App is "Größe"`, "Grace is -1s", `"Upper"`, `"tick": allowed is any but tick, warmup`,
		`job "empty": Do is nil`, `"twice" is used more than once`,
		"Timeout is -1ns", "StartingDeadline is -1h0m0s", "FinishBy is -1m0s: allowed is zero, or 1s or more", "Retry.MaxTries is -1: allowed is zero or more", "Lease is 2h0m0s: allowed is whole seconds from 1s to 1m0s",
		"Lease is 1.5s", `Missed is "sometimes": allowed is RunLatest, RunAll or SkipMissed`,
		`Overlap is "seldom": allowed is SkipOverlap, QueueOne or Replace`, `Interrupted is "maybe"`, "Mars/Olympus", "No/Where", `"61 * * * *"`, "minute", `job "never"`, `singleton "lead": Do is nil`, "Backoff is -1ns",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not told in:\n%v", want, err)
		}
	}
}

func TestMistakeRunsNothing(t *testing.T) {
	lead := leader()
	if err := lead.Run(t.Context(), nil); err == nil {
		t.Error("a singleton without a store: Run says nothing")
	}
	for name, s := range map[string]*soloist.Scheduler{
		"no store": {Jobs: []soloist.Job{{Name: "a", Schedule: "@hourly", Do: nothing}}},
		"no work":  {Store: &local.Memory{}},
	} {
		if err := s.Run(t.Context()); err == nil {
			t.Errorf("%s: Run says nothing", name)
		}
		if _, err := s.RunDue(t.Context(), soloist.Wake{}); err == nil {
			t.Errorf("%s: RunDue says nothing", name)
		}
		if _, err := s.Status(t.Context()); err == nil {
			t.Errorf("%s: Status says nothing", name)
		}
	}
}

// Go takes a number without a unit for nanoseconds.
func TestValidateRefusesDurationWithoutUnit(t *testing.T) {
	s := &soloist.Scheduler{
		Store: &local.Memory{}, Grace: 25,
		Jobs: []soloist.Job{{Name: "job", Schedule: "@hourly", Do: nothing,
			Timeout: 20, Retry: soloist.Retry{Backoff: 5}, StartingDeadline: 600, FinishBy: 700, HeartbeatTimeout: 60, HealthCheck: soloist.HealthCheck{Interval: 10}, Lease: 30}},
		Singletons: []soloist.Singleton{{Name: "lead", Do: nothing, Backoff: 7, HeartbeatTimeout: 61, HealthCheck: soloist.HealthCheck{Interval: 11}, Lease: 31}},
	}
	err := s.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for field, values := range map[string][]int{"Grace": {25}, "Timeout": {20}, "Retry.Backoff": {5}, "Backoff": {7}, "StartingDeadline": {600}, "FinishBy": {700},
		"HeartbeatTimeout": {60, 61}, "HealthCheck.Interval": {10, 11}, "Lease": {30, 31}} {
		for _, n := range values {
			if want := fmt.Sprintf("%s is %dns: did you mean %d * time.Second?", field, n, n); !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not told in:\n%v", want, err)
			}
		}
	}
	s = &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{{Name: "job", Schedule: "@hourly", Do: nothing,
		Timeout: 999 * time.Microsecond, Retry: soloist.Retry{Backoff: time.Millisecond}}}}
	want := "job \"job\": Timeout is 999µs: allowed is zero, or 1ms or more"
	if err := s.Validate(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A mistake names its field and its value once.
func TestValidateTellsMistakeOnce(t *testing.T) {
	for _, test := range []struct{ text, zone, want string }{
		{"61 * * * *", "", `job "job": Schedule is "61 * * * *": byte 0, minute field: 61 is out of range, want 0-59`},
		{"@hourly", "Mars/Olympus", `job "job": TimeZone "Mars/Olympus" is unknown; want an IANA name such as Europe/Berlin, or UTC`},
		{"@hourly", "Europe/Berln", `job "job": TimeZone "Europe/Berln" is unknown; did you mean Europe/Berlin?`},
		{"@hourly", "tokyo", `job "job": TimeZone "tokyo" is unknown; did you mean Asia/Tokyo?`},
		{"TZ=Erope/Paris @daily", "", `job "job": Schedule is "TZ=Erope/Paris @daily": byte 3: zone "Erope/Paris" is unknown; did you mean Europe/Paris?`},
		{"* * 3", "No/Where", `job "job": TimeZone "No/Where" is unknown; want an IANA name such as Europe/Berlin, or UTC` + "\n" +
			`Schedule is "* * 3": byte 0: 3 fields, want 5 (minute hour day-of-month month day-of-week) or 6 (second first)`},
	} {
		s := &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{{Name: "job", Schedule: test.text, TimeZone: test.zone, Do: nothing}}}
		if err := s.Validate(); err == nil || err.Error() != test.want {
			t.Errorf("%q in %q:\n got %v\nwant %s", test.text, test.zone, err, test.want)
		}
	}
}

// Whatever is typed into a field is answered with an error or accepted.
func FuzzValidate(f *testing.F) {
	f.Add("job", "* * * * *", "")
	f.Add("Job", "TZ=UTC", "Europe/Berlin")
	f.Add("", "@every -5s", "\x00")
	f.Fuzz(func(t *testing.T, name, text, zone string) {
		s := &soloist.Scheduler{Store: &local.Memory{}, App: name,
			Jobs: []soloist.Job{{Name: name, Schedule: text, TimeZone: zone, Do: nothing}}}
		if err := s.Validate(); err != nil && strings.ContainsRune(err.Error(), 0) {
			t.Errorf("a NUL byte in %q", err)
		}
	})
}

// The fields are read by the first call: a later change of them has no effect.
func TestLaterChangesHaveNoEffect(t *testing.T) {
	for name, change := range map[string]func(*soloist.Scheduler){
		"more jobs": func(s *soloist.Scheduler) { s.Jobs = append(s.Jobs, s.Jobs[0], s.Jobs[0]) },
		"no job":    func(s *soloist.Scheduler) { s.Jobs = nil },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", work("* * * * *", 0), leader())
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			change(r.Scheduler)
			report, err := r.RunDue(c.t.Context(), soloist.Wake{})
			if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Job != "work" {
				t.Errorf("got %+v, %v", report, err)
			}
		})
	}
}

func TestWrongAfter(t *testing.T) {
	plain := func(name, schedule string) soloist.Job {
		return soloist.Job{Name: name, Schedule: schedule, Do: nothing}
	}
	after := func(name, names string) soloist.Job { return soloist.Job{Name: name, After: names, Do: nothing} }
	with := func(j soloist.Job, change func(*soloist.Job)) soloist.Job { change(&j); return j }
	for name, tt := range map[string]struct {
		jobs []soloist.Job
		want []string // parts of the error; none: there is no error
	}{
		"right":               {jobs: []soloist.Job{plain("a", "@hourly"), after("b", "a"), after("c", " a "), after("d", "b, c")}},
		"in any order":        {jobs: []soloist.Job{after("d", "b,c"), after("c", "a"), after("b", "a"), plain("a", "@hourly")}},
		"one schedule of two": {jobs: []soloist.Job{plain("a", "@hourly"), plain("b", "0 * * * *"), after("c", "a,b")}},
		"of two schedules": {jobs: []soloist.Job{plain("a", "@hourly"), plain("b", "@daily"), after("c", "a,b")},
			want: []string{`job "c": After names "a", every hour, UTC, and "b", at 00:00 every day, UTC: allowed are jobs with the ticks of one schedule`}},
		"of two zones": {jobs: []soloist.Job{plain("a", "CRON_TZ=Europe/Berlin @daily"), plain("b", "@daily"), after("c", "a,b")},
			want: []string{"allowed are jobs with the ticks of one schedule"}},
		"unknown":        {jobs: []soloist.Job{after("b", "a")}, want: []string{`job "b": After names "a", and there is no such job`}},
		"itself":         {jobs: []soloist.Job{after("a", "a")}, want: []string{`After names "a", which is this job itself`}},
		"a circle":       {jobs: []soloist.Job{after("a", "c"), after("b", "a"), after("c", "b")}, want: []string{"After leads back to where it began: a after c after b after a"}},
		"after a circle": {jobs: []soloist.Job{after("z", "a"), after("a", "b"), after("b", "a")}, want: []string{`job "z"`, "After leads back to where it began: a after b after a"}},
		"empty name":     {jobs: []soloist.Job{plain("a", "@hourly"), after("b", "a,")}, want: []string{"After has an empty name: allowed are names of jobs, with commas between them"}},
		"blank":          {jobs: []soloist.Job{after("b", " ")}, want: []string{"After has an empty name"}},
		"twice":          {jobs: []soloist.Job{plain("a", "@hourly"), after("b", "a, a")}, want: []string{`After names "a" twice`}},
		"a singleton":    {jobs: []soloist.Job{after("b", "lead")}, want: []string{`After names "lead", which is a singleton: it has no ticks`}},
		"everywhere":     {jobs: []soloist.Job{with(plain("a", "@hourly"), func(j *soloist.Job) { j.EveryReplica = true }), after("b", "a")}, want: []string{`After names "a", which is a job of EveryReplica`}},
		"a wrong one":    {jobs: []soloist.Job{plain("a", "@never"), after("b", "a")}, want: []string{`job "a": Schedule`, `job "b": After names "a", whose own ticks are not known`}},
		"a schedule":     {jobs: []soloist.Job{plain("a", "@hourly"), with(after("b", "a"), func(j *soloist.Job) { j.Schedule = "@daily" })}, want: []string{`Schedule is "@daily": allowed is none beside After`}},
		"a zone":         {jobs: []soloist.Job{plain("a", "@hourly"), with(after("b", "a"), func(j *soloist.Job) { j.TimeZone = "UTC" })}, want: []string{`TimeZone is "UTC": allowed is none beside After`}},
		"ahead":          {jobs: []soloist.Job{plain("a", "@hourly"), with(after("b", "a"), func(j *soloist.Job) { j.ClaimAhead = true })}, want: []string{"ClaimAhead is true: allowed is false beside After"}},
		"on each":        {jobs: []soloist.Job{plain("a", "@hourly"), with(after("b", "a"), func(j *soloist.Job) { j.EveryReplica = true })}, want: []string{"EveryReplica is true: allowed is false beside After"}},
		"any of none":    {jobs: []soloist.Job{with(plain("a", "@hourly"), func(j *soloist.Job) { j.AfterAny = true })}, want: []string{"AfterAny is true: allowed is false for a job without After"}},
		"no job at all":  {jobs: []soloist.Job{after("b", ",")}, want: []string{"After has an empty name"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := soloist.Scheduler{Store: &local.Memory{}, Jobs: tt.jobs, Singletons: []soloist.Singleton{{Name: "lead", Do: nothing}}}
			err := s.Validate()
			if wantError(t, err, tt.want...); len(tt.want) == 0 && err != nil {
				t.Error(err)
			}
		})
	}
}

// A chain of thousands is checked at once.
func TestLongChain(t *testing.T) {
	s := soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{{Name: "n0", Schedule: "@hourly", Do: nothing}}}
	for i := range 3000 {
		s.Jobs = append([]soloist.Job{{Name: fmt.Sprint("n", i+1), After: fmt.Sprint("n", i), Do: nothing}}, s.Jobs...)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
