package web

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

// An address that somebody else has is told by the variable that it is from. On a platform probes and proxies ask the default port:
// a program that took another one would have another program's answers for its own.
func TestAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for variable, want := range map[string]string{"SOLOIST_ADDR": "SOLOIST_ADDR is", "FUNCTIONS_CUSTOMHANDLER_PORT": "FUNCTIONS_CUSTOMHANDLER_PORT is",
		"CONTAINER_APP_NAME": "set SOLOIST_ADDR to a free port"} {
		for _, name := range []string{"SOLOIST_ADDR", "FUNCTIONS_CUSTOMHANDLER_PORT", "CONTAINER_APP_NAME"} {
			t.Setenv(name, "")
		}
		t.Setenv(variable, "x")
		ln, err := Listen(t.Context(), taken.Addr().String(), slog.New(slog.DiscardHandler))
		if err == nil {
			ln.Close()
			t.Fatalf("%s: it listens on %s, want an error", variable, ln.Addr())
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
