package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
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
		all = append(all, soloist.Job{Name: fmt.Sprintf("job-%d", i), Schedule: "@every 4s", Do: do})
	}
	return all
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
	urls, told := map[string]bool{}, make(chan message, 1000)
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
	codes := make(chan int)
	for _, p := range all {
		go func() {
			for m := range p.log {
				told <- m
			}
			codes <- p.code(t)
		}()
	}
	ran := map[string]int{}
	for len(ran) < 2 {
		if m := await(t, told, "run started"); m.Job == "beat" {
			ran[m.Tick]++
		}
	}
	for tick, n := range ran {
		wantEqual(t, "runs of "+tick, n, 1)
	}
	for _, p := range all { // at once: each hand-over would take its time
		must(t, p.Process.Signal(syscall.SIGTERM))
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
	ctx, kill := context.WithTimeout(t.Context(), 20*time.Second)
	defer kill()
	cmd := exec.CommandContext(ctx, proctest.Self())
	cmd.Env = append(proctest.Environ(), "TEST_PROGRAM=beat", "SOLOIST_STORAGE=memory:", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s")
	cmd.Stdout, cmd.Stderr = w, t.Output()
	must(t, cmd.Start())
	w.Close()
	_, err = bufio.NewReader(r).ReadString('\n')
	must(t, err)
	r.Close()
	cmd.Process.Signal(syscall.SIGTERM)
	must(t, cmd.Wait())
}

// Clients that are idle, send nothing at all or half a request take nothing that
// the store needs.
func TestIdleConnectionsLeaveDescriptorsToStore(t *testing.T) {
	p := startLimited(t, "beat", "SOLOIST_STORAGE=dir:"+t.TempDir())
	url := await(t, p.log, "listening").URL
	for i := range 500 {
		conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
		must(t, err)
		defer conn.Close()
		request := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
		switch {
		case i < 300:
			fmt.Fprint(conn, request+"\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must(t, err)
			wantEqual(t, "code", resp.StatusCode, 200)
		case i%2 == 0:
			fmt.Fprint(conn, request+"X")
		}
	}
	for range 2 {
		await(t, p.log, "run ended")
		wantOK(t, url+"healthz")
	}
	wantCode(t, p.end(t), 0)
}

// More jobs are due at the same second than the process may have connections.
func TestManyJobsHaveEnoughDescriptors(t *testing.T) {
	p := startLimited(t, "crowd", "SOLOIST_STORAGE="+served(t, new(ruled))+"/account?sig=x")
	for ran := map[string]bool{}; len(ran) < len(crowd()); {
		m := await(t, p.log, "")
		wantText(t, m.Job+": "+m.Msg, m.Error, "!too many open files")
		if m.Msg == "run ended" {
			ran[m.Job] = true
		}
	}
	wantCode(t, p.end(t), 0)
}

// startLimited starts a program with so few descriptors that the store may want for them.
func startLimited(t *testing.T, program string, env ...string) process {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no limit to set on Windows")
	}
	t.Parallel()
	cmd := exec.Command("/bin/sh", "-c", `ulimit -n 64; exec "$0"`, proctest.Self())
	return startCommand(t, cmd, append([]string{"TEST_PROGRAM=" + program, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s"}, env...))
}
