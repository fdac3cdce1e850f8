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

	"github.com/soloist-go/soloist/internal/azurite"
)

func init() { zerolog.SetGlobalLevel(zerolog.Disabled) } // Toxiproxy's, which logs each connection

// A Line passes on what a replica and the service say to each other.
type Line struct {
	Front
	proxy  *toxiproxy.Proxy
	server *http.Server
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
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l.proxy = toxiproxy.NewProxy(api, name, "127.0.0.1:0", ln.Addr().String())
	if err := l.proxy.Start(); err != nil {
		l.server.Close()
		return nil, err
	}
	return l, nil
}

// Close ends the line for good.
func (l *Line) Close() {
	l.Down()
	l.server.Close()
}

// ConnectionString is for the replica of this line.
func (l *Line) ConnectionString() string {
	return (&azurite.Server{URL: "http://" + l.proxy.Listen + "/" + azurite.Account}).ConnectionString()
}

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
