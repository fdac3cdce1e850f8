package azure_test

import (
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
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
	tests := []struct {
		calls  string
		status int
		code   string
		want   error // nil: unclear
	}{
		{"acquire", 409, "LeaseAlreadyPresent", store.ErrHeld},
		{"acquire", 409, "LeaseIsBreakingAndCannotBeAcquired", store.ErrHeld},
		{"renew release write save load", 409, "LeaseIdMismatchWithLeaseOperation", store.ErrLost},
		{"renew release", 409, "LeaseIsBrokenAndCannotBeRenewed", store.ErrLost},
		{"renew release break", 409, "LeaseNotPresentWithLeaseOperation", store.ErrLost},
		{"write save load renew release", 412, "LeaseLost", store.ErrLost},
		{"write save load", 412, "LeaseIdMissing", store.ErrLost},
		{"write save load", 412, "LeaseIdMismatchWithBlobOperation", store.ErrLost},
		{"write save load", 412, "LeaseNotPresentWithBlobOperation", store.ErrLost},
		{"acquire write save load", 412, "ConditionNotMet", store.ErrChanged},
		{"break unchanged", 412, "ConditionNotMet", store.ErrChanged},
		{"break unchanged", 409, "LeaseNotPresentWithLeaseOperation", store.ErrLost},
		{"break unchanged", 404, "BlobNotFound", fs.ErrNotExist},
		{"break unchanged", 404, "ContainerNotFound", fs.ErrNotExist},
		{"break unchanged", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"break unchanged", 409, "ContainerBeingDeleted", nil},
		{"break unchanged", 412, "", nil}, // of a proxy
		{"break unchanged", 503, "ServerBusy", nil},
		{"create", 409, "BlobAlreadyExists", fs.ErrExist},
		{"create", 412, "LeaseIdMissing", fs.ErrExist},
		{"create", 412, "ConditionNotMet", fs.ErrExist},
		{"read acquire renew write save load release break", 404, "BlobNotFound", fs.ErrNotExist},
		{"read acquire renew write save load release break", 404, "ContainerNotFound", fs.ErrNotExist},
		{"read document", 404, "BlobNotFound", fs.ErrNotExist},
		{"read document", 404, "ContainerNotFound", fs.ErrNotExist},
		{"write document", 404, "BlobNotFound", store.ErrChanged},
		{"write document", 404, "ContainerNotFound", store.ErrChanged},
		{"write document", 412, "ConditionNotMet", store.ErrChanged},
		{"write document", 412, "LeaseIdMissing", nil},
		{"create document", 409, "BlobAlreadyExists", store.ErrChanged},
		{"create document", 412, "ConditionNotMet", store.ErrChanged},
		{"create document", 412, "LeaseIdMissing", store.ErrChanged},
		{"create document", 404, "ContainerNotFound", nil},
		{"create", 404, "ContainerNotFound", nil},
		{"append", 412, "AppendPositionConditionNotMet", store.ErrChanged},
		{"append", 404, "BlobNotFound", store.ErrChanged},
		{"append", 404, "ContainerNotFound", store.ErrChanged},
		{"append", 412, "LeaseIdMissing", nil},
		{"append", 409, "BlockCountExceedsLimit", nil},
		{"append", 409, "InvalidBlobType", nil},
		{"append", 503, "ServerBusy", nil},
		{"read log", 404, "BlobNotFound", fs.ErrNotExist},
		{"append", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"read log", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"logs", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"list", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"list", 503, "ServerBusy", nil},
		{"list", 404, "", nil},
		{"create", 404, "BlobNotFound", nil},
		{"read acquire renew write save load release break create document", 403, "AuthorizationPermissionMismatch", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 403, "AuthenticationFailed", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 403, "AuthorizationFailure", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 403, "SomethingNew", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 403, "", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 401, "NoAuthenticationInformation", fs.ErrPermission},
		{"read acquire renew write save load release break create document", 409, "ContainerBeingDeleted", nil},
		{"read acquire renew write save load release break create document", 409, "ContainerDisabled", nil},
		{"read acquire renew write save load release break create document", 400, "InvalidHeaderValue", nil},
		{"read acquire renew write save load release break create document", 408, "", nil},
		{"read acquire renew write save load release break create document", 429, "TooManyRequests", nil},
		{"read acquire renew write save load release break create document", 500, "InternalError", nil},
		{"read acquire renew write save load release break create document", 500, "OperationTimedOut", nil},
		{"read acquire renew write save load release break create document", 502, "", nil},
		{"read acquire renew write save load release break create document", 503, "ServerBusy", nil},
		{"read acquire renew write save load release break create document", 404, "", nil}, // of a proxy
		{"read acquire renew write save load release break create document", 409, "", nil},
		{"read acquire renew write save load release break create document", 412, "", nil},
		{"acquire", 412, "InfiniteLeaseDurationRequired", nil},
	}
	for _, tt := range tests {
		for _, call := range named(tt.calls) {
			t.Run(call+"/"+http.StatusText(tt.status)+"/"+tt.code, func(t *testing.T) {
				err := calls[call](t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
					return refusal(r, tt.status, tt.code), nil
				})))
				if err == nil {
					t.Fatal("no error")
				}
				for _, sentinel := range sentinels {
					if got, want := errors.Is(err, sentinel), sentinel == tt.want; got != want {
						t.Errorf("is %q: %t, want %t: %v", sentinel, got, want, err)
					}
				}
				if text := err.Error(); !strings.Contains(text, tt.code) || strings.Contains(text, "\n") || len(text) > 300 {
					t.Errorf("message: %s", text)
				}
			})
		}
	}
}

// named lists calls; "document" stands for all that are about one.
func named(text string) []string {
	if _, ok := calls[text]; ok {
		return []string{text}
	}
	words := strings.Fields(text)
	if i := slices.Index(words, "document"); i >= 0 {
		words = append(words[:i], "read document", "write document", "create document")
	}
	return words
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

// What an answer says of itself may have any length.
func TestLongRefusalIsOneLine(t *testing.T) {
	long := strings.Repeat("A", 500_000)
	for _, h := range []string{"x-ms-request-id", "x-ms-error-code"} {
		s := open(t, transport(func(r *http.Request) (*http.Response, error) {
			resp := refusal(r, http.StatusServiceUnavailable, "ServerBusy")
			resp.Header.Set(h, long)
			return resp, nil
		}))
		_, err := s.Read(t.Context(), name)
		text, advice := s.Explain(err)
		if n := max(len(err.Error()), len(text), len(advice)); n > 500 {
			t.Errorf("%s: got a text of %d bytes", h, n)
		}
	}
}
