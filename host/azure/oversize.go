package azure

import (
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// The client library reads the whole body of most answers into memory. An error
// of the service has about 300 bytes, a page of names about 5 MB. A page of entries has
// 5,000 of them, each with about 1 kB of properties and up to 8 kB of record.
const (
	maxError  = 64 << 10
	maxAnswer = 16 << 20
	maxPage   = 64 << 20
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
	switch {
	case resp.StatusCode >= http.StatusMultipleChoices:
		limit = maxError
	case r.URL.Query().Get("comp") == "list":
		limit = maxPage
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, limit), resp.Body}
	return resp, nil
}
