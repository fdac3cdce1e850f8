package azure_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/store"
)

func refusal(r *http.Request, status int, code string) *http.Response {
	resp := blobtest.Refusal(r, time.Now(), status, code)
	if code == "" { // a proxy's answer
		resp.Header.Del("x-ms-error-code")
		resp.Header.Del("x-ms-request-id")
		resp.Body = http.NoBody
	}
	return resp
}

var sentinels = []error{
	store.ErrHeld, store.ErrLost, store.ErrChanged, fs.ErrExist, fs.ErrNotExist, fs.ErrPermission,
}

func TestCodes(t *testing.T) {
	const (
		ofEntries = "read, acquire, renew, write, save, load, release, break"
		all       = ofEntries + ", create, read document, write document, create document"
		held      = "write, save, load"
	)
	for _, tt := range []struct {
		calls   string
		want    error // nil: unclear
		answers string
	}{
		{"acquire", store.ErrHeld, "409 LeaseAlreadyPresent, 409 LeaseIsBreakingAndCannotBeAcquired"},
		{held + ", renew, release", store.ErrLost, "409 LeaseIdMismatchWithLeaseOperation, 412 LeaseLost"},
		{"renew, release", store.ErrLost, "409 LeaseIsBrokenAndCannotBeRenewed"},
		{"renew, release, break, break unchanged", store.ErrLost, "409 LeaseNotPresentWithLeaseOperation"},
		{held, store.ErrLost, "412 LeaseIdMissing, 412 LeaseIdMismatchWithBlobOperation, 412 LeaseNotPresentWithBlobOperation"},
		{held + ", acquire, break unchanged", store.ErrChanged, "412 ConditionNotMet"},
		{"break unchanged", nil, "409 ContainerBeingDeleted, 412 , 503 ServerBusy"}, // the 412 is a proxy's
		{"create", fs.ErrExist, "409 BlobAlreadyExists, 412 LeaseIdMissing, 412 ConditionNotMet"},
		{"create", nil, "404 BlobNotFound"},
		{"create, create document", nil, "404 ContainerNotFound"},
		{ofEntries + ", break unchanged, read document", fs.ErrNotExist, "404 BlobNotFound, 404 ContainerNotFound"},
		{"write document", store.ErrChanged, "404 BlobNotFound, 404 ContainerNotFound, 412 ConditionNotMet"},
		{"create document", store.ErrChanged, "409 BlobAlreadyExists, 412 ConditionNotMet, 412 LeaseIdMissing"},
		{"append", store.ErrChanged, "412 AppendPositionConditionNotMet, 404 BlobNotFound, 404 ContainerNotFound"},
		{"write document, append", nil, "412 LeaseIdMissing"},
		{"append", nil, "409 BlockCountExceedsLimit, 409 InvalidBlobType, 503 ServerBusy"},
		{"read log", fs.ErrNotExist, "404 BlobNotFound"},
		{"list", nil, "503 ServerBusy, 404 "},
		{"append, read log, logs, list, break unchanged", fs.ErrPermission, "403 AuthorizationPermissionMismatch"},
		{all, fs.ErrPermission, "403 AuthorizationPermissionMismatch, 403 AuthenticationFailed, 403 AuthorizationFailure, " +
			"403 SomethingNew, 403 , 401 NoAuthenticationInformation"},
		{all, nil, "409 ContainerBeingDeleted, 409 ContainerDisabled, 400 InvalidHeaderValue, 429 TooManyRequests, " +
			"500 InternalError, 500 OperationTimedOut, 503 ServerBusy"},
		{all, nil, "408 , 502 , 404 , 409 , 412 "}, // of a proxy
		{"acquire", nil, "412 InfiniteLeaseDurationRequired"},
	} {
		for call := range strings.SplitSeq(tt.calls, ", ") {
			for answer := range strings.SplitSeq(tt.answers, ", ") {
				t.Run(call+"/"+answer, func(t *testing.T) {
					number, code, _ := strings.Cut(answer, " ")
					status, _ := strconv.Atoi(number)
					err := calls[call](t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
						return refusal(r, status, code), nil
					})))
					if err == nil {
						t.Fatal("no error")
					}
					for _, sentinel := range sentinels {
						if got, want := errors.Is(err, sentinel), sentinel == tt.want; got != want {
							t.Errorf("is %q: %t, want %t: %v", sentinel, got, want, err)
						}
					}
					if text := err.Error(); !strings.Contains(text, code) || strings.Contains(text, "\n") || len(text) > 300 {
						t.Errorf("message: %s", text)
					}
				})
			}
		}
	}
}

