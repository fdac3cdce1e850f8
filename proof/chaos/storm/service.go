//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/chaos/line"
	"github.com/soloist-go/soloist/store"
)

// A service is what keeps the records.
type service interface {
	// line is a new one to the service for the replica of that name. An empty address in
	// storage, which is SOLOIST_STORAGE, is the service's own.
	line(replica string) (*line.Line, error)
	storage(replica, address string) string
	store() (store.Store, error)

	// crash kills it, has it down for a while, and returns when it is up again. What cannot be killed under load is
	// compared with what was heard before.
	crash(ctx context.Context, down time.Duration, compare func() error) error

	listen() error // brings the scribe up to date
	shut() error   // lets no calls through, once those on their way are over
	close()
}

const (
	overAzurite  = "azurite"
	overPostgres = "postgres"
)

// services make one of each kind, with its data below a directory.
var services = map[string]func(ctx context.Context, o options, s *scribe) (service, error){
	overAzurite: newBlobs, overPostgres: newDatabase,
}

// Blobs are an Azurite that can be killed. What it has answered it keeps:
// before it dies nothing new comes to it, until all is saved.
type blobs struct {
	dir string
	*scribe

	mu      sync.RWMutex // held for reading: a request is on its way
	server  *azurite.Server
	forward *httputil.ReverseProxy // nil: it is down
}

func newBlobs(ctx context.Context, o options, s *scribe) (service, error) {
	v := &blobs{dir: filepath.Join(o.dir, "azurite"), scribe: s}
	err := os.Mkdir(v.dir, 0o700)
	if err != nil {
		return nil, err
	}
	if v.server, err = azurite.LaunchIn(ctx, v.dir); err != nil {
		return nil, err
	}
	return v, v.open()
}

func (v *blobs) close() { v.server.Close() }

func (v *blobs) line(replica string) (*line.Line, error) { return line.New(replica, v.of(replica)) }

func (v *blobs) storage(_, address string) string {
	if address == "" {
		return v.server.ConnectionString()
	}
	return (&azurite.Server{URL: "http://" + address + "/" + azurite.Account}).ConnectionString()
}

func (v *blobs) store() (store.Store, error) {
	return azure.Open(azure.Config{ConnectionString: v.server.ConnectionString(), Container: "soloist"})
}

// listen has nothing to do: the scribe hears each request.
func (v *blobs) listen() error { return nil }

func (v *blobs) crash(ctx context.Context, down time.Duration, compare func() error) error {
	if err := errors.Join(v.shut(), v.restart(ctx, down)); err != nil {
		return err
	}
	return errors.Join(compare(), v.open())
}

// open lets requests through.
func (v *blobs) open() error {
	forward, err := azurite.Forward(v.server.URL)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forward = forward
	return err
}

// shut lets none through, once those on their way are answered.
func (v *blobs) shut() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forward = nil
	return nil
}

// restart kills Azurite and, after a while, starts one on the same data.
func (v *blobs) restart(ctx context.Context, down time.Duration) error {
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
func (v *blobs) of(replica string) http.Handler {
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
				v.heardHTTP(replica, seen)
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
