package web

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// fakeConn knows whether it is closed.
type fakeConn struct {
	net.Conn
	closed bool
}

func (c *fakeConn) Close() error { c.closed = true; return nil }

// Each row has three connections, in the order in which they came, and their
// states, in the order in which the server told them. A fourth one comes.
func TestWhichConnectionMakesRoom(t *testing.T) {
	type told struct {
		conn  int
		state http.ConnState
	}
	for _, test := range []struct {
		name string
		keep bool
		told []told
		want int // the one that is closed; -1: none
	}{
		{"no word yet, or half a header", false, nil, 0},
		{"idle before active", false, []told{{0, http.StateActive}, {1, http.StateActive}, {1, http.StateIdle}, {2, http.StateActive}}, 1},
		{"new before active", false, []told{{0, http.StateActive}, {1, http.StateActive}}, 2},
		{"the longest idle", false, []told{{0, http.StateActive}, {1, http.StateIdle}, {2, http.StateIdle}, {0, http.StateIdle}}, 1},
		{"all active", false, []told{{1, http.StateActive}, {0, http.StateActive}, {2, http.StateActive}}, 1},
		{"Functions, all active", true, []told{{0, http.StateActive}, {1, http.StateActive}, {2, http.StateActive}}, -1},
		{"Functions, no word yet: a call may be under way", true, nil, -1},
		{"Functions, one idle: the next call may be under way", true, []told{{0, http.StateActive}, {1, http.StateActive}, {2, http.StateActive}, {2, http.StateIdle}}, -1},
		{"one has gone", false, []told{{1, http.StateClosed}}, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 { // a map has no order
				c := &connections{most: 3, keep: test.keep, open: map[net.Conn]connection{}}
				all := []*fakeConn{{}, {}, {}, {}}
				for _, conn := range all[:3] {
					c.add(conn)
					c.observe(conn, http.StateNew)
				}
				for _, told := range test.told {
					c.observe(all[told.conn], told.state)
				}
				c.add(all[3])
				for i, conn := range all {
					if conn.closed != (i == test.want) {
						t.Errorf("connection %d: closed is %t, want %d closed", i, conn.closed, test.want)
					}
					c.observe(conn, http.StateClosed)
				}
				if len(c.open) != 0 {
					t.Errorf("got %d connections after the end of all", len(c.open))
				}
			}
		})
	}
}

// The Functions host calls all timers of an app at one instant: on connections
// that it has kept, else on new ones. All are open before the first call is sent.
func TestManyCallsOfFunctionsHostAreAnswered(t *testing.T) {
	const calls = 300
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), slog.New(slog.DiscardHandler))
	s.ReadHeaderTimeout, s.ReadTimeout = time.Minute, time.Minute // a slow machine must not fail the test
	ended := make(chan error, 1)
	go func() { ended <- Serve(s, ln, true) }()
	var kept []net.Conn
	for round := range 3 {
		all := kept
		for len(all) < calls {
			conn, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			all = append(all, conn)
		}
		answered := 0
		answered, kept = callOnEach(all)
		if answered != calls || len(kept) > mostConnections {
			t.Errorf("round %d: %d of %d calls are answered and %d connections kept, want all and %d at most", round, answered, calls, len(kept), mostConnections)
		}
	}
	s.Close()
	<-ended
}

// callOnEach sends a call on each connection, and returns how many are answered
// and which connections the server keeps, as it says with its answers.
func callOnEach(conns []net.Conn) (answered int, kept []net.Conn) {
	for _, conn := range conns {
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprint(conn, "POST /tick HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
	}
	for _, conn := range conns {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			continue
		}
		answered++
		if !resp.Close {
			kept = append(kept, conn)
		}
	}
	return answered, kept
}
