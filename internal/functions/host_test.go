package functions_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

// console collects what the host shows.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) log(level functions.Level, l functions.Line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, string(level)+" "+l.Source+": "+l.Text)
}

func (c *console) all() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

func (c *console) has(text string) bool {
	return slices.ContainsFunc(c.all(), func(line string) bool { return strings.Contains(line, text) })
}

// patience is how long a test waits for what has to come, on any machine.
const patience = 2 * time.Minute

// await waits for a line.
func (c *console) await(t *testing.T, text string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%q", c.all())
		}
	}()
	proctest.Poll(t, text, patience, func() bool { return c.has(text) })
}

// newHost is a host with a handler of this role, not started yet.
func newHost(t *testing.T, role string, env ...string) (*functions.Host, *console) {
	t.Helper()
	nightly.Only(t, "starts processes as the Functions host does")
	h := &functions.Host{Command: []string{proctest.Self()}, Root: t.TempDir(), Env: append([]string{proctest.As(role)}, env...), Timeout: time.Minute}
	return h, watch(t, h)
}

// watch collects what a host shows, and stops it at the end of the test.
func watch(t *testing.T, h *functions.Host) *console {
	c := &console{}
	h.Log = c.log
	t.Cleanup(h.Stop)
	return c
}

func start(t *testing.T, h *functions.Host, c *console) {
	t.Helper()
	if err := h.Start(t.Context()); err != nil {
		t.Fatalf("%v: %q", err, c.all())
	}
}

func started(t *testing.T, role string, env ...string) (*functions.Host, *console) {
	t.Helper()
	h, c := newHost(t, role, env...)
	start(t, h, c)
	return h, c
}

// What the host does with each kind of answer.
func TestAnswers(t *testing.T) {
	h, _ := started(t, "answers")
	for name, want := range map[string]struct {
		err  error
		logs []string
	}{
		"object":   {nil, []string{"one", "two"}},
		"textjson": {nil, []string{"one"}},
		"strange":  {nil, nil},
		"invalid":  {functions.ErrInvalid, nil},
		"array":    {functions.ErrInvalid, nil},
		"text":     {functions.ErrMediaType, nil},
		"notype":   {functions.ErrMediaType, nil},
		"bad":      {functions.ErrStatus, nil},
		"moved":    {nil, []string{"one", "two"}},
		"found":    {nil, []string{"GET"}},
	} {
		got, err := h.Invoke(t.Context(), name, functions.Timer{}.Payload())
		if !errors.Is(err, want.err) || want.err == nil && err != nil || !slices.Equal(got.Logs, want.logs) {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got.Logs, err, want.logs, want.err)
		}
	}
	if got, err := h.Invoke(t.Context(), "object", nil); string(got.ReturnValue) != `"Hello return"` || string(got.Outputs["res"]) != `{"statusCode":"201"}` {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := h.Invoke(t.Context(), "reset", nil); err == nil {
		t.Error("a connection that was reset is no answer")
	}
}

// An answer without a result keeps the invocation until its time is up, and
// then costs the process.
func TestAnswersThatHang(t *testing.T) {
	for _, name := range []string{"empty", "emptychunks", "null", "nocontent"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := started(t, "answers")
			h.Timeout = 300 * time.Millisecond
			begin, pid := time.Now(), h.Pid()
			if _, err := h.Invoke(t.Context(), name, nil); !errors.Is(err, functions.ErrTimeout) || time.Since(begin) < h.Timeout {
				t.Errorf("got %v after %s", err, time.Since(begin))
			}
			wantRestart(t, h, pid, 0)
		})
	}
}

func wantRestart(t *testing.T, h *functions.Host, pid, errors int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if now, err := h.Await(ctx, pid); err != nil || now == pid {
		t.Errorf("got the process %d after %d, %v", now, pid, err)
	}
	if got := h.Errors(); got != errors {
		t.Errorf("got %d errors, want %d", got, errors)
	}
}

