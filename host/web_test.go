package host_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
)

// site is what serve answers HTTP with, without a network.
type site struct {
	http.Handler
	tick func() // runs what is due
	wait func() // returns when no reading of records is under way, as the test does
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
	must(t, err)
	t.Cleanup(wait)
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
	wantText(t, what, got.Body.String(), parts...)
}

// The page is one document for all jobs and programs: what it shows it asks the API for.
func TestPage(t *testing.T) {
	environment(t, "SOLOIST_READ_TOKEN="+readToken)
	first := open(t, host.Program{Work: work(), Store: claimed(t, true, poisoned), Now: spring})
	second := open(t, host.Program{Work: here(), Store: down()})
	got := first.get("/")
	wantAnswer(t, "page", got, 200, "<title>Soloist</title>")
	for what, other := range map[string]*httptest.ResponseRecorder{"a job": first.get("/jobs/beat"), "no job": first.get("/jobs/none"), "another program": second.get("/")} {
		wantAnswer(t, what, other, 200)
		wantEqual(t, what+" has the same document", other.Body.String() == got.Body.String(), true)
	}
	wantWithin(t, "bytes of the page", got.Body.Len(), 1<<10, 100<<10)
	for name, want := range map[string]string{"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
		wantEqual(t, name, got.Header().Get(name), want)
	}
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
		wantText(t, "policy", policy, directive+" 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"';")
	}
	wantText(t, "policy", policy, "default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
		"require-trusted-types-for 'script'", "!unsafe")
	wantText(t, "the page", strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), "!innerHTML", "!outerHTML", "!insertAdjacentHTML",
		"!document.write", "!eval(", "!style=", "! onclick", "!http://", "!https://")
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
	wantAnswer(t, "a function, outside of Functions", s.send(http.MethodPost, "/tick"), 404)
}

func TestListUnderLoadReadsNoMore(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		backend, reads := counted()
		s := open(t, host.Program{Work: work(), Store: backend})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "beat") })
		}
		all.Wait()
		wantEqual(t, "reads for 50 requests at once, one for each of 3 names", reads.Load(), 3)
		time.Sleep(1900 * time.Millisecond)
		s.get("/api/v1/jobs")
		wantEqual(t, "reads after 1.9 s", reads.Load(), 3)
		time.Sleep(200 * time.Millisecond)
		s.get("/api/v1/jobs")
		wantEqual(t, "reads after 2.1 s", reads.Load(), 6)
	})
}

// A store that has not answered yet, or does not any more, holds up no answer. No job is shown as one without a record.
func TestStoreThatHangs(t *testing.T) {
	environment(t)
	for _, refusal := range []error{nil, errDown} { // nil: it hangs
		synctest.Test(t, func(t *testing.T) {
			hang, again := make(chan struct{}), make(chan struct{})
			store := newGated(&local.Memory{}, wait(hang))
			s := open(t, host.Program{Work: work(), Store: store})
			for path, code := range map[string]int{"/": 200, "/api/v1/jobs": 200, "/api/v1/jobs/beat": 503, "/readyz": 503, "/healthz": 200} {
				start := time.Now()
				got := s.get(path)
				wantTook(t, start, 0, time.Second)
				wantAnswer(t, path, got, code)
			}
			const told = "The store has not answered yet."
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, `"note":"`+told+`"`, `"name":"demo"`, `"jobs":[]`)
			wantAnswer(t, "job", s.get("/api/v1/jobs/beat"), 503, told)
			close(hang)
			s.tick()
			time.Sleep(time.Minute)
			s.tick()
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "at 02:30 every day", `"succeeded":1`)
			time.Sleep(time.Minute)
			if store.set(wait(again)); refusal != nil {
				store.set(refuse(refusal, "read"))
			}
			wantAnswer(t, fmt.Sprint("old list, refusal ", refusal), s.get("/api/v1/jobs"), 200, "at 02:30 every day", `"succeeded":1`,
				"The store does not answer: this is what it told 1m")
			close(again)
		})
	}
}

