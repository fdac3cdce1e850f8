package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// A first run begins at page 1, a later one where the position is, until a page is not there yet.
func TestIngest(t *testing.T) {
	fails := func(status ingestStatus) func() error { return func() error { return status } }
	for _, test := range []struct {
		world  *ingestWorld
		events []string
		last   string // that the sink got
		log    string
	}{
		{&ingestWorld{pages: 2}, []string{"load ",
			"GET /source/pages/1?key=sesame token 42", "beat page 1", "PUT /sink/pages/1? token 42", `save {"next":2}`,
			"GET /source/pages/2?key=sesame token 42", "beat page 2", "PUT /sink/pages/2? token 42", `save {"next":3}`,
			"GET /source/pages/3?key=sesame token 42"}, "text/x-page page 2", "msg=ingested pages=2 next=3"},
		{&ingestWorld{saved: `{"next":7}`, pages: 7}, []string{`load {"next":7}`,
			"GET /source/pages/7?key=sesame token 42", "beat page 7", "PUT /sink/pages/7? token 42", `save {"next":8}`,
			"GET /source/pages/8?key=sesame token 42"}, "text/x-page page 7", "msg=ingested pages=1 next=8"},
		{&ingestWorld{get: fails(204)}, []string{"load ", "GET /source/pages/1?key=sesame token 42"}, "", "msg=ingested pages=0 next=1"},
		{&ingestWorld{get: fails(404)}, []string{"load ", "GET /source/pages/1?key=sesame token 42"}, "", "msg=ingested pages=0 next=1"},
	} {
		w := test.world
		log, err := w.ingest(t, t.Context())
		must(t, err)
		if !slices.Equal(w.events, test.events) {
			t.Errorf("got\n  %s\nwant\n  %s", strings.Join(w.events, "\n  "), strings.Join(test.events, "\n  "))
		}
		if got := w.bodies[fmt.Sprint(w.pages)]; got != test.last || !strings.Contains(log, test.log) {
			t.Errorf("the sink got %q, want %q; the log has %q, want %q", got, test.last, log, test.log)
		}
	}
}

// Whatever goes wrong, the position is that of a page which the sink has.
func TestIngestStopsAt(t *testing.T) {
	lost := fmt.Errorf("%w: no renewal in time", store.ErrLost)
	full := errors.New("the disk is full")
	fails := func(err error) func() error { return func() error { return err } }
	permanent := soloist.Permanent
	again := func(err error) error { return soloist.RetryAfter(err, 11*time.Second) } // as the answer says
	var tests []ingestStop
	for status, as := range map[int]func(error) error{400: permanent, 401: permanent, 302: permanent, 408: again, 429: again, 503: again} {
		says := fmt.Sprintf("/pages/5: status %d", status)
		tests = append(tests, ingestStop{&ingestWorld{get: fails(ingestStatus(status))}, "/source" + says, false, nil, as},
			ingestStop{&ingestWorld{put: fails(ingestStatus(status))}, "/sink" + says, true, nil, as})
	}
	tests = append(tests,
		ingestStop{&ingestWorld{get: fails(ingestStatus(206))}, "/source/pages/5: status 206", false, nil, permanent},
		ingestStop{&ingestWorld{put: fails(ingestStatus(202))}, "/sink/pages/5: status 202", true, nil, permanent},
		ingestStop{&ingestWorld{loading: fails(full)}, "load the position: ", false, full, nil},
		ingestStop{&ingestWorld{beat: fails(lost)}, "", false, store.ErrLost, nil},
		ingestStop{&ingestWorld{put: fails(ingestStatus(409))}, "seen a larger token than 42", true, nil, permanent},
		ingestStop{&ingestWorld{put: fails(ingestStatus(412))}, "seen a larger token than 42", true, nil, permanent},
		ingestStop{&ingestWorld{saving: fails(full)}, "save the position: ", true, full, nil})
	for _, test := range tests {
		w := test.world
		w.saved, w.pages = `{"next":5}`, 6
		_, err := w.ingest(t, t.Context())
		if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("got %v, want %q, %v", err, test.want, test.is)
		}
		if test.as != nil && !reflect.DeepEqual(err, test.as(errors.Unwrap(err))) {
			t.Errorf("got %#v: is it tried again, and when?", err)
		}
		if asked := strings.Contains(strings.Join(w.events, "\n"), "PUT"); asked != test.put || w.saved != `{"next":5}` {
			t.Errorf("%v: the sink was asked: %t, want %t; saved %s", err, asked, test.put, w.saved)
		}
	}
}

