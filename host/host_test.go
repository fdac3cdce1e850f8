package host_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

// environment gives the test these variables and none of the machine's that
// matter, not even one that is empty: it would be a setting that there is not.
func environment(t *testing.T, pairs ...string) {
	t.Helper()
	others := proctest.Environ()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !slices.Contains(others, pair) {
			t.Setenv(name, "") // which sets it again after the test
			os.Unsetenv(name)
		}
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// result is what one run of a program came to.
type result struct {
	code     int
	out, err string
}

func run(ctx context.Context, p host.Program, args ...string) result {
	var out, errs strings.Builder
	p.Name, p.Args, p.Stdout, p.Stderr = "demo", append([]string{}, args...), &out, &errs
	code := p.Run(ctx)
	return result{code, out.String(), errs.String()}
}

// call runs a command whose arguments have no blanks.
func call(t *testing.T, p host.Program, command string) result {
	return run(t.Context(), p, strings.Fields(command)...)
}

func do(context.Context, *soloist.Run) error { return nil }

func fail(context.Context, *soloist.Run) error { return errors.New("no\npaper") }

// work is two jobs and a singleton.
func work() []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
		soloist.Job{Name: "night-report", Schedule: "30 2 * * *", TimeZone: "Europe/Berlin", Do: fail},
		soloist.Singleton{Name: "leader", Do: do},
	}
}

// zoneData is the line about the data of time zones, which are those of the machine.
var zoneData = regexp.MustCompile(`\nzone data .*\n\z|(?m:^)zone data .*\n|,\n *"zones": .*`)

// goldenWant compares texts line by line, without the margin of the golden one and the line of zoneData.
func goldenWant(t *testing.T, what, got, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "")
	if got = zoneData.ReplaceAllString(got, ""); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// wantRun wants a command to come to this code and output, and to say nothing else.
func wantRun(t *testing.T, p host.Program, command string, code int, out string) {
	t.Helper()
	if errs := wantOut(t, p, command, code, out); errs != "" {
		t.Errorf("%s: got on standard error %s", command, errs)
	}
}

// wantOut returns what the command writes to standard error, such as a job's log.
func wantOut(t *testing.T, p host.Program, command string, code int, out string) (errs string) {
	t.Helper()
	got := run(t.Context(), p, strings.Fields(command)...)
	goldenWant(t, command, got.out, out)
	if got.code != code {
		t.Errorf("%s: got %+v, want code %d", command, got, code)
	}
	return got.err
}

// wantLines wants a command to come to this code, and these texts among what it prints, as [wantText] does.
func wantLines(t *testing.T, p host.Program, command string, code int, texts ...string) result {
	t.Helper()
	return call(t, p, command).wants(t, command, code, texts...)
}

// wants wants this code, and these texts among what was printed, as [wantText] does.
func (r result) wants(t *testing.T, what string, code int, texts ...string) result {
	t.Helper()
	wantText(t, what, r.out+r.err, texts...)
	if r.code != code {
		t.Errorf("%s: got %+v, want code %d", what, r, code)
	}
	return r
}

// wantWithin wants a value between two others.
func wantWithin[T cmp.Ordered](t *testing.T, what string, got, least, most T) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s: got %v, want %v to %v", what, got, least, most)
	}
}

// wantTook wants that time to have passed since it began, at least and at most.
func wantTook(t *testing.T, begin time.Time, least, most time.Duration) {
	t.Helper()
	wantWithin(t, "it took", time.Since(begin), least, most)
}

// wantText wants each of these parts in a text. A part after an exclamation mark must not be in it.
func wantText(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		part, absent := strings.CutPrefix(part, "!")
		if strings.Contains(text, part) == absent {
			t.Errorf("%s: got %q in it %t, want %t:\n%s", what, part, absent, !absent, text)
		}
	}
}

// must ends a test that cannot go on.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantEqual compares values of any kind.
func wantEqual[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// bubble runs a test with these variables and in virtual time, which begins at midnight, 1 January 2000, UTC.
func bubble(t *testing.T, variables []string, test func(t *testing.T)) {
	t.Helper()
	environment(t, variables...)
	synctest.Test(t, test)
}

// wantJSON wants a command to come to this code and to print this value, which may be broken into lines anywhere. It
// returns what the command writes to standard error, as wantOut does.
func wantJSON(t *testing.T, p host.Program, command string, code int, want string) (errs string) {
	t.Helper()
	got := run(t.Context(), p, strings.Fields(command)...)
	var compact bytes.Buffer
	must(t, json.Compact(&compact, []byte(zoneData.ReplaceAllString(got.out, ""))))
	wantEqual(t, command, compact.String(), strings.NewReplacer("\n", "", "\t", "").Replace(want))
	wantCode(t, got.code, code)
	return got.err
}

var errDown, errHangs = errors.New("no route to the storage"), errors.New("no answer until the end of the context")

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

// passed is what a call returns that a gate lets pass.
func passed[T any](err error, call func() (T, error)) (v T, _ error) {
	if err != nil {
		return v, err
	}
	return call()
}

func (s *gated) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return passed(s.pass("create", name), func() (store.Entry, error) { return s.Store.Create(ctx, name, record) })
}

func (s *gated) Read(ctx context.Context, name string) (store.Entry, error) {
	return passed(s.pass("read", name), func() (store.Entry, error) { return s.Store.Read(ctx, name) })
}

func (s *gated) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	err := s.pass("read document", name)
	if err == errHangs {
		<-ctx.Done()
	}
	return passed(err, func() (store.Document, error) {
		return s.Store.(store.Documenter).ReadDocument(ctx, name, etag)
	})
}

func (s *gated) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	return passed(s.pass("write document", name), func() (store.Revision, error) {
		return s.Store.(store.Documenter).WriteDocument(ctx, name, etag, body)
	})
}

func (s *gated) Lease(name, id string) store.Lease {
	return gatedLease{s.Store.Lease(name, id), func(op string) error { return s.pass(op, name) }}
}

type gatedLease struct {
	store.Lease
	pass func(op string) error
}

func (l gatedLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return passed(l.pass("acquire"), func() (store.Revision, error) { return l.Lease.Acquire(ctx, d, etag) })
}

func (l gatedLease) Renew(ctx context.Context) (store.Revision, error) {
	return passed(l.pass("renew"), func() (store.Revision, error) { return l.Lease.Renew(ctx) })
}

func (l gatedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return passed(l.pass("write"), func() (store.Revision, error) { return l.Lease.Write(ctx, etag, record) })
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

func (l piped) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

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
