package azure_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

const (
	name   = "app/job"
	idA    = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	idB    = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	keyed  = "AccountName=sim;AccountKey=" + secret
	secret = "c2VjcmV0c2VjcmV0" // base64
)

// A transport answers requests in place of the network.
type transport func(*http.Request) (*http.Response, error)

func (t transport) Do(r *http.Request) (*http.Response, error) { return t(r) }

// A wire records what it carries to a service.
type wire struct {
	blobtest.Blob
	requests []*http.Request
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.requests = append(w.requests, r)
	return w.Blob.Do(r)
}

func open(t *testing.T, send interface {
	Do(*http.Request) (*http.Response, error)
}) *azure.Store {
	t.Helper()
	return opened(t, azure.Config{ConnectionString: keyed, Transport: send})
}

func opened(t *testing.T, c azure.Config) *azure.Store {
	t.Helper()
	s, err := azure.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// calls are all methods that talk to the service.
var calls = map[string]func(ctx context.Context, s *azure.Store) error{
	"create": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Create(ctx, name, []byte("one"))
		return err
	},
	"read": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Read(ctx, name)
		return err
	},
	"acquire": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Lease(name, idA).Acquire(ctx, 15*time.Second, `"0x1"`)
		return err
	},
	"renew": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Lease(name, idA).Renew(ctx)
		return err
	},
	"write": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Lease(name, idA).Write(ctx, `"0x1"`, []byte("two"))
		return err
	},
	"save": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Lease(name, idA).(store.Checkpointer).Save(ctx, `"0x1"`, []byte("two"), []byte("{}"))
		return err
	},
	"load": func(ctx context.Context, s *azure.Store) error {
		_, err := s.Lease(name, idA).(store.Checkpointer).Load(ctx, `"0x1"`)
		return err
	},
	"release": func(ctx context.Context, s *azure.Store) error {
		return s.Lease(name, idA).Release(ctx)
	},
	"break": func(ctx context.Context, s *azure.Store) error {
		return s.Break(ctx, name, 0)
	},
	"break unchanged": func(ctx context.Context, s *azure.Store) error {
		return s.BreakUnchanged(ctx, name, `"0x1"`)
	},
	"read document": func(ctx context.Context, s *azure.Store) error {
		_, err := s.ReadDocument(ctx, name, `"0x2"`)
		return err
	},
	"write document": func(ctx context.Context, s *azure.Store) error {
		_, err := s.WriteDocument(ctx, name, `"0x1"`, []byte("text"))
		return err
	},
	"append": func(ctx context.Context, s *azure.Store) error {
		return s.Append(ctx, store.LogName(name, "1"), 5, []byte("line"))
	},
	"read log": func(ctx context.Context, s *azure.Store) error {
		_, err := s.ReadLog(ctx, store.LogName(name, "1"), 5, 10)
		return err
	},
	"logs": func(ctx context.Context, s *azure.Store) error {
		return s.Logs(ctx, name, func(string, int64) bool { return true })
	},
	"list": func(ctx context.Context, s *azure.Store) error {
		return s.List(ctx, "app", func(string, store.Entry) bool { return true })
	},
	"create document": func(ctx context.Context, s *azure.Store) error {
		_, err := s.WriteDocument(ctx, name, "", []byte("text"))
		return err
	},
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

