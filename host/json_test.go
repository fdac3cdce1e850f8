package host_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/store"
)

// answers is a call of each command that can answer in JSON, and fields of its answer.
var answers = map[string]struct {
	args []string
	want map[string]any
}{
	"tick":         {nil, map[string]any{"app": "demo"}},
	"status":       {nil, map[string]any{"app": "demo"}},
	"history":      {[]string{"beat"}, map[string]any{"app": "demo"}},
	"next":         {nil, map[string]any{"app": "demo"}},
	"unlock":       {[]string{"beat", "--yes"}, map[string]any{"job": "beat", "unlocked": true, "lease": "leased"}},
	"pause":        {[]string{"beat", "--until", "1h"}, map[string]any{"job": "beat"}},
	"resume":       {[]string{"beat"}, map[string]any{"job": "beat"}},
	"run":          {[]string{"beat", "--no-wait"}, map[string]any{"job": "beat"}},
	"cancel":       {[]string{"beat"}, map[string]any{"job": "beat"}},
	"backfill":     {[]string{"beat", "--from", "2h", "--to", "1h", "--all", "--dry-run"}, map[string]any{"job": "beat"}},
	"step-down":    {[]string{"beat"}, map[string]any{"job": "beat"}},
	"audit":        {nil, map[string]any{"app": "demo"}},
	"wake":         {nil, map[string]any{"app": "demo", "queue": "demo-alarm", "error": nil}},
	"sweep":        {nil, map[string]any{"app": "demo", "error": nil}},
	"functions":    {[]string{"DIR"}, map[string]any{"directory": "DIR"}},
	"deploy-files": {[]string{"containerapp", "MODULE", "--package", "./jobs"}, map[string]any{"kind": "containerapp", "app": "demo", "queue": "demo-alarm"}},
	"validate":     {nil, map[string]any{"ok": true}},
	"doctor":       {nil, map[string]any{"ok": true}},
}

// Each command that has --json answers with one JSON value and nothing else.
func TestAnswersInJSON(t *testing.T) {
	environment(t)
	for command := range strings.Lines(run(t.Context(), host.Program{}, "__complete", "").out) {
		command = strings.TrimSpace(command)
		if !strings.Contains(run(t.Context(), host.Program{}, "__complete", command, "--").out, "--json\n") {
			continue
		}
		test, ok := answers[command]
		if !ok {
			t.Errorf("%s has --json and no test of it", command)
			continue
		}
		p := host.Program{Work: work()[:1], Store: claimed(t, true, func(*store.Record) {}), Now: spring}
		if environment(t); command == "wake" {
			environment(t, "SOLOIST_ALARM=queue")
			p = host.WithQueue(p, &alarmtest.Queue{})
		}
		args := []string{command, "--json"}
		for _, arg := range test.args {
			if arg == "DIR" {
				arg = t.TempDir()
				test.want["directory"] = arg
				args = append(args, "--binary", stand(t))
			}
			if arg == "MODULE" {
				arg = moduleDir(t)
			}
			args = append(args, arg)
		}
		got := run(t.Context(), p, args...)
		var body map[string]any
		if err := json.Unmarshal([]byte(got.out), &body); err != nil || got.code != 0 {
			t.Errorf("%s: got %+v, %v, want one JSON object", command, got, err)
		}
		for name, want := range test.want {
			if body[name] != want {
				t.Errorf("%s: got %v as %s, want %v", command, body[name], name, want)
			}
		}
	}
}

func TestUnlockInJSON(t *testing.T) {
	const head = `{"app":"demo","store":"*local.Memory","time":"2026-03-28T12:00:00Z","job":"beat",`
	for _, test := range []struct {
		args  string
		store store.Store
		code  int
		want  string
	}{
		{"beat --now", claimed(t, true, func(*store.Record) {}), 2, `"unlocked":false,"error":"replica-b runs it since 2m. The run loses its lease: its context ends within 6.7s. ` +
			`If the run does not return within 3.3s after that, its process exits with code 3, 200 in Functions, and its other jobs end too. Nothing is done yet. To unlock it: demo unlock beat --now --yes"}`},
		{"beat --yes", claimed(t, true, func(*store.Record) {}), 0,
			`"unlocked":true,"lease":"leased","replica":"replica-b","ends":"2026-03-28T12:00:20Z","next":"2026-03-28T12:00:40Z"}`},
		{"beat --yes --now", claimed(t, true, func(*store.Record) {}), 0,
			`"unlocked":true,"lease":"leased","replica":"replica-b","ends":"2026-03-28T12:00:00Z","next":"2026-03-28T12:00:20Z"}`},
		{"beat", claimed(t, false, func(*store.Record) {}), 0, `"unlocked":false,"lease":"available"}`},
		{"beat", down(), 1, `"unlocked":false,"error":"no route to the storage"}`},
	} {
		environment(t)
		got := run(t.Context(), host.Program{Work: work()[:1], Store: test.store, Now: spring}, append([]string{"unlock", "--json"}, strings.Fields(test.args)...)...)
		var compact strings.Builder
		if err := compactJSON(&compact, got.out); err != nil || got.code != test.code || strings.ReplaceAll(compact.String(), "*host_test.gated", "*local.Memory") != head+test.want {
			t.Errorf("%s: got %d, %s%s, %v, want %s", test.args, got.code, compact.String(), got.err, err, head+test.want)
		}
	}
}

func compactJSON(b *strings.Builder, text string) error {
	var plain json.RawMessage
	if err := json.Unmarshal([]byte(text), &plain); err != nil {
		return err
	}
	out, err := json.Marshal(plain)
	b.Write(out)
	return err
}

// Where the app has no record, JSON says so too.
func TestUnlockWithoutRecordInJSON(t *testing.T) {
	environment(t)
	got := run(t.Context(), host.Program{Work: work(), Store: unlisted{&local.Memory{}}}, "unlock", "beat", "--json")
	if got.code != 1 || got.err != "" || !strings.Contains(got.out, `"error": "no records of app \"demo\" in `) {
		t.Errorf("got %+v", got)
	}
}
