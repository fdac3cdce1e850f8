package host_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// invoke is one invocation as the Functions host makes it.
func (s site) invoke(t *testing.T, name, payload string) (int, []string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7071/"+name, strings.NewReader(payload)))
	var answer struct {
		Outputs map[string]any
		Logs    []string
	}
	if w.Code == http.StatusOK || w.Code == http.StatusInternalServerError {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Outputs == nil || answer.Logs == nil {
			t.Errorf("got %s, %v: the host would wait for an answer that it understands", w.Body, err)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("got the type %q", got)
		}
	}
	return w.Code, answer.Logs
}

func TestTickFunction(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		slow := func(ctx context.Context, _ *soloist.Run) error { time.Sleep(5 * time.Second); return nil }
		program := func() site {
			return open(t, host.Program{Store: store, Work: []soloist.Work{
				soloist.Job{Name: "slow", Schedule: "@every 1m", Do: slow},
				soloist.Job{Name: "broke", Schedule: "@every 1m", Do: fail},
			}})
		}
		a, b := program(), program()
		if code, logs := a.invoke(t, "tick", `{"Data":{},"Metadata":{}}`); code != 200 || len(logs) != 0 {
			t.Errorf("new jobs: %d, %q", code, logs)
		}
		time.Sleep(61 * time.Second)
		first := make(chan []string)
		go func() { _, logs := a.invoke(t, "tick", `{}`); first <- logs }()
		time.Sleep(time.Second)
		_, logs := b.invoke(t, "slow", `{"Data":{"timer":{"IsPastDue":false}}}`)
		if len(logs) != 1 || !strings.HasPrefix(logs[0], "job slow: ") || !strings.HasSuffix(logs[0], " runs it") {
			t.Errorf("beside a run: %q", logs)
		}
		want := []string{"job slow: tick 2000-01-01T00:01:00Z succeeded", `job broke: tick 2000-01-01T00:01:00Z failed: no paper`}
		if logs := <-first; !slices.Equal(logs, want) {
			t.Errorf("got %q, want %q", logs, want)
		}
		if code, logs := b.invoke(t, "tick", ""); code != 200 || len(logs) != 0 {
			t.Errorf("nothing left: %d, %q", code, logs)
		}
		if code, _ := b.invoke(t, "tick", strings.Repeat("x", 10<<20)); code != http.StatusRequestEntityTooLarge {
			t.Errorf("10 MB: got code %d", code)
		}
		if code, _ := b.invoke(t, "tock", "{}"); code != http.StatusNotFound {
			t.Errorf("no such function: got code %d", code)
		}
		a.wait()
		b.wait()
	})
}

// A page that has made a name of its own lead to this machine is no host: the
// browser takes that for its own site.
func TestFunctionsAskForThisMachine(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	s := open(t, host.Program{Store: &local.Memory{}, Work: work()})
	for name, want := range map[string]int{"127.0.0.1:7071": 200, "localhost:7071": 200, "localhost": 200, "[::1]:7071": 200,
		"evil.example:7071": 403, "evil.example": 403, "127.0.0.1.evil.example:7071": 403, "10.0.0.1:7071": 403} {
		r := httptest.NewRequest(http.MethodPost, "/tick", strings.NewReader("{}"))
		r.Host = name
		r.Header.Set("Origin", "http://"+name)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: got code %d, want %d", name, w.Code, want)
		}
	}
	s.wait()
}

func TestNoTickFunctionElsewhere(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Store: &local.Memory{}, Work: work()})
	if code, _ := s.invoke(t, "tick", "{}"); code != http.StatusMethodNotAllowed && code != http.StatusNotFound {
		t.Errorf("got code %d", code)
	}
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A stop gives the runs of an invocation their grace, then ends their contexts,
// and the host has its answer.
func TestStopDuringInvocation(t *testing.T) {
	inRealTime(t)
	t.Run("within the grace", func(t *testing.T) {
		release := make(chan struct{})
		stopDuringInvocation(t, "30s", "succeeded", func(ctx context.Context) error {
			<-release
			return ctx.Err()
		}, func() { close(release) })
	})
	t.Run("without a grace", func(t *testing.T) {
		stopDuringInvocation(t, "0s", "abandoned: stopped", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, func() {})
	})
}

func stopDuringInvocation(t *testing.T, grace, want string, run func(context.Context) error, stopping func()) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT="+freePort(t), "SOLOIST_GRACE="+grace)
	started := make(chan struct{})
	log, stop, code := serving(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{
		soloist.Job{Name: "long", Schedule: "@every 1s", Do: func(ctx context.Context, _ *soloist.Run) error {
			close(started)
			return run(ctx)
		}},
	}})
	answers := make(chan string, 1)
	go invokeUntilRun(await(t, log, "listening").URL+"tick", answers)
	<-started
	stop()
	await(t, log, "stopping")
	stopping()
	if got := <-answers; !strings.Contains(got, want) {
		t.Errorf("got the answer %s, want %q", got, want)
	}
	wantCode(t, <-code, 0)
}

// invokeUntilRun is the timer of a host in a hurry. It passes the first answer
// that tells of a run.
func invokeUntilRun(url string, answers chan<- string) {
	for {
		resp, err := http.Post(url, "application/json", strings.NewReader("{}"))
		if err != nil {
			answers <- err.Error()
			return
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(body), "job long") {
			answers <- string(body)
			return
		}
	}
}
