package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A first run begins at page 1, a later one where the position is.
func TestIngest(t *testing.T) {
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
	} {
		w := test.world
		log, err := w.ingest(t, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.wantEvents(t, test.events...)
		if got := w.bodies[fmt.Sprint(w.pages)]; got != test.last {
			t.Errorf("the sink got %q, want %q", got, test.last)
		}
		if !strings.Contains(log, test.log) {
			t.Errorf("got log %q, want %q", log, test.log)
		}
	}
}

func TestIngestNoPageYet(t *testing.T) {
	for _, status := range []ingestStatus{204, 404} {
		w := &ingestWorld{get: func() error { return status }}
		if _, err := w.ingest(t, t.Context()); err != nil || w.saved != "" {
			t.Errorf("status %d: got %v, saved %q, want neither", status, err, w.saved)
		}
	}
}

// Whatever goes wrong, the position is that of a page which the sink has.
func TestIngestStopsAt(t *testing.T) {
	lost := fmt.Errorf("%w: no renewal in time", store.ErrLost)
	full := errors.New("the disk is full")
	fails := func(err error) func() error { return func() error { return err } }
	tests := []struct {
		name   string
		world  *ingestWorld
		want   string // in the error
		put    bool   // the sink was asked
		expect error
	}{
		{"load", &ingestWorld{loading: fails(full)}, "load the position: ", false, full},
		{"source, 400", &ingestWorld{get: fails(ingestStatus(400))}, "/source/pages/5: status 400", false, nil},
		{"source, 503", &ingestWorld{get: fails(ingestStatus(503))}, "/source/pages/5: status 503", false, nil},
		{"source, 206", &ingestWorld{get: fails(ingestStatus(206))}, "/source/pages/5: status 206", false, nil},
		{"source, 302", &ingestWorld{get: fails(ingestStatus(302))}, "/source/pages/5: status 302", false, nil},
		{"heartbeat", &ingestWorld{beat: fails(lost)}, "", false, store.ErrLost},
		{"sink, 400", &ingestWorld{put: fails(ingestStatus(400))}, "/sink/pages/5: status 400", true, nil},
		{"sink, 202", &ingestWorld{put: fails(ingestStatus(202))}, "/sink/pages/5: status 202", true, nil},
		{"sink, 302", &ingestWorld{put: fails(ingestStatus(302))}, "/sink/pages/5: status 302", true, nil},
		{"sink, 503", &ingestWorld{put: fails(ingestStatus(503))}, "/sink/pages/5: status 503", true, nil},
		{"sink, 409", &ingestWorld{put: fails(ingestStatus(409))}, "seen a larger token than 42", true, nil},
		{"sink, 412", &ingestWorld{put: fails(ingestStatus(412))}, "seen a larger token than 42", true, nil},
		{"save", &ingestWorld{saving: fails(full)}, "save the position: ", true, full},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := test.world
			w.saved, w.pages = `{"next":5}`, 6
			_, err := w.ingest(t, t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) || test.expect != nil && !errors.Is(err, test.expect) {
				t.Errorf("got %v, want %q, %v", err, test.want, test.expect)
			}
			if w.saved != `{"next":5}` {
				t.Errorf("saved %s", w.saved)
			}
			if asked := strings.Contains(strings.Join(w.events, "\n"), "PUT"); asked != test.put {
				t.Errorf("the sink was asked: %t, want %t", asked, test.put)
			}
		})
	}
}

func TestIngestStopsWithItsContext(t *testing.T) {
	for _, test := range []struct{ when, saved string }{
		{"get", `{"next":5}`},
		{"put", `{"next":5}`},
		{"save", `{"next":6}`}, // the page is in the sink by then
	} {
		t.Run(test.when, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			w := &ingestWorld{saved: `{"next":5}`, pages: 10}
			w.get = func() error {
				if test.when == "get" {
					cancel(soloist.ErrStopped)
					<-w.over // the answer would be fine, but comes too late
				}
				return nil
			}
			w.put = func() error {
				if test.when == "put" {
					cancel(soloist.ErrStopped)
					<-w.over
				}
				return nil
			}
			w.saving = func() error {
				cancel(soloist.ErrStopped)
				return nil
			}
			_, err := w.ingest(t, ctx)
			if !errors.Is(err, soloist.ErrStopped) {
				t.Errorf("got %v, want %v", err, soloist.ErrStopped)
			}
			if w.saved != test.saved {
				t.Errorf("got position %s, want %s", w.saved, test.saved)
			}
		})
	}
}

func TestIngestEnvironment(t *testing.T) {
	const good = "http://a"
	permanent := reflect.TypeOf(soloist.Permanent(errors.ErrUnsupported))
	tests := []struct{ source, sink, want string }{
		{"", "", "skipped: INGEST_SOURCE is not set"},
		{"", good, "skipped: INGEST_SOURCE is not set"},
		{good, "", "INGEST_SINK is not set: want a URL that begins with http:// or https://"},
		{"ftp://ada:hunter2@a", "a/b?key=sesame", "INGEST_SOURCE: want a URL that begins with http:// or https://\n" +
			"INGEST_SINK: want a URL that begins with http:// or https://"},
		{"http://ada:hunter/2@b", good, "INGEST_SOURCE: not a valid URL"},
		{good, "http:///?key=sesame", "INGEST_SINK: the URL has no host"},
	}
	for _, test := range tests {
		env := environment("INGEST_SOURCE", test.source, "INGEST_SINK", test.sink)
		err := runIngest(t.Context(), env, unasked(t), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: got %v, want %s", test, err, test.want)
		}
		if test.source != "" && reflect.TypeOf(err) != permanent {
			t.Errorf("%q: the settings are tried again: %v", test, err)
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
	for _, text := range []string{
		`malformed HTTP response "ada:hunter2"`,
		`invalid proxy address "http://ada:hunter2@proxy"`,
	} {
		err := runIngestWith(t.Context(), &ingestWorld{}, func(*http.Request) (*http.Response, error) { return nil, errors.New(text) })
		if want := "GET http://source/v1/pages/1: no valid answer"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	err := ingestBetween(t, strings.Replace(gone.URL, "//", "//ada:hunter2@", 1), "http://a")
	if want := "GET " + gone.URL + "/pages/1: dial tcp "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s...", err, want)
	}
	wantNoSecret(t, fmt.Sprint(err), "key=")
}
