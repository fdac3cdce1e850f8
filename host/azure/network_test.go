package azure_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

// served opens a store over a real connection to a handler, with the transport of c.
func served(t *testing.T, c azure.Config, h http.HandlerFunc) (*azure.Store, *atomic.Int32) {
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
	c.ServiceURL = server.URL + "/account?sig=" + secret
	return opened(t, c), &connections
}

func TestOverRealConnections(t *testing.T) {
	s, connections := served(t, azure.Config{}, blobtest.Handler(new(blobtest.Blob).Do))
	l, e := leased(t, s)
	stamp, err := l.Write(t.Context(), e.ETag, []byte("one"))
	if err != nil {
		t.Error(err)
	}
	checkpoint := strings.Repeat("\xff", store.MaxCheckpoint)
	stamp, err = l.Save(t.Context(), stamp.ETag, []byte("two"), []byte(checkpoint))
	if err != nil {
		t.Error(err)
	}
	if got, err := l.Load(t.Context(), stamp.ETag); err != nil || string(got) != checkpoint {
		t.Errorf("got %d bytes, %v", len(got), err)
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
	s, _ := served(t, azure.Config{}, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	if _, err := s.Read(t.Context(), name); err == nil || requests.Load() != 1 {
		t.Errorf("%d requests, %v", requests.Load(), err)
	}
}

// Connections that stood beside a dead one are not tried one after another.
func TestFailureDropsIdleConnections(t *testing.T) {
	var both sync.WaitGroup
	s, connections := served(t, azure.Config{}, func(w http.ResponseWriter, r *http.Request) {
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

// Many jobs are due at the same second. All but a few of their calls wait for a
// connection, and all are answered.
func TestManyCallsShareConnections(t *testing.T) {
	const most = 4
	s, connections := served(t, azure.Network(most), blobtest.Handler(new(blobtest.Blob).Do))
	created(t, s)
	var calls sync.WaitGroup
	for range 200 {
		calls.Go(func() {
			if _, err := s.Read(t.Context(), name); err != nil {
				t.Errorf("got %v, want an answer", err)
			}
		})
	}
	calls.Wait()
	if n := connections.Load(); n > most {
		t.Errorf("%d connections, want %d at most", n, most)
	}
}

// A renewal has seconds. Calls that hang, and those that wait for them, must not
// use these up.
func TestRenewalWaitsForNoOtherCall(t *testing.T) {
	const most = 2
	var hang atomic.Bool
	hung, release := make(chan struct{}, 10*most), make(chan struct{})
	blob := blobtest.Handler(new(blobtest.Blob).Do)
	s, _ := served(t, azure.Network(most), func(w http.ResponseWriter, r *http.Request) {
		if hang.Load() && r.Method == http.MethodHead {
			hung <- struct{}{}
			<-release
		}
		blob(w, r)
	})
	l, _ := leased(t, s)
	hang.Store(true)
	var calls sync.WaitGroup
	for range 10 * most {
		calls.Go(func() { s.Read(t.Context(), name) })
	}
	for range most {
		<-hung
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := l.Renew(ctx); err != nil {
		t.Errorf("got %v, want a renewal beside the calls that hang", err)
	}
	close(release)
	calls.Wait()
}

// Something other than the service answers, and its headers do not end. Few of them are read.
func TestHeadersAreLimited(t *testing.T) {
	s, _ := served(t, azure.Config{}, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	if _, err := s.Read(t.Context(), name); err == nil || !strings.Contains(err.Error(), "exceeded 65536 bytes") {
		t.Errorf("got %v", err)
	}
}

// A nameserver that gives no answer is not waited for as long as the resolver would: a call to the store has less time than
// that. Over TCP it has the time that it is given: an answer may be long.
func TestDeadNameserverIsLeftSoon(t *testing.T) {
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	tcp, err2 := net.Listen("tcp", "127.0.0.1:0")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	defer tcp.Close()
	for _, address := range []net.Addr{udp.LocalAddr(), tcp.Addr()} {
		c, err := azure.Resolver.Dial(t.Context(), address.Network(), address.String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, plain := c.(*net.TCPConn); plain != (address.Network() == "tcp") {
			t.Errorf("got %T", c)
		} else if plain {
			continue
		}
		if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, err = c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	}
}
