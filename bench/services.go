//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/database"
	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A peer is a program, and the service where its replicas meet.
type peer struct {
	name, program string
	service       func(*services, context.Context) (address string, err error)
}

// peers are in the order of the table.
var peers = []peer{
	{"soloist", "soloist", (*services).storage},
	{"ahead", "soloist", (*services).storage},
	{"clientgo", "clientgo", (*services).kubernetes},
	{"etcd", "etcd", (*services).etcd},
	{"gocron", "gocron", (*services).redis},
	{"blob", "blob", (*services).storage},
	{"postgres", "postgres", (*services).postgres},
	{"pgahead", "postgres", (*services).postgres},
	{"river", "river", (*services).postgres},
	{"dbos", "dbos", (*services).postgres},
	{"gocronpg", "gocronpg", (*services).postgres},
}

func peerNames() (names []string) {
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

// services are what the peers need, each started for the first peer that asks.
type services struct {
	dir     string            // for programs and data
	proxy   *proxy            // before Azurite; nil without it
	server  *database.Server  // of PostgreSQL; nil without it
	tapped  bool              // clients of PostgreSQL go through a tap
	trips   *tap              // that; nil without it
	ready   map[string]string // addresses by name
	closers []func() error
}

// Close ends all of them.
func (s *services) Close() (err error) {
	for _, end := range slices.Backward(s.closers) {
		err = errors.Join(err, end())
	}
	return err
}

// of returns the program of a fleet, and where its replicas meet.
func (s *services) of(ctx context.Context, f spec) (program, address string, err error) {
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == f.peer })
	if program, err = s.build("peers/"+peers[i].program, f.skewed); err == nil {
		address, err = peers[i].service(s, ctx)
	}
	return program, address, err
}

// space makes the database of a fleet that meets at this address, if that is PostgreSQL.
func (s *services) space(ctx context.Context, address, name string) error {
	if address != s.ready[postgres] {
		return nil
	}
	return s.server.Create(ctx, name)
}

// calls returns what a fleet has asked of its service so far, by kind; none, where nothing counts.
func (s *services) calls(ctx context.Context, w replica.Settings) (map[string]int, error) {
	switch {
	case w.Service == s.ready[postgres]:
		n, err := s.server.Statements(ctx, w.Space)
		all := map[string]int{"statement": n}
		if s.trips != nil {
			all[roundTrip] = s.trips.Of(w.Space)
		}
		return all, err
	case s.proxy != nil:
		return s.proxy.Of(w.Space), nil
	}
	return nil, nil
}

// once starts a service unless it has started.
func (s *services) once(name string, start func() (string, error)) (string, error) {
	if s.ready[name] != "" {
		return s.ready[name], nil
	}
	address, err := start()
	if err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	s.ready[name] = address
	return address, nil
}

// storage is Azurite behind the proxy that counts.
func (s *services) storage(ctx context.Context) (string, error) {
	return s.once("azurite", func() (string, error) {
		server, err := azurite.Launch(ctx)
		if err != nil {
			return "", fmt.Errorf("%w: install node 20 or newer, with npm; -peers clientgo,etcd,gocron does without", err)
		}
		s.closers = append(s.closers, server.Close)
		if s.proxy, err = newProxy(server.URL); err != nil {
			return "", err
		}
		address, err := s.listen(s.proxy)
		return (&azurite.Server{URL: address + "/" + azurite.Account}).ConnectionString(), err
	})
}

// listen serves in this process, and returns the URL.
func (s *services) listen(h http.Handler) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	s.closers = append(s.closers, server.Close)
	go server.Serve(ln) // until it is closed
	return "http://" + ln.Addr().String(), nil
}

// kubernetes is the API of leases.
func (s *services) kubernetes(context.Context) (string, error) {
	return s.once("the API of leases", func() (string, error) {
		return s.listen(&kubelease{leases: map[string]object{}})
	})
}

// etcd is one server of etcd.
func (s *services) etcd(context.Context) (string, error) {
	return s.once("etcd", func() (string, error) {
		program, err := s.build("services/etcdserver", false)
		if err != nil {
			return "", err
		}
		data, err := os.MkdirTemp(s.dir, "etcd-*")
		if err != nil {
			return "", err
		}
		address := make(chan string, 1)
		p, err := proctest.Command{Program: program, Args: []string{data}, Stdout: func(line string) { address <- line }}.Start()
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, kill(p))
		select {
		case a := <-address:
			return a, nil
		case <-p.Gone():
			return "", errors.New("it ended at once")
		}
	})
}

// redis is a server without persistence.
func (s *services) redis(ctx context.Context) (string, error) {
	return s.once("redis-server", func() (string, error) {
		program, err := exec.LookPath("redis-server")
		if err != nil {
			return "", fmt.Errorf("%w: install it (apt-get install redis-server), or leave gocron out of -peers", err)
		}
		free, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		address := free.Addr().String()
		free.Close()
		_, port, _ := net.SplitHostPort(address)
		p, err := proctest.Command{Program: program, Stdout: func(string) {}, Dir: s.dir,
			Args: []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"}}.Start()
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, kill(p))
		for {
			if conn, err := net.Dial("tcp", address); err == nil {
				return address, conn.Close()
			}
			if ctx.Err() != nil || p.GoneWithin(time.Millisecond) {
				return "", errors.Join(ctx.Err(), errors.New("it does not answer"))
			}
		}
	})
}

// kill ends a service that has nothing to keep.
func kill(p *proctest.Process) func() error {
	return func() error {
		p.Kill()
		return nil
	}
}

// build makes a program of this module, once, and once more for clocks that are wrong.
func (s *services) build(pkg string, wrong bool) (string, error) {
	if !wrong {
		return s.once("the program "+pkg, func() (string, error) { return proctest.BuildOver(s.dir, "bench/"+pkg, false, nil) })
	}
	return s.once("the program "+pkg+" with a wrong clock", func() (string, error) {
		files, err := skewed()
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp(s.dir, "skewed-*")
		if err != nil {
			return "", err
		}
		return proctest.BuildOver(dir, "bench/"+pkg, false, files)
	})
}