func TestRequestsCarryGuards(t *testing.T) {
	const path = "/soloist/app/job"
	tests := map[string]struct {
		method, query string
		headers       map[string]string
	}{
		"create":          {"PUT", "", map[string]string{"If-None-Match": "*", "If-Match": "", "x-ms-blob-type": "BlockBlob", "x-ms-meta-record": "one", "x-ms-lease-id": ""}},
		"read":            {"HEAD", "", map[string]string{"x-ms-lease-id": "", "If-Match": ""}},
		"acquire":         {"PUT", "lease", map[string]string{"x-ms-lease-action": "acquire", "x-ms-proposed-lease-id": idA, "x-ms-lease-duration": "15", "If-Match": `"0x1"`}},
		"renew":           {"PUT", "lease", map[string]string{"x-ms-lease-action": "renew", "x-ms-lease-id": idA, "If-Match": ""}},
		"write":           {"PUT", "metadata", map[string]string{"x-ms-lease-id": idA, "If-Match": `"0x1"`, "x-ms-meta-record": "two"}},
		"save":            {"PUT", "", map[string]string{"x-ms-lease-id": idA, "If-Match": `"0x1"`, "x-ms-meta-record": "two", "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": "application/json", "Content-Length": "2"}},
		"load":            {"GET", "", map[string]string{"x-ms-lease-id": idA, "If-Match": `"0x1"`, "Range": "", "x-ms-range": ""}},
		"read document":   {"GET", "", map[string]string{"x-ms-lease-id": "", "If-Match": "", "If-None-Match": `"0x2"`, "Range": "", "x-ms-range": ""}},
		"write document":  {"PUT", "", map[string]string{"x-ms-lease-id": "", "If-Match": `"0x1"`, "If-None-Match": "", "x-ms-meta-record": "", "x-ms-blob-type": "BlockBlob", "Content-Length": "4"}},
		"create document": {"PUT", "", map[string]string{"x-ms-lease-id": "", "If-Match": "", "If-None-Match": "*", "x-ms-blob-type": "BlockBlob", "Content-Length": "4"}},
		"append":          {"PUT", "appendblock", map[string]string{"x-ms-blob-condition-appendpos": "5", "Content-Length": "4", "x-ms-lease-id": ""}},
		"read log":        {"GET", "", map[string]string{"x-ms-range": "bytes=5-14"}},
		"logs":            {"GET", "list", nil},
		"list":            {"GET", "list", nil},
		"release":         {"PUT", "lease", map[string]string{"x-ms-lease-action": "release", "x-ms-lease-id": idA}},
		"break":           {"PUT", "lease", map[string]string{"x-ms-lease-action": "break", "x-ms-lease-break-period": "0", "If-Match": ""}},
		"break unchanged": {"PUT", "lease", map[string]string{"x-ms-lease-action": "break", "x-ms-lease-break-period": "0", "x-ms-lease-id": "", "If-Match": `"0x1"`}},
	}
	for call, do := range calls {
		t.Run(call, func(t *testing.T) {
			tt, w := tests[call], &wire{}
			do(t.Context(), open(t, w))
			if len(w.requests) == 0 {
				t.Fatal("no request")
			}
			r := w.requests[0]
			if r.Method != tt.method || r.URL.Path != path && tt.query != "list" && !strings.HasSuffix(r.URL.Path, "/app/.log/job/1") || r.URL.Query().Get("comp") != tt.query {
				t.Errorf("got %s %s", r.Method, r.URL)
			}
			for h, want := range tt.headers {
				if got := header(r, h); got != want {
					t.Errorf("%s: got %q, want %q", h, got, want)
				}
			}
			for h, want := range map[string]string{"Authorization": "SharedKey sim:", "User-Agent": "soloist "} {
				if got := header(r, h); !strings.HasPrefix(got, want) {
					t.Errorf("%s: got %q, want %q...", h, got, want)
				}
			}
		})
	}
}

func TestBreakPeriods(t *testing.T) {
	for period, want := range map[time.Duration]string{-1: "", 0: "0", time.Second: "1", time.Minute: "60"} {
		w := &wire{}
		open(t, w).Break(t.Context(), name, period)
		if got := header(w.requests[0], "x-ms-lease-break-period"); got != want {
			t.Errorf("%s: got %q, want %q", period, got, want)
		}
	}
}

