// Package azurite runs Azurite, the emulator of Azure Storage, for tests.
//
// The emulator is a Node package, pinned by the lock file in
// host/azure/testdata and installed there on first use. What it gets wrong
// about leases is listed where the tests against it are.
package azurite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/nightly"
)

// A Server is an Azurite with the Blob and the Queue service.
type Server struct {
	URL      string // of the account's blobs: http://127.0.0.1:PORT/devstoreaccount1, or https
	QueueURL string // of its queues, at another port

	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{} // closed when the output has ended
	close func() error
}

// Account and Key are Azurite's well-known credentials
// (https://learn.microsoft.com/azure/storage/common/storage-connect-azurite).
const (
	Account = "devstoreaccount1"
	Key     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// ErrNoNode is what [Launch] reports where node or npm is not installed.
var ErrNoNode = errors.New("azurite needs node and npm on the PATH")

// patience bounds the installation and the start: far more than either takes.
const patience = 5 * time.Minute

// Start runs a server until the test has ended. Tests over it run each night: see
// package nightly. Where Node is not installed it skips the test, except in CI
// (environment CI=true), where it fails it.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t)
}

func start(t testing.TB, options ...string) *Server {
	t.Helper()
	s := need(t, func() (*Server, error) { return inMemory(options...) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Shared is [Start] of one server for all tests of this process: to start one
// takes longer than it is busy with them. It ends with the process.
func Shared(t testing.TB) *Server {
	t.Helper()
	return need(t, shared)
}

var shared = launchOnce()

func launchOnce() func() (*Server, error) {
	return sync.OnceValues(func() (*Server, error) { return inMemory() })
}

// Next is [Shared] of three servers in turn, for tests with processes that run at once: a server has one thread,
// and while one test keeps that busy the leases of all others would expire.
func Next(t testing.TB) *Server {
	t.Helper()
	return need(t, few[turn.Add(1)%int64(len(few))])
}

var (
	few  = [3]func() (*Server, error){shared, launchOnce(), launchOnce()}
	turn atomic.Int64
)

// inMemory launches a server whose data is in memory. The options are more of
// Azurite's.
func inMemory(options ...string) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return launch(ctx, append([]string{"--inMemoryPersistence"}, options...))
}

// need skips the test where there is to be no server.
func need(t testing.TB, launch func() (*Server, error)) *Server {
	t.Helper()
	nightly.Only(t, "starts Azurite, a process of Node")
	s, err := launch()
	if errors.Is(err, ErrNoNode) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Launch runs a server whose data is in memory.
func Launch(ctx context.Context) (*Server, error) {
	return launch(ctx, []string{"--inMemoryPersistence"})
}

// LaunchIn runs a server that keeps its data in a directory, where the next one
// finds it. What was written less than [Saved] before its end may be lost.
func LaunchIn(ctx context.Context, data string) (*Server, error) {
	return launch(ctx, []string{"--location", data})
}

// Saved is when a write is on the disk for sure: it saves every five seconds,
// which takes seconds on a busy machine, and not when it ends.
const Saved = 10 * time.Second

// launch installs Azurite if need be, runs it on a free port and returns when
// it answers. It ends with [Server.Close], or with this process however that
// ends: its standard input is a pipe from here.
func launch(ctx context.Context, options []string) (*Server, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, ErrNoNode
	}
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	if err := install(ctx, dir); err != nil {
		return nil, err
	}
	cmd := exec.Command(node, append([]string{"azurite.js", "--blobHost", "127.0.0.1", "--blobPort", "0", "--queueHost", "127.0.0.1", "--queuePort", "0",
		"--skipApiVersionCheck", "--disableTelemetry", "--silent"}, options...)...)
	cmd.Dir = dir
	var stderr strings.Builder // to be read after Close
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start azurite: %w", err)
	}
	s := &Server{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	s.close = sync.OnceValue(s.stop)
	listening := make(chan struct{})
	go s.scan(stdout, listening)
	select {
	case <-listening:
		return s, nil
	case <-s.done:
		err := s.Close()
		return nil, errors.Join(fmt.Errorf("azurite ended at once: %s", stderr.String()), err)
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("start azurite: %w", ctx.Err()), s.Close())
	}
}

var listens = regexp.MustCompile(`Azurite (Blob|Queue) service successfully listens on (https?://127\.0\.0\.1:\d+)`)

// scan reads the output to its end, so that the server never blocks on it, and
// finds the addresses in it. listening is closed when it has both.
func (s *Server) scan(out io.Reader, listening chan<- struct{}) {
	defer close(s.done)
	urls := map[string]*string{"Blob": &s.URL, "Queue": &s.QueueURL}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		m := listens.FindStringSubmatch(lines.Text())
		if m == nil || urls[m[1]] == nil {
			continue
		}
		*urls[m[1]] = m[2] + "/" + Account
		delete(urls, m[1])
		if len(urls) == 0 {
			close(listening)
		}
	}
}

// Close ends the server and returns when it is gone.
func (s *Server) Close() error { return s.close() }

func (s *Server) stop() error {
	s.stdin.Close()
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		s.cmd.Process.Kill()
		<-s.done
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("azurite: %w", err)
	}
	return nil
}

// ConnectionString names the server and its credentials.
func (s *Server) ConnectionString() string {
	scheme, _, _ := strings.Cut(s.URL, ":")
	text := fmt.Sprintf("DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;BlobEndpoint=%s;", scheme, Account, Key, s.URL)
	if s.QueueURL != "" { // a proxy before the blobs has none
		text += "QueueEndpoint=" + s.QueueURL + ";"
	}
	return text
}

// directory is where the lock file is: found from this file, because a test
// runs in the directory of its own package.
var directory = sync.OnceValues(func() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("azurite: no source path")
	}
	dir := filepath.Join(filepath.Dir(file), "..", "..", "host", "azure", "testdata")
	if _, err := os.Stat(filepath.Join(dir, "package-lock.json")); err != nil {
		return "", fmt.Errorf("azurite: %w", err)
	}
	return dir, nil
})
