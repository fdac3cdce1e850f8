// Package line is the way of one replica to the service: Toxiproxy, then a
// front that may refuse requests, or lose their answers, as a busy service does.
package line

import (
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

func init() { zerolog.SetGlobalLevel(zerolog.Disabled) } // Toxiproxy's, which logs each connection

// A Line passes on what a replica and the service say to each other.
type Line struct {
	Front
	proxy  *toxiproxy.Proxy
	server *http.Server // of the front; nil: there is none
	down   atomic.Bool
}

// New returns a line that is up. The name is for Toxiproxy's metrics.
func New(name string, service http.Handler) (*Line, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Line{Front: Front{next: service}}
	l.server = &http.Server{Handler: &l.Front, ErrorLog: log.New(io.Discard, "", 0)}
	go l.server.Serve(ln) // until Close
	if err := l.to(name, ln.Addr().String()); err != nil {
		l.server.Close()
		return nil, err
	}
	return l, nil
}

// To returns a line without a front, which is up, to a service at an address.
func To(name, address string) (*Line, error) {
	l := new(Line)
	return l, l.to(name, address)
}

func (l *Line) to(name, address string) error {
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l.proxy = toxiproxy.NewProxy(api, name, "127.0.0.1:0", address)
	return l.proxy.Start()
}

// Close ends the line for good.
func (l *Line) Close() {
	l.Down()
	if l.server != nil {
		l.server.Close()
	}
}

// Address is where the replica of this line connects to.
func (l *Line) Address() string { return l.proxy.Listen }

// Down has all connections refused, and ends those that there are.
func (l *Line) Down() {
	if !l.down.Swap(true) {
		l.proxy.Stop()
	}
}

// Up is the end of Down.
func (l *Line) Up() error {
	if !l.down.Swap(false) {
		return nil
	}
	return l.proxy.Start()
}