// An ingestStop is why a run stops.
type ingestStop struct {
	world *ingestWorld
	want  string            // in the error
	put   bool              // the sink was asked
	is    error             // nil: it does not matter
	as    func(error) error // whether it is tried again; nil: as the scheduler thinks
}

func TestIngestStopsWithItsContext(t *testing.T) {
	// At the save the page is in the sink.
	for when, saved := range map[string]string{"get": `{"next":5}`, "put": `{"next":5}`, "save": `{"next":6}`} {
		t.Run(when, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w := &ingestWorld{saved: `{"next":5}`, pages: 10}
			stops := func(at string, waits bool) func() error {
				return func() error {
					if when != at {
						return nil
					}
					if cancel(soloist.ErrStopped); waits {
						<-w.over // the answer would be fine, but comes too late
					}
					return nil
				}
			}
			w.get, w.put, w.saving = stops("get", true), stops("put", true), stops("save", false)
			if _, err := w.ingest(t, ctx); !errors.Is(err, soloist.ErrStopped) || w.saved != saved {
				t.Errorf("got %v and position %s, want %v and %s", err, w.saved, soloist.ErrStopped, saved)
			}
		})
	}
}

// A job without its first setting is skipped. All that is wrong is told at once, and neither a value nor what it means to an address.
func TestEnvironment(t *testing.T) {
	const good, scheme = "http://a", ": want a URL that begins with http:// or https://"
	quiet, permanent := slog.New(slog.DiscardHandler), reflect.TypeOf(soloist.Permanent(errors.ErrUnsupported))
	for _, test := range []struct{ source, sink, want string }{
		{"", good, "skipped: INGEST_SOURCE is not set"},
		{good, "", "INGEST_SINK is not set" + scheme},
		{"ftp://ada:hunter2@a", "a/b?key=sesame", "INGEST_SOURCE" + scheme + "\nINGEST_SINK" + scheme},
		{"http://ada:hunter/2@b", good, "INGEST_SOURCE: not a valid URL"},
		{good, "http:///?key=sesame", "INGEST_SINK: the URL has no host"},
	} {
		env := environment("INGEST_SOURCE", test.source, "INGEST_SINK", test.sink)
		err := runIngest(t.Context(), env, unasked(t), &ingestWorld{}, 42, quiet)
		if fmt.Sprint(err) != test.want || (reflect.TypeOf(err) == permanent) != (test.source != "") { // which is not tried again
			t.Errorf("%q: got %v, want %s", test, err, test.want)
		}
	}
	for list, want := range map[string]string{
		"": "skipped: PROBE_URLS is not set",
		"http://a ftp://b": "PROBE_URLS, entry 2" + scheme + "\n" +
			"PROBE_TIMEOUT is \"soon\": want a duration above 0 and at most 30s, such as 10s",
	} {
		if err := runProbe(t.Context(), environment("PROBE_URLS", list, "PROBE_TIMEOUT", "soon"), unasked(t), quiet); fmt.Sprint(err) != want {
			t.Errorf("%q: got %v, want %s", list, err, want)
		}
	}
	for dir, want := range map[string]string{
		"":  "skipped: PRUNE_DIR is not set",
		"x": "PRUNE_KEEP is \"nonsense\": want a duration above 0, such as 720h, 30d or 1d12h\nPRUNE_DRY_RUN is \"no\": want true or false",
	} {
		env := environment("PRUNE_DIR", dir, "PRUNE_KEEP", "nonsense", "PRUNE_DRY_RUN", "no")
		if err := runPrune(t.Context(), env, pruneNow, quiet); fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A page reaches the sink as a whole, or not at all. It is whole where its length,
// a chunk that says that it is the last, or the end of a compressed text tells so.
func TestIngestBodies(t *testing.T) {
	sends := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
	}
	const unknown = "the answer has neither a Content-Length nor chunks, so half a page looks like a whole one: let the source send one of them"
	for name, test := range map[string]struct {
		page http.HandlerFunc
		put  string // the encoding, length and begin of what the sink got; empty: nothing
		want string // of the error; empty: none
	}{
		"empty": {sends(""), ` 0 ""`, ""},
		// The source may have died.
		"breaks off":        {raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred bytes"), "", "unexpected EOF"},
		"old, no length":    {raw(t, "HTTP/1.0 200 OK\r\n\r\nfirst half, "), "", unknown},
		"no length":         {raw(t, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfirst half, "), "", unknown},
		"as long as it may": {sends(strings.Repeat("x", ingestBody)), fmt.Sprintf(` %d "xxxxx"`, ingestBody), ""},
		"too long":          {sends(strings.Repeat("x", ingestBody+1)), "", "more than 8388608 bytes"},
		"in chunks": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "in ")
			w.(http.Flusher).Flush()
			io.WriteString(w, "chunks")
		}, ` 9 "in ch"`, ""},
		"compressed": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Connection", "close")
			z := gzip.NewWriter(w)
			io.WriteString(z, "plain")
			z.Close()
		}, ` 5 "plain"`, ""},
		// The client does not decompress this: without its Content-Encoding, the
		// sink takes compressed bytes for the page.
		"compressed otherwise": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Encoding"] = []string{"br", "zstd"}
			io.WriteString(w, "bytes")
		}, `br, zstd 5 "bytes"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			put := ""
			mux := http.NewServeMux()
			mux.Handle("GET /pages/1", test.page)
			mux.HandleFunc("PUT /pages/1", func(_ http.ResponseWriter, req *http.Request) {
				b, _ := io.ReadAll(req.Body)
				put += fmt.Sprintf("%s %d %.5q", req.Header.Get("Content-Encoding"), req.ContentLength, b)
			})
			server := httptest.NewServer(mux)
			defer server.Close()
			got, want := fmt.Sprint(ingestBetween(t, server.URL, server.URL)), "<nil>"
			if test.want != "" {
				want = "GET " + server.URL + "/pages/1: " + test.want
			}
			if got != want || put != test.put {
				t.Errorf("got %s, and the sink %q, want %s and %q", got, put, want, test.put)
			}
		})
	}
}

// What an error wraps is not told unless it is known to be harmless.
func TestIngestErrorsKeepSecrets(t *testing.T) {
	for _, text := range []string{`malformed HTTP response "ada:hunter2"`, `invalid proxy address "http://ada:hunter2@proxy"`} {
		err := runIngestWith(t.Context(), &ingestWorld{}, func(*http.Request) (*http.Response, error) { return nil, errors.New(text) })
		if want := "GET http://source/v1/pages/1: no valid answer"; fmt.Sprint(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	err := ingestBetween(t, strings.Replace(gone.URL, "//", "//ada:hunter2@", 1), "http://a")
	if want := "GET " + gone.URL + "/pages/1: dial tcp "; !strings.HasPrefix(fmt.Sprint(err), want) {
		t.Errorf("got %v, want %s...", err, want)
	}
	wantNoSecret(t, fmt.Sprint(err), "key=")
}

// An ingestWorld is a run, its source and its sink. It tells what happened to
// them, in order.
type ingestWorld struct {
	saved string // the checkpoint
	pages int    // how many the source has

	loading, get, put, beat, saving func() error // what else happens then; an error is the answer

	over chan struct{} // closed when the job has returned

	mu     sync.Mutex
	events []string
	bodies map[string]string // what the sink got
}

func (w *ingestWorld) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

func (w *ingestWorld) Load(_ context.Context, v any) error {
	w.tell("load %s", w.saved)
	if w.loading != nil {
		return w.loading()
	}
	if w.saved == "" {
		return nil
	}
	return json.Unmarshal([]byte(w.saved), v)
}

func (w *ingestWorld) Save(ctx context.Context, v any) error {
	if w.saving != nil {
		if err := w.saving(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b, err := json.Marshal(v)
	w.saved = string(b)
	w.tell("save %s", b)
	return err
}

func (w *ingestWorld) Heartbeat(note string) error {
	w.tell("beat %s", note)
	if w.beat != nil {
		return w.beat()
	}
	return nil
}

// status is what a hook answers instead of the usual.
type ingestStatus int

func (s ingestStatus) Error() string { return http.StatusText(int(s)) }

func (w *ingestWorld) handler() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, hook *func() error, usual http.HandlerFunc) {
		mux.HandleFunc(pattern, func(rw http.ResponseWriter, req *http.Request) {
			w.tell("%s %s?%s token %s", req.Method, req.URL.Path, req.URL.RawQuery, req.Header.Get("Soloist-Token"))
			if *hook != nil {
				status, ok := (*hook)().(ingestStatus)
				if ok {
					rw.Header().Set("Retry-After", "11")
					rw.Header().Set("Location", "/elsewhere?key=sesame")
					rw.WriteHeader(int(status))
					return
				}
			}
			usual(rw, req)
		})
	}
	handle("GET /source/pages/{n}", &w.get, func(rw http.ResponseWriter, req *http.Request) {
		var n int
		fmt.Sscan(req.PathValue("n"), &n)
		if n > w.pages {
			rw.WriteHeader(http.StatusNotFound)
			return
		}
		rw.Header().Set("Content-Type", "text/x-page")
		fmt.Fprintf(rw, "page %d", n)
	})
	handle("PUT /sink/pages/{n}", &w.put, func(_ http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.bodies[req.PathValue("n")] = req.Header.Get("Content-Type") + " " + string(b)
	})
	return mux
}

// ingest runs the job with token 42 and returns its log and its error.
func (w *ingestWorld) ingest(t *testing.T, ctx context.Context) (string, error) {
	t.Helper()
	server := httptest.NewServer(w.handler())
	defer server.Close()
	w.bodies, w.over = map[string]string{}, make(chan struct{})
	base := strings.Replace(server.URL, "//", "//ada:hunter2@", 1)
	env := environment("INGEST_SOURCE", base+"/source?key=sesame", "INGEST_SINK", base+"/sink/")
	var out bytes.Buffer
	err := runIngest(ctx, env, ingestClient(), w, 42, slog.New(slog.NewTextHandler(&out, nil)))
	close(w.over)
	wantNoSecret(t, out.String()+fmt.Sprint(err), "key=")
	return out.String(), err
}

// ingestBetween runs the job from its begin, with a source and a sink at these URLs.
func ingestBetween(t *testing.T, source, sink string) error {
	env := environment("INGEST_SOURCE", source, "INGEST_SINK", sink)
	return runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
}

// runIngestWith runs the job with a network of its own.
func runIngestWith(ctx context.Context, run ingestRun, f roundTrip) error {
	client := ingestClient()
	client.Transport = f
	env := environment("INGEST_SOURCE", "http://source/v1", "INGEST_SINK", "http://sink")
	return runIngest(ctx, env, client, run, 42, slog.New(slog.DiscardHandler))
}

// A server that accepts and says nothing, and a store that hangs.
func TestIngestTimeLimits(t *testing.T) {
	for want, test := range map[string]struct {
		run     ingestRun
		network roundTrip
	}{
		"GET http://source/v1/pages/1: no complete answer within 10s": {&ingestWorld{}, silent},
		"save the position: not done within 10s":                      {&hangingSave{}, fine},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if err := runIngestWith(t.Context(), test.run, test.network); fmt.Sprint(err) != want || time.Since(began) != ingestLimit {
				t.Errorf("got %v after %v, want %s after %v", err, time.Since(began), want, ingestLimit)
			}
		})
	}
}

type hangingSave struct{ ingestWorld }

func (*hangingSave) Save(ctx context.Context, _ any) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestIngestRetryAfter(t *testing.T) {
	const date = "Sat, 21 Nov 2026 02:30:00 GMT"
	for _, test := range []struct {
		after, date string
		want        time.Duration
	}{
		{"", date, 0}, {"0", date, 0}, {"-1", date, 0}, {"soon", date, 0},
		{"7", "", 7 * time.Second}, {"600", "", 10 * time.Minute}, {"601", "", 10 * time.Minute}, {"99999999999999999999", "", 10 * time.Minute},
		{"Sat, 21 Nov 2026 02:30:42 GMT", date, 42 * time.Second},
		{"Sat, 21 Nov 2026 02:29:42 GMT", date, 0},
		{"Sat, 21 Nov 2027 02:30:42 GMT", date, 10 * time.Minute},
		{"Sat, 21 Nov 2026 02:30:42 GMT", "", 0}, // by what clock?
	} {
		h := http.Header{"Retry-After": {test.after}, "Date": {test.date}}
		if got := ingestRetryAfter(h); got != test.want {
			t.Errorf("%q at %q: got %v, want %v", test.after, test.date, got, test.want)
		}
	}
}

func TestIngestIsValid(t *testing.T) {
	job := ingest()
	job.Lease = 15 * time.Second
	s := soloist.Scheduler{App: "test", Store: new(local.Memory), Jobs: []soloist.Job{job}}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	// A page at its slowest is no stall.
	if job.HeartbeatTimeout < 3*ingestLimit+job.Lease {
		t.Errorf("HeartbeatTimeout is %s", job.HeartbeatTimeout)
	}
}
