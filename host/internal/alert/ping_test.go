package alert_test

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
)

// A switchboard takes pings.
type switchboard struct {
	url    string                    // empty: https://hc.example/uuid?create=1
	answer func(r *http.Request) int // may wait

	mu   sync.Mutex
	got  []string
	runs []string
}

func (s *switchboard) RoundTrip(r *http.Request) (*http.Response, error) {
	code := s.answer(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.got = append(s.got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	s.runs = append(s.runs, r.URL.Query().Get("rid"))
	return answered(code), r.Context().Err()
}

// hear passes events to pings of the job report.
func (s *switchboard) hear(events ...event.Event) *alert.Pings {
	url := cmp.Or(s.url, "https://hc.example/uuid?create=1")
	p := alert.NewPings("demo", map[string]string{"report": url}, &http.Client{Transport: s}, slog.New(slog.DiscardHandler))
	for _, e := range events {
		p.Hear(e)
	}
	return p
}

func (s *switchboard) want(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(s.got, want) {
		t.Errorf("got %.300q, want %.300q", s.got, want)
	}
}

// runEvents are those of one run.
func runEvents(token int64, end event.Status, reason string) []event.Event {
	e := event.Event{Job: "report", Run: event.Run{Token: token, Tick: time.Unix(token, 0), Try: 1}}
	begun, again, ended := e, e, e
	begun.Kind, again.Kind, again.Run.Try = event.Started, event.Started, 2
	ended.Kind, ended.Outcome = event.Ended, event.Outcome{Status: end, Reason: reason}
	return []event.Event{begun, again, ended}
}

func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{answer: func(*http.Request) int { return http.StatusOK }}
		events := slices.Concat(runEvents(7, event.Succeeded, ""), runEvents(8, event.Failed, strings.Repeat("x", 20000)+" no paper"), runEvents(9, event.Abandoned, "stopped"),
			runEvents(10, event.Cancelled, "replaced by the tick of 2026-03-01T00:01:00Z"), runEvents(11, event.Cancelled, "by anna"))
		p := s.hear(events...)
		for _, e := range events {
			e.Job = "other"
			p.Hear(e)
		}
		p.Close(time.Second)
		s.want(t, "POST /uuid/start", "POST /uuid", "POST /uuid/start", "POST /uuid/fail "+strings.Repeat("x", 9991)+" no paper",
			"POST /uuid/start", "POST /uuid/start", "POST /uuid/start", "POST /uuid/fail cancelled: by anna")
		id := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		if r := s.runs; !id.MatchString(r[0]) || r[0] != r[1] || r[1] == r[2] || r[2] != r[3] {
			t.Errorf("got the runs %q", r)
		}
	})
}

// A receiver that hangs holds up neither a run nor the end of the program.
func TestPingsThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{answer: func(r *http.Request) int { <-r.Context().Done(); return 0 }}
		start := time.Now()
		var events []event.Event
		for token := range int64(1000) {
			events = append(events, runEvents(token, event.Succeeded, "")...)
		}
		p := s.hear(events...)
		if took := time.Since(start); took != 0 {
			t.Errorf("the events took %s", took)
		}
		p.Close(2 * time.Second)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the end came after %s", took)
		}
	})
}

func TestPingIsTriedThreeTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{answer: func(*http.Request) int { return http.StatusServiceUnavailable }}
		s.hear(runEvents(7, event.Succeeded, "")[0]).Close(time.Minute)
		s.want(t, slices.Repeat([]string{"POST /uuid/start"}, 3)...)
	})
}

// Some receivers take GET alone, and successes alone.
func TestPingOfNarrowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{url: "https://up.example/push?status=up&msg=OK", answer: func(r *http.Request) int {
			switch {
			case r.URL.Path != "/push":
				return http.StatusNotFound
			case r.Method != http.MethodGet:
				return http.StatusMethodNotAllowed
			case r.URL.Query().Get("status") != "up":
				return http.StatusBadRequest
			}
			return http.StatusOK
		}}
		var events []event.Event
		for token, end := range []event.Status{event.Succeeded, event.Failed, event.Failed, event.Succeeded} {
			events = append(events, runEvents(int64(token), end, "boom")...)
		}
		s.hear(events...).Close(time.Minute)
		s.want(t, "POST /push/start", "GET /push/start", "POST /push", "GET /push", "GET /push/fail", "GET /push")
	})
}

// roundTripper answers requests without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A receiver that does not answer, or refuses, is logged without the URL, which may be secret. A redirect could lead messages
// elsewhere.
func TestLogHasNoURL(t *testing.T) {
	for said, answer := range map[string]roundTripper{
		"connection refused": func(*http.Request) (*http.Response, error) { return nil, fmt.Errorf("connection refused") },
		"deadline exceeded":  func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
		"which is not followed": func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "elsewhere.example" {
				t.Error("a redirect is followed")
			}
			return answered(307), nil
		},
		"500": func(*http.Request) (*http.Response, error) { return answered(500), nil },
	} {
		t.Run(said, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				w.way = answer
				w.add("r0")
				w.end("report", event.Failed)
				time.Sleep(2 * time.Minute)
				if log := w.logs(); !strings.Contains(log, "has not taken a message") || !strings.Contains(log, said) || strings.Contains(log, "secret") || strings.Contains(log, "hooks") {
					t.Errorf("got the log %s", log)
				}
			})
		})
	}
}

func answered(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Location": {"https://elsewhere.example/"}}, Body: http.NoBody}
}
