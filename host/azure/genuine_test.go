package azure_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// page is what a web server answers that stands in the place of the Blob service.
func page(r *http.Request, status int, header http.Header) *http.Response {
	resp := &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: header, Body: io.NopCloser(strings.NewReader("<html>please sign in</html>"))}
	resp.Header.Set("Content-Type", "text/html; charset=utf-8")
	resp.Header.Set("Server", "nginx")
	resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return resp
}

// A success that lacks the headers of the Blob service may have been applied or
// not: the error has no sentinel. It says what has answered.
func TestForeignSuccessIsUnclear(t *testing.T) {
	for what, header := range map[string]http.Header{
		"nothing":       {},
		"an ETag":       {"Etag": {`"5f8-62"`}, "X-Ms-Lease-State": {"available"}},
		"a request id":  {"Etag": {`"5f8-62"`}, "X-Ms-Lease-State": {"available"}, "X-Ms-Request-Id": {"1"}}, // as the sign-in pages of Microsoft
		"a version":     {"Etag": {`"5f8-62"`}, "X-Ms-Lease-State": {"available"}, "X-Ms-Version": {"2026-02-06"}},
		"a long server": {"Server": {strings.Repeat("s", 100_000)}},
	} {
		for op, call := range calls {
			for _, status := range []int{200, 201, 202, 204} {
				t.Run(fmt.Sprintf("%s/%d with %s", op, status, what), func(t *testing.T) {
					s := open(t, transport(func(r *http.Request) (*http.Response, error) {
						return page(r, status, header.Clone()), nil
					}))
					unclear(t, call(t.Context(), s), fmt.Sprint(status), `"text/html"`, "not from the Blob service", "sign-in page")
				})
			}
		}
	}
}

// A code in the body of a refusal is not the service's, which has it in a header. A 304 of something on the way says nothing
// of a document: a pause would not be seen.
func TestForeignRefusalIsUnclear(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": `{"error":{"code":"NotFound","message":"no such route"}}`,
		"application/xml":  `<?xml version="1.0"?><Error><Code>LeaseLost</Code></Error>`,
	} {
		for op, call := range calls {
			for _, status := range []int{304, 404, 409, 412} {
				t.Run(fmt.Sprintf("%s/%d %s", op, status, kind), func(t *testing.T) {
					s := open(t, transport(func(r *http.Request) (*http.Response, error) {
						resp := page(r, status, http.Header{"Etag": {`"0x2"`}})
						resp.Header.Set("Content-Type", kind)
						resp.Body = io.NopCloser(strings.NewReader(body))
						return resp, nil
					}))
					unclear(t, call(t.Context(), s), fmt.Sprint(status), "not from the Blob service")
				})
			}
		}
	}
}

// An answer of the Blob service without the ETag that is due says nothing of the
// entry. No If-Match fits a weak ETag, which a proxy makes that changes the content.
func TestSuccessWithoutStrongETagIsUnclear(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "renew", "write", "save", "load", "read document", "write document", "append", "read log"} {
		for etag, says := range map[string]string{"": "not from the Blob service", `W/"0x8D"`: "ETag"} {
			t.Run(op+" "+etag, func(t *testing.T) {
				s := open(t, transport(func(r *http.Request) (*http.Response, error) {
					resp := blobtest.Refusal(r, time.Now(), success(r), "")
					resp.Header.Set("X-Ms-Lease-State", "leased")
					if etag != "" {
						resp.Header.Set("ETag", etag)
					}
					return resp, nil
				}))
				unclear(t, calls[op](t.Context(), s), "ETag", says)
			})
		}
	}
}

// success is the status of a success of a request.
func success(r *http.Request) int {
	lease := r.URL.Query().Get("comp") == "lease" && header(r, "x-ms-lease-action") == "acquire"
	if comp := r.URL.Query().Get("comp"); lease || r.Method == http.MethodPut && (comp == "" || comp == "appendblock") {
		return http.StatusCreated
	}
	return http.StatusOK
}

// unclear checks that an error has no sentinel and says some words in one line.
func unclear(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, s := range sentinels {
		if errors.Is(err, s) {
			t.Errorf("got %v, which is %v", err, s)
		}
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("got %v, which lacks %s", err, w)
		}
	}
	if len(err.Error()) > 400 || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %d bytes: %.500q", len(err.Error()), err)
	}
}

// The doctor says where to look.
func TestForeignSuccessIsExplained(t *testing.T) {
	s := open(t, transport(func(r *http.Request) (*http.Response, error) { return page(r, http.StatusOK, http.Header{}), nil }))
	f := examine(t, s, "container", time.Now)
	if !f.Fails || !strings.Contains(f.Text, "not from the Blob service") || !strings.Contains(f.Advice, "NO_PROXY") {
		t.Errorf("got %+v", f)
	}
}

const (
	errorBody  = 64 << 10 // as much as is read of an answer that is an error
	answerBody = 16 << 20 // of any other
	pageBody   = 64 << 20 // of a page of a listing
	largeBody  = 65 << 20
)

// large is a body that counts what is read of it.
func large(read *atomic.Int64) io.ReadCloser {
	return io.NopCloser(io.TeeReader(io.LimitReader(endless{}, largeBody), counter{read}))
}

type counter struct{ n *atomic.Int64 }

func (c counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}

// A proxy, or something else that answers, cannot fill the memory, neither by a refusal nor by a success.
func TestNotAllIsReadOfAnAnswer(t *testing.T) {
	for call, do := range calls {
		for _, status := range []int{201, 300, 304, 400, 403, 404, 409, 412, 500, 503} {
			t.Run(fmt.Sprintf("%s/%d", call, status), func(t *testing.T) {
				var read atomic.Int64
				err := do(t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
					resp := &http.Response{StatusCode: status, Request: r, Header: http.Header{}}
					if status == http.StatusCreated {
						resp = blobtest.Refusal(r, time.Now(), status, "")
					}
					resp.Body, resp.ContentLength = large(&read), largeBody
					return resp, nil
				})))
				most := int64(errorBody)
				switch {
				case status == http.StatusCreated && (call == "list" || call == "logs"):
					most = pageBody
				case status == http.StatusCreated:
					most = answerBody
				}
				if read.Load() > most || err == nil && status != http.StatusCreated {
					t.Errorf("%d bytes read, and then %v", read.Load(), err)
				}
			})
		}
	}
}

// The source of tokens is on a network as well.
func TestLittleIsReadOfTokenRefusal(t *testing.T) {
	platform(t)
	for status, limit := range map[int]int64{200: answerBody, 400: errorBody, 403: errorBody} {
		synctest.Test(t, func(t *testing.T) {
			var read, most atomic.Int64
			s := withIdentity(t, func(r *http.Request) (*http.Response, error) {
				most.Store(max(most.Load(), read.Swap(0)))
				return &http.Response{StatusCode: status, Request: r, Header: http.Header{}, Body: large(&read), ContentLength: largeBody}, nil
			})
			_, err := s.Read(t.Context(), name)
			if n := max(most.Load(), read.Load()); err == nil || n == 0 || n > limit {
				t.Errorf("%d: %d bytes read, and then %v", status, n, err)
			}
		})
	}
}
