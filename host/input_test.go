package host_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// Parameters that cannot be read are no reason to answer as if there were none.
func TestUnreadableParametersAreRefused(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	defer s.wait()
	over, cancel := context.WithCancel(t.Context())
	cancel() // else a stream goes on
	for _, path := range []string{"/api/v1/jobs", "/api/v1/jobs/beat/history", "/api/v1/locks", "/api/v1/stream"} {
		for _, query := range []string{"?q=%zz", "?limit=1;offset=2", "?%q", "?q=a&q=b"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil).WithContext(over)
			r.URL.RawQuery = strings.TrimPrefix(query, "?")
			s.ServeHTTP(w, r)
			wantAnswer(t, path+query, w, 400, `"error":`)
		}
	}
}

// What follows the JSON of a body may be what the caller meant.
func TestBodyIsOneJSONValue(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	defer s.wait()
	cookies := signedIn(t, s, adminToken)
	for body, code := range map[string]int{`{"reason":"a"}{"reason":"b"}`: 400, `{} x`: 400, `{}]`: 400, "{}\n ": 200, "": 200} {
		wantAnswer(t, body, s.ask("POST", "/api/v1/jobs/beat/pause", body, cookies), code)
	}
	for _, body := range []string{`{"token":"` + adminToken + `"} {}`, `{"token":"` + adminToken + `"}]`} {
		wantAnswer(t, "sign in", s.ask("POST", "/api/v1/session", body, nil), 400)
	}
}

// What a caller types is told to a terminal as it is, and moves no cursor.
func TestCommandsEscapeTheirArguments(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such names of files")
	}
	environment(t)
	dir := t.TempDir()
	file(t, filepath.Join(dir, "go.mod"), "module example.org/x\n")
	named := filepath.Join(dir, "a\x1b[31mb")
	p := host.Program{Work: jobs(soloist.Job{Name: "night"}), Store: &local.Memory{}}
	for i, args := range [][]string{
		{"functions", named, "--binary", stand(t)},
		{"functions", named, "--binary", named},
		{"deploy-files", "containerapp", named, "--package", "./jobs"}, // which refuses such a name
		{"status", "--\x1b[31mx"}, {"\x1b[31m"}, {"pause", "\x1b[31m"}, {"run", "\x1b[31m", "--here"}, {"pause", "night", "--until", "\x1b[31m"},
	} {
		got := run(t.Context(), p, args...)
		if (i == 0) != (got.code == 0) {
			t.Errorf("%q: got %+v", args, got)
		}
		if wantPlain(t, strings.Join(args, " "), got.out+got.err); !strings.Contains(got.out+got.err, `\x1b[31m`) {
			t.Errorf("%q: got %+v, want the name escaped", args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(named, "host.json")); err != nil {
		t.Error(err)
	}
}

// The id of an invocation is 36 characters long. Of another one the log has the beginning.
func TestLongInvocationIsCut(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	h, log := logged(t, host.Program{Work: jobs(soloist.Job{Name: "night", Schedule: "@daily", Do: fail}), Store: &local.Memory{}})
	r := httptest.NewRequest("POST", "http://localhost/night", strings.NewReader(`{"Data":{"req":{"Url":"http://x","Method":"POST"}},"Metadata":{}}`))
	r.Header.Set("X-Azure-Functions-InvocationId", strings.Repeat("i", 20_000))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if text := log.String(); strings.Contains(text, strings.Repeat("i", 200)) || !strings.Contains(text, "not run by hand") {
		t.Errorf("got %d %s, and in the log %.500s", w.Code, w.Body, text)
	}
}
