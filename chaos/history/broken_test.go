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

// faults are the ways in which a toy may be broken.
var faults = []string{
	"lost write", "write stays without effect", "refused though done", "done later", "done twice", "half a save", "created twice",
	"stale read", "torn read", "an older version is back", "expired is told as available",
	"ETag stays", "ETag comes back", "acquire changes the ETag",
	"two holders", "acquired with another ETag", "acquired while it breaks", "kept after its end", "ends early",
	"written under an old id", "written after the end", "written with another ETag",
	"renewed by another", "renewed though broken", "renewal does nothing",
	"released by another", "release does nothing", "break does nothing", "break prolongs",
	"broken with another ETag", "broken but once", "broken later", "refused though broken",
}

// within is in how many histories a fault has to show.
const within = 40

// rejected returns at which seed no store can have answered so, or -1.
func rejected(t *testing.T, record func(seed uint64) *history) int {
	for seed := range uint64(within) {
		var h *history
		synctest.Test(t, func(*testing.T) { h = record(seed) })
		if h.check(time.Second) == porcupine.Illegal {
			return int(seed)
		}
	}
	return -1
}

// The checker is checked: it takes no broken store for a sound one.
func TestBrokenStores(t *testing.T) {
	shown := func(name string, want bool, record func(seed uint64) *history) {
		t.Run(name, func(t *testing.T) {
			seed := rejected(t, record)
			if (seed >= 0) != want {
				t.Errorf("rejected at seed %d of %d (-1: at none), want rejected %t", seed, within, want)
			}
			t.Logf("rejected at seed %d", seed)
		})
	}
	for _, fault := range append(faults, "") {
		shown("toy/"+fault, fault != "", func(seed uint64) *history { return fromAfar(seed, &toy{fault: fault}) })
	}
	for name, spoil := range proxies {
		shown("proxy/"+name, name != "none", func(seed uint64) *history {
			return overNetwork(seed, &proxy{transport: new(blobtest.Blob), spoil: spoil}, 0)
		})
	}
}

// A proxy stands before the service and does what none must.
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

// without drops a header.
func without(name string) func(*proxy, *http.Request) (*http.Response, error) {
	return func(p *proxy, r *http.Request) (*http.Response, error) {
		for key := range r.Header {
			if strings.EqualFold(key, name) {
				delete(r.Header, key)
			}
		}
		return p.transport.Do(r)
	}
}

var proxies = map[string]func(p *proxy, r *http.Request) (*http.Response, error){
	"none":               func(p *proxy, r *http.Request) (*http.Response, error) { return p.transport.Do(r) },
	"drops If-Match":     without("If-Match"),
	"drops the lease id": without("x-ms-lease-id"),
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
