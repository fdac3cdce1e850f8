package azurite

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Forward passes requests on to the account at a URL. The service executes a received request even if the caller has gone.
func Forward(account string) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(account)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out = r.Out.WithContext(context.WithoutCancel(r.Out.Context()))
		},
		// Azurite ends connections that were idle for 5 s.
		Transport: &http.Transport{IdleConnTimeout: 2 * time.Second, MaxIdleConnsPerHost: 512},
		ErrorLog:  log.New(io.Discard, "", 0),
	}, nil
}