// A time-out kills the process, and the other invocations with it.
func TestTimeoutTakesAll(t *testing.T) {
	h, _ := started(t, "answers")
	h.Timeout = 4 * time.Second
	errs := make(chan error)
	call := func() { _, err := h.Invoke(t.Context(), "sleep", nil); errs <- err }
	go call()
	time.Sleep(h.Timeout / 2)
	go call()
	one, other := <-errs, <-errs
	if errors.Is(other, functions.ErrTimeout) {
		one, other = other, one
	}
	if !errors.Is(one, functions.ErrTimeout) || other == nil || errors.Is(other, functions.ErrTimeout) {
		t.Errorf("got %v and %v, want a time-out, and the end of the process for the other", one, other)
	}
}

func TestHostSends(t *testing.T) {
	h, _ := started(t, "answers")
	payload := functions.Timer{Next: time.Date(2026, 3, 5, 10, 5, 0, 0, time.UTC)}.Payload()
	got, err := h.Invoke(t.Context(), "echo", payload)
	want := []string{"POST", "-1", "[chunked]", "application/json; charset=utf-8", "Azure-Functions-Host/" + functions.Version, functions.Version, got.ID, string(payload)}
	if err != nil || !slices.Equal(got.Logs, want) {
		t.Errorf("got %q, %v; want %q", got.Logs, err, want)
	}
	for _, part := range []string{`"Data":{"timer":{"IsPastDue":false,"Schedule":{"AdjustForDST":true},"ScheduleStatus":{"Last":"0001-01-01T00:00:00",`, `"Next":"2026-03-05T10:05:00+00:00"}}}`} {
		if !strings.Contains(string(payload), part) {
			t.Errorf("got %s, want %s in it", payload, part)
		}
	}
	got, err = h.Invoke(t.Context(), "env", nil)
	if err != nil || len(got.Logs) != 7 || got.Logs[0] == "" || got.Logs[0] != got.Logs[1] || got.Logs[2] == "" || got.Logs[2] != got.Logs[3] || got.Logs[4] != h.Root || got.Logs[5] != "Custom" || got.Logs[6] != h.Root {
		t.Errorf("got the environment %q, %v", got.Logs, err)
	}
}

func TestHandlerLines(t *testing.T) {
	_, c := started(t, "answers")
	for _, want := range []string{"info stdout: a plain line", "error stderr: a line on stderr", "warning stderr: a WARNing on stderr", "system stderr: LanguageWorkerConsoleLog of the system"} {
		c.await(t, want)
	}
}

func TestReadiness(t *testing.T) {
	h, _ := newHost(t, "late")
	begin := time.Now()
	if err := h.Start(t.Context()); err != nil || time.Since(begin) < 300*time.Millisecond {
		t.Errorf("got %v after %s", err, time.Since(begin))
	}
	if _, err := h.Invoke(t.Context(), "object", nil); err != nil {
		t.Error(err)
	}
	h, _ = newHost(t, "mute")
	h.Startup = 200 * time.Millisecond
	if err := h.Start(t.Context()); !errors.Is(err, functions.ErrDown) || h.Errors() != 3 {
		t.Errorf("a handler that never answers: got %v, %d errors", err, h.Errors())
	}
}