// What runs on this replica is shown as such, also a job that each replica runs.
func TestRunningHere(t *testing.T) {
	bubble(t, []string{replicaName + "replica-a"}, func(t *testing.T) {
		long, each := lastingJob("long", "@every 1m", 5*time.Minute), lastingJob("each", "@every 1m", 40*time.Second)
		each.EveryReplica = true
		s := open(t, host.Program{Store: &local.Memory{}, Work: append(here(), long, each)})
		ended := s.underway(30 * time.Second)
		wantAnswer(t, "list", s.get("/api/v1/jobs?q=long"), 200, `"state":"running"`, `"here":true`, `"replica":"replica-a"`,
			`"tick":"2000-01-01T00:01:00Z"`, `"attempt":1`, `"next":"2000-01-01T00:02:00Z"`)
		wantAnswer(t, "each replica's", s.get("/api/v1/jobs?q=each"), 200, `"state":"running"`, `"here":true`)
		wantAnswer(t, "the others", s.get("/api/v1/jobs"), 200, `"state":"each replica"`, `"state":"paused"`)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"long"`)
		ended()
	})
}

// hostile sets a terminal's title and colour, by two kinds of escape sequence,
// and turns the direction of what follows. Some of it cannot be seen.
const hostile = "a\x1b]0;title\x07b\u009b31mc\u202egnp.exe\u2066d\u200b\ufeffe\x7ff"

// escaped is what a terminal or browser gets instead.
const escaped = `a\x1b]0;title\ab\u009b31mc\u202egnp.exe\u2066d\u200b\ufeffe\x7ff`

// poisoned is a record whose texts are all hostile.
func poisoned(r *record.Record) {
	r.Run.Replica, r.Run.Error, r.Run.Request = hostile, hostile, hostile
	told(hostile)(r)
	r.History = []event.Outcome{{Tick: r.Run.Tick.Add(-time.Minute), Status: event.Failed, Reason: hostile, Request: hostile, Replica: hostile,
		Token: 6, Attempt: 1, Start: r.Run.Claimed.Add(-time.Minute), End: r.Run.Claimed.Add(-time.Minute)}}
	r.Counts = map[event.Status]int64{event.Failed: 1}
}

// wantPlain wants a text that moves no cursor and hides nothing.
func wantPlain(t *testing.T, what, text string) {
	t.Helper()
	for _, c := range text {
		if c != '\n' && unicode.In(c, unicode.Cc, unicode.Cf) {
			t.Errorf("%s: got %q in %q", what, c, text)
			return
		}
	}
}

// A command escapes the texts of a record; in JSON they are as they were.
func TestTextsOfRecordsAreEscaped(t *testing.T) {
	environment(t, "COLUMNS=300")
	p := host.Program{Work: work()[:1], Store: claimed(t, true, poisoned), Now: spring}
	for what, text := range map[string]string{"status": run(t.Context(), p, "status", "--json").out,
		"history": run(t.Context(), p, "history", "--json").out, "/api/v1/jobs": open(t, p).get("/api/v1/jobs").Body.String()} {
		wantPlain(t, what, text)
		var got struct {
			Jobs []struct{ Progress record.Progress }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Jobs) != 1 || got.Jobs[0].Progress.Note != hostile {
			t.Errorf("%s: got %+v, %v, want the text as it is", what, got, err)
		}
	}
	for _, args := range []string{"status", "history", "doctor", "unlock beat --yes"} {
		got := run(t.Context(), p, strings.Fields(args)...)
		wantPlain(t, args, got.out+got.err)
		wantText(t, args, got.out, escaped)
	}
}

// What a job returns reaches terminals at once too, without a record.
func TestTextsOfErrorsAreEscaped(t *testing.T) {
	broke := soloist.Job{Name: "beat", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { return errors.New(hostile) }}
	bubble(t, []string{"SOLOIST_LOG_FORMAT=text"}, func(t *testing.T) {
		p := host.Program{Work: []soloist.Work{broke}, Store: &local.Memory{}}
		call(t, p, "tick")
		time.Sleep(time.Minute)
		got := call(t, p, "tick")
		wantPlain(t, "tick", got.out+got.err)
		wantText(t, "answer", got.out, escaped)
		wantText(t, "log", got.err, escaped[1:])
	})
	// The Functions host passes the body on to the caller of an HTTP trigger as it is.
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		s := open(t, host.Program{Work: []soloist.Work{broke}, Store: &local.Memory{}})
		var answer struct {
			Outputs struct{ Res struct{ Body string } }
		}
		must(t, json.Unmarshal(s.ask("POST", "/beat", byHTTP, nil).Body.Bytes(), &answer))
		wantPlain(t, "trigger", answer.Outputs.Res.Body)
		wantText(t, "trigger", answer.Outputs.Res.Body, `\u009b31mc\u202e`)
	})
}

// A watcher is a browser that follows a stream. Its answers are read at once.
type watcher struct {
	header http.Header
	stop   func()
	ended  chan struct{}

	mu   sync.Mutex
	code int
	all  []streamed // with the beats
}

type streamed struct {
	at   time.Time
	data string
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
	w.all = append(w.all, streamed{time.Now(), string(b)})
	return len(b), nil
}

// news are the messages so far that are no beats.
func (w *watcher) news() (all []streamed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.all {
		if head, data, _ := strings.Cut(m.data, "data: "); strings.Contains(head, "event: news\n") {
			all = append(all, streamed{m.at, data})
		}
	}
	return all
}

// over reports whether the server has ended the stream.
func (w *watcher) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// close has the browser end it.
func (w *watcher) close() { w.stop(); <-w.ended }

func watch(s site, query string, cookies ...*http.Cookie) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{header: http.Header{}, stop: cancel, ended: make(chan struct{})}
	r := httptest.NewRequest("GET", "http://localhost/api/v1/stream"+query, nil).WithContext(ctx)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	go func() { defer close(w.ended); s.ServeHTTP(w, r) }()
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
		stop() // which ends the stream
		wantCode(t, <-code, 0)
		got.Body.Close()
	})
}

// A hundred pages cost the storage what one does, and none costs nothing.
func TestHundredPagesCostOne(t *testing.T) {
	environment(t)
	for _, pages := range []int{1, 100} {
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
				w.close()
			}
			synctest.Wait()
			reads := count.Load()
			// Twelve readings of three records, and one more if the first has ended before the next is asked for.
			wantWithin(t, "reads", reads, 36, 39)
			time.Sleep(time.Hour)
			wantEqual(t, "reads while nobody watched", count.Load()-reads, 0)
		})
	}
}

// What happens on this replica is shown at once, what happens on another within a second.
func TestStreamTellsRunInTime(t *testing.T) {
	bubble(t, []string{"CONTAINER_APP_REPLICA_NAME=replica-a"}, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{lastingJob("slow", "@every 1m", 20*time.Second)}}
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
				w.close()
				for text, since := range map[string]time.Time{`"state":"running"`: begin, `"status":"succeeded"`: end} {
					soon := func(m streamed) bool {
						d := m.at.Sub(since)
						return d >= 0 && d <= time.Second && strings.Contains(m.data, text)
					}
					if !slices.ContainsFunc(w.news(), soon) {
						t.Errorf("%q: got no %s within a second of %s in %d messages", query, text, since.Format(time.TimeOnly), len(w.news()))
					}
				}
			}
		}
	})
}

// times are when an answer was made.
var times = regexp.MustCompile(`"(time|readAt)":"[^"]*",|\s`)

// A message is what a GET of the same would answer, and comes only if something is new.
func TestStreamSendsWhatGetAnswers(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		s := open(t, host.Program{Work: work(), Store: &local.Memory{}})
		s.tick()
		d := described(t, s)
		for query, path := range map[string]string{"?q=report": "/api/v1/jobs?q=report", "?job=night-report": "/api/v1/jobs/night-report", "": "/api/v1/jobs"} {
			w := watch(s, query)
			time.Sleep(35 * time.Second)
			w.close()
			all := w.news()
			if len(all) != 1 || len(w.all) != 4 || w.header.Get("Content-Type") != "text/event-stream" {
				t.Fatalf("%s: got %d news of %d messages, %v, want one and three beats", query, len(all), len(w.all), w.header)
			}
			got := httptest.NewRecorder()
			got.Header().Set("Content-Type", "application/json")
			got.Body.WriteString(all[0].data)
			d.wantAsDescribed(t, "GET", path, got)
			wantEqual(t, query, times.ReplaceAllString(all[0].data, ""), times.ReplaceAllString(s.get(path).Body.String(), ""))
		}
		for _, query := range []string{"?job=none", "?job=beat&q=x", "?sort=x"} {
			got := s.get("/api/v1/stream" + query)
			wantAnswer(t, query, got, 400)
			d.wantAsDescribed(t, "GET", "/api/v1/stream", got)
		}
	})
}

