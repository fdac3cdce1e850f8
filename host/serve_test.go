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
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
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

// The lease is taken from a run that does not stop: its process is gone when the lease may be another's.
func TestProcessThatLosesLeaseExits(t *testing.T) {
	t.Parallel()
	dir := local.Dir{Path: t.TempDir()}
	p := start(t, "deaf", "SOLOIST_APP=demo", "SOLOIST_LEASE=1s", "SOLOIST_STORAGE=dir:"+dir.Path, "SOLOIST_ADDR=127.0.0.1:0")
	await(t, p.log, "run started")
	must(t, dir.Break(t.Context(), "demo/deaf", 0))
	m := await(t, p.log, "the process exits")
	wantEqual(t, "the last words", message{Level: m.Level, Job: m.Job, Code: m.Code}, message{Level: "ERROR", Job: "deaf", Code: 3})
	wantText(t, "the cause", m.Cause, store.ErrLost.Error())
	wantCode(t, p.code(t), 3)
}

// still is a job that is silent for too long and does not stop until released.
func still(release <-chan struct{}) soloist.Job {
	return soloist.Job{Name: "still", Schedule: "@every 1m", HeartbeatTimeout: 2 * time.Second, Do: func(context.Context, *soloist.Run) error {
		<-release
		return nil
	}}
}

// A run that goes on without its lease ends the process, with its last words. In Functions another code has its host start the
// program again.
func TestOverrunExits(t *testing.T) {
	for want, setting := range map[int]string{3: "X=1", 200: "FUNCTIONS_CUSTOMHANDLER_PORT=7071"} {
		bubble(t, []string{setting}, func(t *testing.T) {
			release := make(chan struct{})
			var codes []int
			p := host.WithExit(host.Program{Work: []soloist.Work{still(release)}, Store: &local.Memory{}}, func(code int) {
				codes = append(codes, code)
				close(release)
			})
			for range 1000 {
				go func() { <-release }() // more than a log should have to hold
			}
			run(t.Context(), p, "tick")
			time.Sleep(time.Minute)
			begin := time.Now()
			got := run(t.Context(), p, "tick")
			wantEqual(t, "exit codes", codes, []int{want})
			wantTook(t, begin, 0, 2*time.Second+30*time.Second/6+2*time.Second)
			words := await(t, messages(strings.NewReader(got.err)), "the process exits")
			if words.Job != "still" || words.Cause != "stalled: no heartbeat for 2s" || words.Code != want || len(words.Goroutines) != 64<<10 {
				t.Errorf("got the last words %+v", words)
			}
			got.wants(t, "tick", 1, "stalled in")
		})
	}
}

// A job on each replica has no lease, so its run ends no process. All replicas run it at once, so a 503 would restart them all
// at once.
func TestRunOnEachReplicaEndsNoProcess(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		release := make(chan struct{})
		j := still(release)
		j.EveryReplica, j.HeartbeatTimeout = true, 0
		j.HealthCheck.Interval, j.HealthCheck.Check = time.Second, func(context.Context) error { return errDown }
		s := open(t, host.WithExit(host.Program{Store: &local.Memory{}, Work: []soloist.Work{j}}, os.Exit))
		go s.tick() // it runs at once
		time.Sleep(80 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"broken":{"still":"its run goes on though its context has ended (stalled: `)
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "stalled: ", `"trouble":true`)
		close(release)
	})
}

// late is a job that ignores its time-out, and keeps its lease.
func late(release <-chan struct{}) []soloist.Work {
	return []soloist.Work{
		soloist.Job{Name: "late", Schedule: "@every 1m", Timeout: 10 * time.Second, Do: func(context.Context, *soloist.Run) error {
			<-release
			return nil
		}},
		soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
	}
}

func TestRunThatIgnoresTimeoutIsTold(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		release := make(chan struct{})
		s := open(t, host.WithExit(host.Program{Work: late(release), Store: &local.Memory{}}, os.Exit))
		s.tick()
		time.Sleep(time.Minute)
		wantAnswer(t, "healthz before", s.get("/healthz"), 200, `"status":"ok"`)
		ended := make(chan struct{})
		go func() { defer close(ended); s.tick() }()
		time.Sleep(14 * time.Second)
		wantAnswer(t, "healthz in time", s.get("/healthz"), 200, `"status":"ok"`)
		time.Sleep(50 * time.Second)

		// The job beside it is left alone, and the replica not just degraded.
		const words = "late goes on though its context has ended (timed out after 10s)"
		code, logs := s.invoke(t, "tick", "{}")
		if code != 500 || len(logs) != 2 || logs[0] != "job late: "+strings.TrimPrefix(words, "late ")+": only a restart helps" || !strings.HasPrefix(logs[1], "job beat: "+words) {
			t.Errorf("got code %d and %q", code, logs)
		}
		s.wantInvoked(t, "late", "{}", 500, "only a restart helps")
		wantAnswer(t, "healthz", s.get("/healthz"), 503, `"status":"overrun"`, `"overrun":{"late":"timed out after 10s"}`, `"broken":{"beat":"`+words)
		wantAnswer(t, "app", s.get("/api/v1/app"), 200, `"overrun":{"late":"timed out after 10s"}`)
		wantAnswer(t, "metrics", s.get("/metrics"), 200, `soloist_overrun{job_name="late"} 1`, `soloist_overrun{job_name="beat"} 0`, `soloist_job_broken{job_name="beat"} 1`)

		close(release)
		<-ended
		s.tick()
		wantAnswer(t, "healthz after", s.get("/healthz"), http.StatusOK, `"status":"ok"`)
	})
}

