package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// A service is the one Blob service. Of each record that it takes it tells the
// ledger, in the order in which it takes them.
type service struct {
	blob   blobtest.Blob
	ledger *ledger

	mu       sync.Mutex
	asked    map[string]map[string]int // by job and operation
	answered int
}

func newService(l *ledger) *service {
	s := &service{ledger: l, asked: map[string]map[string]int{}}
	s.blob.Tell = func(op blobtest.Op) {
		job := path.Base(op.Blob)
		if s.asked[job] == nil {
			s.asked[job] = map[string]int{}
		}
		s.asked[job][op.Op]++
		s.answered++
	}
	return s
}

// apply has the service do what a replica asks for, which has the program all.
func (s *service) apply(r *http.Request, all map[string]calendar) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	resp, err := s.blob.Do(r)
	text := header(r, "x-ms-meta-record")
	if err != nil || text == "" || resp.StatusCode >= 300 {
		return resp, err
	}
	var rec store.Record
	if err := json.Unmarshal([]byte(text), &rec); err != nil {
		return nil, err
	}
	s.ledger.write(&rec, all[rec.Job])
	return resp, nil
}

// header looks a header up that the client library may have set in any case.
func header(r *http.Request, name string) string {
	if v := r.Header.Get(name); v != "" {
		return v
	}
	for k, v := range r.Header {
		if strings.EqualFold(k, name) {
			return strings.Join(v, ",")
		}
	}
	return ""
}

// A fault is what happens to a request instead of its delivery.
type fault func(*line, *http.Request) (*http.Response, error)

// A line is one replica's way to the service, a transport below the real client
// library.
type line struct {
	*service
	calendars map[string]calendar // by job: what the replica's program says
	dead      <-chan struct{}     // closed: its replica has crashed

	mu    sync.Mutex
	dice  *rand.Rand
	fault fault // nil: it delivers
}

// Do makes it a transport.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	f, there := l.fault, 2*time.Millisecond+time.Duration(l.dice.Int64N(int64(10*time.Millisecond)))
	l.mu.Unlock()
	if f == nil {
		f = (*line).deliver
	}
	err := pause(r.Context(), there)
	if err == nil && l.crashed() {
		err = hang(r)
	}
	var resp *http.Response
	if err == nil {
		resp, err = f(l, r)
	}
	if err == nil && l.crashed() {
		err = hang(r)
	}
	if err != nil {
		return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
	}
	return resp, nil
}

func (l *line) crashed() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

func (l *line) meet(f fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
}

func (l *line) clear() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault == nil
}

func (l *line) deliver(r *http.Request) (*http.Response, error) {
	return l.apply(r, l.calendars)
}

// faults are the ways in which nothing gets through.
var faults = []fault{busy, refused, lost, mute}

func busy(_ *line, r *http.Request) (*http.Response, error) {
	return blobtest.Refusal(r, time.Now(), http.StatusServiceUnavailable, "ServerBusy"), nil
}

func refused(*line, *http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

func lost(_ *line, r *http.Request) (*http.Response, error) { return nil, hang(r) }

// mute has the request applied, and says nothing.
func mute(l *line, r *http.Request) (*http.Response, error) {
	if _, err := l.deliver(r); err != nil {
		return nil, err
	}
	return nil, hang(r)
}

func hang(r *http.Request) error {
	<-r.Context().Done()
	return errors.Join(r.Context().Err(), context.Cause(r.Context()))
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