// The date of a refusal that the service did not send is the clock of a gateway.
func TestDateOfRefusalIsOfService(t *testing.T) {
	for _, off := range []time.Duration{-10 * 365 * 24 * time.Hour, -time.Hour, time.Hour, 10 * 365 * 24 * time.Hour} {
		for _, status := range []int{302, 403, 404, 407, 412, 502, 503} {
			for _, code := range []string{"", "SomeCode"} {
				date := time.Now().Add(off).Truncate(time.Second)
				s := open(t, transport(func(r *http.Request) (*http.Response, error) {
					resp := refusal(r, status, code)
					resp.Header.Set("Date", date.UTC().Format(http.TimeFormat))
					return resp, nil
				}))
				e, err := s.Read(t.Context(), name)
				if err == nil || e.Date.IsZero() != (code == "") || code != "" && !e.Date.Equal(date) {
					t.Errorf("%d with code %q, dated %s: got %s, %v", status, code, date, e.Date, err)
				}
			}
		}
	}
}

func TestHints(t *testing.T) {
	for code, want := range map[string]string{
		"AuthorizationPermissionMismatch":    "Storage Blob Data Contributor",
		"AuthenticationFailed":               "clock",
		"AuthorizationFailure":               "network rules",
		"KeyBasedAuthenticationNotPermitted": "use an identity",
	} {
		s := open(t, transport(func(r *http.Request) (*http.Response, error) { return refusal(r, 403, code), nil }))
		if _, err := s.Read(t.Context(), name); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "request 0000") {
			t.Errorf("%s: %v", code, err)
		}
	}
}

func TestForbiddenContainer(t *testing.T) {
	var blob blobtest.Blob
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("restype") == "container" {
			return refusal(r, 403, "AuthorizationPermissionMismatch"), nil
		}
		return blob.Do(r)
	}))
	_, err := s.Create(t.Context(), name, []byte("one"))
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{`create the container "soloist" beforehand`, "Storage Blob Data Contributor", "on the storage account"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

func TestErrorsDoNotTellSignature(t *testing.T) {
	const signed = "https://sim.blob.core.windows.net/?sv=2026&sig=" + secret
	sends := map[string]transport{
		"refused": func(r *http.Request) (*http.Response, error) { return refusal(r, 403, "AuthenticationFailed"), nil },
		"network": func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errors.New("no such host")}
		},
		"proxy": func(r *http.Request) (*http.Response, error) { return refusal(r, 502, ""), nil },
	}
	for how, send := range sends {
		for call, do := range calls {
			s := opened(t, azure.Config{ServiceURL: signed, Transport: transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Query().Get("sig") != secret {
					t.Errorf("%s: no signature: %s", call, r.URL)
				}
				return send(r)
			})})
			if err := do(t.Context(), s); err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "sig=") {
				t.Errorf("%s, %s: %v", how, call, err)
			}
			if got, want := s.String(), "https://sim.blob.core.windows.net/soloist"; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
}

// What an answer says of itself may have any length. What is cut is still told as what it is.
func TestLongRefusalIsOneLine(t *testing.T) {
	long := strings.Repeat("A", 500_000)
	for _, h := range []string{"x-ms-request-id", "x-ms-error-code", "Content-Length"} {
		var read atomic.Int64
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			resp := refusal(r, http.StatusForbidden, "AuthorizationFailure")
			resp.Header.Set(h, long)
			resp.Body = large(&read)
			return resp, nil
		}))
		err := holding(s).Release(t.Context())
		text, advice := s.Explain(err)
		if n := max(len(err.Error()), len(text), len(advice)); n > 700 || read.Load() > errorBody {
			t.Errorf("%s: got a text of %d bytes, after %d of the answer", h, n, read.Load())
		}
		if h != "x-ms-error-code" && !strings.Contains(err.Error(), "403 AuthorizationFailure") {
			t.Errorf("%s: got %.200v", h, err)
		}
	}
}