// A success that names another ETag is no success of the break that was asked for.
func TestBreakWhoseConditionIsDropped(t *testing.T) {
	var blob blobtest.Blob
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("comp") == "lease" {
			maps.DeleteFunc(r.Header, func(h string, _ []string) bool { return strings.EqualFold(h, "If-Match") })
		}
		return blob.Do(r)
	}))
	e := created(t, s)
	l := s.Lease(name, idA)
	if _, err := l.Acquire(t.Context(), time.Minute, e.ETag); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Write(t.Context(), e.ETag, []byte("two")); err != nil {
		t.Fatal(err)
	}
	err := s.BreakUnchanged(t.Context(), name, e.ETag)
	if err == nil || !strings.Contains(err.Error(), "dropped the condition") {
		t.Errorf("got %v, want an error that tells of the condition", err)
	}
	for _, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			t.Errorf("got %v, which says that nothing was done", err)
		}
	}
}

func created(t *testing.T, s *azure.Store) store.Entry {
	t.Helper()
	e, err := s.Create(t.Context(), name, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestReadOfBlobWithoutRecord(t *testing.T) {
	w := &wire{}
	s := open(t, w)
	created(t, s)
	r, _ := http.NewRequest("PUT", "https://sim.blob.core.windows.net/soloist/app/job", nil)
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	w.Blob.Do(r)
	e, err := s.Read(t.Context(), name)
	if err != nil || len(e.Record) != 0 || e.ETag == "" {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestCreateMakesContainer(t *testing.T) {
	w := &wire{}
	created(t, open(t, w))
	var got []string
	for _, op := range w.Log() {
		got = append(got, op.Op)
	}
	if want := "put, create container, put"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := open(t, w).Create(t.Context(), name, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: %v", err)
	}
}

func TestCreateBesideOthers(t *testing.T) {
	w := &wire{}
	for i := range 2 { // at the second, another replica creates the container in between
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			if i == 1 && r.URL.Query().Get("restype") == "container" {
				open(t, &w.Blob).Create(t.Context(), "app/other", []byte("x"))
			}
			return w.Blob.Do(r)
		}))
		w.Blob = blobtest.Blob{}
		if _, err := s.Create(t.Context(), name, []byte("one")); err != nil {
			t.Error(err)
		}
	}
}

func TestCreateInContainerBeingDeleted(t *testing.T) {
	w := &wire{}
	s := open(t, w)
	created(t, s)
	r, _ := http.NewRequest("DELETE", "https://sim.blob.core.windows.net/soloist?restype=container", nil)
	w.Blob.Do(r)
	_, err := s.Create(t.Context(), name, []byte("one"))
	if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "ContainerBeingDeleted") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsRepeated(t *testing.T) {
	failures := map[string]transport{
		"500":     func(r *http.Request) (*http.Response, error) { return refusal(r, 500, "InternalError"), nil },
		"503":     func(r *http.Request) (*http.Response, error) { return refusal(r, 503, "ServerBusy"), nil },
		"429":     func(r *http.Request) (*http.Response, error) { return refusal(r, 429, "TooManyRequests"), nil },
		"408":     func(r *http.Request) (*http.Response, error) { return refusal(r, 408, ""), nil },
		"network": func(r *http.Request) (*http.Response, error) { return nil, errors.New("connection reset") },
	}
	for failure, send := range failures {
		for call, do := range calls {
			t.Run(failure+"/"+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // where the delays of a repetition cost nothing
					n := 0
					err := do(t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
						n++
						return send(r)
					})))
					if err == nil || n != 1 {
						t.Errorf("%d requests, %v", n, err)
					}
				})
			})
		}
	}
}

func TestCallsEndWithContext(t *testing.T) {
	for call, do := range calls {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, transport(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}))
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				err := do(ctx, s)
				if took := time.Since(start); took != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

