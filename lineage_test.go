package soloist_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
)

func TestWrongAfter(t *testing.T) {
	do := func(context.Context, *soloist.Run) error { return nil }
	plain := func(name, schedule string) soloist.Job { return soloist.Job{Name: name, Schedule: schedule, Do: do} }
	after := func(name, names string) soloist.Job { return soloist.Job{Name: name, After: names, Do: do} }
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
			s := soloist.Scheduler{Store: &local.Memory{}, Jobs: tt.jobs, Singletons: []soloist.Singleton{{Name: "lead", Do: do}}}
			err := s.Validate()
			if wantError(t, err, tt.want...); len(tt.want) == 0 && err != nil {
				t.Error(err)
			}
		})
	}
}

// A chain of thousands is checked at once.
func TestLongChain(t *testing.T) {
	do := func(context.Context, *soloist.Run) error { return nil }
	s := soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{{Name: "n0", Schedule: "@hourly", Do: do}}}
	for i := range 3000 {
		s.Jobs = append([]soloist.Job{{Name: fmt.Sprint("n", i+1), After: fmt.Sprint("n", i), Do: do}}, s.Jobs...)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}
