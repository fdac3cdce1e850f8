package host_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// chain is a job that takes two minutes, and one that follows it.
func chain() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "import", Schedule: "@every 10m", Do: func(context.Context, *soloist.Run) error { time.Sleep(2 * time.Minute); return nil }},
		soloist.Job{Name: "report", After: "import", Do: do},
	}
}

func TestStatusOfAFollower(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: chain()}
		run(t.Context(), p, "tick")
		time.Sleep(10 * time.Minute)
		done := make(chan result)
		go func() { done <- run(t.Context(), p, "tick") }()
		time.Sleep(time.Minute)
		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:11:00Z

			NAME    SCHEDULE                                             STATE                           LAST  NEXT                                   COUNTS
			import  every 10 minutes, counted from 1970-01-01 00:00 UTC  running on replica-a since 57s  -     2000-01-01 00:20:00Z in 9m             -
			report  after import                                         idle                            -     2000-01-01 00:10:00Z waits for import  -
		`)
		got := run(t.Context(), p, "tick")
		if want := "report  -     waits for import"; got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("tick beside: got %+v, want %q", got, want)
		}
		if got := <-done; got.code != 0 || strings.Count(got.out, "succeeded") != 2 {
			t.Errorf("tick: got %+v", got)
		}
	})
}

func TestNextOfAFollower(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop")
	wantRun(t, host.Program{Work: chain(), Now: spring}, "next report -n 1", 0, `
		report: after import, every 10 minutes, counted from 1970-01-01 00:00 UTC
		text: @every 10m0s

		TICK                  FROM NOW
		2026-03-28 12:10:00Z  in 10m
	`)
}

func TestScheduleOfAFollowerIsRefused(t *testing.T) {
	environment(t, "SOLOIST_STORAGE=memory:", "SOLOIST_JOB_REPORT_SCHEDULE=@daily")
	got := run(t.Context(), host.Program{Work: chain()}, "validate")
	if want := "SOLOIST_JOB_REPORT_SCHEDULE is set: the ticks of report are those of the jobs that it follows, import"; got.code == 0 || !strings.Contains(got.out+got.err, want) {
		t.Errorf("got %+v, want %q", got, want)
	}
}
