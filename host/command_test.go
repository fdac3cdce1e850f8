package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// In a bubble of synctest it is midnight, 1 January 2000, UTC.

// The first run of a new record starts a second late, since its token has to be
// of a later second than any of a record of that name which was deleted: that is
// why the second and the third tick take a second each.
func TestTickAndStatus(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	synctest.Test(t, func(t *testing.T) {
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
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a", "SOLOIST_JOB_BEAT_PAUSED=true")
	synctest.Test(t, func(t *testing.T) {
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

func TestStatusInJSON(t *testing.T) {
	environment(t, "SOLOIST_LAESE=warned of")
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Work: work(), Store: &local.Memory{}}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		run(t.Context(), p, "tick")
		got := run(t.Context(), p, "status", "--json")
		var answer struct {
			App, Store string
			Time       time.Time
			Jobs       []struct {
				Job, Kind, State string
				Last             *store.Outcome
				Next             time.Time
				Counts           map[store.Status]int
			}
		}
		if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.code != 0 {
			t.Fatalf("got %v of %+v", err, got)
		}
		j := answer.Jobs[0]
		if answer.App != "demo" || len(answer.Jobs) != 3 || j.Job != "beat" || j.Kind != "job" || j.State != "idle" ||
			j.Last.Status != store.Succeeded || j.Counts["succeeded"] != 1 || j.Next.Minute() != 2 || answer.Jobs[2].Kind != "singleton" {
			t.Errorf("got %+v", answer)
		}
	})
}

func TestTickInJSON(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	synctest.Test(t, func(t *testing.T) {
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

func TestWrongArguments(t *testing.T) {
	environment(t)
	for _, test := range []struct{ args, want string }{
		{"bogus", `demo: unknown command "bogus"`},
		{"stauts", `demo: unknown command "stauts": did you mean status?`},
		{"serve now", `demo: serve: unexpected argument "now"`},
		{"status --jsno", "demo: status: unknown flag --jsno: did you mean --json?"},
		{"serve --json", "demo: serve: unknown flag --json: it takes none"},
		{"tick beat", `demo: tick: unexpected argument "beat"`},
		{"unlock", "demo: unlock: of which job?"},
		{"unlock --now", "demo: unlock: of which job?"},
		{"unlock beat leader", `demo: unlock: unexpected argument "leader"`},
		{"status --now", "demo: status: unknown flag --now: want --watch, --locks, --json"},
		{"history --at 2026-03-29", "demo: history: unknown flag --at: want --job, --since, --outcome, -n, --json"},
		{"validate -n 3", "demo: validate: unknown flag -n: want --json"},
		{"next -n x", `demo: next: --limit: "x" is no number: want 1 to 1000`},
		{"next --at", "demo: next: --at needs a value"},
		{"next -é", "demo: next: unknown flag -é: want -n, --at, --tz, --schedule, --json"},
		{"status --json=perhaps", `demo: status: --json: bool value must be true, 1, yes, false, 0 or no but got "perhaps"`},
		{"--json", "demo: unknown flag --json: flags follow the command"},
		{"-", `demo: unknown command "-"`},
		{"next beat leader", `demo: next: unexpected argument "leader"`},
	} {
		got := run(t.Context(), host.Program{Work: work()}, strings.Fields(test.args)...)
		if got.code != 2 || got.out != "" || got.err != test.want+"\ndemo help lists the commands\n" {
			t.Errorf("%s: got %+v, want code 2, %q and where the commands are", test.args, got, test.want)
		}
	}
	for args, want := range map[string]string{
		"next leader":     "demo: there is no job \"leader\": want one of beat, night-report\n",
		"history nobody":  "demo: there is no job \"nobody\": want one of beat, night-report, leader\n",
		"history -n 1001": "demo: history: -n is 1001: want 1 to 1000\n",
	} {
		got := run(t.Context(), host.Program{Work: work(), Store: down()}, strings.Fields(args)...)
		if got != (result{2, "", want}) {
			t.Errorf("%s: got %+v, want code 2 and %q", args, got, want)
		}
	}
}

func TestHelp(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong") // who asks for help may have it wrong
	for _, args := range []string{"help", "--help", "-h", "-help"} {
		got := run(t.Context(), host.Program{}, strings.Fields(args)...)
		if got.code != 0 || got.err != "" {
			t.Errorf("%s: got %+v", args, got)
		}
		for _, want := range []string{"serve", "tick", "status", "history", "next", "unlock", "validate", "help", "SOLOIST_APP", "SOLOIST_STORAGE", "SOLOIST_CONTAINER",
			"SOLOIST_LEASE", "SOLOIST_ADDR", "SOLOIST_GRACE", "SOLOIST_HISTORY", "SOLOIST_READ_TOKEN", "SOLOIST_ADMIN_TOKEN", "SOLOIST_LOG_FORMAT", "SOLOIST_LOG_LEVEL",
			"SOLOIST_JOB_<NAME>_SCHEDULE", "SOLOIST_JOB_<NAME>_TIMEZONE", "SOLOIST_JOB_<NAME>_PAUSED", "SOLOIST_JOB_<NAME>_PING",
			"SOLOIST_ALERT_WEBHOOK", "SOLOIST_ALERT_SECRET", "SOLOIST_ALERT_FAILURES"} {
			if !strings.Contains(got.out, "\n  "+want+" ") {
				t.Errorf("%s: got no %s in\n%s", args, want, got.out)
			}
		}
		if !strings.Contains(got.out, "\n3, in Functions 200: ") || !strings.Contains(got.out, `"overrun"`) {
			t.Errorf("%s: got no exit codes in\n%s", args, got.out)
		}
	}
}

// A command's own help has its arguments and flags. It comes whatever else is
// wrong with the arguments.
func TestHelpOfOneCommand(t *testing.T) {
	environment(t, "SOLOIST_LEASE=wrong")
	for _, args := range []string{"help unlock", "unlock --help", "unlock -h", "unlock beat --now -h leader"} {
		wantRun(t, host.Program{}, args, 0, `
			usage: demo unlock JOB [--now] [--yes] [--json]

			free a hung job: when its lease expires, or --now, while its holder may still work. It tells first who has the lease, and wants --yes; 0: done, or no replica has the lease

			  JOB     the job or singleton
			  --now   end the lease at once, while its holder may still work
			  --yes   do it, though a replica has the lease: its run loses it
			  --json  answer with one JSON value
		`)
	}
	got := run(t.Context(), host.Program{}, "help", "nxt")
	if want := (result{2, "", "demo: help: unknown command \"nxt\": did you mean next?\n"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// One dash or two, and a value after a blank or "=", are the same.
func TestFormsOfFlags(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Now: spring}
	want := run(t.Context(), p, "next", "beat", "-n", "3", "--json")
	if want.code != 0 {
		t.Fatalf("got %+v", want)
	}
	for _, args := range []string{"-n=3 -json beat", "--n 3 beat --json=true", "--limit=3 --json beat", "--json --limit 3 -- beat", "beat -limit 3 -json=1"} {
		if got := run(t.Context(), p, append([]string{"next"}, strings.Fields(args)...)...); got != want {
			t.Errorf("%s: got %+v, want %+v", args, got, want)
		}
	}
}
