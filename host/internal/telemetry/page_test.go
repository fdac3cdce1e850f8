package telemetry_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/internal/telemetry"
)

// looked counts renderings: each asks once for what the records say. It holds them up while the channel is open.
type looked struct {
	mu    sync.Mutex
	count int
	wait  chan struct{}
}

func (l *looked) look(ctx context.Context) []soloist.JobStatus {
	l.mu.Lock()
	l.count++
	wait := l.wait
	l.mu.Unlock()
	<-wait
	if ctx.Err() != nil {
		panic("the rendering ended with the first caller")
	}
	return nil
}

func (l *looked) want(t *testing.T, what string, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count != n {
		t.Errorf("%s: got %d renderings, want %d", what, l.count, n)
	}
}

// All who ask at the same time share one rendering, also if the first of them does not wait for it.
func TestScrapesShareRendering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := open(t, program()), &looked{wait: make(chan struct{})}
		m.Watch(l.look)
		defer m.Watch(nil)
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 41)
		for i := range answers {
			r := httptest.NewRequest("GET", "/metrics", nil)
			if answers[i] = httptest.NewRecorder(); i == 0 {
				r = r.WithContext(first)
			}
			all.Go(func() { m.ServeHTTP(answers[i], r) })
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(l.wait)
		all.Wait()
		l.want(t, "together", 1)
		for i, w := range answers[1:] {
			if w.Code != 200 || w.Body.String() != answers[1].Body.String() || !strings.Contains(w.Body.String(), "soloist_running") {
				t.Fatalf("%d: got %d %.200s", i, w.Code, w.Body)
			}
		}
		scrape(t, m)
		l.want(t, "later", 2)
	})
}

// A slowReader reads when it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (s slowReader) Write(b []byte) (int, error) { <-s.read; return s.ResponseRecorder.Write(b) }

// Callers that read slowly keep two renderings, however many they are.
func TestSlowScrapesKeepFewRenderings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, l := open(t, program()), &looked{wait: make(chan struct{})}
		close(l.wait)
		m.Watch(l.look)
		defer m.Watch(nil)
		read := make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				m.ServeHTTP(slowReader{httptest.NewRecorder(), read}, httptest.NewRequest("GET", "/metrics", nil))
			})
			synctest.Wait()
		}
		l.want(t, "slow", 2)
		close(read)
		all.Wait()
		scrape(t, m)
		l.want(t, "afterwards", 3)
	})
}

// A caller chooses between plain text and gzip, and nothing else: each further form would be a rendering of its own.
func TestScrapeForms(t *testing.T) {
	m := open(t, program())
	for encoding, zipped := range map[string]bool{"": false, "gzip": true, "zstd, gzip;q=0.5": true, "gzip;q=0": false, "gzip; q=0.0": false, "zstd": false} {
		w := ask(m, encoding)
		body := io.Reader(w.Body)
		if zipped {
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatalf("%q: %v", encoding, err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || !strings.Contains(string(text), "\nsoloist_running") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || (w.Header().Get("Content-Encoding") == "gzip") != zipped {
			t.Errorf("%q: got %v, %v, %.100q", encoding, w.Header(), err, text)
		}
	}
}

func ask(m *telemetry.Telemetry, encoding string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text,application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	if encoding != "" {
		r.Header.Set("Accept-Encoding", encoding)
	}
	m.ServeHTTP(w, r)
	return w
}
