package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
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
	wantLines(t, host.Program{Work: here()[:1], Store: &local.Memory{}}, "status", 0, "each replica")
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
	wantLines(t, p, "status --json", 0, `"state": "each replica"`, `"everyReplica": true`)
	wantRun(t, p, "history", 0, `
		app demo on *local.Memory, 2026-03-28 12:00:00Z

		JOB    STATE         COUNTS
		cache  each replica  each replica runs it: there is no record
		rest   each replica  each replica runs it: there is no record
		beat   idle          -
	`)
}

// chain is a job that takes two minutes, and one that follows it.
func chain() []soloist.Work {
	return []soloist.Work{
		lastingJob("import", "@every 10m", 2*time.Minute),
		soloist.Job{Name: "report", After: "import", Do: do},
	}
}
