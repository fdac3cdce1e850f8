package azure_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

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

// A 304 of something on the way says nothing of the document: a pause would not be seen.
func TestForeignNotModifiedIsUnclear(t *testing.T) {
	for op, call := range calls {
		t.Run(op, func(t *testing.T) {
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				return page(r, http.StatusNotModified, http.Header{"Etag": {`"0x2"`}}), nil
			}))
			unclear(t, call(t.Context(), s), "304", "not from the Blob service")
		})
	}
}

// A cache on the way may answer only after it has asked the service.
func TestDocumentIsNotTakenFromACache(t *testing.T) {
	w := &wire{}
	s := open(t, w)
	if _, err := s.ReadDocument(t.Context(), document, `"0x1"`); err == nil || header(w.requests[0], "cache-control") != "no-cache" {
		t.Errorf("got %v, Cache-Control %q", err, header(w.requests[0], "cache-control"))
	}
}

// What is not the document, or not all of it, is an error.
func TestReadOfSomethingElseThanADocument(t *testing.T) {
	for what, one := range map[string]struct {
		reader io.Reader
		length string
		spoil  func(*http.Response)
		want   string
	}{
		"too large":      {endless{}, "400000000", nil, store.ErrTooLarge.Error()},
		"without end":    {endless{}, "", nil, store.ErrTooLarge.Error()},
		"cut":            {strings.NewReader("ab"), "3", nil, "2 of 3 bytes"},
		"no ETag":        {strings.NewReader(""), "0", func(r *http.Response) { r.Header.Del("ETag") }, "no ETag"},
		"no lease state": {strings.NewReader(""), "0", func(r *http.Response) { r.Header.Del("x-ms-lease-state") }, "not from the Blob service"},
	} {
		t.Run(what, func(t *testing.T) {
			b := &body{Reader: one.reader}
			s := open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := content(r, http.StatusOK, b, one.length)
				if one.spoil != nil {
					one.spoil(resp)
				}
				return resp, nil
			}))
			d, err := s.ReadDocument(t.Context(), document, "")
			if err == nil || !strings.Contains(err.Error(), one.want) || d.Body != nil || !b.closed || b.read > store.MaxDocument+1 {
				t.Errorf("got %d bytes, %v; %d bytes read, closed %t", len(d.Body), err, b.read, b.closed)
			}
		})
	}
}

// The first document makes the container, as the first entry does; a later write does not.
func TestFirstDocumentMakesContainer(t *testing.T) {
	w := &wire{}
	s := open(t, w)
	if _, err := s.WriteDocument(t.Context(), document, `"0x1"`, nil); !errors.Is(err, store.ErrChanged) {
		t.Errorf("write without a container: got %v, want %v", err, store.ErrChanged)
	}
	r, err := s.WriteDocument(t.Context(), document, "", []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.WriteDocument(t.Context(), document, r.ETag, []byte("second")); err != nil {
		t.Fatal(err)
	}
	if got, want := operations(w.Log()), "put put create container put put"; got != want {
		t.Errorf("requests %s, want %s", got, want)
	}
}

func operations(log []blobtest.Op) string {
	var ops []string
	for _, op := range log {
		ops = append(ops, op.Op)
	}
	return strings.Join(ops, " ")
}

// A request that outlives its call is sent with the bytes of the call.
func TestWriteOfADocumentSendsACopy(t *testing.T) {
	var sent io.ReadCloser
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		sent = r.Body
		return nil, errors.New("gave up")
	}))
	text := []byte("document")
	s.WriteDocument(t.Context(), document, "", text)
	clear(text)
	if got, err := io.ReadAll(sent); string(got) != "document" {
		t.Errorf("got %q, %v", got, err)
	}
}
