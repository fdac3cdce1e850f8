//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/internal/proctest"
)

// postgres names the service.
const postgres = "PostgreSQL"

// postgres is one PostgreSQL with its own defaults, on a Unix socket, and counts statements.
func (s *services) postgres(ctx context.Context) (string, error) {
	return s.once(postgres, func() (string, error) {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's are not on the PATH
		if len(found) == 0 {
			return "", errors.New("install it (apt-get install postgresql), or leave postgres,pgahead,river,dbos,gocronpg out of -peers")
		}
		bin := filepath.Dir(found[len(found)-1])
		dir, err := os.MkdirTemp("/tmp", "bench-postgres-*") // a socket's path has at most 107 characters
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, func() error { return os.RemoveAll(dir) })
		as, err := unprivileged(dir)
		if err != nil {
			return "", err
		}
		data := filepath.Join(dir, "data")
		init := exec.Command(as[0], slices.Concat(as[1:], []string{filepath.Join(bin, "initdb"), "-D", data,
			"-U", "bench", "-A", "trust", "--locale=C", "-E", "UTF8"})...)
		init.Dir = dir
		if out, err := init.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		p, err := proctest.Command{Program: "sh", Dir: dir, Stdout: func(string) {}, Stderr: func(string) {},
			Args: slices.Concat([]string{"-c", watched, "sh"}, as, []string{filepath.Join(bin, "postgres"), "-D", data, "-k", dir,
				"-c", "listen_addresses=", "-c", "max_connections=500", "-c", "shared_preload_libraries=pg_stat_statements"})}.Start()
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, func() error {
			err := p.Signal(syscall.SIGINT) // which does not wait for clients
			p.GoneWithin(stops)
			return err
		})
		address := "host=" + dir + " user=bench sslmode=disable"
		starts, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if s.server, err = database.Connect(starts, address); err != nil || !s.tapped {
			return address, err
		}
		own, err := s.tap(dir)
		return strings.Replace(address, dir, own, 1), err
	})
}

// watched runs a server that stops when standard input ends, which the bench holds open while it lives.
const watched = `exec 3<&0; (cat <&3; kill -INT $$) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null`

// unprivileged is what to put before a command that root may not run; the directory then belongs to that user.
func unprivileged(dir string) ([]string, error) {
	if os.Getuid() != 0 {
		return []string{"env"}, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("chown", u.Uid, dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return []string{"setpriv", "--reuid", u.Uid, "--clear-groups"}, nil
}
