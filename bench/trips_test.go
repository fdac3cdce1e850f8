//go:build linux

package main

import (
	"encoding/binary"
	"strings"
	"testing"
)

// What a client sends before it has its answers is one round trip, however many messages and packets that are.
func TestRoundTrips(t *testing.T) {
	for _, c := range []struct {
		what, sent string // > of the client, < of the server, a packet each
		want       int
	}{
		{"a query", ">Q <TDCZ", 1},
		{"a statement that is prepared first", ">PDS <1tTZ >BDES <2TDCZ", 2},
		{"two queries that are sent at once", ">BESBES <2CZ <2CZ", 1},
		{"the second after the first answer of two", ">BES >BES <2CZ >BES <2CZ <2CZ >Q <CZ", 2},
		{"an answer that is refused", ">BES <EZ >Q <CZ", 2},
		{"a ping after a notification", ">Q <CZ <A >Q <IZ", 2},
		{"a notification under a query", ">P <A >BES <1ACZ", 1},
		{"a copy", ">Q <G >ddc <CZ", 2},
		{"the end", ">Q <CZ >X", 1},
	} {
		got := 0
		x := exchange{count: func() { got++ }}
		var client, server messages
		for packet := range strings.FieldsSeq(c.sent) {
			if packet[0] == '>' {
				send(&client, packet[1:], x.client)
			} else {
				send(&server, packet[1:], x.server)
			}
		}
		if got != c.want {
			t.Errorf("%s: %d round trips, want %d", c.what, got, c.want)
		}
	}
}

// send has messages of these kinds arrive in parts of three bytes.
func send(m *messages, kinds string, each func(byte)) {
	var b []byte
	for i, kind := range []byte(kinds) {
		b = append(b, kind)
		b = binary.BigEndian.AppendUint32(b, uint32(4+i))
		b = append(b, make([]byte, i)...)
	}
	for len(b) > 0 {
		n := min(3, len(b))
		m.scan(b[:n], each)
		b = b[n:]
	}
}

func TestStartupNamesTheDatabase(t *testing.T) {
	message := func(text string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(4+len(text)))) + text
	}
	for text, want := range map[string]string{
		"\x00\x03\x00\x00user\x00bench\x00database\x00river-one-1\x00\x00": "river-one-1",
		"\x04\xd2\x16\x2eprocsecr": "",
	} {
		all, got, err := startup(strings.NewReader(message(text) + "Q"))
		if err != nil || got != want || string(all) != message(text) {
			t.Errorf("%q: got %q, %q, %v, want %q", text, all, got, err, want)
		}
	}
}
