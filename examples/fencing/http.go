package fencing

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// Header carries the token of a request, and of a refusal the larger one.
const Header = "Soloist-Token"

const maxBody = 1 << 20 // bytes

// Send is c.Do with the token of the run. ErrStale: a [Fence] has refused it.
func Send(c *http.Client, req *http.Request, token int64) (*http.Response, error) {
	req.Header.Set(Header, strconv.FormatInt(token, 10))
	resp, err := c.Do(req)
	// The handler behind the fence may answer 412 too, but without the header.
	if err != nil || resp.StatusCode != http.StatusPreconditionFailed || resp.Header.Get(Header) == "" {
		return resp, err
	}
	resp.Body.Close()
	return nil, ErrStale
}

// Fence lets requests through to next, one at a time, unless their token is
// smaller than the largest so far: 412. A token that is missing or no positive
// number is 400, a body of more than a megabyte 413.
//
// It remembers the largest token in memory. That does for a resource which is
// in the memory of the same process. Otherwise a stale request is let through
// after a restart, or by a second instance, until the newer run comes by again:
// then keep the token where the effects are, and change both in one transaction
// as [Fenced] does.
//
// Put it behind authentication: a made-up token of 2^63-1 shuts all others out.
func Fence(next http.Handler) http.Handler {
	var mu sync.Mutex
	var largest int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := strconv.ParseInt(r.Header.Get(Header), 10, 64)
		if err != nil || token < 1 {
			http.Error(w, Header+": want a positive number", http.StatusBadRequest)
			return
		}
		// Before the lock: a cut-off client may never send the rest, and the
		// new run must not wait for it.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))

		// Held until next has returned: a check alone would let a smaller token
		// pass, and take effect after the larger one.
		mu.Lock()
		defer mu.Unlock()
		if token < largest {
			w.Header().Set(Header, strconv.FormatInt(largest, 10))
			http.Error(w, ErrStale.Error(), http.StatusPreconditionFailed)
			return
		}
		largest = token // even if next fails: the newer run exists
		next.ServeHTTP(w, r)
	})
}
