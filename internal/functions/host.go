package functions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Version is the host's.
const Version = "4.1037.0.0"

const (
	pollEvery = 25 * time.Millisecond

	// So many errors of a handler within the window stop the host.
	maxErrors   = 3
	errorWindow = 30 * time.Minute

	exitRestart = 200 // a handler that ends with it is started again without an error
)

// A Host is one instance of the platform. It has one handler process at a time.
type Host struct {
	Command []string          // the handler's program and its arguments
	Root    string            // of the app
	Env     []string          // app settings, after the environment of this process
	Timeout time.Duration     // functionTimeout; zero: none
	Startup time.Duration     // how long a handler may take to answer; zero: 30 s
	Log     func(Level, Line) // is called with each line; nil: no log

	mu      sync.Mutex
	worker  *worker
	wanted  bool        // the host is up: a handler that ends is started again
	stopped error       // why the host has stopped itself
	errors  []time.Time // of handlers that crashed or did not start
	all     sync.WaitGroup
}

// ErrDown is what an invocation gets when there is no handler: the host has
// stopped, or the handler has ended with code 0, which is no reason to start
// it again.
var ErrDown = errors.New("there is no handler")

// Start starts the handler and returns when one answers, or none ever will.
func (h *Host) Start(ctx context.Context) error {
	h.mu.Lock()
	h.wanted, h.stopped, h.errors = true, nil, nil
	h.mu.Unlock()
	if err := h.launch(); err != nil {
		return err
	}
	_, err := h.Await(ctx, 0)
	return err
}

// Stop ends the handler as the platform does, without notice, and returns when
// it is gone.
func (h *Host) Stop() {
	h.mu.Lock()
	h.wanted = false
	w := h.worker
	h.worker = nil
	h.mu.Unlock()
	if w != nil {
		w.Kill()
	}
	h.all.Wait()
}

// Kill ends the handler as a failing machine does. The host starts it again.
func (h *Host) Kill() {
	if w := h.current(); w != nil {
		w.Kill()
	}
}

// Pid is the handler's, zero if there is none.
func (h *Host) Pid() int {
	if w := h.current(); w != nil {
		return w.Pid()
	}
	return 0
}

// Errors is how many errors of the handler count now.
func (h *Host) Errors() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.errors)
}

// Await returns the pid of a handler that answers and is not the one given.
func (h *Host) Await(ctx context.Context, not int) (int, error) {
	w, err := h.await(ctx, func(w *worker) bool { return w.isReady() && w.Pid() != not || w.isOver() })
	switch {
	case err != nil:
		return 0, err
	case w.isOver():
		return 0, ErrDown
	}
	return w.Pid(), nil
}

// await returns the first handler that ok accepts. A handler that has ended with code 0
// stays the handler.
func (h *Host) await(ctx context.Context, ok func(*worker) bool) (*worker, error) {
	for ; ctx.Err() == nil; time.Sleep(pollEvery) {
		h.mu.Lock()
		w, up, stopped := h.worker, h.wanted, h.stopped
		h.mu.Unlock()
		switch {
		case stopped != nil:
			return nil, stopped
		case !up:
			return nil, ErrDown
		case w != nil && ok(w):
			return w, nil
		}
	}
	return nil, ctx.Err()
}

func (h *Host) current() *worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.worker
}

// launch starts a process and waits for its first answer.
func (h *Host) launch() error {
	w, err := h.spawn()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.startup())
	defer cancel()
	err = w.poll(ctx)
	switch {
	case err == nil:
		close(w.ready)
	case ctx.Err() != nil:
		h.disown(w)
		w.Kill()
		if !h.fault(fmt.Errorf("no answer within %s: %w", h.startup(), err)) {
			return h.launch()
		}
	} // else it has ended, which watch sees
	return nil
}

// disown notes that the host ends this process, whose exit code then
// means nothing. It returns false if another call has.
func (h *Host) disown(w *worker) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.worker != w {
		return false
	}
	w.ours, h.worker = true, nil
	return true
}

func (h *Host) startup() time.Duration {
	if h.Startup > 0 {
		return h.Startup
	}
	return 30 * time.Second
}

// watch waits for the end of a process and decides what follows from it.
func (h *Host) watch(w *worker) {
	code := w.Code()
	h.mu.Lock()
	again := h.wanted && !w.ours && code != 0
	if again {
		h.worker = nil
	}
	h.mu.Unlock()
	if !again || code != exitRestart && h.fault(fmt.Errorf("the handler exited with code %d: %s", code, w.said)) {
		return
	}
	h.launch()
}

// fault counts an error of the handler and reports whether it was one too many.
func (h *Host) fault(err error) (stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for len(h.errors) > 0 && now.Sub(h.errors[0]) > errorWindow {
		h.errors = h.errors[1:]
	}
	h.errors = append(h.errors, now)
	if len(h.errors) >= maxErrors {
		h.wanted = false
		h.stopped = fmt.Errorf("%w: exceeded http worker restart retry count, shutting down: %w", ErrDown, err)
	}
	return h.stopped != nil
}

// restart is what the host does after a time-out: the one process goes, and all
// invocations with it.
func (h *Host) restart(w *worker) {
	if !h.disown(w) {
		<-w.Gone()
		return
	}
	w.Kill()
	h.launch()
}

func (h *Host) tell(level Level, l Line) {
	if h.Log != nil {
		h.Log(level, l)
	}
}

func guid() string {
	b := make([]byte, 16)
	rand.Read(b)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// nameRule is what the host takes for the name of a function, in any case.
var nameRule = regexp.MustCompile(`(?i)^[a-z][a-z0-9_\-]{0,127}$`)

// isName reports whether the host takes a folder for a function.
func isName(name string) bool { return nameRule.MatchString(name) && !strings.EqualFold(name, "host") }
