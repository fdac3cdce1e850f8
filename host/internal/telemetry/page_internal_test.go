package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// A press renders the number of the rendering, once it is let go.
type press struct {
	count atomic.Int64
	wait  chan struct{}
}

func (p *press) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.count.Add(1)
	<-p.wait
	if r.Context().Err() != nil {
		n = -1
	}
	fmt.Fprint(w, n)
}

// All who ask at the same time share one rendering, also if the first of them does not wait for it.
func TestScrapesShareRendering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		press := &press{wait: make(chan struct{})}
		p := page{render: press}
		first, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		answers := make([]*httptest.ResponseRecorder, 41)
		for i := range answers {
			r := httptest.NewRequest("GET", "/metrics", nil)
			if answers[i] = httptest.NewRecorder(); i == 0 {
				r = r.WithContext(first)
			}
			all.Go(func() { p.ServeHTTP(answers[i], r) })
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		close(press.wait)
		all.Wait()
		for i, w := range answers[1:] {
			if w.Code != 200 || w.Body.String() != "1" {
				t.Errorf("%d: got %d %s, want the one rendering", i, w.Code, w.Body)
			}
		}
		w := httptest.NewRecorder()
		if p.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil)); w.Body.String() != fmt.Sprint(press.count.Load()) || press.count.Load() != 2 {
			t.Errorf("later: got %s of %d renderings, want a second one", w.Body, press.count.Load())
		}
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
		press, read := &press{wait: make(chan struct{})}, make(chan struct{})
		close(press.wait)
		p := page{render: press}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				p.ServeHTTP(slowReader{httptest.NewRecorder(), read}, httptest.NewRequest("GET", "/metrics", nil))
			})
			synctest.Wait()
		}
		if n := press.count.Load(); n != 2 {
			t.Errorf("got %d renderings, want 2", n)
		}
		close(read)
		all.Wait()
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil))
		if n := press.count.Load(); n != 3 {
			t.Errorf("afterwards: got %d renderings, want a new one", n)
		}
	})
}
