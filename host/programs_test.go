package host_test

import (
	"cmp"
	"context"
	"encoding/json"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// withOther returns a store in which a replica of another program, or of another version of this one, is up.
func withOther(t *testing.T, program, job string) *local.Memory {
	t.Helper()
	backend, now := &local.Memory{}, time.Now().UTC().Format(time.RFC3339)
	body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo",
		"replicas": map[string]any{"b": map[string]any{"id": "b", "started": now, "seen": now, "every": 1200, "health": "ok", "version": "v9", "program": program, "work": "w"}},
		"work":     map[string]any{"w": map[string]any{job: map[string]any{"schedule": "@every 1m0s"}, "ship": map[string]any{"schedule": "@every 1m0s"}}}})
	if err == nil {
		_, err = backend.WriteDocument(t.Context(), "demo/.replicas", "", body)
	}
	if err != nil {
		t.Fatal(err)
	}
	return backend
}

// Two programs under one name of an app take each other's ticks of a job that both have: log, doctor, status and page say it.
// Another version of this program has the same path, and is meant; doctor says what differs in it.
func TestProgramsWithOneApp(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Path == "" {
		t.Fatal("the path of this program is not known")
	}
	const says = "several programs use this app and take each other's ticks of "
	for _, test := range []struct{ program, job, want string }{
		{"example.com/billing", "beat", says + "beat: "},
		{"example.com/billing", "invoice", ""},
		{"example.com/billing", "cache", ""}, // which each replica runs for itself
		{info.Path, "beat", ""},
		{"", "beat", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := host.Program{Name: "demo", Work: here(), Store: withOther(t, test.program, test.job)}
			var logged strings.Builder
			serving := p
			serving.Stdout, serving.Stderr = &logged, t.Output()
			environment(t, replicaName+"a", "SOLOIST_PRESENCE=10s")
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { _, _ = host.Serve(ctx, serving, &deserted{closed: make(chan struct{})}) })
			time.Sleep(3 * time.Minute)
			told := map[string]string{"doctor": run(t.Context(), p, "doctor").out, "status": run(t.Context(), p, "status").out}
			s := open(t, p)
			told["page"] = s.get("/api/v1/jobs").Body.String()
			s.wait()
			cancel()
			all.Wait()
			told["log"] = logged.String()
			for who, text := range told {
				if !strings.Contains(text, cmp.Or(test.want, "demo")) || strings.Contains(text, says) != (test.want != "") {
					t.Errorf("%s, with the job %s of %q: got %s, want %q", who, test.job, test.program, text, test.want)
				}
			}
			if want := "ship known on b, and not in this environment"; !strings.Contains(told["doctor"], want) {
				t.Errorf("doctor, with the job %s of %q: got %s, want %q", test.job, test.program, told["doctor"], want)
			}
			if got := strings.Count(told["log"], says); got > 1 {
				t.Errorf("logged %d times", got)
			}
		})
	}
}