// connected is a client of a server with its limits, in virtual time. run runs
// what is due, as it did a minute ago.
func connected(t *testing.T, backend store.Store, work []soloist.Work) (c client, run func()) {
	t.Helper()
	server, run, err := host.Server(host.Program{Name: "demo", Stdout: t.Output(), Store: backend, Work: work})
	must(t, err)
	run()
	time.Sleep(time.Minute)
	ln := newPiped()
	go server.Serve(ln)
	c = ln.client(t)
	t.Cleanup(func() { c.Close(); server.Close() })
	return c, run
}

// client is one of a server that listens.
func (l piped) client(t *testing.T) client {
	t.Helper()
	here, err := l.dial(t.Context(), "", "")
	must(t, err)
	return client{here, bufio.NewReader(here)}
}

// post sends a request with a body of two bytes and reads the answer.
func (c client) post(path string, header ...string) (code int, body string, err error) {
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: 127.0.0.1:7071\r\nContent-Length: 2\r\n%s\r\n{}", path, strings.Join(header, ""))
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// cutOff returns when the server closes the connection, and what it wrote.
func (c client) cutOff() (after time.Duration, text string) {
	begin := time.Now()
	b, _ := io.ReadAll(c.answers)
	return time.Since(begin), string(b)
}

// The host keeps its connection for a minute, which is just when the next timer comes. A server that closes it then would fail
// that invocation, which is under way already and is not sent again. Elsewhere an idle connection is soon closed.
func TestIdleConnections(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		c, _ := connected(t, &local.Memory{}, work())
		for _, idle := range []time.Duration{0, time.Minute, 2 * time.Minute, 4 * time.Minute} { // the last is for proxies
			time.Sleep(idle)
			if code, _, err := c.post("/tick"); err != nil || code != http.StatusOK {
				t.Fatalf("after %s: got code %d, %v", idle, code, err)
			}
		}
	})
	bubble(t, nil, func(t *testing.T) {
		c, _ := connected(t, &local.Memory{}, work())
		c.post("/healthz")
		after, _ := c.cutOff()
		wantEqual(t, "closed after", after, 30*time.Second)
	})
}

func TestHalfRequestIsCutOff(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	for sent, want := range map[string]time.Duration{
		"": 5 * time.Second,
		"POST /tick HTTP/1.1\r\nHost: 127.0.0.1\r\nX":                         5 * time.Second,
		"POST /tick HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n": 10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := connected(t, &local.Memory{}, work())
			fmt.Fprint(c, sent)
			if after, text := c.cutOff(); after != want || strings.Contains(text, "200 OK") {
				t.Errorf("%q: closed after %s with %q, want %s", sent, after, text, want)
			}
		})
	}
}

// A client that does not read its answer keeps the connection for a while only.
func TestSlowReaderIsCutOff(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		c, _ := connected(t, &local.Memory{}, work())
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(16 * time.Second)
		if after, text := c.cutOff(); after != 0 || strings.Contains(text, "</html>") {
			t.Errorf("closed %s later with %q, want the connection closed", after, text)
		}
	})
}

// A stop in Functions waits for the invocation, however long its grace is: a run may take longer than other answers. A connection
// that breaks is no stop.
func TestLongInvocation(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=3m"}, func(t *testing.T) {
		ln, p := newPiped(), host.Program{Store: &local.Memory{}, Work: []soloist.Work{lastingJob("long", "@every 1m", 2*time.Minute)}}
		stop, code := serveOn(t, p, ln)
		defer stop()
		c := ln.client(t)
		call := func(c client, says string) {
			t.Helper()
			if got, body, err := c.post("/tick"); err != nil || got != 200 || !strings.Contains(body, says) {
				t.Errorf("got code %d, %s, %v, want %s", got, body, err, says)
			}
		}
		call(c, "")
		time.Sleep(time.Minute)
		broken := ln.client(t)
		fmt.Fprint(broken, "POST /tick HTTP/1.1\r\nHost: 127.0.0.1:7071\r\nContent-Length: 2\r\n\r\n{}")
		time.Sleep(time.Second)
		broken.Close()
		time.Sleep(3 * time.Minute)
		wantLines(t, host.Program{Store: p.Store, Work: p.Work}, "history", 0, "succeeded", "2m0s")
		time.AfterFunc(time.Second, stop)
		call(c, "succeeded")
		wantCode(t, <-code, 0)
	})
}

// A client is one connection to a program.
type client struct {
	net.Conn
	answers *bufio.Reader
}

// Clients that are idle, send nothing at all or half a request take nothing that
// the store needs.
func TestIdleConnectionsLeaveDescriptorsToStore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no limit to set on Windows")
	}
	t.Parallel()
	p := startLimited(t, 64, "beat", "SOLOIST_STORAGE=dir:"+t.TempDir(), "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s")
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
	if runtime.GOOS == "windows" {
		t.Skip("there is no limit to set on Windows")
	}
	t.Parallel()
	p := startLimited(t, 64, "crowd", "SOLOIST_STORAGE="+served(t, new(ruled))+"/account?sig=x", "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_GRACE=1s")
	for ran := map[string]bool{}; len(ran) < len(crowd()); {
		m := await(t, p.log, "")
		if strings.Contains(m.Error, "too many open files") {
			t.Fatalf("%s: %s: %s", m.Job, m.Msg, m.Error)
		}
		if m.Msg == "run ended" {
			ran[m.Job] = true
		}
	}
	wantCode(t, p.end(t), 0)
}

// startLimited starts a program with so many descriptors.
func startLimited(t *testing.T, descriptors int, program string, env ...string) process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(`ulimit -n %d; exec "$0"`, descriptors), proctest.Self())
	return startCommand(t, cmd, append([]string{"TEST_PROGRAM=" + program}, env...))
}
