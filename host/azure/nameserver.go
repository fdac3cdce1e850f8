package azure

import (
	"context"
	"net"
	"time"
)

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
