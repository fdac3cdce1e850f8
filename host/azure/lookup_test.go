package azure_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/azure"
)

// nameserver answers each question with these flags and, if there is one, an address. Without flags it does not answer.
func nameserver(t *testing.T, flags uint16, address net.IP) *net.Resolver {
	t.Helper()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close() })
	go func() {
		for b := make([]byte, 1500); ; {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			if flags == 0 {
				continue
			}
			end := 12 // after the name of the question, its type and its class
			for end < n && b[end] != 0 {
				end += 1 + int(b[end])
			}
			end += 5
			answer := append([]byte{}, b[:end]...)
			binary.BigEndian.PutUint16(answer[2:], flags)
			binary.BigEndian.PutUint64(answer[4:], 1<<48) // one question and nothing else
			if isA := binary.BigEndian.Uint16(b[end-4:]) == 1; isA && address != nil {
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4)
				answer = append(answer, address.To4()...)
			}
			udp.WriteTo(answer, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", udp.LocalAddr().String())
	}}
}

// A slip in the name of an account is told apart from a name server that does not answer.
func TestLookUpOfHost(t *testing.T) {
	backend, err := azure.Open(azure.Config{ServiceURL: "https://shpostore.blob.example", Container: "jobs", AccountName: "shpostore"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		resolver *net.Resolver
		fails    bool
		want     []string
	}{
		{"no such name", nameserver(t, 0x8183, nil), true, []string{"shpostore.blob.example cannot be looked up: ", "check the name of the account in SOLOIST_STORAGE"}},
		{"there is", nameserver(t, 0x8180, net.IPv4(192, 0, 2, 7)), false, []string{"shpostore.blob.example is 192.0.2.7"}},
		{"a server that fails", nameserver(t, 0x8182, nil), true, []string{"cannot be looked up", "name server works"}},
		{"no answer", nameserver(t, 0, nil), true, []string{"cannot be looked up", "name server works"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			defer azure.SetResolver(test.resolver)()
			ctx := t.Context()
			if test.name == "no answer" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			check := backend.Examine("demo/.doctor", time.Now)[0]
			got := check.Do(ctx)
			text := got.Text + ": " + got.Advice
			if check.Name != "dns" || got.Fails != test.fails {
				t.Errorf("%s: got %+v", check.Name, got)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q", text, want)
				}
			}
		})
	}
}
