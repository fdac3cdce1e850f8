package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
)

// TestMain makes this binary the program of the tests with real processes.
func TestMain(m *testing.M) {
	switch os.Getenv("TEST_PROGRAM") {
	case "":
		flag.Parse()
		if flag.Lookup("test.fuzz").Value.String() == "" {
			flag.Set("test.parallel", "8") // they wait for processes nearly all the time
		}
		os.Exit(m.Run())
	case "beat":
		host.Main(soloist.Job{Name: "beat", Schedule: "@every 1s", Do: do}, soloist.Singleton{Name: "leader", Do: untilStopped})
	case "crowd":
		host.Main(crowd()...)
	case "deaf":
		host.Main(soloist.Job{Name: "deaf", Schedule: "@every 1s", Do: func(context.Context, *soloist.Run) error { select {} }})
	}
}

// crowd is many jobs that are due at the same second.
func crowd() (all []soloist.Work) {
	for i := range 200 {
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%d", i), Schedule: "@every 10s", Do: do})
	}
	return all
}

func untilStopped(ctx context.Context, _ *soloist.Run) error {
	<-ctx.Done()
	return nil
}

// A message is a line of a program's log.
type message struct {
	Msg, Level, URL, Job, Tick, Error, Cause, Goroutines string

	Code int
}

// messages reads a log until it ends. The last line of a killed program may be
// cut off.
func messages(r io.Reader) <-chan message {
	lines := make(chan message, 1000)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(r)
		s.Buffer(nil, 1<<20) // goroutines are long
		for s.Scan() {
			var m message
			if json.Unmarshal(s.Bytes(), &m) == nil {
				lines <- m
			}
		}
	}()
	return lines
}

// await returns the next message that begins with text.
func await(t *testing.T, log <-chan message, text string) message {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case m, ok := <-log:
			if !ok {
				t.Fatalf("the log ended without %q", text)
			}
			if strings.HasPrefix(m.Msg, text) {
				return m
			}
		case <-late:
			t.Fatalf("no %q in 30 s", text)
		}
	}
}

type process struct {
	*exec.Cmd
	log <-chan message
}

func start(t *testing.T, program string, env ...string) process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM to send on Windows")
	}
	return startCommand(t, exec.Command(proctest.Self()), append([]string{"TEST_PROGRAM=" + program}, env...))
}

// smoke is the one test with processes of go test ./...
const smoke = "TestThreeProcesses"

func startCommand(t *testing.T, cmd *exec.Cmd, env []string) process {
	t.Helper()
	if t.Name() != smoke {
		nightly.Only(t, "starts the program as a process")
	}
	cmd.Env = append(proctest.Environ(), env...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return process{cmd, messages(out)}
}

// inRealTime leaves a test to the nightly run: it waits for a second or more.
func inRealTime(t *testing.T) {
	t.Helper()
	nightly.Only(t, "waits for seconds of real time")
}

// end signals the process and returns its exit code.
func (p process) end(t *testing.T) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	return p.code(t)
}

// code waits for the end of the process. Its log has to be read first.
func (p process) code(t *testing.T) int {
	t.Helper()
	kill := time.AfterFunc(20*time.Second, func() { p.Process.Kill() })
	defer kill.Stop()
	for range p.log {
	}
	p.Wait()
	return p.ProcessState.ExitCode()
}

func TestThreeProcesses(t *testing.T) {
	t.Parallel()
	if ln, err := net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		defer ln.Close() // else another has it: all the same
	}
	dir := t.TempDir()
	var all []process
	urls := map[string]bool{}
	for range 3 {
		p := start(t, "beat", "SOLOIST_STORAGE=dir:"+dir, "SOLOIST_GRACE=1s")
		await(t, p.log, "port 8080 is taken, so this is port 80")
		urls[await(t, p.log, "listening").URL] = true
		all = append(all, p)
	}
	wantEqual(t, "addresses", len(urls), 3)
	for url := range urls {
		wantOK(t, url)
		wantOK(t, url+"readyz")
	}
	ran := map[string]int{}
	for deadline := time.After(30 * time.Second); len(ran) < 3; {
		var m message
		select {
		case m = <-all[0].log:
		case m = <-all[1].log:
		case m = <-all[2].log:
		case <-deadline:
			t.Fatalf("got %v, want three ticks", ran)
		}
		if m.Msg == "run started" && m.Job == "beat" {
			ran[m.Tick]++
		}
	}
	for tick, n := range ran {
		wantEqual(t, "runs of "+tick, n, 1)
	}
	codes := make(chan int)
	for _, p := range all { // at once: each hand-over would take its time
		go func() { codes <- p.end(t) }()
	}
	for range all {
		wantCode(t, <-codes, 0)
	}
}

