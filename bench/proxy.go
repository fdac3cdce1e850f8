//go:build linux

package main

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/soloist-go/soloist/internal/azurite"
)

// roundTrip is a way of a request of statements to PostgreSQL and back.
const roundTrip = "round trip"

// callKinds are what calls are counted as: statements of PostgreSQL, and operations of the Blob service. A document is the
// content of a blob: operators' orders, and what a replica reports about itself.
var callKinds = []string{"statement", roundTrip, "acquire", "renew", "release", "read", "metadata", "list", "document", "other"}

// A proxy is before the Blob service and counts the calls by container and kind.
type proxy struct {
	forward http.Handler
	mu      sync.Mutex
	counts  map[string]map[string]int // by container and kind
}

// newProxy makes a proxy before the service at the URL of an account.
func newProxy(account string) (*proxy, error) {
	forward, err := azurite.Forward(account)
	return &proxy{forward: forward, counts: map[string]map[string]int{}}, err
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.count(r)
	p.forward.ServeHTTP(w, r)
}

func (p *proxy) count(r *http.Request) {
	parts := strings.Split(r.URL.Path, "/") // "", account, container, and the blob
	if len(parts) < 3 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[parts[2]] == nil {
		p.counts[parts[2]] = map[string]int{}
	}
	p.counts[parts[2]][kind(r, len(parts) > 3)]++
}

// kind names a request (https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api).
func kind(r *http.Request, ofBlob bool) string {
	action, comp := r.Header.Get("x-ms-lease-action"), r.URL.Query().Get("comp")
	switch {
	case comp == "lease" && (action == "acquire" || action == "renew" || action == "release"):
		return action
	case comp == "list":
		return "list"
	case comp == "metadata" && r.Method == http.MethodPut:
		return "metadata"
	case ofBlob && comp == "" && r.Method == http.MethodHead:
		return "read"
	case ofBlob && comp == "" && (r.Method == http.MethodGet || r.Method == http.MethodPut):
		return "document"
	}
	return "other"
}

// Of returns the calls so far of a container, by kind.
func (p *proxy) Of(container string) map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts[container])
}
