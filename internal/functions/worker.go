package functions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// A worker is one handler process.
type worker struct {
	*proctest.Process
	url   string
	ready chan struct{} // closed when it has answered
	said  *lastLines    // on stderr
	ours  bool          // the host has killed it: its exit code means nothing
}

func (w *worker) isReady() bool {
	select {
	case <-w.Gone():
		return false
	case <-w.ready:
		return true
	default:
		return false
	}
}

// isOver reports whether the process has ended and is not started again.
func (w *worker) isOver() bool {
	select {
	case <-w.Gone():
		return w.Code() == 0
	default:
		return false
	}
}

func (h *Host) spawn() (*worker, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	id, said := guid(), &lastLines{}
	command := proctest.Command{
		Program: h.Command[0], Args: h.Command[1:], Dir: h.Root,
		Env: slices.Concat(h.Env, []string{
			"FUNCTIONS_WORKER_RUNTIME=Custom",
			"FUNCTIONS_CUSTOMHANDLER_PORT=" + port, "FUNCTIONS_HTTPWORKER_PORT=" + port,
			"FUNCTIONS_CUSTOMHANDLER_WORKER_ID=" + id, "FUNCTIONS_HTTPWORKER_ID=" + id,
			"FUNCTIONS_APP_ROOT_PATH=" + h.Root}),
		Stdout: func(text string) { h.tell(stdoutLevel(text), Line{"stdout", text}) },
		Stderr: func(text string) { said.add(text); h.tell(stderrLevel(text), Line{"stderr", text}) },
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.wanted {
		return nil, ErrDown
	}
	p, err := command.Start()
	if err != nil {
		return nil, fmt.Errorf("the handler cannot be started: %w", err)
	}
	w := &worker{Process: p, url: "http://127.0.0.1:" + port + "/", ready: make(chan struct{}), said: said}
	h.worker = w
	h.all.Go(func() { h.watch(w) })
	return w, nil
}

// freePort is a port that was free a moment ago, which is all that the host knows too.
// It is below the ports that systems use for outgoing connections (from
// 32768 on Linux): a parallel test could get one of these before the handler.
func freePort() (port string, err error) {
	const first, last, tries = 20000, 32767, 100
	for range tries {
		port = strconv.Itoa(first + rand.IntN(last-first+1))
		var ln net.Listener
		if ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, ln.Close()
		}
	}
	return "", err
}

// poll asks until there is any answer. Only a connection that fails means that
// there is none yet.
func (w *worker) poll(ctx context.Context) error {
	for {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
			return nil
		}
		if _, socket := errors.AsType[*net.OpError](err); !socket && ctx.Err() == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-w.Gone():
			return err
		case <-ctx.Done():
			return err
		}
	}
}
