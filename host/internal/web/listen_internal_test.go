package web

import (
	"log/slog"
	"net"
	"strings"
	"testing"
)

// On a platform probes and proxies ask the default port. A program that took
// another one would have another program's answers for its own.
func TestPortOfPlatformIsNotReplaced(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	t.Setenv("SOLOIST_ADDR", "")
	t.Setenv("FUNCTIONS_CUSTOMHANDLER_PORT", "")
	t.Setenv("CONTAINER_APP_NAME", "demo")
	ln, err := Listen(t.Context(), taken.Addr().String(), slog.New(slog.DiscardHandler))
	if err == nil {
		ln.Close()
		t.Fatalf("it listens on %s, want an error", ln.Addr())
	}
	if !strings.Contains(err.Error(), "set SOLOIST_ADDR to a free port") {
		t.Errorf("got %v, want what to do", err)
	}
}
