package host_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// site is what serve answers HTTP with, without a network.
type site struct {
	http.Handler
	tick func() // runs what is due
	wait func()
}

func open(t *testing.T, p host.Program) site {
	t.Helper()
	return openLogging(t, p, t.Output())
}

// logged is a site whose log can be read.
func logged(t *testing.T, p host.Program) (site, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	return openLogging(t, p, &log), &log
}

func openLogging(t *testing.T, p host.Program, log io.Writer) site {
	t.Helper()
	p.Name, p.Stdout, p.Stderr = "demo", log, t.Output()
	h, tick, wait, err := host.Handler(p)
	if err != nil {
		t.Fatal(err)
	}
	return site{h, tick, wait}
}

// underway returns so long after the runs of the next minute have begun. wait
// returns when they have ended.
func (s site) underway(d time.Duration) (wait func()) {
	s.tick()
	time.Sleep(time.Minute)
	var runs sync.WaitGroup
	runs.Go(s.tick)
	time.Sleep(d)
	return runs.Wait
}

func (s site) get(path string, header ...string) *httptest.ResponseRecorder {
	return s.send(http.MethodGet, path, header...)
}

func (s site) send(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	r.Header.Set("Accept", "text/html,*/*") // as a browser does
	if len(header) > 0 {
		r.Header.Set("Authorization", header[0])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// wantAnswer checks code and body.
func wantAnswer(t *testing.T, what string, got *httptest.ResponseRecorder, code int, parts ...string) {
	t.Helper()
	if got.Code != code {
		t.Errorf("%s: got code %d, want %d: %s", what, got.Code, code, got.Body)
	}
	for _, part := range parts {
		if !strings.Contains(got.Body.String(), part) {
			t.Errorf("%s: got no %q in\n%s", what, part, got.Body)
		}
	}
}

// The page is one document for all jobs and programs: what it shows it asks the API for.
func TestPage(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	first := open(t, host.Program{Work: work(), Store: claimed(t, true, poisoned), Now: spring})
	second := open(t, host.Program{Work: here(), Store: down()})
	got := first.get("/")
	wantAnswer(t, "page", got, 200, "<title>Soloist</title>")
	for what, other := range map[string]*httptest.ResponseRecorder{"a job": first.get("/jobs/beat"), "no job": first.get("/jobs/none"), "another program": second.get("/")} {
		if other.Code != 200 || other.Body.String() != got.Body.String() {
			t.Errorf("%s: got code %d and another document", what, other.Code)
		}
	}
	if size := got.Body.Len(); size > 100<<10 {
		t.Errorf("the page has %d bytes, want 100 KB at most", size)
	}
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
		if got := got.Header().Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
	first.wait()
	second.wait()
}

// The policy allows the page's own style and script, by their hashes, and no other source.
// The script makes no markup from text.
func TestPageAllowsNoOtherScript(t *testing.T) {
	environment(t)
	got := open(t, host.Program{Work: work(), Store: &local.Memory{}}).get("/")
	policy, body := got.Header().Get("Content-Security-Policy"), got.Body.String()
	for tag, directive := range map[string]string{"style": "style-src", "script": "script-src"} {
		parts := regexp.MustCompile("(?s)<"+tag+">(.*?)</"+tag+">").FindAllStringSubmatch(body, -1)
		if len(parts) != 1 {
			t.Fatalf("got %d of %s, want one", len(parts), tag)
		}
		sum := sha256.Sum256([]byte(parts[0][1]))
		if want := directive + " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"; !strings.Contains(policy, want) {
			t.Errorf("got the policy %s, want %s", policy, want)
		}
	}
	for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("got the policy %s, want %s", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("got the policy %s", policy)
	}
	for _, sink := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style=", " onclick", "http://", "https://"} {
		if strings.Contains(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), sink) {
			t.Errorf("the page has %s", sink)
		}
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	for _, path := range []string{"/x", "/index.html", "/healthz/", "/api/v1/jobs/", "/api/v1/none"} {
		wantAnswer(t, path, s.get(path), 404)
	}
	for _, path := range []string{"/", "/jobs/beat", "/healthz", "/readyz", "/api/v1/jobs", "/api/v1/stream", "/metrics"} {
		wantAnswer(t, "POST "+path, s.send(http.MethodPost, path), 405)
	}
	s.wait()
}

func TestListUnderLoadReadsNoMore(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int32
		store := newGated(&local.Memory{}, func(op, _ string) error {
			if op == "read" {
				reads.Add(1)
			}
			return nil
		})
		s := open(t, host.Program{Work: work(), Store: store})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "beat") })
		}
		all.Wait()
		if n := reads.Load(); n != 3 {
			t.Errorf("got %d reads for 50 requests at once, want one for each of 3 names", n)
		}
		time.Sleep(1900 * time.Millisecond)
		s.get("/api/v1/jobs")
		if n := reads.Load(); n != 3 {
			t.Errorf("got %d reads after 1.9 s, want 3", n)
		}
		time.Sleep(200 * time.Millisecond)
		s.get("/api/v1/jobs")
		if n := reads.Load(); n != 6 {
			t.Errorf("got %d reads after 2.1 s, want 6", n)
		}
	})
}

