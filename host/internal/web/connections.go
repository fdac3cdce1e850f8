package web

import (
	"net"
	"net/http"
	"sync"
)

// mostConnections is how many connections HTTP keeps open: people, probes and
// proxies need a few.
const mostConnections = 100

// Connections caps how many connections HTTP has. A new one is always taken,
// and an old one closed to make room, so that clients which hold connections
// keep out neither probes nor what the store needs: each connection takes one of
// the process's descriptors.
type Connections struct {
	most       int
	keepActive bool // a connection whose request is being answered is never closed

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

// NewConnections leaves most of the descriptors to the store.
func NewConnections(keepActive bool) *Connections {
	c := &Connections{most: mostConnections, keepActive: keepActive, open: map[net.Conn]connection{}}
	if limit := descriptors(); limit > 0 {
		c.most = max(min(c.most, limit/4), 4)
	}
	return c
}

// Serve serves HTTP on ln under the cap.
func Serve(s *http.Server, ln net.Listener, c *Connections) error {
	s.ConnState = c.observe
	return s.Serve(cappedListener{ln, c})
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
	if len(c.open) >= c.most {
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

// oldest returns the connection that has waited longest, else the one that has
// been active longest: clients that read slowly could keep all active. It
// returns nil if none may be closed.
func (c *Connections) oldest() (old net.Conn) {
	var found connection
	for conn, now := range c.open {
		if c.keepActive && !now.waiting {
			continue
		}
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
