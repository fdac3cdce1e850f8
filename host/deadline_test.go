package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
)

// TestDeadlinesThatNothingKeeps has ways of running that look for ticks once a minute.
func TestDeadlinesThatNothingKeeps(t *testing.T) {
	const apps, functions, none = "CONTAINER_APP_JOB_NAME=demo", "FUNCTIONS_CUSTOMHANDLER_PORT=1", "X=1"
	for _, tt := range []struct {
		name, where string
		job         soloist.Job
		want        string // empty: it can be kept
	}{
		{"less than a start", apps, soloist.Job{Schedule: "* * * * *", StartingDeadline: 5 * time.Second}, "a run may start 5s after its tick"},
		{"a start", apps, soloist.Job{Schedule: "* * * * *", StartingDeadline: 10 * time.Second}, ""},
		{"between two looks", apps, soloist.Job{Schedule: "30 * * * * *", StartingDeadline: 39 * time.Second}, ":30Z 40s after it at the earliest"},
		{"long enough", apps, soloist.Job{Schedule: "30 * * * * *", StartingDeadline: 40 * time.Second}, ""},
		{"one lease, as late ones are skipped", apps, soloist.Job{Schedule: "@every 30s", Missed: soloist.SkipMissed}, "a run may start 30s after its tick"},
		{"no deadline", apps, soloist.Job{Schedule: "30 * * * * *"}, ""},
		{"a replica that serves", none, soloist.Job{Schedule: "* * * * *", StartingDeadline: time.Second}, ""},
		{"a timer of its own", functions, soloist.Job{Schedule: "30 * * * * *", StartingDeadline: 5 * time.Second}, ""},
		{"the timer for all", functions, soloist.Job{Schedule: "30 2 * * * ; 30 5 12 * * *", StartingDeadline: 5 * time.Second}, "the function tick looks for the tick of"},
		{"the timer for all, at whole minutes", functions, soloist.Job{Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", StartingDeadline: 5 * time.Second}, ""},
	} {
		environment(t, tt.where, "SOLOIST_STORAGE=memory:")
		tt.job.Name, tt.job.Do = "x", do
		p := host.Program{Work: []soloist.Work{tt.job}, Now: spring}
		for _, command := range []string{"validate", "doctor"} {
			got := run(t.Context(), p, command)
			text := got.out + got.err
			if told := strings.Contains(text, "a run may start"); told != (tt.want != "") || !strings.Contains(text, tt.want) || told && got.code != 2 {
				t.Errorf("%s: %s: got %+v, want %q", tt.name, command, got, tt.want)
			}
		}
		if got := run(t.Context(), p, "next"); got.code != 0 {
			t.Errorf("%s: next: got %+v", tt.name, got)
		}
	}
}