func TestWrongArgumentsAreNotSent(t *testing.T) {
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", r.Method, r.URL)
		return nil, errors.New("sent")
	}))
	l := s.Lease(name, idA).(interface {
		store.Lease
		store.Checkpointer
	})
	for _, record := range []string{"", " x", "x ", "a\nb", "caf\u00e9", "\x7f", strings.Repeat("x", store.MaxRecord+1)} {
		if _, err := s.Create(t.Context(), name, []byte(record)); err == nil {
			t.Errorf("created with %.20q", record)
		}
		if _, err := l.Write(t.Context(), `"0x1"`, []byte(record)); err == nil {
			t.Errorf("wrote %.20q", record)
		}
		if _, err := l.Save(t.Context(), `"0x1"`, []byte(record), nil); err == nil {
			t.Errorf("saved %.20q", record)
		}
	}
	for _, d := range []time.Duration{-time.Second, 0, 14 * time.Second, 61 * time.Second, 20*time.Second + 1} {
		if _, err := l.Acquire(t.Context(), d, `"0x1"`); err == nil || !strings.Contains(err.Error(), "15 to 60 s") {
			t.Errorf("acquired for %s: %v", d, err)
		}
	}
	if _, err := l.Acquire(t.Context(), time.Minute, ""); err == nil {
		t.Error("acquired without an ETag")
	}
	if _, err := l.Write(t.Context(), "", []byte("x")); err == nil {
		t.Error("wrote without an ETag")
	}
	if _, err := l.Save(t.Context(), "", []byte("x"), nil); err == nil {
		t.Error("saved without an ETag")
	}
	if _, err := l.Load(t.Context(), ""); err == nil {
		t.Error("loaded without an ETag")
	}
	if _, err := l.Save(t.Context(), `"0x1"`, []byte("x"), make([]byte, store.MaxCheckpoint+1)); err == nil || !strings.Contains(err.Error(), "the checkpoint has") {
		t.Errorf("saved too much: %v", err)
	}
	if _, err := s.WriteDocument(t.Context(), name, "", make([]byte, store.MaxDocument+1)); err == nil || !strings.Contains(err.Error(), "the document has") {
		t.Errorf("wrote too much: %v", err)
	}
	for _, b := range [][]byte{nil, make([]byte, store.MaxAppend+1)} {
		if err := s.Append(t.Context(), name, 0, b); err == nil {
			t.Errorf("appended %d bytes", len(b))
		}
	}
	if err := s.BreakUnchanged(t.Context(), name, ""); err == nil {
		t.Error("broke without an ETag")
	}
	for _, d := range []time.Duration{61 * time.Second, time.Second / 2} {
		if err := s.Break(t.Context(), name, d); err == nil {
			t.Errorf("broke after %s", d)
		}
	}
}

func TestDateIsOfService(t *testing.T) {
	now := time.Date(2026, 10, 25, 0, 59, 59, 999e6, time.UTC)
	s := open(t, &blobtest.Blob{Now: func() time.Time { return now }})
	want := now.Truncate(time.Second)
	e := created(t, s)
	l := s.Lease(name, idA)
	acquired, _ := l.Acquire(t.Context(), time.Minute, e.ETag)
	renewed, _ := l.Renew(t.Context())
	written, _ := l.Write(t.Context(), e.ETag, []byte("two"))
	seen, _ := s.Read(t.Context(), name)
	for i, st := range []store.Revision{e.Revision, acquired, renewed, written, seen.Revision} {
		if !st.Date.Equal(want) || st.ETag == "" {
			t.Errorf("%d: got %+v, want %s", i, st, want)
		}
	}
}

// Each write tells whether the account keeps versions.
func TestVersionsAreNoticed(t *testing.T) {
	for _, call := range []string{"create", "write", "save", "write document"} {
		for version, want := range map[string]bool{"": false, "2026-11-21T02:30:00.1234567Z": true} {
			status := map[string]int{"create": http.StatusCreated, "write": http.StatusOK, "save": http.StatusCreated, "write document": http.StatusCreated}[call]
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := blobtest.Refusal(r, time.Now(), status, "")
				resp.Header.Set("ETag", `"0x2"`)
				if version != "" {
					resp.Header.Set("x-ms-version-id", version)
				}
				return resp, nil
			}))
			if err := calls[call](t.Context(), s); err != nil || s.Versioned() != want {
				t.Errorf("%s, version %q: got %t, %v", call, version, s.Versioned(), err)
			}
		}
	}
}