// An invocation that comes while the handler is started again waits for it.
func TestInvocationWaitsForRestart(t *testing.T) {
	h, _ := started(t, "late")
	for range 2 {
		pid := h.Pid()
		h.Kill()
		for h.Pid() == pid {
			time.Sleep(time.Millisecond)
		}
		if got, err := h.Invoke(t.Context(), "object", nil); err != nil || len(got.Logs) != 2 {
			t.Errorf("got %q, %v", got.Logs, err)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Run("0", func(t *testing.T) {
		h, _ := started(t, "answers")
		pid := h.Pid()
		h.Invoke(t.Context(), "over", nil)
		_, err := h.Invoke(t.Context(), "object", nil)
		if _, refused := errors.AsType[*net.OpError](err); !refused {
			t.Errorf("got %v, want a refused connection", err)
		}
		if h.Pid() != pid || h.Errors() != 0 {
			t.Errorf("it was started again, or counted: %d errors", h.Errors())
		}
	})
	t.Run("200", func(t *testing.T) {
		h, _ := started(t, "answers")
		for range 4 {
			pid := h.Pid()
			h.Invoke(t.Context(), "restart", nil)
			wantRestart(t, h, pid, 0)
		}
	})
	t.Run("other", func(t *testing.T) {
		h, _ := started(t, "answers")
		for n := range 2 {
			pid := h.Pid()
			h.Invoke(t.Context(), "crash", nil)
			wantRestart(t, h, pid, n+1)
		}
		pid := h.Pid()
		h.Invoke(t.Context(), "crash", nil)
		if _, err := h.Await(t.Context(), pid); !errors.Is(err, functions.ErrDown) || !strings.Contains(err.Error(), "a WARNing on stderr") {
			t.Errorf("got %v, want the end of the host, with the last lines", err)
		}
		if _, err := h.Invoke(t.Context(), "object", nil); !errors.Is(err, functions.ErrDown) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("at once", func(t *testing.T) {
		h, _ := newHost(t, "exit 1")
		if err := h.Start(t.Context()); !errors.Is(err, functions.ErrDown) || h.Errors() != 3 {
			t.Errorf("got %v, %d errors", err, h.Errors())
		}
		h, _ = newHost(t, "exit 0")
		if err := h.Start(t.Context()); !errors.Is(err, functions.ErrDown) || h.Errors() != 0 {
			t.Errorf("got %v, %d errors", err, h.Errors())
		}
	})
}

func TestLoad(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, path)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("function.json", `{"bindings":[{"type":"timerTrigger"}]}`)
	put("good/function.json", `{"bindings":[{"type":"timerTrigger","schedule":"0 * * * * *"}]}`)
	put("9bad/function.json", `{"bindings":[{"type":"timerTrigger"}]}`)
	put("host/function.json", `{"bindings":[{"type":"timerTrigger"}]}`)
	put("none/function.json", `{"bindings":[]}`)
	put("broken/function.json", `{`)
	put("deep/er/function.json", `{"bindings":[{"type":"timerTrigger"}]}`)
	put("again/function.json", `{"bindings":[{"type":"timerTrigger"}],"retry":{"strategy":"fixedDelay","maxRetryCount":5,"delayInterval":"00:01:00"}}`)
	put("slower/function.json", `{"bindings":[{"type":"timerTrigger"}],"retry":{"strategy":"slower","maxRetryCount":5,"delayInterval":"00:01:00"}}`)
	put("ever/function.json", `{"bindings":[{"type":"timerTrigger"}],"retry":{"strategy":"fixedDelay","delayInterval":"00:01:00"}}`)
	put("soon/function.json", `{"bindings":[{"type":"timerTrigger"}],"retry":{"strategy":"fixedDelay","maxRetryCount":5}}`)
	put("handler", "")
	for text, want := range map[string]string{
		`{"version":"2.0"}`: "missing worker Description",
		`{"version":"2.0","customHandler":{"description":{}}}`:                                                     "cannot be empty",
		`{"customHandler":{"description":{}}}`:                                                                     "version",
		`{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"x"}},"functionTimeout":"soon"}`: "functionTimeout",
	} {
		put("host.json", text)
		if _, err := functions.Load(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
	put("host.json", `{"version":"2.0","customHandler":{"description":{"defaultExecutablePath":"handler","arguments":["--x","%NAME%","%NOT_SET_AT_ALL%"]}},"functionTimeout":"01:02:03"}`)
	a, err := functions.Load(root, "NAME=value")
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Functions) != 2 || a.Functions["good"][0].Schedule != "0 * * * * *" || len(a.Skipped) != 7 || len(a.Retries) != 1 || a.Retries["again"] != (functions.Retry{Most: 5, Delay: time.Minute}) {
		t.Errorf("got %+v, skipped %q", a.Functions, a.Skipped)
	}
	if want := []string{filepath.Join(root, "handler"), "--x", "value", ""}; !slices.Equal(a.Host.Command, want) || a.Host.Timeout != time.Hour+2*time.Minute+3*time.Second {
		t.Errorf("got %q, %s", a.Host.Command, a.Host.Timeout)
	}
}
