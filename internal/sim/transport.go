package sim

import (
	"bytes"
	"io"
	"net/http"
	"net/url"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// Do makes a line a transport below the real client library. A body is read now, since a late
// request outlives the call that brings it.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	req, err := blobtest.Parse(r)
	if err != nil {
		return nil, failed(r, err)
	}
	a, err := l.send(r.Context(), req)
	switch {
	case err != nil:
		return nil, failed(r, err)
	case a.raw != nil:
		return a.raw, nil
	}
	resp := a.Response(r)
	if a.cutOff && r.Method != http.MethodHead {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte(" ")), brokenBody{}))
	}
	return resp, nil
}

// failed is how net/http tells a failure.
func failed(r *http.Request, err error) error {
	return &url.Error{Op: r.Method, URL: r.URL.String(), Err: err}
}

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
