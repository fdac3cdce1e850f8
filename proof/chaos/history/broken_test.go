package history_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/soloist-go/soloist/internal/blobtest"
)

// within is in how many histories a fault has to show.
const within = 40

// TestBrokenStores checks the model: it rejects each store that breaks the contract, and accepts the one that keeps it.
func TestBrokenStores(t *testing.T) {
	for name, spoil := range proxies {
		t.Run(name, func(t *testing.T) {
			rejected := -1
			for seed := 0; seed < within && rejected < 0; seed++ {
				var h *history
				synctest.Test(t, func(*testing.T) {
					h = overNetwork(uint64(seed), &proxy{transport: new(blobtest.Blob), spoil: spoil}, 0)
				})
				if h.check(time.Second) == porcupine.Illegal {
					rejected = seed
				}
			}
			if (rejected >= 0) != (name != "none") {
				t.Errorf("rejected at seed %d of %d (-1: at none)", rejected, within)
			}
		})
	}
}

// A proxy stands before the service and breaks the contract.
type proxy struct {
	transport
	spoil func(p *proxy, r *http.Request) (*http.Response, error)

	mu   sync.Mutex
	n    int
	head *http.Response // the answer to an earlier HEAD
}

func (p *proxy) Do(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return p.spoil(p, r)
}

// is reports whether a request is a lease action, or has the value of comp.
func is(r *http.Request, what string) bool {
	return header(r, "x-ms-lease-action") == what || r.URL.Query().Get("comp") == what
}

// header is the value of a header, whatever the case of its name.
func header(r *http.Request, name string) string {
	for key, values := range r.Header {
		if strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}

// with sets a header, or drops it if the value is empty.
func with(r *http.Request, name, value string) *http.Request {
	for key := range r.Header {
		if strings.EqualFold(key, name) {
			delete(r.Header, key)
		}
	}
	if value != "" {
		r.Header.Set(name, value)
	}
	return r
}

// without drops a header.
func without(name string) func(*proxy, *http.Request) (*http.Response, error) {
	return func(p *proxy, r *http.Request) (*http.Response, error) { return p.transport.Do(with(r, name, "")) }
}

// ignores answers every other request of a kind with success, and does nothing.
func ignores(what string) func(*proxy, *http.Request) (*http.Response, error) {
	return func(p *proxy, r *http.Request) (*http.Response, error) {
		if !is(r, what) || p.n%2 > 0 {
			return p.transport.Do(r)
		}
		head := r.Clone(r.Context())
		head.Method, head.URL.RawQuery, head.Body, head.ContentLength = http.MethodHead, "", nil, 0
		resp, err := p.transport.Do(with(with(with(head, "If-Match", ""), "If-None-Match", ""), "x-ms-lease-id", ""))
		if err == nil && resp.StatusCode == http.StatusOK && what == "break" {
			resp.StatusCode = http.StatusAccepted
		}
		return resp, err
	}
}

var proxies = map[string]func(p *proxy, r *http.Request) (*http.Response, error){
	"none":               func(p *proxy, r *http.Request) (*http.Response, error) { return p.transport.Do(r) },
	"drops If-Match":     without("If-Match"),
	"drops the lease id": without("x-ms-lease-id"),
	"ignores writes":     ignores("metadata"),
	"ignores renewals":   ignores("renew"),
	"ignores releases":   ignores("release"),
	"ignores breaks":     ignores("break"),
	"two holders": func(p *proxy, r *http.Request) (*http.Response, error) {
		if is(r, "acquire") {
			end := r.Clone(r.Context())
			end.Header = http.Header{"X-Ms-Version": {header(r, "x-ms-version")}, "X-Ms-Lease-Action": {"break"}, "X-Ms-Lease-Break-Period": {"0"}}
			if _, err := p.transport.Do(end); err != nil {
				return nil, err
			}
		}
		return p.transport.Do(r)
	},
	"ends early": func(p *proxy, r *http.Request) (*http.Response, error) {
		if is(r, "acquire") {
			with(r, "x-ms-lease-duration", "15")
		}
		return p.transport.Do(r)
	},
	"repeats": func(p *proxy, r *http.Request) (*http.Response, error) {
		if r.ContentLength == 0 && p.n%4 == 0 { // as after an answer that it has lost
			if _, err := p.transport.Do(r.Clone(r.Context())); err != nil {
				return nil, err
			}
		}
		return p.transport.Do(r)
	},
	"caches": func(p *proxy, r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodHead {
			return p.transport.Do(r)
		}
		resp, err := p.transport.Do(r)
		if p.head != nil && p.n%2 == 0 && err == nil {
			resp.StatusCode, resp.Header = p.head.StatusCode, p.head.Header.Clone()
		}
		if err == nil {
			p.head = resp
		}
		return resp, err
	},
}
