package host_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A heldConn is a server's connection that notes how long the first write waited that failed.
type heldConn struct {
	net.Conn
	mu     sync.Mutex
	waited time.Duration
	closed bool
}

func (c *heldConn) Write(b []byte) (int, error) {
	begin := time.Now()
	n, err := c.Conn.Write(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.waited == 0 {
		c.waited = time.Since(begin)
	}
	return n, err
}

func (c *heldConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.Conn.Close()
}

// openStream connects to a server, asks for a stream, and reads it for so long.
func openStream(t *testing.T, ln piped, d time.Duration) (there *heldConn, text func() string) {
	here, server := net.Pipe()
	there = &heldConn{Conn: server}
	ln.conns <- there
	fmt.Fprint(here, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
	here.SetReadDeadline(time.Now().Add(d))
	read := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(here)
		read <- string(b)
	}()
	t.Cleanup(func() { here.Close() })
	return there, func() string { return <-read }
}

// A reader that takes no message for ten seconds is cut off, and holds up no other reader.
func TestSlowReaderIsCut(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		server, run, err := host.Server(host.Program{Name: "demo", Stdout: t.Output(), Store: &local.Memory{}, Work: work()})
		if err != nil {
			t.Fatal(err)
		}
		ln := newPiped()
		go server.Serve(ln)
		defer server.Close()
		slow, first := openStream(t, ln, time.Second)
		other, all := openStream(t, ln, time.Minute)
		if text := first(); strings.Count(text, "event: news") != 1 {
			t.Errorf("got %q, want the first message", text)
		}
		run()
		text := all()
		slow.mu.Lock()
		defer slow.mu.Unlock()
		if slow.waited != 10*time.Second || !slow.closed {
			t.Errorf("a message waited %s for the slow reader, closed: %t; want 10s and true", slow.waited, slow.closed)
		}
		if n := strings.Count(text, "event: news"); n < 2 || other.waited != 0 {
			t.Errorf("the other got %d messages, one failed after %s", n, other.waited)
		}
	})
}
