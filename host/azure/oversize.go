package azure

import (
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The client library reads the whole body of most answers into memory. An error
// of the service has about 300 bytes. The longest other answer is a page of a
// listing: 5,000 names with their properties have about 5 MB.
const (
	maxError  = 64 << 10
	maxAnswer = 16 << 20
)

// A cutter sends requests and cuts the bodies of the answers, which a proxy may
// have made of any length.
type cutter struct{ policy.Transporter }

func (c cutter) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.Transporter.Do(r)
	if err != nil || resp.Body == nil {
		return resp, err
	}
	limit := int64(maxAnswer)
	if resp.StatusCode >= http.StatusMultipleChoices {
		limit = maxError
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, limit), resp.Body}
	return resp, nil
}
