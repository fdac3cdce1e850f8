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

// An answer that lacks the headers of the service says nothing of what was asked: the error has no sentinel, and says what has
// answered. A code in the body of a refusal is not the service's either, which has it in a header; and a 304 of something on the
// way would hide a pause.
func TestForeignAnswerIsUnclear(t *testing.T) {
	successes, refusals := []int{200, 201, 202, 204}, []int{304, 404, 409, 412}
	html, leased := "text/html; charset=utf-8", http.Header{"Etag": {`"5f8-62"`}, "X-Ms-Lease-State": {"available"}}
	with := func(name, value string) http.Header {
		h := leased.Clone()
		h.Set(name, value)
		return h
	}
	for what, tt := range map[string]struct {
		header     http.Header
		kind, body string
		statuses   []int
		says       string
	}{
		"nothing":       {http.Header{}, html, "<html>please sign in</html>", successes, `"text/html"`},
		"an ETag":       {leased, html, "<html>please sign in</html>", successes, "sign-in page"},
		"a request id":  {with("X-Ms-Request-Id", "1"), html, "", successes, "sign-in page"}, // as the sign-in pages of Microsoft
		"a version":     {with("X-Ms-Version", "2026-02-06"), html, "", successes, "sign-in page"},
		"a long server": {http.Header{"Server": {strings.Repeat("s", 100_000)}}, html, "", successes, "sign-in page"},
		"a JSON code":   {leased, "application/json", `{"error":{"code":"NotFound","message":"no such route"}}`, refusals, ""},
		"an XML code":   {leased, "application/xml", `<?xml version="1.0"?><Error><Code>LeaseLost</Code></Error>`, refusals, ""},
	} {
		for op, do := range calls {
			for _, status := range tt.statuses {
				t.Run(fmt.Sprintf("%s/%d with %s", op, status, what), func(t *testing.T) {
					unclear(t, do(t.Context(), over(func(r *http.Request) (*http.Response, error) {
						resp := page(r, status, tt.header.Clone())
						resp.Header.Set("Content-Type", tt.kind)
						resp.Body = io.NopCloser(strings.NewReader(tt.body))
						return resp, nil
					})), fmt.Sprint(status), "not from the ", tt.says)
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
				unclear(t, calls[op](t.Context(), over(func(r *http.Request) (*http.Response, error) {
					resp := blobtest.Refusal(r, time.Now(), success(r), "")
					resp.Header.Set("X-Ms-Lease-State", "leased")
					if etag != "" {
						resp.Header.Set("ETag", etag)
					}
					return resp, nil
				})), "ETag", says)
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
				err := do(t.Context(), over(func(r *http.Request) (*http.Response, error) {
					resp := &http.Response{StatusCode: status, Request: r, Header: http.Header{}}
					if status == http.StatusCreated {
						resp = blobtest.Refusal(r, time.Now(), status, "")
					}
					resp.Body, resp.ContentLength = large(&read), largeBody
					return resp, nil
				}))
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
