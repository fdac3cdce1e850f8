package web

import (
	"net"
	"net/http"
	"testing"
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
		name       string
		keepActive bool
		told       []told
		want       int // the one that is closed; -1: none
	}{
		{"no word yet, or half a header", false, nil, 0},
		{"idle before active", false, []told{{0, http.StateActive}, {1, http.StateActive}, {1, http.StateIdle}, {2, http.StateActive}}, 1},
		{"new before active", false, []told{{0, http.StateActive}, {1, http.StateActive}}, 2},
		{"the longest idle", false, []told{{0, http.StateActive}, {1, http.StateIdle}, {2, http.StateIdle}, {0, http.StateIdle}}, 1},
		{"all active", false, []told{{1, http.StateActive}, {0, http.StateActive}, {2, http.StateActive}}, 1},
		{"all active, which Functions keeps", true, []told{{0, http.StateActive}, {1, http.StateActive}, {2, http.StateActive}}, -1},
		{"Functions, one idle", true, []told{{0, http.StateActive}, {1, http.StateActive}, {2, http.StateActive}, {2, http.StateIdle}}, 2},
		{"one has gone", false, []told{{1, http.StateClosed}}, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			for range 20 { // a map has no order
				c := &Connections{most: 3, keepActive: test.keepActive, open: map[net.Conn]connection{}}
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
