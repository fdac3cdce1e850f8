package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// unlisted is a store that cannot list what it has.
type unlisted struct{ store.Store }

func (unlisted) Apps(context.Context) ([]string, error) { return nil, errors.New("no right to list") }

func TestStatusWithoutAnyRecord(t *testing.T) {
	filled := &local.Memory{}
	for _, name := range []string{"shop/beat", "bank/beat"} {
		put(t, filled, name, `{"schema":1}`, false)
	}
	many := &local.Memory{}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz" {
		put(t, many, "app-"+string(letter)+"/beat", `{"schema":1}`, false)
	}
	dir, beside := t.TempDir(), t.TempDir()
	file(t, filepath.Join(beside, "notes.json"), "")
	put(t, local.Dir{Path: beside}, "shop/.doctor", "{}", false)
	for _, test := range []struct {
		name  string
		store store.Store
		app   string
		want  string
	}{
		{"another app's", filled, "demo", "it has records of the apps bank, shop: check SOLOIST_APP, SOLOIST_CONTAINER and SOLOIST_STORAGE"},
		{"a slip", filled, "shpo", "it has records of the apps bank, shop: did you mean SOLOIST_APP=shop?"},
		{"many apps", many, "demo", "app-s, app-t and 6 more"},
		{"empty", &local.Memory{}, "demo", "it has no records of any app"},
		{"a directory", local.Dir{Path: dir}, "demo", "it has no records of any app"},
		{"a directory with a file beside apps", local.Dir{Path: beside}, "demo", "it has no records of any app"},
		{"no directory", local.Dir{Path: filepath.Join(dir, "gone")}, "demo", "it does not exist: check"},
		{"cannot list", unlisted{&local.Memory{}}, "demo", "cannot be listed (no right to list)"},
		{"a store of one's own", struct{ store.Store }{&local.Memory{}}, "demo", "check SOLOIST_APP"},
	} {
		t.Run(test.name, func(t *testing.T) {
			environment(t, "SOLOIST_APP="+test.app)
			p := host.Program{Work: work(), Store: test.store}
			for _, command := range []string{"status", "history", "history beat", "unlock beat", "unlock beat --now --yes"} {
				got := run(t.Context(), p, strings.Fields(command)...)
				if first := `demo: no records of app "` + test.app + `" in `; got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, first) ||
					!strings.Contains(got.err, test.want) || !strings.Contains(got.err, "replicas create the records when they start") {
					t.Errorf("%s: got %+v, want %q and %q", command, got, first, test.want)
				}
				var answer struct {
					Error string
					Jobs  []struct{ State string }
				}
				got = run(t.Context(), p, append(strings.Fields(command), "--json")...)
				err := json.Unmarshal([]byte(got.out), &answer)
				if err != nil || got.code != 1 || !strings.Contains(answer.Error, test.want) {
					t.Errorf("%s --json: got %+v, %v", command, got, err)
				}
				if !strings.HasPrefix(command, "unlock") && (len(answer.Jobs) == 0 || answer.Jobs[0].State != "no record") {
					t.Errorf("%s --json: got %+v, %v", command, got, err)
				}
			}
		})
	}
}

// One record is enough: a job that is new has none yet, and no lease.
func TestStatusWithSomeRecords(t *testing.T) {
	environment(t)
	p := host.Program{Work: work(), Store: &local.Memory{}}
	run(t.Context(), host.Program{Work: work()[:1], Store: p.Store}, "tick")
	got := run(t.Context(), p, "status")
	if got.code != 0 || strings.Count(got.out, " no record ") != 2 || got.err != "" {
		t.Errorf("got %+v", got)
	}
	wantLines(t, p, "unlock leader", 0, "there is no record yet")
	got = run(t.Context(), host.Program{Work: here()[:1], Store: &local.Memory{}}, "status")
	if got.code != 0 || got.err != "" {
		t.Errorf("without any job that has a record: got %+v", got)
	}
}

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
		wantText(t, "in JSON", got.out, `"next": "2000-01-01T00:02:00Z"`, `"differs": [`)
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
		wantText(t, "here only", status(pause), " idle ", here)
		tick(pause)
		wantText(t, "there only", status(none), " paused ", there)
		if got := status(pause); !strings.Contains(got, " paused ") || strings.Contains(got, "environment") {
			t.Errorf("both: got %s", got)
		}
	})
}

