package azure

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// A nameserver that gives no answer is not waited for as long as the resolver would: a
// call to the store has less time than that.
func TestDeadNameserverIsLeftSoon(t *testing.T) {
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	c, err := resolver.Dial(t.Context(), "udp", dead.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, err = c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Other connections keep the deadline that they are given: an answer over TCP may be long.
func TestNameserverOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := resolver.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, ok := c.(*net.TCPConn); !ok {
		t.Errorf("got %T", c)
	}
}
