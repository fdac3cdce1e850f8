package web

import (
	"net"
	"net/http"
	"sync"

	"github.com/soloist-go/soloist/internal/descriptors"
)

// mostConnections is how many connections HTTP keeps open: each page that somebody looks
// at needs one, and probes and proxies a few.
const mostConnections = 200

// connectionLimit leaves most of the descriptors to the store.
func connectionLimit() int {
	if limit := descriptors.Limit(); limit > 0 {
		return max(min(mostConnections, limit/4), 4)
	}
	return mostConnections
}

// mostStreams is how many pages may follow the news at once. The other connections are for
// what asks and goes.
func mostStreams() int { return connectionLimit() * 3 / 4 }

// Connections caps how many connections HTTP has. A new one is always taken,
// and an old one closed to make room, so that clients which hold connections
// keep out neither probes nor what the store needs: each connection takes one of
// the process's descriptors.
//
// A connection on which the Functions host calls is never closed to make room,
// not even a new or an idle one: the next call may be on its way, and would be
// lost. Only [NewServer]'s limits close it. Above the cap each answer makes the
// host close the connection, so the cap holds again after a crowd of calls.
type Connections struct {
	most int
	keep bool // the Functions host calls on them

	mu    sync.Mutex
	clock uint64 // counts changes of state
	open  map[net.Conn]connection
}

// A connection waits until the header of a request has arrived. It does so while
// it is idle, and while a slow client sends the header.
type connection struct {
	since   uint64
	waiting bool
}

// NewConnections is for the connections of one server.
func NewConnections(keep bool) *Connections {
	return &Connections{most: connectionLimit(), keep: keep, open: map[net.Conn]connection{}}
}

// Serve serves HTTP on ln under the cap.
func Serve(s *http.Server, ln net.Listener, c *Connections) error {
	s.ConnState = c.observe
	if c.keep {
		s.Handler = c.around(s.Handler)
	}
	return s.Serve(cappedListener{ln, c})
}

// around makes each answer above the cap the last one of its connection. The
// client reads that in the answer, so it sends no call that would meet the close.
func (c *Connections) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.crowded() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func (c *Connections) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > c.most
}

type cappedListener struct {
	net.Listener
	connections *Connections
}

func (l cappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.connections.add(conn)
	}
	return conn, err
}

func (c *Connections) add(conn net.Conn) {
	c.mu.Lock()
	var old net.Conn
	if !c.keep && len(c.open) >= c.most {
		old = c.oldest()
		delete(c.open, old)
	}
	c.clock++
	c.open[conn] = connection{since: c.clock, waiting: true}
	c.mu.Unlock()
	if old != nil {
		old.Close()
	}
}

// oldest returns the connection that has waited longest, or else the connection that has
// been active longest: clients that read slowly could keep all active.
func (c *Connections) oldest() (old net.Conn) {
	var found connection
	for conn, now := range c.open {
		if old == nil || now.waiting && !found.waiting || now.waiting == found.waiting && now.since < found.since {
			old, found = conn, now
		}
	}
	return old
}

// observe is the server's hook. The server calls a connection active once the
// header of a request is there.
func (c *Connections) observe(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[conn]; !ok {
		return // closed to make room
	}
	if state == http.StateClosed || state == http.StateHijacked {
		delete(c.open, conn)
		return
	}
	c.clock++
	c.open[conn] = connection{since: c.clock, waiting: state != http.StateActive}
}
