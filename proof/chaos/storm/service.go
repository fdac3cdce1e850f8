//go:build unix

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A service is an Azurite that can be killed. What it has answered it keeps:
// before it dies nothing new comes to it, until all is saved.
type service struct {
	dir string
	*scribe

	mu      sync.RWMutex // held for reading: a request is on its way
	server  *azurite.Server
	forward *httputil.ReverseProxy // nil: it is down
}

func newService(ctx context.Context, dir string, s *scribe) (v *service, err error) {
	v = &service{dir: dir, scribe: s}
	if v.server, err = azurite.LaunchIn(ctx, dir); err != nil {
		return nil, err
	}
	return v, v.open()
}

func (v *service) close() { v.server.Close() }

// open lets requests through.
func (v *service) open() error {
	forward, err := azurite.Forward(v.server.URL)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forward = forward
	return err
}

// shut lets none through, once those on their way are answered.
func (v *service) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forward = nil
}

// restart kills Azurite and, after a while, starts one on the same data.
func (v *service) restart(ctx context.Context, down time.Duration) error {
	time.Sleep(azurite.Saved)
	v.server.Close()
	proctest.Pause(ctx, down)
	server, err := azurite.LaunchIn(context.WithoutCancel(ctx), v.dir)
	if err == nil {
		v.server = server
	}
	return err
}

// of is the service as the replica of that name has it.
func (v *service) of(replica string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // cut off on its way: it never came
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		v.mu.RLock()
		defer v.mu.RUnlock()
		if v.forward == nil {
			panic(http.ErrAbortHandler)
		}
		v.forward.ServeHTTP(&witness{w, func(code int) {
			if seen := r.Clone(r.Context()); code >= 200 && code <= 299 {
				seen.Body = io.NopCloser(bytes.NewReader(body))
				v.request(replica, seen)
			}
		}}, r)
	})
}

// A witness sees the status of an answer before its receiver does.
type witness struct {
	http.ResponseWriter
	see func(code int)
}

func (w *witness) WriteHeader(code int) {
	w.see(code)
	w.ResponseWriter.WriteHeader(code)
}
