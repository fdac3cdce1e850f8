package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// In a bubble of synctest it is midnight, 1 January 2000, UTC.

// The first run of a new record starts a second late, since its token has to be
// of a later second than any of a record of that name which was deleted: that is
// why the second and the third tick take a second each.
func TestTickAndStatus(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		time.Sleep(30 * time.Second)

		wantRun(t, p, "tick", 0, `
			JOB           TICK  DONE            NEXT
			beat          -     nothing is due  2000-01-01 00:01:00Z
			night-report  -     nothing is due  2000-01-01 01:30:00Z

			next tick 2000-01-01 00:01:00Z, in 30s
		`)

		time.Sleep(time.Minute)
		log := wantOut(t, p, "tick", 0, `
			JOB           TICK                  DONE            NEXT
			beat          2000-01-01 00:01:00Z  succeeded       2000-01-01 00:02:00Z
			night-report  -                     nothing is due  2000-01-01 01:30:00Z

			next tick 2000-01-01 00:02:00Z, in 28s
		`)
		if !strings.Contains(log, "run ended") {
			t.Errorf("second tick: got %s, want the job's log on standard error", log)
		}

		time.Sleep(90 * time.Minute)
		wantOut(t, p, "tick", 1, `
			JOB           TICK                  DONE               NEXT
			beat          2000-01-01 01:31:00Z  succeeded          2000-01-01 01:32:00Z
			night-report  2000-01-01 01:30:00Z  failed (no paper)  2000-01-02 01:30:00Z

			next tick 2000-01-01 01:32:00Z, in 27s
		`)

		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 01:31:32Z

			NAME          SCHEDULE                                         STATE       LAST                                                            NEXT                         COUNTS
			beat          every minute, counted from 1970-01-01 00:00 UTC  idle        2000-01-01 01:31:00Z succeeded on replica-a, 32s ago            2000-01-01 01:32:00Z in 27s  2 succeeded, 89 missed
			night-report  at 02:30 every day, Europe/Berlin                failing x1  2000-01-01 01:30:00Z failed (no paper) on replica-a, 1m32s ago  2000-01-02 01:30:00Z in 23h  1 failed
			leader        (singleton)                                      no record   -                                                               -                            -
		`)
	})
}

func TestStatusOfRunningJob(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a", "SOLOIST_JOB_BEAT_PAUSED=true"}, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			soloist.Job{Name: "long", Schedule: "@every 1m", Do: func(ctx context.Context, _ *soloist.Run) error {
				time.Sleep(150 * time.Second)
				return nil
			}},
			soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
		}}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		done := make(chan result)
		go func() { done <- run(t.Context(), p, "tick") }()
		time.Sleep(90 * time.Second)

		wantRun(t, p, "status", 0, `
			app demo on *local.Memory, 2000-01-01 00:02:30Z

			NAME  SCHEDULE                                         STATE                             LAST                                              NEXT                      COUNTS
			long  every minute, counted from 1970-01-01 00:00 UTC  running on replica-a since 1m27s  -                                                 2000-01-01 00:02:00Z due  -
			beat  every minute, counted from 1970-01-01 00:00 UTC  paused                            2000-01-01 00:01:00Z skipped (paused), 1m30s ago  2000-01-01 00:02:00Z due  1 skipped
		`)
		got := run(t.Context(), p, "tick")
		if want := "runs on replica-a"; got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("tick beside: got %+v, want %q", got, want)
		}
		if got := <-done; got.code != 0 || !strings.Contains(got.out, "2000-01-01 00:01:00Z  succeeded in 2m30s") {
			t.Errorf("tick: got %+v", got)
		}
	})
}

func TestTickInJSON(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		time.Sleep(90 * time.Minute)
		run(t.Context(), p, "tick") // the first runs, which wait for their tokens
		time.Sleep(time.Until(time.Date(2000, 1, 2, 1, 30, 30, 0, time.UTC)))
		wantOut(t, p, "tick --json", 1, `
			{
			  "app": "demo",
			  "store": "*local.Memory",
			  "time": "2000-01-02T01:30:30Z",
			  "jobs": [
			    {
			      "job": "beat",
			      "ran": [
			        {
			          "tick": "2000-01-02T01:30:00Z",
			          "status": "succeeded",
			          "attempt": 1,
			          "token": 946690201000001,
			          "replica": "replica-a",
			          "start": "2000-01-02T01:30:31Z",
			          "end": "2000-01-02T01:30:31Z"
			        }
			      ],
			      "next": "2000-01-02T01:31:00Z"
			    },
			    {
			      "job": "night-report",
			      "ran": [
			        {
			          "tick": "2000-01-02T01:30:00Z",
			          "status": "failed",
			          "reason": "no\npaper",
			          "attempt": 1,
			          "token": 946690201000001,
			          "replica": "replica-a",
			          "start": "2000-01-02T01:30:31Z",
			          "end": "2000-01-02T01:30:31Z"
			        }
			      ],
			      "next": "2000-01-03T01:30:00Z"
			    }
			  ],
			  "next": "2000-01-02T01:31:00Z"
			}
		`)
	})
}

func TestValidateInJSON(t *testing.T) {
	environment(t, "SOLOIST_LAESE=1", "SOLOIST_STORAGE=memory:")
	wantRun(t, host.Program{Work: work(), Now: spring}, "validate --json", 0, `
		{
		  "ok": true,
		  "app": "demo",
		  "store": "memory of this process",
		  "mistakes": [],
		  "warnings": [
		    "SOLOIST_LAESE is not a setting: did you mean SOLOIST_LEASE?",
		    "night-report: 02:30 on 2026-03-29 does not exist in Europe/Berlin, where clocks go forward: it runs at 03:00 on 2026-03-29",
		    "night-report: 02:30 on 2026-10-25 occurs twice in Europe/Berlin, where clocks go back: it runs the first time only"
		  ]
		}
	`)
	environment(t, "SOLOIST_STORAGE="+key, "SOLOIST_GRACE=x")
	wantRun(t, host.Program{Work: work()}, "validate --json", 2, `
		{
		  "ok": false,
		  "app": "demo",
		  "mistakes": [
		    "SOLOIST_GRACE is \"x\": want a duration of zero or more, such as 25s",
		    "SOLOIST_STORAGE: want memory:, dir:PATH, a blob service URL or a connection string"
		  ],
		  "warnings": [
		    "SOLOIST_LAESE is not a setting: did you mean SOLOIST_LEASE?"
		  ]
		}
	`)
}

// A long error stays in its line; the log and JSON have all of it.
func TestTickWithLongErrors(t *testing.T) {
	environment(t)
	long := strings.Repeat("ä long\nstory ", 50)
	synctest.Test(t, func(t *testing.T) {
		backend := &local.Memory{}
		sad := soloist.Job{Name: "sad", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { return errors.New(long) }}
		p := host.Program{Work: []soloist.Work{sad}, Store: backend}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		cut := string([]rune(strings.Repeat("ä long story ", 50))[:99]) + "…"
		wantCut(t, run(t.Context(), p, "tick"), "failed ("+cut+")")
		p.Store = newGated(backend, refuse(errors.New(long), "read"))
		wantCut(t, run(t.Context(), p, "tick"), "error: "+cut)
		if got := run(t.Context(), p, "tick", "--json"); !strings.Contains(got.out, strings.TrimSpace(strings.Repeat("ä long story ", 50))) {
			t.Errorf("got %s, want all of it", got.out)
		}
	})
}

func wantCut(t *testing.T, got result, want string) {
	t.Helper()
	table, _, _ := strings.Cut(got.out, "\n\n")
	if got.code != 1 || strings.Count(table, "\n") > 2 || !strings.Contains(table, want) {
		t.Errorf("got %d\n%s\nwant two lines and %q", got.code, got.out, want)
	}
}

func TestCommandsFailInAnOutage(t *testing.T) {
	environment(t)
	for command, says := range map[string]map[string]int{
		"status":         {"unknown": 3, "\nbeat, night-report, leader: no route to the storage\n": 1},
		"tick":           {"error: the orders of operators cannot be read, so nothing starts: no route to the storage": 2},
		"tick --json":    {`nothing starts: no route to the storage"`: 2, `"ran": []`: 2},
		"history":        {"unknown": 3, "no route to the storage": 3},
		"history --json": {"unknown": 3, "no route to the storage": 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := run(t.Context(), host.Program{Work: work(), Store: down()}, strings.Fields(command)...)
			for text, n := range says {
				if got.code != 1 || strings.Count(got.out, text) != n {
					t.Errorf("%s: got %+v, want code 1 and %d times %q", command, got, n, text)
				}
			}
		})
	}
}