func wantOK(t *testing.T, url string) {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	defer resp.Body.Close()
	wantEqual(t, url, resp.StatusCode, 200)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := start(t, "deaf", "SOLOIST_STORAGE=memory:", "SOLOIST_ADDR=127.0.0.1:0")
	await(t, p.log, "run started")
	p.Process.Signal(syscall.SIGTERM)
	p.Process.Signal(syscall.SIGTERM) // as timeout(1) does: one wish to stop
	await(t, p.log, "stopping")
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	ended := make(chan int)
	go func() { ended <- p.code(t) }()
	for {
		select {
		case code := <-ended:
			wantCode(t, code, 130)
			return
		case <-again.C:
			p.Process.Signal(syscall.SIGTERM)
		}
	}
}

func wantCode(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got exit code %d, want %d", got, want)
	}
}

// serving runs serve in this process.
func serving(t *testing.T, p host.Program) (log <-chan message, stop func(), code <-chan int) {
	r, w := io.Pipe()
	p.Name, p.Args, p.Stdout, p.Stderr = "demo", []string{}, w, t.Output()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- p.Run(ctx)
		w.Close()
	}()
	return messages(r), stop, done
}

func TestHTTPAnswersUntilLastJobIsDone(t *testing.T) {
	bubble(t, []string{"SOLOIST_GRACE=30s"}, func(t *testing.T) {
		started, release, ln := make(chan context.Context, 1), make(chan struct{}), newPiped()
		long := soloist.Job{Name: "long", Schedule: "@every 1m", Do: func(ctx context.Context, _ *soloist.Run) error {
			started <- ctx
			<-release
			return ctx.Err()
		}}
		stop, code := serveOn(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{long}}, ln)
		ctx := <-started
		stop()
		time.Sleep(10 * time.Second)
		wantAnswer(t, "healthz", ln.get(t, "/healthz"), 200)
		if ctx.Err() != nil {
			t.Errorf("got %v, want the job to have its grace", context.Cause(ctx))
		}
		close(release)
		wantCode(t, <-code, 0)
		if _, err := ln.dial(t.Context(), "", ""); err == nil {
			t.Error("HTTP answers after the end")
		}
	})
}

func TestAddressIsTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	for variable, value := range map[string]string{"SOLOIST_ADDR": ln.Addr().String(), "FUNCTIONS_CUSTOMHANDLER_PORT": port} {
		t.Run(variable, func(t *testing.T) {
			environment(t, variable+"="+value, "SOLOIST_STORAGE=memory:")
			log, _, code := serving(t, host.Program{Work: work()})
			if m := await(t, log, variable+" is"); m.Level != "ERROR" || !strings.Contains(m.Msg, value) {
				t.Errorf("got %+v", m)
			}
			wantCode(t, <-code, 1)
		})
	}
}

// freePort is a port on which nothing listens.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

func TestFunctionsAddress(t *testing.T) {
	port := freePort(t)
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT="+port, "SOLOIST_STORAGE=memory:")
	log, stop, code := serving(t, host.Program{Work: work()})
	wantEqual(t, "URL", await(t, log, "listening").URL, "http://127.0.0.1:"+port+"/")
	stop()
	wantCode(t, <-code, 0)
}

// refusesAll is a store that takes no credentials.
type refusesAll struct{ *gated }

func (refusesAll) Explain(error) (text, advice string) { return "403", "replace the key" }

func (refusesAll) Patience() time.Duration { return 0 }

func TestServeEndsWhenStoreRefusesIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		refused := newGated(down(), refuse(fmt.Errorf("read: %w", fs.ErrPermission), "read", "read document"))
		for _, before := range [][]*soloist.Once{nil, counting(new(atomic.Int64))} {
			var log strings.Builder
			_, code := serveOn(t, host.Program{Work: work(), Before: before, Store: refusesAll{refused}, Stdout: &log}, newPiped())
			wantCode(t, <-code, 1)
			wantText(t, "log", log.String(), "the store has refused this program since it started, for 0s: 403: replace the key")
		}
	})
}

// A log whose reader has gone ends no program that runs jobs: a signal
// still stops it gracefully.
func TestLogWithoutReaderEndsNoProgram(t *testing.T) {
	nightly.Only(t, "starts the program as a process")
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGPIPE on Windows")
	}
	t.Parallel()
	r, w, err := os.Pipe()
	must(t, err)
	cmd := exec.Command(proctest.Self())
	cmd.Env = append(proctest.Environ(), "TEST_PROGRAM=beat", "SOLOIST_STORAGE=memory:", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s")
	cmd.Stdout, cmd.Stderr = w, t.Output()
	must(t, cmd.Start())
	kill := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	w.Close()
	if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
		t.Error(err)
	}
	r.Close()
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ends with %v", err)
	}
}