// A stream ends with the session that it was opened by.
func TestStreamEndsWithSession(t *testing.T) {
	bubble(t, []string{"SOLOIST_READ_TOKEN=" + readToken}, func(t *testing.T) {
		s := open(t, host.Program{Work: work()[:1], Store: &local.Memory{}})
		cookies := signedIn(t, s, readToken)
		w := watch(s, "", cookies...)
		time.Sleep(time.Minute)
		wantEqual(t, "it has ended under its session", w.over(), false)
		wantAnswer(t, "sign out", s.ask("DELETE", "/api/v1/session", "", cookies), 204)
		time.Sleep(11 * time.Second)
		wantEqual(t, "it has ended with its session", w.over(), true)
		w.close()
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
			if w.over() {
				refused++
				wantEqual(t, "code", w.code, http.StatusServiceUnavailable)
			}
			w.close()
		}
		wantWithin(t, "refused of 200", refused, 50, 199)
		again := watch(s, "")
		time.Sleep(time.Second)
		wantEqual(t, "news after the others have gone", len(again.news()), 1)
		again.close()
	})
}

// A reader of a stream that takes no message for ten seconds is cut off, and holds up no other reader.
func TestSlowReaderIsCut(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		server, run, err := host.Server(host.Program{Name: "demo", Stdout: t.Output(), Store: &local.Memory{}, Work: work()})
		must(t, err)
		ln := newPiped()
		go server.Serve(ln)
		defer server.Close()
		read := func(c client, d time.Duration) (news int, end error) {
			c.SetReadDeadline(time.Now().Add(d))
			b, err := io.ReadAll(c.answers)
			return strings.Count(string(b), "event: news"), err
		}
		back, gone := ln.client(t), ln.client(t)
		for _, c := range []client{back, gone} {
			fmt.Fprint(c, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if n, _ := read(c, time.Second); n != 1 {
				t.Errorf("got %d first messages", n)
			}
		}
		run()
		time.Sleep(9 * time.Second)
		if n, end := read(back, time.Second); n == 0 || !errors.Is(end, os.ErrDeadlineExceeded) {
			t.Errorf("a reader that is back after 9s got %d messages, %v", n, end)
		}
		time.Sleep(6 * time.Second) // the records are read every five seconds, so a message has waited for ten
		if n, end := read(gone, time.Second); n != 0 || end != nil {
			t.Errorf("a reader that is back later got %d messages, %v, want the end of the connection", n, end)
		}
	})
}
