package azure_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
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

// content answers a GET as the service does, with this body.
func content(r *http.Request, status int, b io.ReadCloser, length string) *http.Response {
	resp := blobtest.Refusal(r, time.Now(), status, "")
	resp.Body = b
	resp.Header.Set("ETag", `"0x1"`)
	resp.Header.Set("x-ms-lease-state", "leased")
	if resp.Header.Del("Content-Length"); length != "" {
		resp.Header.Set("Content-Length", length)
	}
	return resp
}

// What is read of a checkpoint or a document is all of it, by one request, or an error that is not about the entry.
func TestContentIsReadToItsEnd(t *testing.T) {
	network := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")} // what the library would repeat
	tooMuch := store.ErrTooLarge.Error()
	long := strings.Repeat("x", store.MaxCheckpoint)
	reads := func(text string) func() io.Reader { return func() io.Reader { return strings.NewReader(text) } }
	fails := func(err error) func() io.Reader {
		return func() io.Reader { return io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(err)) }
	}
	lacks := func(header string) func(*http.Response) { return func(r *http.Response) { r.Header.Del(header) } }
	for what, tt := range map[string]struct {
		reader func() io.Reader
		length string
		spoil  func(*http.Response)
		want   string // that the error says; empty: no error
		err    error
	}{
		"whole":       {reads("abc"), "3", nil, "", nil},
		"empty":       {reads(""), "0", nil, "", nil},
		"chunked":     {reads("abc"), "", nil, "", nil},
		"largest":     {reads(long), strconv.Itoa(len(long)), nil, "", nil},
		"cut":         {reads("ab"), "3", nil, "2 of 3 bytes", io.ErrUnexpectedEOF},
		"broken":      {fails(io.ErrUnexpectedEOF), "3", nil, "unexpected EOF", io.ErrUnexpectedEOF},
		"reset":       {fails(network), "3", nil, "connection reset", network},
		"too large":   {reads(long + "x"), strconv.Itoa(len(long) + 1), nil, tooMuch, store.ErrTooLarge},
		"without end": {func() io.Reader { return endless{} }, "", nil, tooMuch, store.ErrTooLarge},
		"no ETag":     {reads(""), "0", lacks("ETag"), "not from the Blob service", nil},
		"not modified": {reads(""), "0", func(r *http.Response) {
			r.StatusCode = http.StatusNotModified
			r.Header.Del("x-ms-lease-state")
		}, "not from the Blob service", nil},
		"no lease state": {reads(""), "0", lacks("x-ms-lease-state"), "not from the Blob service", nil},
	} {
		for call, read := range map[string]func(*azure.Store) ([]byte, error){
			"load": func(s *azure.Store) ([]byte, error) { return holding(s).Load(t.Context(), `"0x1"`) },
			"document": func(s *azure.Store) ([]byte, error) {
				d, err := s.ReadDocument(t.Context(), document, "")
				return d.Body, err
			},
		} {
			t.Run(call+"/"+what, func(t *testing.T) {
				b, requests := &body{Reader: tt.reader()}, 0
				got, err := read(open(t, transport(func(r *http.Request) (*http.Response, error) {
					requests++
					resp := content(r, http.StatusOK, b, tt.length)
					if tt.spoil != nil {
						tt.spoil(resp)
					}
					return resp, nil
				})))
				switch {
				case tt.want == "" && (err != nil || len(got) != b.read):
					t.Errorf("got %d of %d bytes, %v", len(got), b.read, err)
				case tt.want != "":
					unclear(t, err, tt.want)
				}
				if tt.err != nil && !errors.Is(err, tt.err) || err != nil && got != nil {
					t.Errorf("got %.20q, %v, want %v", got, err, tt.err)
				}
				most := store.MaxCheckpoint + 1
				if tt.err == store.ErrTooLarge && tt.length != "" {
					most = 0 // the service tells the length beforehand
				}
				if requests != 1 || !b.closed || b.read > most {
					t.Errorf("%d requests, closed %t, %d bytes read", requests, b.closed, b.read)
				}
			})
		}
	}
}

// endless never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// What is not the blob's content is not taken for an empty checkpoint.
func TestLoadOfAnotherETag(t *testing.T) {
	b := &body{Reader: strings.NewReader("")}
	s := open(t, transport(func(r *http.Request) (*http.Response, error) { return content(r, http.StatusOK, b, "0"), nil }))
	if got, err := holding(s).Load(t.Context(), `"0x2"`); err == nil || !strings.Contains(err.Error(), "not from the Blob service") || !b.closed {
		t.Errorf("got %q, %v, closed %t", got, err, b.closed)
	}
}

// A request that outlives its call is sent with the bytes of the call.
func TestRequestsHaveACopy(t *testing.T) {
	for what, call := range map[string]func(s *azure.Store, b []byte) error{
		"save": func(s *azure.Store, b []byte) error {
			return second(holding(s).Save(t.Context(), `"0x1"`, []byte("x"), b))
		},
		"document": func(s *azure.Store, b []byte) error { return second(s.WriteDocument(t.Context(), document, "", b)) },
		"append":   func(s *azure.Store, b []byte) error { return s.Append(t.Context(), logName, 5, b) },
	} {
		var sent io.ReadCloser
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			sent = r.Body
			return nil, errors.New("gave up")
		}))
		text := []byte("what is sent")
		err := call(s, text)
		clear(text)
		if got, _ := io.ReadAll(sent); string(got) != "what is sent" {
			t.Errorf("%s: got %q, %v", what, got, err)
		}
	}
}

const document = "app/.control"

// The Date of a 304 counts; ETag and code may be missing from it.
func TestUnchangedDocument(t *testing.T) {
	for what, spoil := range map[string]func(*http.Response){
		"as documented":     func(*http.Response) {},
		"without an ETag":   func(r *http.Response) { r.Header.Del("ETag") },
		"without a code":    func(r *http.Response) { r.Header.Del("x-ms-error-code") },
		"with all it holds": func(r *http.Response) { r.StatusCode = http.StatusOK; r.Header.Del("x-ms-error-code") },
	} {
		t.Run(what, func(t *testing.T) {
			b := &body{Reader: strings.NewReader("never read")}
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := content(r, http.StatusNotModified, b, "")
				resp.Header.Set("x-ms-error-code", "ConditionNotMet")
				resp.Header.Set("Date", "Sun, 22 Nov 2026 16:00:00 GMT")
				spoil(resp)
				return resp, nil
			}))
			d, err := s.ReadDocument(t.Context(), document, `"0x1"`)
			if !errors.Is(err, store.ErrUnchanged) || d.Body != nil || d.Date.Year() != 2026 || b.read != 0 || !b.closed {
				t.Errorf("got %q of %s, %v; %d bytes read, closed %t", d.Body, d.Date, err, b.read, b.closed)
			}
		})
	}
}
