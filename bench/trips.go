//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
)

// A tap is before PostgreSQL and counts round trips by database.
type tap struct {
	server string // its socket
	mu     sync.Mutex
	counts map[string]int
}

// socket is the name of the socket in the directory of a server.
const socket = ".s.PGSQL.5432"

// tap starts one before the server whose socket is in a directory, and returns the directory of its own socket.
func (s *services) tap(server string) (string, error) {
	dir, err := os.MkdirTemp(server, "tap-*")
	if err != nil {
		return "", err
	}
	ln, err := net.Listen("unix", filepath.Join(dir, socket))
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, ln.Close)
	s.trips = &tap{server: filepath.Join(server, socket), counts: map[string]int{}}
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return // it was closed
			}
			go s.trips.serve(client)
		}
	}()
	return dir, nil
}

// serve passes on what a client and the server send, until one of them ends the connection.
func (t *tap) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("unix", t.server)
	if err != nil {
		return // the client sees that
	}
	defer server.Close()
	first, database, err := startup(client)
	if err != nil {
		return
	}
	if _, err := server.Write(first); err != nil {
		return
	}
	x := exchange{count: func() { t.count(database) }}
	if database != "" {
		x.client('S')
	}
	go func() {
		defer client.Close()
		pass(client, server, x.server)
	}()
	pass(server, client, x.client)
}

func (t *tap) count(database string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[database]++
}

// Of returns the round trips so far of the clients of a database, those that open connections included.
func (t *tap) Of(database string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts[database]
}

// startup reads the first message of a client, which has no kind, and the database that it names; none: it asks to cancel a
// statement of another connection.
func startup(client io.Reader) (all []byte, database string, err error) {
	all = make([]byte, 4)
	if _, err = io.ReadFull(client, all); err != nil {
		return nil, "", err
	}
	all = append(all, make([]byte, binary.BigEndian.Uint32(all)-4)...)
	if _, err = io.ReadFull(client, all[4:]); err != nil {
		return nil, "", err
	}
	texts := bytes.Split(all[8:], []byte{0})
	for i := 0; i+1 < len(texts); i += 2 {
		if string(texts[i]) == "database" {
			database = string(texts[i+1])
		}
	}
	return all, database, nil
}

// pass copies messages, and names the kind of each before it is sent on.
func pass(to io.Writer, from io.Reader, each func(kind byte)) {
	var m messages
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		m.scan(b[:n], each)
		if _, werr := to.Write(b[:n]); werr != nil || err != nil {
			return
		}
	}
}

// messages finds where messages begin in what is sent: one byte of its kind, four of its length without the kind.
type messages struct {
	head []byte
	left int // of the message that has begun
}

func (m *messages) scan(b []byte, each func(kind byte)) {
	for len(b) > 0 {
		if m.left > 0 {
			n := min(m.left, len(b))
			b, m.left = b[n:], m.left-n
			continue
		}
		n := min(5-len(m.head), len(b))
		m.head, b = append(m.head, b[:n]...), b[n:]
		if len(m.head) == 5 {
			each(m.head[0])
			m.left, m.head = int(binary.BigEndian.Uint32(m.head[1:]))-4, m.head[:0]
		}
	}
}

// An exchange counts the round trips of a connection: all that a client sends before it has the answers is one
// (https://www.postgresql.org/docs/current/protocol-message-formats.html).
type exchange struct {
	count func()

	mu    sync.Mutex
	asked int  // answers that the server owes, each of which ends in ReadyForQuery
	waits bool // the client has sent something since the last answer
}

// client is called for each message of the client.
func (x *exchange) client(kind byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if kind == 'X' { // it ends the connection
		return
	}
	if !x.waits {
		x.waits = true
		x.count()
	}
	if kind == 'Q' || kind == 'S' || kind == 'F' { // Query, Sync, FunctionCall
		x.asked++
	}
}

// server is called for each message of the server.
func (x *exchange) server(kind byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch kind {
	case 'Z': // ReadyForQuery
		x.asked--
		x.waits = x.asked > 0
	case 'G': // CopyInResponse: the client goes on
		x.waits = false
	}
}
