package history_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/postgres"
	server "github.com/soloist-go/soloist/internal/postgres"
	"github.com/soloist-go/soloist/store"
)

// PostgreSQL, with connections of each client that get lost: before a call comes, before its answer does, or so that it comes
// when nobody waits any more.
func TestPostgres(t *testing.T) {
	alone(t)
	at := server.New(t, "max_connections=400")
	inReality(t, 60, func(seed uint64) *history {
		s := session{calls: 60, lasts: 12 * time.Second, late: never}.named(seed)
		return s.record(func(n int) store.Store {
			backend, err := postgres.OpenURL(throughCutter(t, at, seed, n, int(seed%3)*12) + "&pool_max_conns=2")
			if err != nil {
				t.Error(err)
			}
			t.Cleanup(backend.(*postgres.Store).Close)
			return backend
		})
	})
}

// A cutter is a proxy that cuts connections.
type cutter struct {
	to   string
	dice *rand.Rand
	ills int // one message in so many, of both directions; zero: none
}

// throughCutter is the URL of a server behind one.
func throughCutter(t *testing.T, at *server.Server, seed uint64, n, ills int) string {
	dice := &safeSource{}
	dice.of.Seed(seed, uint64(most+n))
	return at.URL((&cutter{to: at.Address(), dice: rand.New(dice), ills: ills}).listen(t))
}

// listen returns where it listens until the test has ended.
func (c *cutter) listen(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Error(err)
		return ""
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			go c.pass(client)
		}
	}()
	return ln.Addr().String()
}

// pass passes on what a client and the server say, and returns when both have hung up.
func (c *cutter) pass(client net.Conn) {
	defer client.Close()
	there, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer there.Close()
	var back sync.WaitGroup
	back.Go(func() {
		c.copy(client, there, client)
		client.Close()
	})
	c.copy(there, client, client)
	there.(*net.TCPConn).CloseWrite() // the server does what has come
	back.Wait()
}

// copy copies until one hangs up, or it cuts the client off. Then the last message may come late, or not at all.
func (c *cutter) copy(to, from, client net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		ill := c.ills > 0 && c.dice.IntN(c.ills) == 0
		if ill {
			client.Close()
			if c.dice.IntN(2) == 0 {
				return
			}
			time.Sleep(time.Duration(c.dice.Int64N(int64(2 * time.Second))))
		}
		if _, err := to.Write(buffer[:n]); err != nil || ill {
			return
		}
	}
}
