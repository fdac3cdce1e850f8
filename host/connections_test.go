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
	"time"

	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/proctest"
)

// A client is one connection to a program.
type client struct {
	net.Conn
	answers *bufio.Reader
}

func dial(t *testing.T, url string) client {
	t.Helper()
	conn, err := net.Dial("tcp", strings.Trim(strings.TrimPrefix(url, "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
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
	if err := c.get("/healthz"); err != nil {
		t.Fatal(err)
	}
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
	if closed != 10 {
		t.Errorf("got %d connections closed, want 10 of 210", closed)
	}
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
