package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestIngest(t *testing.T) {
	w := &ingestWorld{pages: 2}
	log, err := w.ingest(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.wantEvents(t, "load ",
		"GET /source/pages/1?key=sesame token 42", "beat page 1", "PUT /sink/pages/1? token 42", `save {"next":2}`,
		"GET /source/pages/2?key=sesame token 42", "beat page 2", "PUT /sink/pages/2? token 42", `save {"next":3}`,
		"GET /source/pages/3?key=sesame token 42")
	if got, want := w.bodies["2"], "text/x-page page 2"; got != want {
		t.Errorf("the sink got %q, want %q", got, want)
	}
	if !strings.Contains(log, "msg=ingested pages=2 next=3") {
		t.Errorf("got log %q", log)
	}
}

func TestIngestGoesOnWhereItWas(t *testing.T) {
	w := &ingestWorld{saved: `{"next":7}`, pages: 7}
	log, err := w.ingest(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.wantEvents(t, `load {"next":7}`,
		"GET /source/pages/7?key=sesame token 42", "beat page 7", "PUT /sink/pages/7? token 42", `save {"next":8}`,
		"GET /source/pages/8?key=sesame token 42")
	if !strings.Contains(log, "pages=1 next=8") {
		t.Errorf("got log %q", log)
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
	client := fakeClient(func(*http.Request) (*http.Response, error) {
		t.Error("got a request")
		return answer(http.NoBody), nil
	})
	for _, test := range tests {
		env := environment("INGEST_SOURCE", test.source, "INGEST_SINK", test.sink)
		err := runIngest(t.Context(), env, client, &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: got %v, want %s", test, err, test.want)
		}
		if test.source != "" && reflect.TypeOf(err) != permanent {
			t.Errorf("%q: the settings are tried again: %v", test, err)
		}
	}
}

func TestIngestBodyLimit(t *testing.T) {
	for _, size := range []int{ingestBody, ingestBody + 1} {
		var put int64
		got := runIngestWith(t.Context(), &ingestWorld{}, func(req *http.Request) (*http.Response, error) {
			switch {
			case req.Method == http.MethodPut:
				put = req.ContentLength
				return answer(http.NoBody), nil
			case strings.HasSuffix(req.URL.Path, "/1"):
				return answer(io.MultiReader(bytes.NewReader(make([]byte, size)))), nil
			}
			return &http.Response{StatusCode: 404, Body: http.NoBody}, nil
		})
		if size == ingestBody && (got != nil || put != ingestBody) {
			t.Errorf("%d bytes: got %v, %d bytes put", size, got, put)
		}
		if want := "GET http://source/v1/pages/1: more than 8388608 bytes"; size > ingestBody && (got == nil || got.Error() != want || put != 0) {
			t.Errorf("%d bytes: got %v, %d bytes put, want %s", size, got, put, want)
		}
	}
}

// A page whose body breaks off is no page; an empty one is.
func TestIngestBrokenAndEmptyBodies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/pages/1":
		case "/pages/2":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "not a hundred bytes")
		}
	}))
	defer server.Close()
	var puts []string
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		puts = append(puts, fmt.Sprint(req.URL.Path, " ", req.ContentLength))
	}))
	defer sink.Close()
	env := environment("INGEST_SOURCE", server.URL, "INGEST_SINK", sink.URL)
	err := runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
	if want := "GET " + server.URL + "/pages/2: unexpected EOF"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if want := []string{"/pages/1 0"}; !slices.Equal(puts, want) {
		t.Errorf("got %q, want %q", puts, want)
	}
}

// An answer whose end is only the end of the connection may be half a page: the
// source may have died. It reaches no sink.
func TestIngestRefusesAPageOfUnknownLength(t *testing.T) {
	for _, head := range []string{"HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"} {
		source := rawSource(t, head+"first half, ")
		puts := 0
		sink := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { puts++ }))
		env := environment("INGEST_SOURCE", source, "INGEST_SINK", sink.URL)
		err := runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
		sink.Close()
		want := "GET " + source + "/pages/1: the answer has neither a Content-Length nor chunks, so half a page looks like a whole one: let the source send one of them"
		if err == nil || err.Error() != want || puts != 0 {
			t.Errorf("%q: got %v and %d puts, want %s and none", head, err, puts, want)
		}
	}
}

// rawSource answers one request with these bytes and closes the connection.
func rawSource(t *testing.T, answer string) (url string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		conn, err := ln.Accept()
		ln.Close()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			io.WriteString(conn, answer)
		}
	}()
	return "http://" + ln.Addr().String()
}

// A chunk that says it is the last, and the end of a compressed page, tell that
// the page is whole.
func TestIngestTakesChunksAndCompressedPages(t *testing.T) {
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/pages/1":
			io.WriteString(w, "in ")
			w.(http.Flusher).Flush()
			io.WriteString(w, "chunks")
		case "/pages/2":
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Connection", "close")
			z := gzip.NewWriter(w)
			io.WriteString(z, "compressed")
			z.Close()
		default:
			http.NotFound(w, req)
		}
	}))
	defer source.Close()
	var pages []string
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		pages = append(pages, string(b))
	}))
	defer sink.Close()
	env := environment("INGEST_SOURCE", source.URL, "INGEST_SINK", sink.URL)
	err := runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
	if want := []string{"in chunks", "compressed"}; err != nil || !slices.Equal(pages, want) {
		t.Errorf("got %q, %v, want %q", pages, err, want)
	}
}

// A page that the client does not decompress goes on with its Content-Encoding:
// otherwise the sink takes compressed bytes for the page.
func TestIngestHandsTheContentEncodingOn(t *testing.T) {
	var got string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pages/1", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header()["Content-Encoding"] = []string{"br", "zstd"}
		rw.Write([]byte("bytes"))
	})
	mux.HandleFunc("PUT /pages/1", func(_ http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		got = req.Header.Get("Content-Encoding") + ": " + string(b)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	env := environment("INGEST_SOURCE", server.URL, "INGEST_SINK", server.URL)
	if err := runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if got != "br, zstd: bytes" {
		t.Errorf("the sink got %q", got)
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
	env := environment("INGEST_SOURCE", strings.Replace(gone.URL, "//", "//ada:hunter2@", 1), "INGEST_SINK", "http://a")
	err := runIngest(t.Context(), env, ingestClient(), &ingestWorld{}, 42, slog.New(slog.DiscardHandler))
	if want := "GET " + gone.URL + "/pages/1: dial tcp "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s...", err, want)
	}
	ingestNoSecret(t, fmt.Sprint(err))
}
