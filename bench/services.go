//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"

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
}

func peerNames() (names []string) {
	for _, p := range peers {
		names = append(names, p.name)
	}
	return names
}

// services are what the peers need, each started for the first one that asks.
type services struct {
	dir     string // for programs and data
	proxy   *proxy
	ready   map[string]string // addresses by name
	closers []func() error
}

func newServices(dir string) *services { return &services{dir: dir, ready: map[string]string{}} }

// Close ends all of them.
func (s *services) Close() (err error) {
	for _, end := range s.closers {
		err = errors.Join(err, end())
	}
	return err
}

// of returns the program of a peer, and where its replicas meet.
func (s *services) of(ctx context.Context, name string) (program, address string, err error) {
	i := slices.IndexFunc(peers, func(p peer) bool { return p.name == name })
	if program, err = s.build("peers/" + peers[i].program); err == nil {
		address, err = peers[i].service(s, ctx)
	}
	return program, address, err
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
		if s.proxy, err = startProxy(server.URL); err != nil {
			return "", err
		}
		s.closers = append(s.closers, s.proxy.Close)
		return (&azurite.Server{URL: "http://" + s.proxy.Address + "/" + azurite.Account}).ConnectionString(), nil
	})
}

// kubernetes is the API of leases.
func (s *services) kubernetes(context.Context) (string, error) {
	return s.once("the API of leases", func() (string, error) {
		server, err := startKubelease()
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, server.Close)
		return server.URL, nil
	})
}

// etcd is one server of etcd.
func (s *services) etcd(context.Context) (string, error) {
	return s.once("etcd", func() (string, error) {
		program, err := s.build("services/etcdserver")
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
		address, err := freeAddress()
		if err != nil {
			return "", err
		}
		_, port, _ := net.SplitHostPort(address)
		p, err := proctest.Command{Program: program, Stdout: func(string) {}, Dir: s.dir,
			Args: []string{"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no"}}.Start()
		if err != nil {
			return "", err
		}
		s.closers = append(s.closers, kill(p))
		return address, answers(ctx, address, p)
	})
}

// kill ends a service that has nothing to keep.
func kill(p *proctest.Process) func() error {
	return func() error {
		p.Kill()
		return nil
	}
}

// answers waits until a server accepts connections.
func answers(ctx context.Context, address string, p *proctest.Process) error {
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.Gone():
			return fmt.Errorf("it ended at once, with code %s", strconv.Itoa(p.Code()))
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// freeAddress returns an address of this machine that is free now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// build makes a program of this module, once.
func (s *services) build(pkg string) (string, error) {
	return s.once("the program "+pkg, func() (string, error) { return proctest.BuildIn(s.dir, "bench/"+pkg, false) })
}
