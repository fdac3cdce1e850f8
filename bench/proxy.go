//go:build linux

package main

import (
	"context"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// callKinds are what calls are counted as. A document is the content of a blob: operators' orders, and
// what a replica tells of itself.
var callKinds = []string{"acquire", "renew", "release", "read", "metadata", "list", "document", "other"}

// A proxy is before the Blob service and counts the calls by container and kind.
type proxy struct {
	Address string

	server *http.Server
	mu     sync.Mutex
	counts map[string]map[string]int // by container and kind
}

// startProxy starts a proxy before the service at the URL of an account.
func startProxy(account string) (*proxy, error) {
	target, err := url.Parse(account)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{Address: ln.Addr().String(), counts: map[string]map[string]int{}}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context())) // the service does what it has got
		},
		// Azurite ends connections that were idle for 5 s.
		Transport: &http.Transport{IdleConnTimeout: 2 * time.Second, MaxIdleConnsPerHost: 512},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	p.server = &http.Server{ErrorLog: forward.ErrorLog, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.count(r)
		forward.ServeHTTP(w, r)
	})}
	go p.server.Serve(ln) // until Close
	return p, nil
}

// Close ends the proxy.
func (p *proxy) Close() error { return p.server.Close() }

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
