package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A Bouncer is a PgBouncer in transaction mode before a server.
type Bouncer struct {
	URL      string
	Prepares bool // it knows prepared statements, as version 1.21 and later do
}

// Bouncer runs a PgBouncer, as its documentation says to, until the test has ended. In CI it is installed if need be, else
// the test is skipped without it. Without prepares it knows no prepared statements.
func (s *Server) Bouncer(t testing.TB, prepares bool) Bouncer {
	t.Helper()
	b, p, err := s.bounce(prepares)
	if errors.Is(err, errNoBouncer) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (s *Server) bounce(prepares bool) (b Bouncer, p *process, err error) {
	path, err := orInstall(findBouncer, "pgbouncer", errNoBouncer)
	if err != nil {
		return b, nil, err
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil {
		return b, nil, err
	}
	var major, minor int
	if _, err = fmt.Sscanf(string(version), "PgBouncer %d.%d", &major, &minor); err != nil {
		return b, nil, fmt.Errorf("its version is %q: %w", version, err)
	}
	port, err := free()
	if err != nil {
		return b, nil, err
	}
	b = Bouncer{URL: s.URL(fmt.Sprintf("127.0.0.1:%d", port)), Prepares: prepares && (major > 1 || minor >= 21)}
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%d user=soloist
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
ignore_startup_parameters = statement_timeout, default_transaction_isolation
`, s.Dir, s.Port, port)
	if b.Prepares {
		settings += "max_prepared_statements = 100\n"
	} else if major > 1 || minor >= 21 {
		settings += "max_prepared_statements = 0\n"
	}
	file := filepath.Join(s.Dir, fmt.Sprintf("pgbouncer%d.ini", port))
	if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
		return b, nil, err
	}
	p, err = spawn(s.command(path, file), "process up")
	return b, p, err
}

var errNoBouncer = errors.New("no pgbouncer on the PATH or in /usr/sbin: apt-get install pgbouncer")

func findBouncer() string {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
