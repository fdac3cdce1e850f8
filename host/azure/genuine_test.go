package azure_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
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

// A code in the body of a refusal is not the service's, which has it in a header.
func TestForeignRefusalIsUnclear(t *testing.T) {
	for kind, body := range map[string]string{
		"application/json": `{"error":{"code":"NotFound","message":"no such route"}}`,
		"application/xml":  `<?xml version="1.0"?><Error><Code>LeaseLost</Code></Error>`,
	} {
		for op, call := range calls {
			for _, status := range []int{404, 409, 412} {
				t.Run(fmt.Sprintf("%s/%d %s", op, status, kind), func(t *testing.T) {
					s := open(t, transport(func(r *http.Request) (*http.Response, error) {
						resp := page(r, status, http.Header{})
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

// A cache on the way may answer a read only after it has asked the service.
func TestReadTakesNoCachedAnswer(t *testing.T) {
	var got string
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		got = header(r, "cache-control")
		return refusal(r, http.StatusNotFound, "BlobNotFound"), nil
	}))
	if _, err := s.Read(t.Context(), name); err == nil || got != "no-cache" {
		t.Errorf("Cache-Control: got %q, want no-cache; %v", got, err)
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
