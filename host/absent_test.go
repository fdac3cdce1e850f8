package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

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
	dir := t.TempDir()
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
				if strings.HasPrefix(command, "unlock") { // which has no --json
					continue
				}
				var answer struct {
					Error string
					Jobs  []struct{ State string }
				}
				got = run(t.Context(), p, append(strings.Fields(command), "--json")...)
				if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.code != 1 || len(answer.Jobs) == 0 ||
					answer.Jobs[0].State != "no record" || !strings.Contains(answer.Error, test.want) {
					t.Errorf("%s --json: got %+v, %v", command, got, err)
				}
			}
		})
	}
}

// A job that is new has no lease, in an app that has records.
func TestUnlockOfNewJob(t *testing.T) {
	environment(t)
	backend := &local.Memory{}
	run(t.Context(), host.Program{Work: work()[:1], Store: backend}, "tick")
	got := run(t.Context(), host.Program{Work: work(), Store: backend}, "unlock", "leader")
	if got.code != 0 || !strings.Contains(got.out, "there is no record yet") || got.err != "" {
		t.Errorf("got %+v", got)
	}
}

// One record is enough: a job that is new has none yet.
func TestStatusWithSomeRecords(t *testing.T) {
	environment(t)
	backend := &local.Memory{}
	run(t.Context(), host.Program{Work: work()[:1], Store: backend}, "tick")
	got := run(t.Context(), host.Program{Work: work(), Store: backend}, "status")
	if got.code != 0 || strings.Count(got.out, " no record ") != 2 || got.err != "" {
		t.Errorf("got %+v", got)
	}
	each := soloist.Job{Name: "each", Schedule: "@hourly", EveryReplica: true, Do: do}
	got = run(t.Context(), host.Program{Work: []soloist.Work{each}, Store: &local.Memory{}}, "status")
	if got.code != 0 || got.err != "" {
		t.Errorf("without any job that has a record: got %+v", got)
	}
}

func TestFileBesideAppsIsNoApp(t *testing.T) {
	environment(t)
	dir := t.TempDir()
	file(t, filepath.Join(dir, "notes.json"), "")
	put(t, local.Dir{Path: dir}, "shop/.doctor", "{}", false)
	got := run(t.Context(), host.Program{Work: work(), Store: local.Dir{Path: dir}}, "status")
	if !strings.Contains(got.err, "it has no records of any app") {
		t.Errorf("got %+v", got)
	}
}
