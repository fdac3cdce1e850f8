package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// flaky fails until there is a file.
func flaky(context.Context, *soloist.Run) error {
	if _, err := os.Stat(os.Getenv("TEST_FILE")); err != nil {
		return errors.New("no paper")
	}
	return nil
}

// A receiver takes messages and pings, and says what it got: "failures alert", "start".
type receiver struct {
	*httptest.Server
	got chan string

	mu    sync.Mutex
	pings map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: make(chan string, 100), pings: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if path, ok := strings.CutPrefix(q.URL.Path, "/ping"); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.pings[path] = true
			return
		}
		var m struct{ Event, Kind, Text string }
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil || !strings.HasPrefix(q.Header.Get("Soloist-Signature"), "t=") {
			t.Errorf("got %v, signature %q", err, q.Header.Get("Soloist-Signature"))
		}
		r.got <- m.Kind + " " + m.Event
	}))
	t.Cleanup(r.Close)
	return r
}

// want waits for the next message, and wants it to be this one.
func (r *receiver) want(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.got:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(90 * time.Second):
		t.Fatalf("no %q in 90 s", want)
	}
}

// Three processes tell once that a job fails, and once that it has succeeded.
func TestAlertOfThreeProcesses(t *testing.T) {
	t.Parallel()
	r, dir := newReceiver(t), t.TempDir()
	file := filepath.Join(dir, "paper")
	var all []process
	for range 3 {
		all = append(all, start(t, "flaky", "SOLOIST_STORAGE=dir:"+filepath.Join(dir, "store"), "SOLOIST_ADDR=127.0.0.1:0", "TEST_FILE="+file, "SOLOIST_GRACE=1s",
			"SOLOIST_ALERT_WEBHOOK="+r.URL+"/hook?key=secret", "SOLOIST_ALERT_SECRET="+key, "SOLOIST_JOB_FLAKY_PING="+r.URL+"/ping"))
	}
	r.want(t, "failures alert")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(t, "failures recovered")
	for _, p := range all {
		if code := p.end(t); code != 0 {
			t.Errorf("got code %d", code)
		}
	}
	if len(r.got) > 0 {
		t.Errorf("got %q more", <-r.got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range []string{"/start", "/fail", ""} {
		if !r.pings[path] {
			t.Errorf("got the pings %v, want %q too", r.pings, path)
		}
	}
}

// Without a receiver nothing is written.
func TestNoAlertsNoDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "flaky", "SOLOIST_STORAGE=dir:"+dir, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_APP=demo", "TEST_FILE="+filepath.Join(dir, "none"))
	await(t, p.log, "run ended")
	await(t, p.log, "run ended")
	if code := p.end(t); code != 0 {
		t.Errorf("got code %d", code)
	}
	if all, err := filepath.Glob(filepath.Join(dir, "demo", "*alerts*")); err != nil || len(all) > 0 {
		t.Errorf("got %q, %v", all, err)
	}
}
