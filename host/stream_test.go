package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
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

// A watcher is a browser that follows a stream. Its answers are read at once.
type watcher struct {
	header http.Header
	stop   func()
	ended  chan struct{}

	mu   sync.Mutex
	code int
	all  []streamed
}

type streamed struct {
	at          time.Time
	event, data string
}

func (w *watcher) Header() http.Header { return w.header }

func (w *watcher) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.code = code
}

func (w *watcher) Flush() {}

func (w *watcher) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := streamed{at: time.Now()}
	for line := range strings.Lines(string(b)) {
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			m.event = strings.TrimSpace(event)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			m.data = data
		}
	}
	w.all = append(w.all, m)
	return len(b), nil
}

// news are the messages so far that are no beats.
func (w *watcher) news() (all []streamed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.all {
		if m.event == "news" {
			all = append(all, m)
		}
	}
	return all
}

func watch(s site, query string, cookies ...*http.Cookie) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{header: http.Header{}, stop: cancel, ended: make(chan struct{})}
	r := httptest.NewRequest("GET", "http://localhost/api/v1/stream"+query, nil).WithContext(ctx)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	go func() {
		defer close(w.ended)
		s.ServeHTTP(w, r)
	}()
	return w
}

// counted is a store that counts its reads.
func counted() (*gated, *atomic.Int64) {
	var reads atomic.Int64
	return newGated(&local.Memory{}, func(op, _ string) error {
		if op == "read" {
			reads.Add(1)
		}
		return nil
	}), &reads
}

// A stream begins with what is known, which says how old it is, and does not wait for the store. A replica reads the records
// when it starts, so that the first page waits for nothing either.
func TestStreamBeginsAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend := newGated(&local.Memory{}, nil)
		ln := newPiped()
		stop, code := serveOn(t, host.Program{Work: work(), Store: backend}, ln)
		time.Sleep(time.Minute)
		answer, begin := make(chan struct{}), time.Now()
		backend.set(wait(answer))
		got, err := ln.web().Get("http://localhost/api/v1/stream")
		must(t, err)
		lines := bufio.NewScanner(got.Body)
		lines.Buffer(nil, 1<<20)
		next := func() (data string) {
			for ok := false; !ok && lines.Scan(); {
				data, ok = strings.CutPrefix(lines.Text(), "data: ")
			}
			return data
		}
		if data := next(); time.Since(begin) != 0 || !strings.Contains(data, `"note":"This is what the store told 59s ago. It is being read again."`) {
			t.Errorf("after %s: got %s, want what was read at the start", time.Since(begin), data)
		}
		backend.set(nil)
		close(answer)
		if data := next(); time.Since(begin) != 0 || strings.Contains(data, `"note"`) {
			t.Errorf("after %s: got %s, want the next reading as soon as it is there", time.Since(begin), data)
		}
		got.Body.Close()
		stop()
		wantCode(t, <-code, 0)
	})
}

// A hundred pages cost the storage what one does, and none costs nothing.
func TestHundredPagesCostOne(t *testing.T) {
	environment(t)
	cost := func(pages int) (reads int64) {
		synctest.Test(t, func(t *testing.T) {
			store, count := counted()
			s := open(t, host.Program{Work: work(), Store: store})
			var all []*watcher
			for range pages {
				all = append(all, watch(s, ""))
			}
			time.Sleep(59 * time.Second) // and not at the instant of a reading
			for _, w := range all {
				if len(w.news()) == 0 {
					t.Error("a page has no news")
				}
				w.stop()
				<-w.ended
			}
			synctest.Wait()
			reads = count.Load()
			time.Sleep(time.Hour)
			wantEqual(t, "reads while nobody watched", count.Load()-reads, 0)
		})
		return reads
	}
	if one, hundred := cost(1), cost(100); one == 0 || hundred != one {
		t.Errorf("one page costs %d reads a minute, a hundred %d", one, hundred)
	}
}

// What happens on this replica is shown at once, what happens on another within a second.
func TestStreamTellsRunInTime(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		store := &local.Memory{}
		p := host.Program{Store: store, Work: []soloist.Work{lastingJob("slow", "@every 1m", 20*time.Second)}}
		here := open(t, p)
		t.Setenv("CONTAINER_APP_REPLICA_NAME", "replica-b")
		there := open(t, p)
		here.tick()
		for _, viewer := range []site{here, there} {
			for _, query := range []string{"", "?job=slow"} {
				w := watch(viewer, query)
				time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
				begin := time.Now()
				here.tick()
				end := time.Now()
				time.Sleep(2 * time.Second)
				w.stop()
				<-w.ended
				wantSoon(t, query, w, begin, `"state":"running"`)
				wantSoon(t, query, w, end, `"status":"succeeded"`)
			}
		}
	})
}

// wantSoon wants a message with this text within a second.
func wantSoon(t *testing.T, query string, w *watcher, since time.Time, text string) {
	t.Helper()
	for _, m := range w.news() {
		if d := m.at.Sub(since); d >= 0 && d <= time.Second && strings.Contains(m.data, text) {
			return
		}
	}
	t.Errorf("%q: got no %s within a second of %s in %d messages", query, text, since.Format(time.TimeOnly), len(w.news()))
}

