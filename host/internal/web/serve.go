package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/internal/app"
	"github.com/soloist-go/soloist/internal/descriptors"
)

// NewServer answers with h. It has limits: a client that is slow, or means ill,
// must not use it up.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       idleTime(),
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// idleTime is how long a connection stays open without a request. In Functions
// that is longer than the host keeps one, so that the host closes it: a request
// that meets our close is lost. The host keeps one for a minute, which is when
// the next timer comes
// (https://learn.microsoft.com/dotnet/api/system.net.http.socketshttphandler.pooledconnectionidletimeout).
// Elsewhere clients only read, and can ask again.
func idleTime() time.Duration {
	if app.InFunctions() {
		return 5 * time.Minute
	}
	return 30 * time.Second
}

// The ports to try when no address is set and port 8080 is taken, as on a
// machine with several replicas.
const firstPort, lastPort = 8081, 8099

// Listen listens where the settings say, or at the next free port of a machine
// whose settings do not say.
func Listen(ctx context.Context, addr string, log *slog.Logger) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case os.Getenv("SOLOIST_ADDR") != "":
		return nil, fmt.Errorf("SOLOIST_ADDR is %q: %w", addr, err)
	case app.OnPlatform() && !app.InFunctions(): // its probes ask port 8080, and would ask another program
		return nil, fmt.Errorf("SOLOIST_ADDR is not set, and the default is %s: %w: set SOLOIST_ADDR to a free port, and the ports of probes and ingress with it", addr, err)
	case app.InFunctions():
		return nil, fmt.Errorf("FUNCTIONS_CUSTOMHANDLER_PORT is %q: %w", os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), err)
	}
	name, _, _ := net.SplitHostPort(addr)
	for port := firstPort; port <= lastPort; port++ {
		if ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(name, strconv.Itoa(port))); err == nil {
			log.Info(fmt.Sprintf("port 8080 is taken, so this is port %d; SOLOIST_ADDR says otherwise", port))
			return ln, nil
		}
	}
	return nil, fmt.Errorf("SOLOIST_ADDR is not set, and ports 8080 to %d are taken: %w", lastPort, err)
}

// URL is what to type on this machine.
func URL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}

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

// connections are those that HTTP has, up to a number. A new one is always taken,
// and an old one closed to make room, so that clients which hold connections
// keep out neither probes nor what the store needs: each connection takes one of
// the process's descriptors.
//
// A connection on which the Functions host calls is never closed to make room,
// not even a new or an idle one: the next call may be on its way, and would be
// lost. Only [NewServer]'s limits close it. Above the cap each answer makes the
// host close the connection, so the cap holds again after a crowd of calls.
type connections struct {
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

// Serve serves HTTP on ln under the cap. keep: the Functions host calls.
func Serve(s *http.Server, ln net.Listener, keep bool) error {
	c := &connections{most: connectionLimit(), keep: keep, open: map[net.Conn]connection{}}
	s.ConnState = c.observe
	if c.keep {
		s.Handler = c.around(s.Handler)
	}
	return s.Serve(cappedListener{ln, c})
}

// around makes each answer above the cap the last one of its connection. The
// client reads that in the answer, so it sends no call that would meet the close.
func (c *connections) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.crowded() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}

func (c *connections) crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open) > c.most
}

type cappedListener struct {
	net.Listener
	all *connections
}

func (l cappedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.all.add(conn)
	}
	return conn, err
}

func (c *connections) add(conn net.Conn) {
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
func (c *connections) oldest() (old net.Conn) {
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
func (c *connections) observe(conn net.Conn, state http.ConnState) {
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
