// Package functions stands in for the Azure Functions host in tests: it reads a deployed app, starts its handler, calls its
// functions and takes no answer that the host would not take. When something calls a function, and when a handler that has
// ended is started again, is for a test to say.
//
// What it does is read from the host's source, version 4.1037 (https://github.com/Azure/azure-functions-host):
// HttpWorkerProcess.cs, DefaultHttpWorkerService.cs, HttpScriptInvocationResult.cs and HostFunctionMetadataProvider.cs.
package functions

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
)

// A Host is one instance of the platform, with an app and its handler.
type Host struct {
	Program   string // the handler
	Env       []string
	Functions map[string]Function
	Timeout   time.Duration // of an invocation; zero: it has none

	*proctest.Process // of the handler
	root, url         string

	mu    sync.Mutex
	lines []string // that the handler has printed
}

// A Function is a function.json.
type Function struct {
	Bindings []struct {
		Type, Direction, Name, Schedule, QueueName, Connection string
		RunOnStartup                                           bool
	}
	Retry *struct {
		Strategy, DelayInterval string
		MaxRetryCount           int
	}
}

// nameRule is what the host takes for the name of a function, in any case.
var nameRule = regexp.MustCompile(`(?i)^[a-z][a-z0-9_\-]{0,127}$`)

// Load reads a deployed app. A function that the host would skip is an error.
func Load(root string, env ...string) (*Host, error) {
	var settings struct {
		Version, FunctionTimeout string
		CustomHandler            struct {
			Description struct{ DefaultExecutablePath string }
		}
		ExtensionBundle struct{ ID string }
	}
	if err := readJSON(filepath.Join(root, "host.json"), &settings); err != nil {
		return nil, err
	}
	program := settings.CustomHandler.Description.DefaultExecutablePath
	if settings.Version != "2.0" || program == "" {
		return nil, fmt.Errorf("host.json: got version %q and program %q", settings.Version, program)
	}
	timeout, err := span(settings.FunctionTimeout)
	if err != nil {
		return nil, fmt.Errorf("host.json: %w", err)
	}
	h := &Host{Program: filepath.Join(root, program), Env: env, Functions: map[string]Function{}, Timeout: timeout, root: root}
	paths, err := filepath.Glob(filepath.Join(root, "*", "function.json")) // one in the root is none of a function
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		var f Function
		if err = readJSON(path, &f); err != nil {
			return nil, err
		}
		var again time.Duration
		if f.Retry != nil {
			again, err = span(f.Retry.DelayInterval)
		}
		queue := false // which unlike a timer is an extension
		for _, b := range f.Bindings {
			queue = queue || b.Type == "queueTrigger"
		}
		misnamed := !nameRule.MatchString(name) || strings.EqualFold(name, "host")
		policy := f.Retry == nil || f.Retry.Strategy == "fixedDelay" && f.Retry.MaxRetryCount > 0 && err == nil && again > 0
		if misnamed || !policy || len(f.Bindings) == 0 || queue && settings.ExtensionBundle.ID == "" {
			return nil, fmt.Errorf("the host would skip the function %s: %+v, %v", name, f, err)
		}
		h.Functions[name] = f
	}
	return h, err
}

func readJSON(path string, v any) error {
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// span reads hh:mm:ss.
func span(text string) (time.Duration, error) {
	var h, m, s time.Duration
	_, err := fmt.Sscanf(text, "%d:%d:%d", &h, &m, &s)
	return h*time.Hour + m*time.Minute + s*time.Second, err
}

// Start starts the handler and returns when there is any answer from it.
func (h *Host) Start(ctx context.Context) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	h.url = "http://127.0.0.1:" + port + "/"
	h.Process, err = proctest.Command{Program: h.Program, Dir: h.root,
		Env: slices.Concat(h.Env, []string{"FUNCTIONS_WORKER_RUNTIME=Custom", "FUNCTIONS_CUSTOMHANDLER_PORT=" + port,
			"FUNCTIONS_CUSTOMHANDLER_WORKER_ID=" + rand.Text(), "FUNCTIONS_APP_ROOT_PATH=" + h.root}),
		Stdout: func(text string) { h.tell("stdout: " + text) },
		Stderr: func(text string) { h.tell("stderr: " + text) },
	}.Start()
	if err != nil {
		return err
	}
	for {
		resp, err := http.Get(h.url)
		if err == nil {
			return resp.Body.Close()
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-h.Gone():
			return fmt.Errorf("the handler has ended with code %d: %q", h.Code(), h.Lines())
		case <-ctx.Done():
			return err
		}
	}
}

// freePort is a port that was free a moment ago, which is all that the host knows too.
// It is below the ports that systems use for outgoing connections (from
// 32768 on Linux): a parallel test could get one of these before the handler.
func freePort() (port string, err error) {
	const first, last, tries = 20000, 32767, 100
	for range tries {
		port = strconv.Itoa(first + mathrand.IntN(last-first+1))
		var ln net.Listener
		if ln, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", port)); err == nil {
			return port, ln.Close()
		}
	}
	return "", err
}

func (h *Host) tell(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
}

// Lines are what all handlers have printed.
func (h *Host) Lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

// A Result is what an invocation has returned.
type Result struct {
	ID          string `json:"-"` // of the invocation
	Outputs     map[string]json.RawMessage
	Logs        []string
	ReturnValue json.RawMessage
}

// Invoke calls a function. An answer that fails the invocation, or for which the host would wait on, is an error.
func (h *Host) Invoke(ctx context.Context, function, payload string) (Result, error) {
	res := Result{ID: rand.Text()}
	if h.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, h.Timeout)
		defer cancel()
	}
	body := io.MultiReader(strings.NewReader(payload)) // which hides its length, so that it is sent in chunks
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url+function, body)
	if err != nil {
		return res, err
	}
	r.Header.Set("X-Azure-Functions-InvocationId", res.ID)
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return res, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.Header.Get("Content-Type") == "application/json" {
		err = json.Unmarshal(text, &res)
	}
	if err != nil || resp.StatusCode != http.StatusOK || res.Outputs == nil || res.Logs == nil {
		return res, fmt.Errorf("%s: no answer that the host takes: %s, %.500q, %v", function, resp.Status, text, err)
	}
	return res, nil
}