// A message is what a GET of the same would answer, and comes only if something is new.
func TestStreamSendsWhatGetAnswers(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
		s.tick()
		d := described(t, s)
		for query, path := range map[string]string{"?q=report": "/api/v1/jobs?q=report", "?job=night-report": "/api/v1/jobs/night-report", "": "/api/v1/jobs"} {
			w := watch(s, query)
			time.Sleep(35 * time.Second)
			w.stop()
			<-w.ended
			all := w.news()
			if len(all) != 1 || len(w.all) != 4 || w.header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%s: got %d news of %d messages, %v, want one and three beats", query, len(all), len(w.all), w.header)
			}
			got := httptest.NewRecorder()
			got.Header().Set("Content-Type", "application/json")
			got.Body.WriteString(all[0].data)
			d.wantAsDescribed(t, "GET", path, got)
			if now := s.get(path).Body.String(); timeless(t, now) != timeless(t, all[0].data) {
				t.Errorf("%s: got %s\nwant %s", query, all[0].data, now)
			}
		}
		for query, code := range map[string]int{"?job=none": 400, "?job=beat&q=x": 400, "?sort=x": 400} {
			got := s.get("/api/v1/stream" + query)
			wantAnswer(t, query, got, code)
			d.wantAsDescribed(t, "GET", "/api/v1/stream", got)
		}
	})
}

// timeless leaves out when an answer was made.
func timeless(t *testing.T, text string) string {
	t.Helper()
	var whole map[string]any
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	info := whole["app"].(map[string]any)
	delete(info, "time")
	delete(info, "readAt")
	b, err := json.Marshal(whole)
	must(t, err)
	return string(b)
}

// A stream ends with the session that it was opened by.
func TestStreamEndsWithSession(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:1], Store: &local.Memory{}})
		cookies := signedIn(t, s, readToken)
		w := watch(s, "", cookies...)
		time.Sleep(time.Minute)
		select {
		case <-w.ended:
			t.Fatal("it has ended too early")
		default:
		}
		wantAnswer(t, "sign out", s.ask("DELETE", "/api/v1/session", "", cookies), 204)
		time.Sleep(11 * time.Second)
		select {
		case <-w.ended:
		default:
			t.Error("it goes on after the session")
			w.stop()
		}
	})
}

// Those that are too many are told so, and can ask now and then.
func TestStreamsAreLimited(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:1], Store: &local.Memory{}})
		var all []*watcher
		refused := 0
		for range 200 {
			all = append(all, watch(s, ""))
		}
		time.Sleep(time.Second)
		for _, w := range all {
			select {
			case <-w.ended:
				refused++
				wantEqual(t, "code", w.code, http.StatusServiceUnavailable)
			default:
				w.stop()
				<-w.ended
			}
		}
		if refused < 50 || refused == 200 {
			t.Errorf("%d of 200 were refused", refused)
		}
		again := watch(s, "")
		time.Sleep(time.Second)
		wantEqual(t, "news after the others have gone", len(again.news()), 1)
		again.stop()
		<-again.ended
	})
}

// A heldConn is a server's connection that notes how long the first write waited that failed.
type heldConn struct {
	net.Conn
	mu     sync.Mutex
	waited time.Duration
	closed bool
}

func (c *heldConn) Write(b []byte) (int, error) {
	begin := time.Now()
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.waited == 0 {
		c.waited = time.Since(begin)
	}
	return n, err
}

func (c *heldConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.Conn.Close()
}

// openStream connects to a server, asks for a stream, and reads it for so long.
func openStream(t *testing.T, ln piped, d time.Duration) (there *heldConn, text func() string) {
	here, server := net.Pipe()
	there = &heldConn{Conn: server}
	ln.conns <- there
	fmt.Fprint(here, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
	here.SetReadDeadline(time.Now().Add(d))
	read := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(here)
		read <- string(b)
	}()
	t.Cleanup(func() { here.Close() })
	return there, func() string { return <-read }
}

// A reader that takes no message for ten seconds is cut off, and holds up no other reader.
func TestSlowReaderIsCut(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		server, run, err := host.Server(host.Program{Name: "demo", Stdout: t.Output(), Store: &local.Memory{}, Work: work()})
		must(t, err)
		ln := newPiped()
		go server.Serve(ln)
		defer server.Close()
		slow, first := openStream(t, ln, time.Second)
		other, all := openStream(t, ln, time.Minute)
		if text := first(); strings.Count(text, "event: news") != 1 {
			t.Errorf("got %q, want the first message", text)
		}
		run()
		text := all()
		slow.mu.Lock()
		defer slow.mu.Unlock()
		if slow.waited != 10*time.Second || !slow.closed {
			t.Errorf("a message waited %s for the slow reader, closed: %t; want 10s and true", slow.waited, slow.closed)
		}
		if n := strings.Count(text, "event: news"); n < 2 || other.waited != 0 {
			t.Errorf("the other got %d messages, one failed after %s", n, other.waited)
		}
	})
}
