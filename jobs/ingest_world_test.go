package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

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
				if ok && status == 302 {
					rw.Header().Set("Location", "/elsewhere?key=sesame")
				}
				if ok {
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

func (w *ingestWorld) wantEvents(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.events, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(w.events, "\n  "), strings.Join(want, "\n  "))
	}
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
