package host_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

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
		if after, _ := c.cutOff(); after != 30*time.Second {
			t.Errorf("closed after %s, want 30s", after)
		}
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

// A run takes longer than other answers may. A connection that breaks is no stop.
func TestLongInvocation(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := &local.Memory{}
		c, _ := connected(t, backend, []soloist.Work{lastingJob("long", "@every 1m", 2*time.Minute)})
		if code, body, err := c.post("/tick"); err != nil || code != 200 || !strings.Contains(body, "succeeded") {
			t.Errorf("got code %d, %s, %v, want the answer after two minutes", code, body, err)
		}
		fmt.Fprint(c, "POST /tick HTTP/1.1\r\nHost: 127.0.0.1:7071\r\nContent-Length: 2\r\n\r\n{}")
		time.Sleep(time.Second)
		c.Close()
		time.Sleep(3 * time.Minute)
		p := host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "long", Schedule: "@every 1m", Do: do}}}
		wantLines(t, p, "status", 0, "succeeded in 2m")
	})
}

// A stop in Functions waits for the invocation, however long its grace is.
func TestStopWaitsForInvocation(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=1m"}, func(t *testing.T) {
		ln := newPiped()
		stop, code := serveOn(t,
			host.Program{Store: &local.Memory{}, Work: []soloist.Work{lastingJob("long", "@every 1m", 50*time.Second)}}, ln)
		defer stop()
		c := ln.client(t)
		if got, _, err := c.post("/tick"); err != nil || got != 200 {
			t.Fatalf("got code %d, %v", got, err)
		}
		time.Sleep(time.Minute)
		time.AfterFunc(time.Second, stop)
		if got, body, err := c.post("/tick"); err != nil || got != 200 || !strings.Contains(body, "succeeded") {
			t.Errorf("got code %d, %s, %v, want the run's end", got, body, err)
		}
		wantCode(t, <-code, 0)
	})
}

// A client is one connection to a program.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, url string) client {
	t.Helper()
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return client{conn, bufio.NewReader(conn)}
}

// get sends a request and reads the answer. The connection is idle then.
func (c client) get(path string) error {
	c.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	resp, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	if io.Copy(io.Discard, resp.Body); resp.StatusCode != 200 {
		return errors.New(resp.Status)
	}
	return nil
}

func (c client) wantOK(t *testing.T) {
	t.Helper()
	must(t, c.get("/healthz"))
}

// Which ones make room is tested beside the cap.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	environment(t, "SOLOIST_ADDR=127.0.0.1:0")
	log, stop, code := serving(t, host.Program{Work: work(), Store: &local.Memory{}})
	url := await(t, log, "listening").URL
	used := dial(t, url)
	var idle []client
	for range 209 {
		idle = append(idle, dial(t, url))
		idle[len(idle)-1].wantOK(t)
		used.wantOK(t)
	}
	closed := 0
	for _, c := range idle {
		if c.get("/healthz") != nil {
			closed++
		}
	}
	wantEqual(t, "closed connections of 210", closed, 10)
	stop()
	wantCode(t, <-code, 0)
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
		c := dial(t, url)
		switch {
		case i < 300:
			c.wantOK(t)
		case i%2 == 0:
			fmt.Fprint(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX")
		}
	}
	for range 2 {
		await(t, p.log, "run ended")
		dial(t, url).wantOK(t)
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
