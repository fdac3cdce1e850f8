package azure_test

import (
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

// A proxy, or whatever else answers, cannot fill the memory.
func TestLittleIsReadOfARefusal(t *testing.T) {
	for call, do := range calls {
		for _, status := range []int{300, 304, 400, 403, 404, 409, 412, 500, 503} {
			t.Run(fmt.Sprintf("%s/%d", call, status), func(t *testing.T) {
				var read atomic.Int64
				err := do(t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: status, Request: r, Header: http.Header{}, Body: large(&read), ContentLength: largeBody}, nil
				})))
				if err == nil || read.Load() > errorBody {
					t.Errorf("%d bytes read, and then %v", read.Load(), err)
				}
			})
		}
	}
}

// What is read of a success that should have no content is limited too.
func TestNotAllIsReadOfASuccess(t *testing.T) {
	for call, do := range calls {
		t.Run(call, func(t *testing.T) {
			var read atomic.Int64
			do(t.Context(), open(t, transport(func(r *http.Request) (*http.Response, error) {
				resp := blobtest.Refusal(r, time.Now(), http.StatusCreated, "")
				resp.Body, resp.ContentLength = large(&read), largeBody
				return resp, nil
			})))
			most := int64(answerBody)
			if call == "list" || call == "logs" {
				most = pageBody
			}
			if read.Load() > most {
				t.Errorf("%d bytes read", read.Load())
			}
		})
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

// What is cut is still told as what it is.
func TestCodeOfLongRefusal(t *testing.T) {
	var read atomic.Int64
	s := open(t, transport(func(r *http.Request) (*http.Response, error) {
		resp := refusal(r, http.StatusForbidden, "AuthorizationFailure")
		resp.Body = large(&read)
		return resp, nil
	}))
	if _, err := s.Lease(name, idA).Renew(t.Context()); err == nil || !strings.Contains(err.Error(), "403 AuthorizationFailure") || read.Load() > errorBody {
		t.Errorf("%d bytes read, and then %v", read.Load(), err)
	}
}
