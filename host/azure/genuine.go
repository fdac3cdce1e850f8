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

// A genuine is a policy that lets a success through only if the Blob service
// sent it. A sign-in page, a block page or a placeholder site answers any request
// with 200, which would count as a renewal or as a claim.
//
// The service sends both headers with each answer to a request that names a
// version, as the client library's do
// (https://learn.microsoft.com/rest/api/storageservices/common-rest-api-response-headers).
// One is not enough: the sign-in pages of Microsoft have a request id too.
type genuine struct{}

func (genuine) Do(r *policy.Request) (*http.Response, error) {
	resp, err := r.Next()
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices { // the code in a refusal tells whose it is
		return resp, err
	}
	if resp.Header.Get("x-ms-request-id") != "" && resp.Header.Get("x-ms-version") != "" {
		return resp, nil
	}
	resp.Body.Close()
	return nil, &strangerError{something(resp)}
}

// A strangerError is a success that did not come from the Blob service. Whether
// the request reached the service is not known.
type strangerError struct{ what string }

func (e *strangerError) Error() string {
	return e.what + ", not from the Blob service: a sign-in page or a proxy?"
}

// strangerAdvice is what to do about a strangerError.
const strangerAdvice = "check the URL, and whether a proxy or a sign-in page is on the way (HTTPS_PROXY, NO_PROXY)"

// something tells an answer of something other than the service in a few words.
func something(resp *http.Response) string {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return fmt.Sprintf("%d, %.40q, server %.40q", resp.StatusCode, kind, resp.Header.Get("Server"))
}

// stamped returns the stamp of a success, which has an ETag.
func stamped(o op, name string, etag *azcore.ETag, date *time.Time) (store.Revision, error) {
	if etag == nil || *etag == "" {
		return store.Revision{}, translate(o, name, errNoRevision)
	}
	s := store.Revision{ETag: string(*etag)}
	if date != nil {
		s.Date = *date
	}
	return s, nil
}

var errNoRevision = errors.New("the answer has no ETag: it is not from the Blob service")
