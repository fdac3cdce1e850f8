package azure_test

import (
	"cmp"
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
		queues    = "put message, receive messages, delete message, read queue"
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
		{"delete", store.ErrLost, "412 LeaseIdMissing"},
		{"delete", fs.ErrNotExist, "404 BlobNotFound"},
		{queues, fs.ErrPermission, "403 AuthorizationPermissionMismatch, 403 AuthenticationFailed, 403 AuthorizationFailure, 401 "},
		{queues, nil, "503 ServerBusy, 404 "},
	} {
		for call := range strings.SplitSeq(tt.calls, ", ") {
			for answer := range strings.SplitSeq(tt.answers, ", ") {
				t.Run(call+"/"+answer, func(t *testing.T) {
					number, code, _ := strings.Cut(answer, " ")
					status, _ := strconv.Atoi(number)
					err := calls[call](t.Context(), over(func(r *http.Request) (*http.Response, error) {
						return refusal(r, status, code), nil
					}))
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
	for _, status := range []int{302, 403, 404, 407, 412, 502, 503} {
		for code, off := range map[string]time.Duration{"": time.Hour, "SomeCode": -10 * 365 * 24 * time.Hour} {
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

func TestHints(t *testing.T) {
	for code, want := range map[string]string{
		"AuthorizationPermissionMismatch":    "",
		"AuthenticationFailed":               "this machine's clock is more than 15 minutes off",
		"AuthorizationFailure":               "network rules",
		"KeyBasedAuthenticationNotPermitted": "use an identity",
	} {
		for call, role := range map[string]string{"read": `"Storage Blob Data Contributor" on the container`, "put message": `"Storage Queue Data Contributor" on the queue`} {
			err := calls[call](t.Context(), over(func(r *http.Request) (*http.Response, error) { return refusal(r, 403, code), nil }))
			if !strings.Contains(err.Error(), cmp.Or(want, role)) || !strings.Contains(err.Error(), "request 0000") {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
}

// Where the container or the queue is missing and we may not create it, the error says what to do.
func TestForbiddenCreation(t *testing.T) {
	for call, test := range map[string]struct{ missing, what string }{
		"create": {"ContainerNotFound", `container "soloist"`}, "put message": {"QueueNotFound", `queue "shop-alarm"`}} {
		err := calls[call](t.Context(), over(func(r *http.Request) (*http.Response, error) {
			if creates(r) {
				return refusal(r, 403, "AuthorizationPermissionMismatch"), nil
			}
			return refusal(r, 404, test.missing), nil
		}))
		if !errors.Is(err, fs.ErrPermission) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"create the " + test.what + " beforehand, or grant", "Data Contributor", "on the storage account"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %s", err, want)
			}
		}
	}
}

// creates reports whether a request is for a container or a queue.
func creates(r *http.Request) bool {
	return r.Method == http.MethodPut && (r.URL.Query().Get("restype") == "container" || strings.Contains(r.URL.Host, ".queue."))
}

func TestErrorsDoNotTellSignature(t *testing.T) {
	signed := azure.Config{ServiceURL: "https://sim.blob.core.windows.net/?sv=2026&sig=" + secret}
	for how, send := range map[string]transport{
		"refused": func(r *http.Request) (*http.Response, error) { return refusal(r, 403, "AuthenticationFailed"), nil },
		"network": func(r *http.Request) (*http.Response, error) {
			return nil, &url.Error{Op: r.Method, URL: r.URL.String(), Err: errors.New("no such host")}
		},
		"proxy": func(r *http.Request) (*http.Response, error) { return refusal(r, 502, ""), nil },
	} {
		for call, do := range calls {
			signed.Transport = transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Query().Get("sig") != secret {
					t.Errorf("%s: no signature: %s", call, r.URL)
				}
				return send(r)
			})
			s, q := opened(t, signed), queued(t, signed)
			err := do(t.Context(), signed)
			if err == nil {
				t.Fatalf("%s, %s: no error", how, call)
			}
			text, advice := s.Explain(err)
			more, further := q.Explain(err)
			all := err.Error() + text + advice + more + further + s.String() + q.String()
			if strings.Contains(all, secret) || strings.Contains(all, "sig=") {
				t.Errorf("%s, %s: %s", how, call, all)
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
