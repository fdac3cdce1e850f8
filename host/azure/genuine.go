package azure

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/soloist-go/soloist/store"
)

// A genuine is a policy that keeps what something other than the service
// answers from counting as the service's word. A sign-in page, a block page or a
// placeholder site answers any request with 200, which would count as a renewal
// or as a claim. A gateway refuses with a code in its body.
type genuine struct{ service string }

// The names of the services, for people.
const (
	blobService  = "Blob service"
	queueService = "Queue service"
)

func (g genuine) Do(r *policy.Request) (*http.Response, error) {
	if m := r.Raw().Method; m == http.MethodHead || m == http.MethodGet {
		// A cache on the way would return an ETag that the service refuses.
		r.Raw().Header.Set("Cache-Control", "no-cache")
	}
	resp, err := r.Next()
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode >= http.StatusMultipleChoices && resp.StatusCode != http.StatusNotModified: // which the library takes for a success
		return disarmed(resp), nil
	case fromService(resp), resp.StatusCode == http.StatusNotModified && resp.Header.Get("x-ms-error-code") != "": // as an emulator says it
		return resp, nil
	}
	resp.Body.Close()
	return nil, &strangerError{something(resp), g.service}
}

// fromService reports whether the service sent an answer. It sends both
// headers with each answer to a request that names a version, as the client
// library's do
// (https://learn.microsoft.com/rest/api/storageservices/common-rest-api-response-headers).
// One is not enough: the sign-in pages of Microsoft have a request id too.
func fromService(resp *http.Response) bool {
	return resp.Header.Get("x-ms-request-id") != "" && resp.Header.Get("x-ms-version") != ""
}

// disarmed takes from a refusal what the client library would believe of any
// sender. The service has its code in a header
// (https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2);
// without that header, the library takes a code from a body of JSON or XML. It
// answers any challenge for claims with another token and the same request again.
func disarmed(resp *http.Response) *http.Response {
	if resp.Header.Get("x-ms-error-code") == "" {
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	if !fromService(resp) {
		resp.Header.Del("WWW-Authenticate")
	}
	return resp
}

// A strangerError is a success that did not come from the service. Whether
// the request reached the service is not known.
type strangerError struct{ what, service string }

func (e *strangerError) Error() string {
	return e.what + ", not from the " + e.service + ": a sign-in page or a proxy?"
}

// strangerAdvice is what to do about a strangerError.
const strangerAdvice = "check the URL, and whether a proxy or a sign-in page is on the way (HTTPS_PROXY, NO_PROXY)"

// something describes an answer that is not the service's in a few words.
func something(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return fmt.Sprintf("%d, %.40q, server %.40q", resp.StatusCode, kind, resp.Header.Get("Server"))
}

// stamped returns the stamp of a success, which has an ETag.
func stamped(o op, name string, etag *azcore.ETag, date *time.Time, err error) (store.Revision, error) {
	if err != nil {
		return store.Revision{}, translate(o, name, err)
	}
	if etag == nil || *etag == "" {
		return store.Revision{}, translate(o, name, errNoRevision)
	}
	if strings.HasPrefix(string(*etag), "W/") {
		return store.Revision{}, translate(o, name, errWeak)
	}
	s := store.Revision{ETag: string(*etag)}
	if date != nil {
		s.Date = *date
	}
	return s, nil
}

var (
	errNoRevision = errors.New("the answer has no ETag: it is not from the Blob service")
	// The service has strong ETags only, and no If-Match fits a weak one
	// (https://www.rfc-editor.org/rfc/rfc9110#name-if-match).
	errWeak = errors.New("the answer has a weak ETag (W/), which the Blob service never sends: a proxy on the way changes answers, for example to compress them; let the requests pass it unchanged (NO_PROXY)")
)
