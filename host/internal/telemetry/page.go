package telemetry

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// A page answers with the metrics as text. With many jobs a rendering takes a second of a processor and tens of
// megabytes, so all who ask while it is being made share one, and no more than mostSent are kept for callers that read slowly.
type page struct {
	render http.Handler

	mu           sync.Mutex
	plain, small shared
}

// mostSent is how many renderings are being sent at a time in one form. Further callers then get the newest of them.
const mostSent = 2

// shared are the renderings in one form that somebody reads.
type shared struct {
	newest *rendering
	sent   int // how many there are
}

// A rendering is an answer. It is complete when done is closed.
type rendering struct {
	done    chan struct{}
	readers int

	code   int
	header http.Header
	body   bytes.Buffer
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s, encoding := &p.plain, ""
	if takesGzip(r) {
		s, encoding = &p.small, "gzip"
	}
	m, mine := p.join(s)
	defer p.leave(s, m)
	if mine {
		p.make(m, encoding)
	}
	select {
	case <-m.done:
	case <-r.Context().Done():
		return
	}
	maps.Copy(w.Header(), m.header)
	w.WriteHeader(m.code)
	w.Write(m.body.Bytes())
}

// join returns the rendering for a caller, and whether the caller has to make it.
func (p *page) join(s *shared) (m *rendering, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := s.newest; m != nil && (s.sent >= mostSent || !m.made()) {
		m.readers++
		return m, false
	}
	s.newest = &rendering{done: make(chan struct{}), readers: 1, code: http.StatusOK, header: http.Header{}}
	s.sent++
	return s.newest, true
}

// leave releases a rendering for one caller, and forgets it after the last one.
func (p *page) leave(s *shared, m *rendering) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.readers--; m.readers > 0 {
		return
	}
	if s.sent--; s.newest == m {
		s.newest = nil
	}
}

// make renders. Others wait for it, so it makes its own request, which does not end with a caller's and asks for no other form.
func (p *page) make(m *rendering, encoding string) {
	defer close(m.done)
	p.render.ServeHTTP(m, &http.Request{Method: http.MethodGet, URL: &url.URL{}, Header: http.Header{"Accept-Encoding": {encoding}}})
}

func (m *rendering) made() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

func (m *rendering) Header() http.Header         { return m.header }
func (m *rendering) WriteHeader(code int)        { m.code = code }
func (m *rendering) Write(b []byte) (int, error) { return m.body.Write(b) }

// takesGzip reports whether the caller reads gzip.
func takesGzip(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, quality, _ := strings.Cut(part, ";")
		if strings.TrimSpace(name) == "gzip" {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(quality), "q="), "0.") != "" || quality == ""
		}
	}
	return false
}
