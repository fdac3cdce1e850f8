package alert_test

import (
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
	"github.com/soloist-go/soloist/store"
)

// A switchboard takes pings.
type switchboard struct {
	mu   sync.Mutex
	got  []string
	runs []string
	code int
	slow time.Duration
}

func (s *switchboard) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.slow > 0 {
		select {
		case <-time.After(s.slow):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	s.got = append(s.got, strings.TrimSpace(r.URL.Host+r.URL.Path+" "+string(body)))
	s.runs = append(s.runs, r.URL.Query().Get("rid"))
	return &http.Response{StatusCode: s.code, Body: http.NoBody}, nil
}

// runEvents are those of one run.
func runEvents(token int64, end store.Status, reason string) []event.Event {
	e := event.Event{Job: "report", Run: event.Run{Token: token, Tick: time.Unix(token, 0), Try: 1}}
	begun, again, ended := e, e, e
	begun.Kind, again.Kind, again.Run.Try = event.Started, event.Started, 2
	ended.Kind, ended.Outcome = event.Ended, store.Outcome{Status: end, Reason: reason}
	return []event.Event{begun, again, ended}
}

func newPings(s *switchboard) *alert.Pings {
	return alert.NewPings("demo", map[string]string{"report": "https://hc.example/uuid?create=1"}, &http.Client{Transport: s}, slog.New(slog.DiscardHandler))
}

func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{code: 200}
		p := newPings(s)
		for _, e := range slices.Concat(runEvents(7, store.Succeeded, ""), runEvents(8, store.Failed, strings.Repeat("x", 20000)+" no paper"), runEvents(9, store.Abandoned, "stopped"),
			runEvents(10, store.Cancelled, "replaced by the tick of 2026-03-01T00:01:00Z"), runEvents(11, store.Cancelled, "by anna")) {
			p.Hear(e)
			e.Job = "other"
			p.Hear(e)
		}
		p.Close(time.Second)
		fail := "hc.example/uuid/fail " + strings.Repeat("x", 9991) + " no paper"
		if want := []string{"hc.example/uuid/start", "hc.example/uuid", "hc.example/uuid/start", fail, "hc.example/uuid/start", "hc.example/uuid/start",
			"hc.example/uuid/start", "hc.example/uuid/fail cancelled: by anna"}; !slices.Equal(s.got, want) {
			t.Errorf("got %.300q, want %.300q", s.got, want)
		}
		id := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
		if r := s.runs; !id.MatchString(r[0]) || r[0] != r[1] || r[1] == r[2] || r[2] != r[3] {
			t.Errorf("got the runs %q", r)
		}
	})
}

// A receiver that hangs holds up neither a run nor the end of the program.
func TestPingsThatAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &switchboard{code: 200, slow: time.Hour}
		p := newPings(s)
		start := time.Now()
		for token := range int64(1000) {
			for _, e := range runEvents(token, store.Succeeded, "") {
				p.Hear(e)
			}
		}
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
		s := &switchboard{code: 503}
		p := newPings(s)
		p.Hear(runEvents(7, store.Succeeded, "")[0])
		p.Close(time.Minute)
		if want := strings.Fields(strings.Repeat("hc.example/uuid/start ", 3)); fmt.Sprint(s.got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", s.got, want)
		}
	})
}

// A narrow receiver takes GET alone, and successes alone.
type narrow struct {
	mu  sync.Mutex
	got []string
}

func (n *narrow) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	n.got = append(n.got, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	code := http.StatusOK
	switch {
	case r.URL.Path != "/api/push/TOKEN":
		code = http.StatusNotFound
	case r.Method != http.MethodGet:
		code = http.StatusMethodNotAllowed
	case r.URL.Query().Get("status") != "up":
		code = http.StatusBadRequest
	}
	return &http.Response{StatusCode: code, Body: http.NoBody}, nil
}

func TestPingOfNarrowReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &narrow{}
		p := alert.NewPings("demo", map[string]string{"report": "https://up.example/api/push/TOKEN?status=up&msg=OK"}, &http.Client{Transport: n}, slog.New(slog.DiscardHandler))
		for token, end := range []store.Status{store.Succeeded, store.Failed, store.Failed, store.Succeeded} {
			for _, e := range runEvents(int64(token), end, "boom") {
				p.Hear(e)
			}
		}
		p.Close(time.Minute)
		const base = " /api/push/TOKEN"
		want := []string{"POST" + base + "/start", "GET" + base + "/start", "POST" + base, "GET" + base, "GET" + base + "/fail", "GET" + base}
		if !slices.Equal(n.got, want) {
			t.Errorf("got %q, want %q", n.got, want)
		}
	})
}
