package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestPage(t *testing.T) {
	environment(t, "CONTAINER_APP_REPLICA_NAME=replica-<a>", "SOLOIST_JOB_BEAT_PAUSED=true")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
		s.tick()
		time.Sleep(2 * time.Hour)
		s.tick()
		got := s.get("/")
		wantAnswer(t, "page", got, 200, "<h1>demo</h1>", "replica replica-&lt;a&gt; · store *local.Memory", `content="10"`,
			"at 02:30 every day, Europe/Berlin", `<span class="bad">failed (no paper)</span>`, "2000-01-01 01:30:00Z, 30m ago",
			"in 23h", "1 failed", `<span class="s paused">paused</span>`, "120 skipped (paused)", "<small>singleton</small>")
		if strings.Contains(got.Body.String(), "note\">") {
			t.Errorf("all is well, yet there is a note:\n%s", got.Body)
		}
		for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"} {
			if got := got.Header().Get(name); got != want {
				t.Errorf("got %s %q, want %q", name, got, want)
			}
		}
	})
}

func TestOtherPathsAndMethods(t *testing.T) {
	environment(t)
	s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
	for _, path := range []string{"/x", "/index.html", "/healthz/", "/api/v1/jobs/", "/api/v1/none"} {
		wantAnswer(t, path, s.get(path), 404)
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/api/v1/jobs", "/metrics"} {
		wantAnswer(t, "POST "+path, s.send(http.MethodPost, path), 405)
	}
	s.wait()
}

func TestPageUnderLoadReadsNoMore(t *testing.T) {
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
			all.Go(func() { wantAnswer(t, "page", s.get("/"), 200, "beat") })
		}
		all.Wait()
		if n := reads.Load(); n != 3 {
			t.Errorf("got %d reads for 50 pages at once, want one for each of 3 names", n)
		}
		time.Sleep(1900 * time.Millisecond)
		s.get("/")
		if n := reads.Load(); n != 3 {
			t.Errorf("got %d reads after 1.9 s, want 3", n)
		}
		time.Sleep(200 * time.Millisecond)
		s.get("/")
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
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"storage":"no route to the storage"`)
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "no route to the storage")
		wantAnswer(t, "page", s.get("/"), 200, "The store is out of reach: no route to the storage", "every minute", "unknown")
		s.wait()
	})
}

func TestStoreThatHangs(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := open(t, host.Program{Work: work(), Store: newGated(down(), wait(hang))})
		for _, path := range []string{"/", "/readyz", "/healthz"} {
			start := time.Now()
			got := s.get(path)
			if d := time.Since(start); d > time.Second {
				t.Errorf("%s answered after %s, want a second at most", path, d)
			}
			wantAnswer(t, path, got, map[string]int{"/": 200, "/readyz": 503, "/healthz": 200}[path])
		}
		wantAnswer(t, "page", s.get("/"), 200, "The store has not answered yet.", "<h1>demo</h1>")
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
			wantAnswer(t, "page", s.get("/"), 200, "at 02:30 every day", "1 succeeded")
			time.Sleep(time.Minute)
			if store.set(wait(answer)); refusal != nil {
				store.set(refuse(refusal, "read"))
			}
			wantAnswer(t, fmt.Sprint("old page, refusal ", refusal), s.get("/"), 200, "at 02:30 every day", "1 succeeded",
				"The store does not answer: this is what it told 1m ago.")
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
		wantAnswer(t, "page", s.get("/"), 200, `class="bad">failed in 3s (no paper)`, ", on ", "1 failed, 1 skipped")
		s.wait()
	})
}

// A replica that stops is no news for a singleton.
func TestStoppedSingletonIsNoFailure(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		store := &local.Memory{}
		s := open(t, host.Program{Work: led(t, store, time.Minute), Store: store})
		got := s.get("/")
		wantAnswer(t, "page", got, 200, "abandoned")
		if strings.Contains(got.Body.String(), `class="bad"`) {
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
		wantAnswer(t, "page", s.get("/"), 200, `<span class="s broken">broken</span>`, "the record has schema 99")
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
		wantAnswer(t, "page", s.get("/"), 200, `<span class="s running">running</span> here`, "<small>replica-a</small>", "tick 2000-01-01 00:01:00Z",
			"in 30s", "2000-01-01 00:02:00Z")
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"running":["long"]`)
		ended()
	})
}
