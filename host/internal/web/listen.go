package web

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"github.com/soloist-go/soloist/host/internal/app"
)

// The ports to try when no address is set and port 8080 is taken, as on a
// machine with several replicas.
const firstPort, lastPort = 8081, 8099

// Listen listens where the settings say, or at the next free port of a machine
// whose settings do not say.
func Listen(ctx context.Context, addr string, log *slog.Logger) (net.Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case os.Getenv("SOLOIST_ADDR") != "":
		return nil, fmt.Errorf("SOLOIST_ADDR is %q: %w", addr, err)
	case app.OnPlatform() && !app.InFunctions(): // its probes ask port 8080, and would ask another program
		return nil, fmt.Errorf("SOLOIST_ADDR is not set, and the default is %s: %w: set SOLOIST_ADDR to a free port, and the ports of probes and ingress with it", addr, err)
	case app.InFunctions():
		return nil, fmt.Errorf("FUNCTIONS_CUSTOMHANDLER_PORT is %q: %w", os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT"), err)
	}
	name, _, _ := net.SplitHostPort(addr)
	for port := firstPort; port <= lastPort; port++ {
		if ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(name, strconv.Itoa(port))); err == nil {
			log.Info(fmt.Sprintf("port 8080 is taken, so this is port %d; SOLOIST_ADDR says otherwise", port))
			return ln, nil
		}
	}
	return nil, fmt.Errorf("SOLOIST_ADDR is not set, and ports 8080 to %d are taken: %w", lastPort, err)
}

// URL is what to type on this machine.
func URL(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port) + "/"
}
