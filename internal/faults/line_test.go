package faults_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// A service is the one Blob service of a world. Its log is the arbiter.
type service struct {
	blob blobtest.Blob
	mu   sync.Mutex // makes told run beside the service's own log
	told []told
}

// told is what a request said that the service's log does not keep.
type told struct {
	replica string
	span    time.Duration // of an acquisition
	record  *store.Record // of a write
}

// An event is one request in the order in which the service applied them.
type event struct {
	blobtest.Op
	told
}

func (e event) ok() bool { return e.Status < 300 }

func (s *service) apply(replica string, r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp, err := s.blob.Do(r)
	if err == nil {
		seconds, _ := strconv.Atoi(header(r, "x-ms-lease-duration"))
		s.told = append(s.told, told{replica, time.Duration(seconds) * time.Second, record(r)})
	}
	return resp, err
}

func (s *service) log() []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []event
	for i, op := range s.blob.Log() {
		all = append(all, event{op, s.told[i]})
	}
	return all
}

// header looks a header up that the client library may have set in any case.
func header(r *http.Request, name string) string {
	for k, v := range r.Header {
		if strings.EqualFold(k, name) {
			return strings.Join(v, ",")
		}
	}
	return ""
}

// record is the record that a request writes, nil if none.
func record(r *http.Request) *store.Record {
	rec := new(store.Record)
	if json.Unmarshal([]byte(header(r, "x-ms-meta-record")), rec) != nil {
		return nil
	}
	return rec
}

// A line is one replica's way to the service, a transport below the real
// client library.
type line struct {
	w       *world
	replica string

	mu     sync.Mutex
	fault  fault
	claims map[string]string // by lease id: the nonce of the claim
	calls  []*call
}

// A call is one request on a line.
type call struct {
	*http.Request
	line *line

	op         string
	sent, done time.Time
	heard      bool // a success came back whole
	spoilt     bool // something came back, but not whole
	unanswered bool
}

// A fault is what happens to a request instead of its delivery. A nil fault
// delivers.
type fault func(c *call) (*http.Response, error)

// One way each. A reply takes long enough that a deadline which is counted from
// it differs from one that is counted from the request.
const there, back = 50 * time.Millisecond, 250 * time.Millisecond

func (l *line) meet(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

// Do makes it a transport.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	c := &call{Request: r, line: l, sent: time.Now()}
	l.mu.Lock()
	c.op = l.operation(r)
	l.calls = append(l.calls, c)
	fault := l.fault
	l.mu.Unlock()
	if fault == nil {
		fault = (*call).deliver
	}
	resp, err := fault(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.done, c.unanswered = time.Now(), err != nil
	c.heard = err == nil && !c.spoilt && resp.StatusCode < 300
	if err == nil && c.spoilt {
		resp.Body = &body{resp.Body, c}
	}
	return resp, err
}

// A body tells when its call is over: with the last that is read of it.
type body struct {
	io.ReadCloser
	c *call
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.line.mu.Lock()
	defer b.c.line.mu.Unlock()
	b.c.done = time.Now()
	return n, err
}

// sent returns what was sent so far.
func (l *line) sent() (all []call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.calls {
		all = append(all, *c)
	}
	return all
}

// operation names a request by its part in a tick. The caller holds mu.
func (l *line) operation(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case r.URL.Host == tokenHost:
		return "token"
	case q.Get("restype") == "container":
		return "container"
	case q.Get("comp") == "lease":
		return header(r, "x-ms-lease-action")
	case r.Method == http.MethodHead || r.Method == http.MethodGet:
		return "read"
	case header(r, "If-None-Match") == "*":
		return "create"
	}
	rec := record(r)
	if rec == nil {
		return "other"
	}
	id := header(r, "x-ms-lease-id")
	claim := l.claims[id]
	switch {
	case rec.Status == store.Running && (claim == "" || claim == rec.Writer):
		l.claims[id] = rec.Writer
		return "claim"
	case claim == "":
		return "settle"
	case rec.Finished.IsZero():
		return "progress"
	}
	return "finish"
}

