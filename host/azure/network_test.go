package azure_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim"
)

// served opens a store over a real connection to a handler.
func served(t *testing.T, h http.HandlerFunc) (*azure.Store, *atomic.Int32) {
	t.Helper()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	s, err := azure.Open(azure.Config{ServiceURL: server.URL + "/account?sig=" + secret})
	if err != nil {
		t.Fatal(err)
	}
	return s, &connections
}

func TestOverRealConnections(t *testing.T) {
	var blob sim.Blob
	s, connections := served(t, func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = r.Host
		resp, err := blob.Do(r)
		if err != nil {
			panic(err)
		}
		for name, values := range resp.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	})
	e := created(t, s)
	l := s.Lease(name, idA)
	if _, err := l.Acquire(t.Context(), time.Minute, e.ETag); err != nil {
		t.Error(err)
	}
	if _, err := l.Write(t.Context(), e.ETag, []byte("two")); err != nil {
		t.Error(err)
	}
	if e, err := s.Read(t.Context(), name); err != nil || string(e.Record) != "two" {
		t.Errorf("got %s, %v", e.Record, err)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want one that is used again", n)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var requests atomic.Int32
	s, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	if _, err := s.Read(t.Context(), name); err == nil || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

func TestASilentServer(t *testing.T) {
	s, _ := served(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Lease(name, idA).Renew(ctx); !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

// Connections that stood beside a dead one are not tried one after another.
func TestAFailureDropsIdleConnections(t *testing.T) {
	var both sync.WaitGroup
	s, connections := served(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("comp") == "lease":
			panic(http.ErrAbortHandler) // closes the connection
		case strings.HasSuffix(r.URL.Path, "/both"):
			both.Done()
			both.Wait()
		}
		w.WriteHeader(http.StatusNotFound)
	})
	both.Add(2)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { s.Read(t.Context(), "app/both") })
	}
	calls.Wait()
	if err := s.Break(t.Context(), name, 0); err == nil {
		t.Fatal("no error")
	}
	s.Read(t.Context(), name)
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want 2 and a new one", n)
	}
}