func TestStorageDown(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:2], Store: down()})
		wantAnswer(t, "readyz before", s.get("/readyz"), 503, "it has not answered yet")
		wantAnswer(t, "healthz before", s.get("/healthz"), 200, `"status":"ok"`)
		s.tick()
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `so nothing starts: no route to the storage"`)
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "no route to the storage")
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `so nothing starts: no route to the storage"`, "every minute", `"state":"unknown"`)
		s.wait()
	})
}

func TestStoreThatHangs(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := open(t, host.Program{Work: work(), Store: newGated(down(), wait(hang))})
		for _, path := range []string{"/", "/api/v1/jobs", "/readyz", "/healthz"} {
			start := time.Now()
			got := s.get(path)
			if d := time.Since(start); d > time.Second {
				t.Errorf("%s answered after %s, want a second at most", path, d)
			}
			wantAnswer(t, path, got, map[string]int{"/": 200, "/api/v1/jobs": 200, "/readyz": 503, "/healthz": 200}[path])
		}
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "The store has not answered yet.", `"name":"demo"`)
		close(hang)
		s.wait()
	})
}

func TestOldNews(t *testing.T) {
	environment(t)
	for _, refusal := range []error{nil, errDown} { // nil: it hangs
		synctest.Test(t, func(t *testing.T) {
			answer := make(chan struct{})
			store := newGated(&local.Memory{}, nil)
			s := open(t, host.Program{Work: work(), Store: store})
			s.tick()
			time.Sleep(time.Minute)
			s.tick()
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "at 02:30 every day", `"succeeded":1`)
			time.Sleep(time.Minute)
			if store.set(wait(answer)); refusal != nil {
				store.set(refuse(refusal, "read"))
			}
			wantAnswer(t, fmt.Sprint("old list, refusal ", refusal), s.get("/api/v1/jobs"), 200, "at 02:30 every day", `"succeeded":1`,
				"The store does not answer: this is what it told 1m")
			close(answer)
			s.wait()
		})
	}
}

// What a job came to the last time it ran is not hidden by a tick that was
// skipped under it.
func TestFailureUnderOverlapIsShown(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		slow := soloist.Job{Name: "slow", Schedule: "@every 2s", Do: func(ctx context.Context, run *soloist.Run) error {
			time.Sleep(3 * time.Second)
			return fail(ctx, run)
		}}
		s := open(t, host.Program{Work: []soloist.Work{slow}, Store: store})
		s.tick()
		time.Sleep(2 * time.Second)
		s.tick()
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"last":{"tick":"2000-01-01T00:00:02Z","status":"failed"`, `"trouble":true`, `"status":"skipped"`)
		s.wait()
	})
}

// A replica that stops is no news for a singleton.
func TestStoppedSingletonIsNoFailure(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		s := open(t, host.Program{Work: led(t, store, time.Minute), Store: store})
		got := s.get("/api/v1/jobs")
		wantAnswer(t, "list", got, 200, "abandoned", `"trouble":0`)
		if strings.Contains(got.Body.String(), `"trouble":true`) {
			t.Errorf("got\n%s\nwant nothing bad", got.Body)
		}
	})
}

func TestBrokenRecord(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		put(t, store, "demo/beat", `{"schema":99}`, false)
		s := open(t, host.Program{Work: work(), Store: store})
		s.tick()
		got := s.get("/healthz")
		wantAnswer(t, "healthz", got, 200)
		var h struct {
			Status string
			Broken map[string]string
		}
		if err := json.Unmarshal(got.Body.Bytes(), &h); err != nil || h.Status != "degraded" || !strings.Contains(h.Broken["beat"], "schema 99") {
			t.Errorf("healthz: got %+v, %v", h, err)
		}
		wantAnswer(t, "readyz", s.get("/readyz"), 200)
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"state":"broken"`, "the record has schema 99", `"trouble":true`)
	})
}

func TestRunningHere(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-a")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			soloist.Job{Name: "long", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
				time.Sleep(5 * time.Minute)
				return nil
			}},
		}})
		ended := s.underway(30 * time.Second)
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"state":"running"`, `"here":true`, `"replica":"replica-a"`, `"tick":"2000-01-01T00:01:00Z"`,
			`"attempt":1`, `"next":"2000-01-01T00:02:00Z"`)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"running":["long"]`)
		ended()
	})
}
