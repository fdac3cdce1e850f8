package host_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

var errDown = errors.New("no route to the storage")

// A gate is what each call of a store has to pass first. An error is the answer of
// the call, which is not made.
type gate func(op, name string) error

// refuse is the gate that refuses these calls; all if none is named.
func refuse(err error, ops ...string) gate {
	return func(op, _ string) error {
		if len(ops) == 0 || slices.Contains(ops, op) {
			return err
		}
		return nil
	}
}

// wait is the gate that holds up each read until the channel is closed.
func wait(open <-chan struct{}) gate {
	return func(op, _ string) error {
		if op == "read" {
			<-open // not even the end of the context makes it return
		}
		return nil
	}
}

// A gated store has a gate, which a test can replace. It has no more than the
// methods of a store and those for documents.
type gated struct {
	store.Store
	gate atomic.Pointer[gate]
}

func newGated(backend store.Store, g gate) *gated {
	s := &gated{Store: backend}
	s.set(g)
	return s
}

// down is a store out of reach.
func down() *gated { return newGated(&local.Memory{}, refuse(errDown)) }

// set replaces the gate. nil: there is none.
func (s *gated) set(g gate) { s.gate.Store(&g) }

// away takes the store out of reach for a while.
func (s *gated) away(d time.Duration) {
	s.set(refuse(errDown))
	time.AfterFunc(d, func() { s.set(nil) })
}

func (s *gated) pass(op, name string) error {
	if g := *s.gate.Load(); g != nil {
		return g(op, name)
	}
	return nil
}

func (s *gated) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	if err := s.pass("create", name); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Create(ctx, name, record)
}

func (s *gated) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := s.pass("read", name); err != nil {
		return store.Entry{}, err
	}
	return s.Store.Read(ctx, name)
}

func (s *gated) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	if err := s.pass("read document", name); err != nil {
		return store.Document{}, err
	}
	return s.Store.(store.Documenter).ReadDocument(ctx, name, etag)
}

func (s *gated) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if err := s.pass("write document", name); err != nil {
		return store.Revision{}, err
	}
	return s.Store.(store.Documenter).WriteDocument(ctx, name, etag, body)
}

func (s *gated) Lease(name, id string) store.Lease {
	l := s.Store.Lease(name, id)
	return gatedLease{l, l.(store.Checkpointer), func(op string) error { return s.pass(op, name) }}
}

type gatedLease struct {
	store.Lease
	keeper store.Checkpointer
	pass   func(op string) error
}

func (l gatedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	if err := l.pass("acquire"); err != nil {
		return store.Revision{}, err
	}
	return l.Lease.Acquire(ctx, d, etag)
}

func (l gatedLease) Renew(ctx context.Context) (store.Revision, error) {
	if err := l.pass("renew"); err != nil {
		return store.Revision{}, err
	}
	return l.Lease.Renew(ctx)
}

func (l gatedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if err := l.pass("write"); err != nil {
		return store.Revision{}, err
	}
	return l.Lease.Write(ctx, etag, record)
}

func (l gatedLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (store.Revision, error) {
	if err := l.pass("save"); err != nil {
		return store.Revision{}, err
	}
	return l.keeper.Save(ctx, etag, record, checkpoint)
}

func (l gatedLease) Load(ctx context.Context, etag string) ([]byte, error) {
	if err := l.pass("load"); err != nil {
		return nil, err
	}
	return l.keeper.Load(ctx, etag)
}

func (l gatedLease) Release(ctx context.Context) error {
	if err := l.pass("release"); err != nil {
		return err
	}
	return l.Lease.Release(ctx)
}

// examined is a store that can delete, and has checks of its own for doctor.
type examined struct {
	deletes
	checks []azure.Check
}

func (s examined) Examine(string, func() time.Time) []azure.Check { return s.checks }

// deletes is a gated memory that can delete.
type deletes struct{ *gated }

func (s deletes) Delete(ctx context.Context, name string) error {
	if err := s.pass("delete", name); err != nil {
		return err
	}
	return s.Store.(*local.Memory).Delete(ctx, name)
}

// piped is a listener whose connections are pipes, which virtual time knows: what one side writes waits until the other
// reads.
type piped struct {
	conns  chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func newPiped() piped {
	return piped{make(chan net.Conn), make(chan struct{}), new(sync.Once)}
}

func (l piped) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l piped) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l piped) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

func (l piped) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// web returns a browser that comes to the listener, whatever it asks for.
func (l piped) web() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: l.dial, DisableKeepAlives: true}}
}

// get asks whoever serves on the listener.
func (l piped) get(t *testing.T, path string) *httptest.ResponseRecorder {
	t.Helper()
	resp, err := l.web().Get("http://localhost" + path)
	must(t, err)
	defer resp.Body.Close()
	got := httptest.NewRecorder()
	got.Code = resp.StatusCode
	_, err = io.Copy(got.Body, resp.Body)
	must(t, err)
	return got
}

// serveOn has a program serve on a listener until stop is called.
func serveOn(t *testing.T, p host.Program, ln net.Listener) (stop func(), code <-chan int) {
	t.Helper()
	if p.Stdout == nil {
		p.Stdout = t.Output()
	}
	p.Name, p.Stderr = "demo", t.Output()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		code, err := host.Serve(ctx, p, ln)
		if err != nil {
			t.Error(err)
		}
		done <- code
	}()
	return cancel, done
}
