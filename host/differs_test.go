package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// The program of an operator may be older than the replicas, or have other
// settings.
func TestStatusTellsWhatIsInForce(t *testing.T) {
	hourly := []soloist.Work{soloist.Job{Name: "beat", Schedule: "@hourly", Do: do}}
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		environment(t, "CONTAINER_APP_REPLICA_NAME=r-a")
		for range 2 {
			run(t.Context(), host.Program{Work: work()[:1], Store: backend}, "tick")
			time.Sleep(time.Minute)
		}
		// The first run of the record has waited a second for its token.

		const same = "2000-01-01 00:02:00Z due  1 succeeded\n"
		if got := run(t.Context(), host.Program{Work: work()[:1], Store: backend}, "status"); !strings.HasSuffix(got.out, same) {
			t.Errorf("the same schedule: got %+v, want %s", got, same)
		}
		wantRun(t, host.Program{Work: hourly, Store: backend}, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:02:01Z

			NAME  SCHEDULE   STATE  LAST                                             NEXT                      COUNTS
			beat  (differs)  idle   2000-01-01 00:01:00Z succeeded on r-a, 1m1s ago  2000-01-01 00:02:00Z due  1 succeeded

			beat: this environment's schedule (every hour, UTC) is not the one in force, whose next tick is 2000-01-01 00:02:00Z
		`)
		got := run(t.Context(), host.Program{Work: hourly, Store: backend}, "status", "--json")
		if !strings.Contains(got.out, `"next": "2000-01-01T00:02:00Z"`) || !strings.Contains(got.out, `"differs": [`) {
			t.Errorf("in JSON: got %s", got.out)
		}
	})
}

func TestStatusTellsWhichPauseIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		p := host.Program{Work: work()[:1], Store: backend}
		status := func(setting string) string {
			environment(t, setting)
			return run(t.Context(), p, "status").out
		}
		tick := func(setting string) {
			environment(t, setting)
			time.Sleep(time.Minute)
			run(t.Context(), p, "tick")
		}
		const here = "\nbeat: this environment pauses it, but"
		const there = "\nbeat: this environment does not pause it, but"
		const pause, none = "SOLOIST_JOB_BEAT_PAUSED=true", "SOLOIST_JOB_BEAT_PAUSED="
		tick(none)
		tick(none)
		if got := status(none); !strings.Contains(got, " idle ") || strings.Contains(got, "environment") {
			t.Errorf("neither: got %s", got)
		}
		if got := status(pause); !strings.Contains(got, " idle ") || !strings.Contains(got, here) {
			t.Errorf("here only: got %s", got)
		}
		tick(pause)
		if got := status(none); !strings.Contains(got, " paused ") || !strings.Contains(got, there) {
			t.Errorf("there only: got %s", got)
		}
		if got := status(pause); !strings.Contains(got, " paused ") || strings.Contains(got, "environment") {
			t.Errorf("both: got %s", got)
		}
	})
}

func TestFailingJobTellsFailures(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		broke := soloist.Job{Name: "broke", Schedule: "@every 1m", Do: fail}
		p := host.Program{Work: []soloist.Work{broke}, Store: &local.Memory{}}
		for range 44 {
			run(t.Context(), p, "tick")
			time.Sleep(time.Minute)
		}
		for _, command := range []string{"status", "history"} {
			if got := run(t.Context(), p, command); !strings.Contains(got.out, "  failing x43  ") {
				t.Errorf("%s: got %s", command, got.out)
			}
		}
		if got := run(t.Context(), p, "status", "--json"); !strings.Contains(got.out, `"state": "failing"`) || !strings.Contains(got.out, `"failures": 43`) {
			t.Errorf("status --json: got %s", got.out)
		}
		s := open(t, p)
		wantAnswer(t, "the API", s.get("/api/v1/jobs"), 200, `"trouble":1`, `"state":"failing"`, `"failures":43`, `"trouble":true`)
		s.wait()

		mend := soloist.Job{Name: "broke", Schedule: "@every 1m", Do: do}
		p.Work = []soloist.Work{mend}
		run(t.Context(), p, "tick")
		if got := run(t.Context(), p, "status"); !strings.Contains(got.out, "  idle  ") || strings.Contains(got.out, "failing") {
			t.Errorf("after a success: got %s", got.out)
		}
	})
}

// A run under way does not hide that those before it failed.
func TestRunOfFailingJobTellsFailures(t *testing.T) {
	environment(t)
	backend := claimed(t, true, func(r *store.Record) { r.Failures = 3 })
	got := run(t.Context(), host.Program{Work: work()[:1], Store: backend, Now: spring}, "status")
	if want := "  running on replica-b since 2m, failing x3  "; !strings.Contains(got.out, want) {
		t.Errorf("got %s, want %q", got.out, want)
	}
}
