package azure_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/store"
)

// A body is an answer's, and remembers how it was used.
type body struct {
	io.Reader
	read   int
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.read += n
	return n, err
}

func (b *body) Close() error {
	b.closed = true
	return nil
}

// failing reads text and then fails.
func failing(text string, err error) io.Reader {
	return io.MultiReader(strings.NewReader(text), errReader{err})
}

type errReader struct{ error }

func (r errReader) Read([]byte) (int, error) { return 0, r.error }

// content answers a GET as the service does, with this body.
func content(r *http.Request, status int, b io.ReadCloser, length string) *http.Response {
	resp := &http.Response{StatusCode: status, Header: http.Header{}, Body: b, Request: r}
	resp.Header.Set("ETag", `"0x1"`)
	resp.Header.Set("x-ms-lease-state", "leased")
	resp.Header.Set("x-ms-request-id", "1")
	resp.Header.Set("x-ms-version", "2026-02-06")
	if length != "" {
		resp.Header.Set("Content-Length", length)
	}
	return resp
}

func TestLoadReadsOneBodyToEnd(t *testing.T) {
	network := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")} // what the library would repeat
	tooMuch := store.ErrTooLarge.Error()
	long := strings.Repeat("x", store.MaxCheckpoint)
	tests := map[string]struct {
		reader io.Reader
		length string
		want   string // that the error says; empty: no error
		err    error
	}{
		"whole":       {strings.NewReader("abc"), "3", "", nil},
		"empty":       {strings.NewReader(""), "0", "", nil},
		"chunked":     {strings.NewReader("abc"), "", "", nil},
		"largest":     {strings.NewReader(long), strconv.Itoa(len(long)), "", nil},
		"cut":         {strings.NewReader("ab"), "3", "2 of 3 bytes", io.ErrUnexpectedEOF},
		"broken":      {failing("ab", io.ErrUnexpectedEOF), "3", "unexpected EOF", io.ErrUnexpectedEOF},
		"reset":       {failing("ab", network), "3", "connection reset", network},
		"too large":   {strings.NewReader(long + "x"), strconv.Itoa(len(long) + 1), tooMuch, store.ErrTooLarge},
		"without end": {endless{}, "", tooMuch, store.ErrTooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, requests := &body{Reader: tt.reader}, 0
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				requests++
				return content(r, http.StatusOK, b, tt.length), nil
			}))
			got, err := s.Lease("app/job", idA).(store.Checkpointer).Load(t.Context(), `"0x1"`)
			switch {
			case tt.want == "" && (err != nil || len(got) != b.read):
				t.Errorf("got %d of %d bytes, %v", len(got), b.read, err)
			case tt.want != "" && (err == nil || got != nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %.20q, %v, want %q", got, err, tt.want)
			case tt.err != nil && !errors.Is(err, tt.err):
				t.Errorf("got %v, want %v", err, tt.err)
			}
			for _, sentinel := range sentinels {
				if errors.Is(err, sentinel) {
					t.Errorf("got %v, which is not about the entry", err)
				}
			}
			if requests != 1 || !b.closed || b.read > store.MaxCheckpoint+1 {
				t.Errorf("%d requests, closed %t, %d bytes read", requests, b.closed, b.read)
			}
		})
	}
}

// The service tells the length beforehand, so nothing of a large content is read.
func TestLoadReadsNothingTooLarge(t *testing.T) {
	b := &body{Reader: endless{}}
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		return content(r, http.StatusOK, b, "400000000"), nil
	}))
	if _, err := s.Lease("app/job", idA).(store.Checkpointer).Load(t.Context(), `"0x1"`); !errors.Is(err, store.ErrTooLarge) || b.read > 0 || !b.closed {
		t.Errorf("got %v, %d bytes read, closed %t", err, b.read, b.closed)
	}
}

// A read tells how long the checkpoint is, also one of another program.
func TestReadTellsLengthOfCheckpoint(t *testing.T) {
	for _, length := range []int64{0, 7, 400_000_000} {
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			return content(r, http.StatusOK, http.NoBody, strconv.FormatInt(length, 10)), nil
		}))
		if e, err := s.Read(t.Context(), name); err != nil || e.Checkpoint != length {
			t.Errorf("got %+v, %v, want %d", e, err, length)
		}
	}
}

// endless never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What is not the blob's content is not taken for an empty checkpoint.
func TestLoadOfSomethingElse(t *testing.T) {
	for name, spoil := range map[string]func(*http.Response){
		"not modified": func(r *http.Response) { r.StatusCode = http.StatusNotModified; r.Header.Del("x-ms-lease-state") },
		"no ETag":      func(r *http.Response) { r.Header.Del("ETag") },
		"another ETag": func(r *http.Response) { r.Header.Set("ETag", `"0x2"`) },
		"no lease":     func(r *http.Response) { r.Header.Del("x-ms-lease-state") },
	} {
		t.Run(name, func(t *testing.T) {
			b := &body{Reader: strings.NewReader("")}
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := content(r, http.StatusOK, b, "0")
				spoil(resp)
				return resp, nil
			}))
			got, err := s.Lease("app/job", idA).(store.Checkpointer).Load(t.Context(), `"0x1"`)
			if err == nil || !strings.Contains(err.Error(), "not from the Blob service") || !b.closed {
				t.Errorf("got %q, %v, closed %t", got, err, b.closed)
			}
		})
	}
}

// A request that nobody waits for any more is sent with the bytes of its call.
func TestSaveSendsACopy(t *testing.T) {
	var sent io.ReadCloser
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		sent = r.Body
		return nil, errors.New("gave up")
	}))
	checkpoint := []byte("checkpoint")
	s.Lease(name, idA).(store.Checkpointer).Save(t.Context(), `"0x1"`, []byte("x"), checkpoint)
	clear(checkpoint)
	if got, err := io.ReadAll(sent); string(got) != "checkpoint" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Save is one request, and nothing of the blob is lost by it or by a write.
func TestSaveAndLoadAreOneRequestEach(t *testing.T) {
	w := &wire{}
	s := open(t, w)
	e := created(t, s)
	l := s.Lease(name, idA)
	if _, err := l.Acquire(t.Context(), 15e9, e.ETag); err != nil {
		t.Fatal(err)
	}
	before := len(w.Log())
	stamp, err := l.(store.Checkpointer).Save(t.Context(), e.ETag, []byte("two"), []byte("\x00\xff"))
	if err != nil {
		t.Fatal(err)
	}
	if stamp, err = l.Write(t.Context(), stamp.ETag, []byte("three")); err != nil {
		t.Fatal(err)
	}
	got, err := l.(store.Checkpointer).Load(t.Context(), stamp.ETag)
	if err != nil || !bytes.Equal(got, []byte("\x00\xff")) {
		t.Errorf("got %q, %v", got, err)
	}
	var ops []string
	for _, op := range w.Log()[before:] {
		ops = append(ops, op.Op)
	}
	if got, want := strings.Join(ops, " "), "put metadata get"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
	if e, err := s.Read(t.Context(), name); err != nil || string(e.Record) != "three" || e.State != store.Leased {
		t.Errorf("got %+v, %v", e, err)
	}
}
