package azure_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

const (
	name    = "app/job"
	logName = "app/.log/job/1"
	idA     = "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	idB     = "bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	keyed   = "AccountName=sim;AccountKey=" + secret
	secret  = "c2VjcmV0c2VjcmV0" // base64
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

// A hold is a lease with its checkpoint.
type hold interface {
	store.Lease
	store.Checkpointer
}

func holding(s *azure.Store) hold { return s.Lease(name, idA).(hold) }

// leased creates an entry and leases it.
func leased(t *testing.T, s *azure.Store) (hold, store.Entry) {
	t.Helper()
	e := created(t, s)
	l := holding(s)
	if _, err := l.Acquire(t.Context(), time.Minute, e.ETag); err != nil {
		t.Fatal(err)
	}
	return l, e
}

func second[T any](_ T, err error) error { return err }

// over is the configuration of an account whose service this is.
func over(send transport) azure.Config {
	return azure.Config{ConnectionString: keyed, Transport: send}
}

// A call is a method that talks to the service.
type call func(context.Context, azure.Config) error

func ofStore(do func(context.Context, *azure.Store) error) call {
	return func(ctx context.Context, c azure.Config) error {
		s, err := azure.Open(c)
		if err != nil {
			return err
		}
		return do(ctx, s)
	}
}

func ofQueue(do func(context.Context, *azure.Queue) error) call {
	return func(ctx context.Context, c azure.Config) error {
		q, err := azure.OpenQueue(c, queueName)
		if err != nil {
			return err
		}
		return do(ctx, q)
	}
}

// calls are all of them.
var calls = map[string]call{
	"create": ofStore(func(ctx context.Context, s *azure.Store) error { return second(s.Create(ctx, name, []byte("one"))) }),
	"read":   ofStore(func(ctx context.Context, s *azure.Store) error { return second(s.Read(ctx, name)) }),
	"acquire": ofStore(func(ctx context.Context, s *azure.Store) error {
		return second(holding(s).Acquire(ctx, 15*time.Second, `"0x1"`))
	}),
	"renew": ofStore(func(ctx context.Context, s *azure.Store) error { return second(holding(s).Renew(ctx)) }),
	"write": ofStore(func(ctx context.Context, s *azure.Store) error {
		return second(holding(s).Write(ctx, `"0x1"`, []byte("two")))
	}),
	"load":            ofStore(func(ctx context.Context, s *azure.Store) error { return second(holding(s).Load(ctx, `"0x1"`)) }),
	"release":         ofStore(func(ctx context.Context, s *azure.Store) error { return holding(s).Release(ctx) }),
	"break":           ofStore(func(ctx context.Context, s *azure.Store) error { return s.Break(ctx, name, 0) }),
	"break unchanged": ofStore(func(ctx context.Context, s *azure.Store) error { return s.BreakUnchanged(ctx, name, `"0x1"`) }),
	"delete":          ofStore(func(ctx context.Context, s *azure.Store) error { return s.Delete(ctx, name) }),
	"read document":   ofStore(func(ctx context.Context, s *azure.Store) error { return second(s.ReadDocument(ctx, name, `"0x2"`)) }),
	"append":          ofStore(func(ctx context.Context, s *azure.Store) error { return s.Append(ctx, logName, 5, []byte("line")) }),
	"read log":        ofStore(func(ctx context.Context, s *azure.Store) error { return second(s.ReadLog(ctx, logName, 5, 10)) }),
	"save": ofStore(func(ctx context.Context, s *azure.Store) error {
		return second(holding(s).Save(ctx, `"0x1"`, []byte("two"), []byte("{}")))
	}),
	"write document": ofStore(func(ctx context.Context, s *azure.Store) error {
		return second(s.WriteDocument(ctx, name, `"0x1"`, []byte("text")))
	}),
	"create document": ofStore(func(ctx context.Context, s *azure.Store) error {
		return second(s.WriteDocument(ctx, name, "", []byte("text")))
	}),
	"logs": ofStore(func(ctx context.Context, s *azure.Store) error {
		return s.Logs(ctx, name, func(string, int64) bool { return true })
	}),
	"list": ofStore(func(ctx context.Context, s *azure.Store) error {
		return s.List(ctx, "app", func(string, store.Entry) bool { return true })
	}),
	"put message": ofQueue(func(ctx context.Context, q *azure.Queue) error { return second(q.Put(ctx, []byte("x"), 0)) }),
	"receive messages": ofQueue(func(ctx context.Context, q *azure.Queue) error {
		return second(q.Receive(ctx, 1, time.Second))
	}),
	"delete message": ofQueue(func(ctx context.Context, q *azure.Queue) error {
		return q.Delete(ctx, alarm.Receipt{ID: "a", Pop: "p"})
	}),
	"read queue": ofQueue(func(ctx context.Context, q *azure.Queue) error { return second(q.Visible(ctx)) }),
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
		"read":            {"HEAD", "", map[string]string{"cache-control": "no-cache", "x-ms-lease-id": "", "If-Match": ""}},
		"acquire":         {"PUT", "lease", map[string]string{"x-ms-lease-action": "acquire", "x-ms-proposed-lease-id": idA, "x-ms-lease-duration": "15", "If-Match": `"0x1"`}},
		"renew":           {"PUT", "lease", map[string]string{"x-ms-lease-action": "renew", "x-ms-lease-id": idA, "If-Match": ""}},
		"write":           {"PUT", "metadata", map[string]string{"x-ms-lease-id": idA, "If-Match": `"0x1"`, "x-ms-meta-record": "two"}},
		"save":            {"PUT", "", map[string]string{"x-ms-lease-id": idA, "If-Match": `"0x1"`, "x-ms-meta-record": "two", "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": "application/json", "Content-Length": "2"}},
		"load":            {"GET", "", map[string]string{"cache-control": "no-cache", "x-ms-lease-id": idA, "If-Match": `"0x1"`, "Range": "", "x-ms-range": ""}},
		"read document":   {"GET", "", map[string]string{"cache-control": "no-cache", "x-ms-lease-id": "", "If-Match": "", "If-None-Match": `"0x2"`, "Range": "", "x-ms-range": ""}},
		"write document":  {"PUT", "", map[string]string{"x-ms-lease-id": "", "If-Match": `"0x1"`, "If-None-Match": "", "x-ms-meta-record": "", "x-ms-blob-type": "BlockBlob", "Content-Length": "4"}},
		"create document": {"PUT", "", map[string]string{"x-ms-lease-id": "", "If-Match": "", "If-None-Match": "*", "x-ms-blob-type": "BlockBlob", "Content-Length": "4"}},
		"append":          {"PUT", "appendblock", map[string]string{"x-ms-blob-condition-appendpos": "5", "Content-Length": "4", "x-ms-lease-id": ""}},
		"read log":        {"GET", "", map[string]string{"x-ms-range": "bytes=5-14"}},
		"logs":            {"GET", "list", nil},
		"list":            {"GET", "list", nil},
		"delete":          {"DELETE", "", nil},
		"release":         {"PUT", "lease", map[string]string{"x-ms-lease-action": "release", "x-ms-lease-id": idA}},
		"break":           {"PUT", "lease", map[string]string{"x-ms-lease-action": "break", "x-ms-lease-break-period": "0", "If-Match": ""}},
		"break unchanged": {"PUT", "lease", map[string]string{"x-ms-lease-action": "break", "x-ms-lease-break-period": "0", "x-ms-lease-id": "", "If-Match": `"0x1"`}},
	}
	for call, tt := range tests {
		t.Run(call, func(t *testing.T) {
			w := &wire{}
			calls[call](t.Context(), over(w.Do))
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

// A success that names another ETag is no success of the break that was asked for.
func TestBreakWhoseConditionIsDropped(t *testing.T) {
	var blob blobtest.Blob
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("comp") == "lease" {
			maps.DeleteFunc(r.Header, func(h string, _ []string) bool { return strings.EqualFold(h, "If-Match") })
		}
		return blob.Do(r)
	}))
	l, e := leased(t, s)
	if _, err := l.Write(t.Context(), e.ETag, []byte("two")); err != nil {
		t.Fatal(err)
	}
	unclear(t, s.BreakUnchanged(t.Context(), name, e.ETag), "dropped the condition")
}

func created(t *testing.T, s *azure.Store) store.Entry {
	t.Helper()
	e, err := s.Create(t.Context(), name, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The first entry, document or log makes the container, and the first message the queue. What has to be there already does not.
func TestMissingContainerIsCreated(t *testing.T) {
	for call, want := range map[string]string{
		"create":          "put, create container, put",
		"create document": "put, create container, put",
		"write document":  "put",
	} {
		w := &wire{}
		err := calls[call](t.Context(), over(w.Do))
		if got := operations(w.Log()); got != want || (err == nil) != (want != "put") {
			t.Errorf("%s: got %q, %v, want %q", call, got, err, want)
		}
	}
	for call, box := range map[string]string{"create": "Container", "put message": "Queue"} {
		for code, says := range map[string]string{"": "", box + "AlreadyExists": "", box + "BeingDeleted": "409 " + box + "BeingDeleted"} {
			there, calledFor := false, 0
			err := calls[call](t.Context(), over(func(r *http.Request) (*http.Response, error) {
				switch {
				case creates(r) && code == "":
					there = true
					return answered(r, http.StatusCreated, ""), nil
				case creates(r): // another replica has created it meanwhile, or somebody is deleting it
					there = says == ""
					return refusal(r, http.StatusConflict, code), nil
				}
				if calledFor++; !there {
					return refusal(r, http.StatusNotFound, box+"NotFound"), nil
				}
				resp := answered(r, http.StatusCreated, putAnswer)
				resp.Header.Set("ETag", `"0x1"`)
				return resp, nil
			}))
			if says == "" && (err != nil || calledFor != 2) || says != "" && (err == nil || !strings.Contains(err.Error(), says) || calledFor != 1) {
				t.Errorf("%s, %s: got %v after %d calls", call, code, err, calledFor)
			}
		}
	}
}

func operations(log []blobtest.Op) string {
	var ops []string
	for _, op := range log {
		ops = append(ops, op.Op)
	}
	return strings.Join(ops, ", ")
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
					err := do(t.Context(), over(func(r *http.Request) (*http.Response, error) {
						n++
						return send(r)
					}))
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
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				start := time.Now()
				err := do(ctx, over(func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}))
				if took := time.Since(start); took != 3*time.Second || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

func TestWrongArgumentsAreNotSent(t *testing.T) {
	unasked := over(func(r *http.Request) (*http.Response, error) {
		t.Errorf("sent %s %s", r.Method, r.URL)
		return nil, errors.New("sent")
	})
	s, q := opened(t, unasked), queued(t, unasked)
	l, ctx, text := holding(s), t.Context(), []byte("x")
	refused := func(what, says string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", what, err, says)
		}
	}
	for _, record := range []string{"", " x", "x ", "a\nb", "caf\u00e9", "\x7f", strings.Repeat("x", store.MaxRecord+1)} {
		refused("create", "record", second(s.Create(ctx, name, []byte(record))))
		refused("write", "record", second(l.Write(ctx, `"0x1"`, []byte(record))))
		refused("save", "record", second(l.Save(ctx, `"0x1"`, []byte(record), nil)))
	}
	for _, d := range []time.Duration{-time.Second, 0, 14 * time.Second, 61 * time.Second, 20*time.Second + 1} {
		refused("acquire", "15 to 60 s", second(l.Acquire(ctx, d, `"0x1"`)))
	}
	refused("acquire", "no ETag", second(l.Acquire(ctx, time.Minute, "")))
	refused("write", "no ETag", second(l.Write(ctx, "", text)))
	refused("save", "no ETag", second(l.Save(ctx, "", text, nil)))
	refused("load", "no ETag", second(l.Load(ctx, "")))
	refused("break", "no ETag", s.BreakUnchanged(ctx, name, ""))
	refused("save", "the checkpoint has", second(l.Save(ctx, `"0x1"`, text, make([]byte, store.MaxCheckpoint+1))))
	refused("write document", "the document has", second(s.WriteDocument(ctx, name, "", make([]byte, store.MaxDocument+1))))
	refused("append", "0 bytes", s.Append(ctx, name, 0, nil))
	refused("append", "bytes are not", s.Append(ctx, name, 0, make([]byte, store.MaxAppend+1)))
	for _, d := range []time.Duration{61 * time.Second, time.Second / 2} {
		refused("break", "whole seconds", s.Break(ctx, name, d))
	}
	refused("put", "hidden for -1s", second(q.Put(ctx, nil, -time.Second)))
	refused("put", "0 to 168h", second(q.Put(ctx, nil, 8*24*time.Hour)))
	refused("receive", "1 to 32", second(q.Receive(ctx, 33, time.Second)))
	refused("receive", "1s to 168h", second(q.Receive(ctx, 1, time.Millisecond)))
	refused("delete", "is empty", q.Delete(ctx, alarm.Receipt{ID: "a"}))
}

// Each write tells whether the account keeps versions.
func TestVersionsAreNoticed(t *testing.T) {
	for version, want := range map[string]bool{"": false, "2026-11-21T02:30:00.1234567Z": true} {
		for what, write := range map[string]func(*azure.Store) error{
			"create":   func(s *azure.Store) error { return second(s.Create(t.Context(), name, []byte("one"))) },
			"write":    func(s *azure.Store) error { return second(holding(s).Write(t.Context(), `"0x1"`, []byte("two"))) },
			"save":     func(s *azure.Store) error { return second(holding(s).Save(t.Context(), `"0x1"`, []byte("two"), nil)) },
			"document": func(s *azure.Store) error { return second(s.WriteDocument(t.Context(), name, "", nil)) },
		} {
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := blobtest.Refusal(r, time.Now(), success(r), "")
				resp.Header.Set("ETag", `"0x2"`)
				if version != "" {
					resp.Header.Set("x-ms-version-id", version)
				}
				return resp, nil
			}))
			if err := write(s); err != nil || s.Versioned() != want {
				t.Errorf("%s, version %q: got %t, %v", what, version, s.Versioned(), err)
			}
		}
	}
}
