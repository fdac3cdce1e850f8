// Package postgres runs PostgreSQL for tests.
package postgres

import (
	"bufio"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Start runs a PostgreSQL until the test has ended, on a Unix socket in a
// directory of its own, and returns how to connect to it. In CI (environment
// CI=true) it is installed if need be, else the test is skipped without it.
func Start(t testing.TB) string {
	t.Helper()
	bin := findOrInstall(t)
	// Not t.TempDir: another user has to get there, and the path of a socket
	// has at most 107 characters.
	dir, err := os.MkdirTemp("/tmp", "postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	as := asUser(t, dir)

	data := filepath.Join(dir, "data")
	cmd := exec.Command(as[0], append(as[1:], filepath.Join(bin, "initdb"),
		"-D", data, "-U", "soloist", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	serve(t, dir, slices.Concat(as, []string{filepath.Join(bin, "postgres"),
		"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off"}))
	return "host=" + dir + " user=soloist dbname=postgres sslmode=disable"
}

// watched runs a command that is told to stop when standard input ends, so
// that it cannot outlive the test however that ends.
const watched = `exec 3<&0; (cat <&3; kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null`

// serve returns when the server accepts connections.
func serve(t testing.TB, dir string, command []string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", watched, "sh"}, command...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	var log strings.Builder // to be read after done
	go func() {
		defer close(done)
		found := false
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			log.WriteString(lines.Text() + "\n")
			if !found && strings.Contains(lines.Text(), "database system is ready to accept connections") {
				found = true
				close(ready)
			}
		}
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("postgres: %v: %s", err, log.String())
		}
	})
	select {
	case <-ready:
	case <-done:
		t.Fatal("postgres ended at once: ", log.String())
	case <-time.After(time.Minute):
		t.Fatal("postgres does not start")
	}
}

// asUser is what to put before a command so that it runs without privileges,
// as PostgreSQL wants to; dir then belongs to that user.
func asUser(t testing.TB, dir string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		return []string{"env"}
	}
	name := "postgres"
	if _, err := user.Lookup(name); err != nil {
		name = "nobody"
	}
	if out, err := exec.Command("chown", name, dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	return []string{"setpriv", "--reuid", name, "--clear-groups"}
}

const none = "no initdb on the PATH or in /usr/lib/postgresql: apt-get install postgresql"

// findOrInstall returns the directory of initdb: Debian's is not on the PATH.
func findOrInstall(t testing.TB) string {
	t.Helper()
	if bin := find(); bin != "" {
		return bin
	}
	if os.Getenv("CI") != "true" {
		t.Skip(none)
	}
	install := "apt-get update -q && apt-get install -qy --no-install-recommends postgresql"
	cmd := exec.Command("sh", "-c", install)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", install, err, out)
	}
	bin := find()
	if bin == "" {
		t.Fatal(none)
	}
	return bin
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
