//go:build unix

package functions_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

// What no trigger of a job sends changes nothing, and costs no restart.
func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t))
	pid := h.Pid()
	for name, call := range map[string]struct {
		function string
		body     []byte
		code     int
	}{
		"not JSON":         {"tick", []byte("Hello"), 400},
		"half an object":   {"tick", []byte(`{"Data":{"timer":`), 400},
		"null":             {"tick", []byte("null"), 400},
		"an array":         {"work", []byte("[]"), 400},
		"data is a number": {"work", []byte(`{"Data":5}`), 400},
		"a message":        {"work", functions.OfQueue("run"), 400},
		"10 MB":            {"work", []byte(`{"Data":{"x":"` + strings.Repeat("x", 10<<20) + `"}}`), 413},
		"unknown":          {"tock", timer(time.Now()), 404},
		"a singleton":      {"leader", timer(time.Now()), 404},
		"a path of ours":   {"healthz", timer(time.Now()), 404},
	} {
		_, err := h.Invoke(t.Context(), call.function, call.body)
		if !errors.Is(err, functions.ErrStatus) || !strings.HasSuffix(err.Error(), fmt.Sprint(call.code)) {
			t.Errorf("%s: got %v, want %d", name, err, call.code)
		}
	}
	if h.Pid() != pid || h.Errors() != 0 || c.has("begin ") {
		t.Errorf("it was started again, or a job ran: %q", c.all())
	}
	c.await(t, `"call refused","method":"POST","code":404`)
	c.await(t, `"path":"/tock"`)
}

// port is where the handler listens, as it says.
func port(t *testing.T, c *console) string {
	t.Helper()
	c.await(t, `"listening","url":"`)
	for _, line := range c.all() {
		if _, rest, ok := strings.Cut(line, `"listening","url":"`); ok {
			url, _, _ := strings.Cut(rest, `"`)
			return url
		}
	}
	return ""
}

func TestProgramMethods(t *testing.T) {
	t.Parallel()
	_, c := soloistHost(t, storage(t))
	url := port(t, c)
	for _, call := range []struct {
		method, path string
		origin, host string
		code         int
	}{
		{"GET", "", "", "", 200}, {"HEAD", "", "", "", 200}, {"GET", "tick", "", "", 405}, {"PUT", "work", "", "", 405}, {"GET", "healthz", "", "", 200},
		{"GET", "nothing", "", "", 404}, {"POST", "tick", "", "", 200}, {"POST", "tick", "https://elsewhere.example", "", 403},
		{"POST", "tick", "http://leads-here.example", "leads-here.example", 403},
	} {
		req, _ := http.NewRequest(call.method, url+call.path, nil)
		if call.origin != "" {
			req.Header.Set("Origin", call.origin)
		}
		req.Host = call.host // empty: that of the URL
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != call.code {
			t.Errorf("%s /%s: got %d, want %d", call.method, call.path, resp.StatusCode, call.code)
		}
	}
}

// The probe is answered though the storage hangs: it does not ask it.
func TestProbeDoesNotWaitForStorage(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	asked := make(chan net.Conn, 100)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			asked <- conn
		}
	}()
	h, c := soloistHost(t, at(ln.Addr()))
	url := port(t, c)
	for range 3 {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if len(asked) != 0 {
		t.Errorf("the storage was asked %d times, before any invocation", len(asked))
	}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan bool)
	go func() { h.Invoke(ctx, "work", timer(time.Now())); over <- true }()
	(<-asked).Close()
	cancel()
	<-over
}

func TestProgramCannotStart(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, taken, _ := net.SplitHostPort(ln.Addr().String())
	for name, test := range map[string]struct{ env, want string }{
		"taken":   {"FUNCTIONS_CUSTOMHANDLER_PORT=" + taken, "address already in use"},
		"garbage": {"FUNCTIONS_CUSTOMHANDLER_PORT=http", `FUNCTIONS_CUSTOMHANDLER_PORT is "http": want a port`},
		"zero":    {"FUNCTIONS_CUSTOMHANDLER_PORT=0", `FUNCTIONS_CUSTOMHANDLER_PORT is "0": want a port`},
		"large":   {"FUNCTIONS_CUSTOMHANDLER_PORT=70000", `FUNCTIONS_CUSTOMHANDLER_PORT is "70000": want a port`},
		"failure": {"SOLOIST_FUNCTION_FAILURE=ignore", `SOLOIST_FUNCTION_FAILURE is "ignore": want log or error`},
		"time":    {"SOLOIST_FUNCTION_TIMEOUT=-1s", "SOLOIST_FUNCTION_TIMEOUT is"},
	} {
		t.Run(name, func(t *testing.T) {
			// env(1) is the handler, so that the test's variable is the last one.
			h, c := newHost(t, "program", append(storage(t).Env(), scheduleEnv+"="+yearly)...)
			h.Command = []string{"/usr/bin/env", test.env, proctest.Self()}
			h.Startup = 10 * time.Second
			if err := h.Start(t.Context()); !errors.Is(err, functions.ErrDown) || h.Errors() != 3 {
				t.Errorf("got %v, %d errors", err, h.Errors())
			}
			if !c.has(test.want) {
				t.Errorf("got %q, want %q", c.all(), test.want)
			}
		})
	}
}

// On an address that others can reach, an invocation needs the admin's token.
func TestProgramOnAnotherAddress(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "secret-of-the-admin"} {
		h, c := newHost(t, "program", append(storage(t).Env(), scheduleEnv+"="+yearly, "SOLOIST_ADMIN_TOKEN="+token, "SOLOIST_APP=test")...)
		h.Command = []string{"/bin/sh", "-c", `SOLOIST_ADDR=0.0.0.0:$FUNCTIONS_CUSTOMHANDLER_PORT exec "$0"`, proctest.Self()}
		start(t, h, c)
		want := map[string]string{"": "403", "secret-of-the-admin": "401"}[token]
		if _, err := h.Invoke(t.Context(), "tick", timer(time.Now())); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("token %q: got %v, want %s", token, err, want)
		}
		req, _ := http.NewRequest("POST", port(t, c)+"tick", nil)
		req.Header.Set("Authorization", "Bearer secret-of-the-admin")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if ok := token != ""; (resp.StatusCode == 200) != ok {
			t.Errorf("token %q, offered: got %d", token, resp.StatusCode)
		}
	}
}