// leaseID is what tells an acquisition and all that follows from it.
func (c *call) leaseID() string {
	if c.op == "acquire" {
		return header(c.Request, "x-ms-proposed-lease-id")
	}
	return header(c.Request, "x-ms-lease-id")
}

// deliver is what happens without a fault.
func (c *call) deliver() (*http.Response, error) {
	if err := pause(c.Context(), there); err != nil {
		return nil, c.broken(err)
	}
	resp, err := c.line.w.service.apply(c.line.replica, c.Request)
	if err == nil {
		err = pause(c.Context(), back)
	}
	if err != nil {
		return nil, c.broken(err)
	}
	return resp, nil
}

// broken is how net/http tells a failure: with the URL and what is in it.
func (c *call) broken(err error) error {
	return &url.Error{Op: c.Method, URL: c.URL.String(), Err: err}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuse answers in the service's stead, or in that of a proxy if code is empty.
func refuse(status int, code string, headers ...string) fault {
	return func(c *call) (*http.Response, error) {
		if err := pause(c.Context(), there+back); err != nil {
			return nil, c.broken(err)
		}
		resp := blobtest.Refusal(c.Request, time.Now(), status, code)
		if code == "" {
			resp.Header.Del("x-ms-error-code")
			resp.Header.Del("x-ms-request-id")
			resp.Header.Set("Content-Type", "text/html")
			resp.Body = io.NopCloser(strings.NewReader("<html>" + http.StatusText(status) + "</html>"))
			resp.ContentLength = -1
			resp.Header.Del("Content-Length")
		}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			resp.Header.Set(name, value)
		}
		return resp, nil
	}
}

// Failures of a connection, before the request has got anywhere.
var (
	refused = fail(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED})
	reset   = fail(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET})
	noName  = fail(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "sim.blob.core.windows.net", IsNotFound: true}})
)

func fail(err error) fault {
	return func(c *call) (*http.Response, error) { return nil, c.broken(err) }
}

// hang is a connection whose other end is gone.
func hang(c *call) (*http.Response, error) {
	<-c.Context().Done()
	return nil, c.broken(c.Context().Err())
}

// mute applies the request and says nothing.
func mute(c *call) (*http.Response, error) {
	c.deliver()
	return hang(c)
}

// dropped applies the request and closes the connection instead of the reply.
func dropped(c *call) (*http.Response, error) {
	if _, err := c.deliver(); err != nil {
		return nil, err
	}
	return reset(c)
}

// late lets the caller give up and applies the request d after it was sent.
func late(d time.Duration) fault {
	return func(c *call) (*http.Response, error) {
		detached := c.Request.Clone(context.WithoutCancel(c.Context()))
		if c.Body != nil {
			body, err := io.ReadAll(c.Body)
			if err != nil {
				return nil, c.broken(err)
			}
			detached.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		c.line.w.underWay.Go(func() {
			time.Sleep(d)
			c.line.w.service.apply(c.line.replica, detached)
		})
		return hang(c)
	}
}

// spoil damages the body of a reply that has one: one to HEAD has none.
func spoil(f fault, body func(c *call) io.ReadCloser) fault {
	return func(c *call) (*http.Response, error) {
		resp, err := f(c)
		if err == nil && c.Method != http.MethodHead {
			c.spoilt = true
			resp.Body.Close()
			resp.Body, resp.ContentLength = body(c), 100
			resp.Header.Set("Content-Length", "100")
		}
		return resp, err
	}
}

func endless(c *call) io.ReadCloser { return &drip{c, time.Hour} }
func trickle(c *call) io.ReadCloser { return &drip{c, time.Second} }
func cutOff(c *call) io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader("<"), tooShort{}))
}

type tooShort struct{}

func (tooShort) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A drip is a body of which a byte comes now and then. As one of net/http, it
// ends with the context of its request.
type drip struct {
	c     *call
	every time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if err := pause(d.c.Context(), d.every); err != nil {
		return 0, err
	}
	return copy(p, " "), nil
}

func (d *drip) Close() error { return nil }
