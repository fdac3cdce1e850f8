package azure

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/soloist-go/soloist/internal/descriptors"
)

// client sends requests over the network. Renewals have connections of their own:
// where many other calls wait for one, a renewal must not use up its seconds
// behind them.
type client struct{ calls, renewals *http.Client }

// mostConnections is how many connections there are to the store, renewals left
// out: half of what the process may have open, zero if that is not known. HTTP
// takes at most a quarter. The rest is for renewals, and for what the jobs open.
//
// Calls above it wait for those before them, which take milliseconds. Without it
// they would fail, and with them the claims of jobs that are due at the same
// second.
func mostConnections() int { return descriptors.Limit() / 2 }

// network returns a client for calls that have seconds, with so many connections
// at most; zero: no limit. Renewals are not limited: there is at most one at a
// time for each job that runs here, and a limit could make one wait behind others
// that hang.
func network(most int) *client { return &client{calls: overNetwork(most), renewals: overNetwork(0)} }

// overNetwork returns an HTTP client. Its time limits are above any caller's deadline; they
// are for what a context does not reach, such as idle connections, and for calls without
// a deadline.
//
// HTTP/2 is off: the service does not offer it, and with one connection for
// each request in flight a dead connection harms one call.
func overNetwork(most int) *http.Client {
	dialer := &net.Dialer{
		Timeout:  5 * time.Second,
		Resolver: resolver,
		// An idle connection whose peer is gone is dropped after 30 s.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	return &http.Client{
		// A redirect would be a second request, with our credentials.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSHandshakeTimeout:   5 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			IdleConnTimeout:       time.Minute,
			MaxIdleConnsPerHost:   32,
			MaxConnsPerHost:       most,
			// The service's headers have 16 KiB at most: a record, and little else.
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
}

// Do sends one request. After a failure the idle connections are as suspect as
// the failed one, and a renewal may have only one more try.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	by := c.calls
	if isRenewal(r) {
		by = c.renewals
	}
	resp, err := by.Do(r)
	if err != nil {
		c.calls.CloseIdleConnections()
		c.renewals.CloseIdleConnections()
	}
	return resp, err
}

// isRenewal looks for the header as the client library writes it: in lower case,
// which Header.Get does not find.
func isRenewal(r *http.Request) bool {
	action := r.Header["x-ms-lease-action"] //nolint:staticcheck // SA1008: the name is lower case on purpose
	return len(action) == 1 && action[0] == "renew"
}

// nameserverPatience is how long a nameserver has to answer before the next one is asked.
// Go waits for five seconds, and a call to the store has less than that: with a first
// nameserver that is dead no call would ever be sent.
const nameserverPatience = time.Second

// resolver looks names up as Go does, with a limit of time for each nameserver. It has no
// effect where the program leaves this to the system, as with cgo it may.
var resolver = &net.Resolver{Dial: dialNameserver}

func dialNameserver(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if udp, ok := c.(*net.UDPConn); ok && err == nil {
		return nameserver{udp}, nil
	}
	return c, err
}

// A nameserver is a connection on which no answer is waited for long.
type nameserver struct{ *net.UDPConn }

// SetDeadline implements net.Conn. The resolver sets a deadline before each question.
func (n nameserver) SetDeadline(t time.Time) error {
	if soon := time.Now().Add(nameserverPatience); soon.Before(t) {
		t = soon
	}
	return n.UDPConn.SetDeadline(t)
}

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
