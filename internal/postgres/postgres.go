// Package postgres runs PostgreSQL, and PgBouncer before it, for tests.
package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Start runs a PostgreSQL until the test has ended, on a Unix socket in a
// directory of its own, and returns how to connect to it. In CI (environment
// CI=true) it is installed if need be, else the test is skipped without it.
func Start(t testing.TB) string {
	t.Helper()
	return New(t, "listen_addresses=").Local()
}

// New is Start for a test that does more with its server. Settings are
// name=value; without listen_addresses it listens on a port of 127.0.0.1, too.
func New(t testing.TB, settings ...string) *Server {
	t.Helper()
	return started(t, func() (*Server, error) { return Launch(settings...) })
}

// started has a server end with its test.
func started(t testing.TB, launch func() (*Server, error)) *Server {
	t.Helper()
	s, err := launch()
	if errors.Is(err, ErrNone) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A Server is a PostgreSQL in a directory of its own, which only one goroutine uses. All local users may do all.
type Server struct {
	Dir  string // has the socket and, in data, the database
	Port int

	bin      string
	as       []string
	settings []string

	process *process // nil: it was killed
}

// Launch returns once a new server accepts connections.
func Launch(settings ...string) (*Server, error) {
	s, err := prepare(settings)
	if err != nil {
		return nil, err
	}
	if err = s.run("initdb", "-D", s.data(), "-U", "soloist", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"); err == nil {
		err = s.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.Dir))
	}
	return s, nil
}

// Standby returns a server that follows s until the test has ended: a copy of it, for which s stops and starts again. That
// takes no pg_basebackup, which not every installation has. application_name at s is standby.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	return started(t, func() (*Server, error) {
		next, err := prepare(s.settings)
		if err != nil {
			return nil, err
		}
		const follow = `cp -R "$1" "$2" && cd "$2" && touch standby.signal && echo "primary_conninfo = '$3'" >>postgresql.auto.conf`
		if err = s.stop(); err == nil {
			err = next.run("sh", "-c", follow, "sh", s.data(), next.data(), s.Local()+" application_name=standby")
		}
		if err == nil {
			err = errors.Join(s.Start(), next.Start())
		}
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(next.Dir))
		}
		return next, nil
	})
}

// Promote makes a primary of a standby.
func (s *Server) Promote() error { return s.run("pg_ctl", "promote", "-D", s.data(), "-w") }

// prepare makes the directory of a server.
func prepare(settings []string) (*Server, error) {
	bin, err := findOrInstall()
	if err != nil {
		return nil, err
	}
	// Not t.TempDir: another user has to get there, and the path of a socket
	// has at most 107 characters.
	dir, err := os.MkdirTemp("/tmp", "postgres")
	if err != nil {
		return nil, err
	}
	port, err := free()
	if err != nil {
		return nil, err
	}
	as, err := asUser(dir)
	return &Server{Dir: dir, Port: port, bin: bin, as: as, settings: settings}, err
}

// free is a port that nobody listens on. It is none of those that systems give to outgoing connections: one of these could
// have it before the server starts, or while it is down.
func free() (port int, err error) {
	for range 100 {
		port = 10_000 + rand.IntN(20_000)
		ln, listenErr := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err = listenErr; err == nil {
			return port, ln.Close()
		}
	}
	return 0, err
}

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// Local is how to connect to the server by its socket.
func (s *Server) Local() string {
	return fmt.Sprintf("host=%s port=%d user=soloist dbname=postgres sslmode=disable", s.Dir, s.Port)
}

// Address is where the server listens.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// URL is how to connect to an address at which the server is reached; empty: its own.
func (s *Server) URL(address string) string {
	return "postgres://soloist@" + cmp.Or(address, s.Address()) + "/postgres?sslmode=disable"
}

// run runs a program of PostgreSQL, or of the PATH.
func (s *Server) run(program string, args ...string) error {
	out, err := s.command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	if path, err := exec.LookPath(filepath.Join(s.bin, program)); err == nil { // an installation may have no psql
		program = path
	}
	all := slices.Concat(s.as, []string{program}, args)
	cmd := exec.Command(all[0], all[1:]...)
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), "LC_ALL=C")
	return cmd
}

// Query returns what the server answers to a statement, a line for each row.
func (s *Server) Query(statement string) (string, error) {
	out, err := s.command("psql", s.Local(), "-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement).Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("psql: %w: %s", err, failed.Stderr)
	}
	return string(out), err
}

// Start returns when the server accepts connections, or reads if it is a
// standby. It is also called after Kill, with settings to add to those of before.
func (s *Server) Start(settings ...string) (err error) {
	s.settings = slices.Concat(s.settings, settings)
	// The processes of a server that was killed may still be about to end.
	for range 100 {
		if err = s.start(); err == nil || !strings.Contains(err.Error(), "shared memory") {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

func (s *Server) start() error {
	args := []string{"-D", s.data(), "-k", s.Dir, "-p", strconv.Itoa(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	var err error
	s.process, err = spawn(s.command("postgres", args...), "database system is ready to accept")
	return err
}

// Close ends the server and removes its directory.
func (s *Server) Close() error { return errors.Join(s.stop(), os.RemoveAll(s.Dir)) }

func (s *Server) stop() error {
	if s.process == nil {
		return nil
	}
	err := s.process.stop()
	s.process = nil
	return err
}

// Kill ends all processes of the server by kill -9.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	s.Signal("KILL")
	_ = s.stop() // it was killed
}

// Signal sends a signal, such as STOP, to all processes of the server.
func (s *Server) Signal(name string) {
	pids := []string{strconv.Itoa(s.process.cmd.Process.Pid)}
	_ = exec.Command("kill", "-STOP", pids[0]).Run() // it starts no more of them meanwhile
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		b, _ := os.ReadFile(file) // a process may have ended
		_, rest, _ := strings.Cut(string(b), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == pids[0] {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	_ = exec.Command("kill", append([]string{"-" + name}, pids...)...).Run()
}

// Put makes a file that only the server reads, and returns its path.
func (s *Server) Put(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := asUser(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// asUser is what to put before a command so that it runs without privileges,
// as PostgreSQL wants to; path then belongs to that user.
func asUser(path string) ([]string, error) {
	if os.Getuid() != 0 {
		return []string{"env"}, nil
	}
	name := "postgres"
	if _, err := user.Lookup(name); err != nil {
		name = "nobody"
	}
	if out, err := exec.Command("chown", name, path).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("chown: %w: %s", err, out)
	}
	return []string{"setpriv", "--reuid", name, "--clear-groups"}, nil
}

// ErrNone is why there is no server.
var ErrNone = errors.New("no initdb on the PATH or in /usr/lib/postgresql: apt-get install postgresql")

// findOrInstall returns the directory of initdb: Debian's is not on the PATH.
func findOrInstall() (string, error) { return orInstall(find, "postgresql", ErrNone) }

// orInstall returns what find finds, in CI once a package is installed; else the error none.
func orInstall(find func() string, pkg string, none error) (string, error) {
	if found := find(); found != "" {
		return found, nil
	}
	if os.Getenv("CI") != "true" {
		return "", none
	}
	install := "apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends " + pkg
	args := []string{"sh", "-c", install}
	if os.Getuid() != 0 {
		args = append([]string{"sudo", "-n"}, args...)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", install, err, out)
	}
	if found := find(); found != "" {
		return found, nil
	}
	return "", none
}

func find() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // postgres is beside the real one
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}
