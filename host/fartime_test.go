package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

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
	s.wait()
}

// wantJobs wants an answer about all jobs, with the fault of the one.
func wantJobs(t *testing.T, what string, text []byte) {
	t.Helper()
	if !json.Valid(text) || !strings.Contains(string(text), "night-report") || !strings.Contains(string(text), "years 1 to 9999") {
		t.Errorf("%s: got %q, want all jobs and what is wrong with one", what, text)
	}
}
