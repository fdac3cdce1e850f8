package azure

import (
	"net"
	"net/http"
	"time"
)

// client sends requests over the network.
type client struct{ http *http.Client }

// network returns a client for calls that have seconds. The limits lie above
// those of any caller's context; they are for what a context does not reach,
// such as idle connections, and for calls without a deadline.
//
// HTTP/2 is off: the service does not offer it, and with one connection for
// each request in flight a dead connection harms one call.
func network() *client {
	dialer := &net.Dialer{
		Timeout: 5 * time.Second,
		// An idle connection whose peer is gone is dropped after 30 s.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &client{&http.Client{
		// A redirect would be a second request, with our credentials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			IdleConnTimeout:       time.Minute,
			MaxIdleConnsPerHost:   32,
		},
	}}
}

// Do sends one request. After a failure the idle connections are as suspect as
// the one that failed, and a renewal may have only one more try.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		c.http.CloseIdleConnections()
	}
	return resp, err
}