// One record with an instant that no answer can tell spoils its own job alone.
func TestFarInstantHidesNoOtherJob(t *testing.T) {
	environment(t)
	store := new(local.Memory)
	now := time.Now().UTC().Format(time.RFC3339)
	record := fmt.Sprintf(`{"schema":1,"app":"demo","job":"beat","created":%q,"definition":{"spec":"","since":%q},"token":5,"writer":"w","watermark":%q,
		"run":{"status":"running","lease":30,"progress":{"note":"x","at":"9999-12-31T23:59:59-01:00"}},
		"history":[{"tick":"9999-12-31T23:59:59-01:00","status":"succeeded"}]}`, now, now, now)
	put(t, store, "demo/beat", strings.Join(strings.Fields(record), ""), false)
	for _, command := range []string{"status", "history"} {
		got := run(t.Context(), host.Program{Store: store, Work: work()}, command, "--json")
		wantJobs(t, command, []byte(got.out))
	}
	s := open(t, host.Program{Store: store, Work: work()})
	wantJobs(t, "/api/v1/jobs", s.get("/api/v1/jobs").Body.Bytes())
}

// wantJobs wants an answer about all jobs, with the fault of the one.
func wantJobs(t *testing.T, what string, text []byte) {
	t.Helper()
	if !json.Valid(text) || !strings.Contains(string(text), "night-report") || !strings.Contains(string(text), "years 1 to 9999") {
		t.Errorf("%s: got %q, want all jobs and what is wrong with one", what, text)
	}
}

// here is two jobs of each replica's own and one of all of them.
func here() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "cache", Schedule: "@hourly", Do: do, EveryReplica: true},
		soloist.Job{Name: "rest", Schedule: "@hourly", Do: do, EveryReplica: true, Paused: true},
		soloist.Job{Name: "beat", Schedule: "@hourly", Do: do},
	}
}

// rested is a store with the record of the job that has one.
func rested(t *testing.T) *local.Memory {
	t.Helper()
	store := &local.Memory{Now: spring}
	put(t, store, "demo/beat", `{"schema":1,"app":"demo","job":"beat","token":1,"created":"2026-03-28T11:30:00Z","watermark":"2026-03-28T12:00:00Z","run":{"status":"idle"}}`, false)
	return store
}

func TestJobOnEachReplica(t *testing.T) {
	environment(t)
	p := host.Program{Work: here(), Store: rested(t), Now: spring}
	wantRun(t, p, "status", 0, `
		app demo on *local.Memory, 2026-03-28 12:00:00Z

		NAME   SCHEDULE         STATE         LAST  NEXT                        COUNTS
		cache  every hour, UTC  each replica  -     2026-03-28 13:00:00Z in 1h  -
		rest   every hour, UTC  each replica  -     2026-03-28 13:00:00Z in 1h  -
		beat   every hour, UTC  idle          -     2026-03-28 13:00:00Z in 1h  -
	`)
	got := run(t.Context(), p, "status", "--json")
	if want := `"state": "each replica"`; got.code != 0 || !strings.Contains(got.out, want) || strings.Count(got.out, `"everyReplica": true`) != 2 {
		t.Errorf("got %+v, want %s", got, want)
	}
	wantRun(t, p, "history", 0, `
		app demo on *local.Memory, 2026-03-28 12:00:00Z

		JOB    STATE         COUNTS
		cache  each replica  each replica runs it: there is no record
		rest   each replica  each replica runs it: there is no record
		beat   idle          -
	`)
}

func TestListOfJobOnEachReplica(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		slow := lastingJob("slow", "@every 1m", 20*time.Second)
		slow.EveryReplica = true
		s := open(t, host.Program{Work: append(here(), slow), Store: &local.Memory{}})
		s.tick()
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"state":"each replica"`, `"state":"paused"`)
		time.Sleep(time.Minute)
		var all sync.WaitGroup
		all.Go(s.tick)
		time.Sleep(10 * time.Second)
		wantAnswer(t, "list", s.get("/api/v1/jobs?q=slow"), 200, `"state":"running"`, `"here":true`)
		all.Wait()
	})
}

// chain is a job that takes two minutes, and one that follows it.
func chain() []soloist.Work {
	return []soloist.Work{
		lastingJob("import", "@every 10m", 2*time.Minute),
		soloist.Job{Name: "report", After: "import", Do: do},
	}
}

func TestStatusOfAFollower(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
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

// A job that is over says so, and so does one that is to begin. Neither is in trouble.
func TestStatusOfBoundedJobs(t *testing.T) {
	environment(t, "CONTAINER_APP_NAME=shop")
	p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "past", Schedule: "0 9 * * *", Do: do, Until: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)},
		soloist.Job{Name: "future", Schedule: "0 9 * * *", Do: do, From: time.Date(2150, 5, 1, 0, 0, 0, 0, time.UTC)},
	}}
	wantLines(t, p, "tick", 0)
	wantLines(t, p, "status", 0, "over since 2026-01-04 09:00:00Z", "idle, begins 2150-05-01 09:00:00Z")
}
