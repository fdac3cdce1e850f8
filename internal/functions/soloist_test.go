//go:build unix

package functions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/azurite"
	"github.com/soloist-go/soloist/internal/functions"
)

// yearly is the schedule of most tests: no tick comes in their time.
const yearly = "0 0 1 1 *"

// A told is what the program's ReturnValue has.
type told struct {
	App  string
	Jobs []struct {
		Job    string
		Ran    []fate
		Holder string
		Next   time.Time
		Error  string
	}
	Next time.Time
}

type fate struct {
	Tick           time.Time
	Request        string
	Status, Reason string
	Attempt        int
	Replica        string
}

// of returns what is told of one job.
func (v told) of(name string) (ran []fate, holder, err string) {
	for _, j := range v.Jobs {
		if j.Job == name {
			return j.Ran, j.Holder, j.Error
		}
	}
	return nil, "", "not told"
}

// storage is a store that the programs of one test share.
func storage(t *testing.T) string { return "SOLOIST_STORAGE=dir:" + t.TempDir() }

// soloistHost starts a host with the program.
func soloistHost(t *testing.T, storage string, env ...string) (*functions.Host, *console) {
	t.Helper()
	h, c := newHost(t, "program", append([]string{storage, "SOLOIST_LEASE=2s", "SOLOIST_APP=test", scheduleEnv + "=" + yearly, takesEnv + "=0s"}, env...)...)
	if err := h.Start(t.Context()); err != nil {
		t.Fatalf("%v: %q", err, c.all())
	}
	return h, c
}

// invoke expects an answer that the host understands.
func invoke(t *testing.T, h *functions.Host, function string, payload []byte) (told, functions.Result) {
	t.Helper()
	res, err := h.Invoke(t.Context(), function, payload)
	if err != nil {
		t.Errorf("%s: %v", function, err)
		return told{}, res
	}
	var v told
	if err := json.Unmarshal(res.ReturnValue, &v); err != nil || res.Outputs == nil || res.Logs == nil {
		t.Errorf("%s: got %+v, %v", function, res, err)
	}
	return v, res
}

// nextTick waits until just before the next tick of each so many seconds.
func nextTick(every time.Duration) time.Time {
	tick := time.Now().Add(time.Second).Truncate(every).Add(every)
	time.Sleep(time.Until(tick))
	return tick.UTC()
}

func timer(tick time.Time) []byte { return functions.Timer{Next: tick}.Payload() }

func TestProgramAnswersTheHost(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t))
	for _, p := range []functions.Timer{{}, {Unwatched: true}, {PastDue: true, Last: time.Now(), Next: time.Now()}, {Retry: 2},
		{Next: time.Date(2026, 3, 5, 10, 5, 0, 0, time.FixedZone("", 3600))}} {
		for _, body := range [][]byte{p.Payload(), p.Camel()} {
			for _, function := range []string{"tick", "work", "Tick"} {
				v, res := invoke(t, h, function, body)
				jobs := 5
				if function == "work" {
					jobs = 1
				}
				if len(v.Jobs) != jobs || v.Next.IsZero() || v.App != "test" {
					t.Errorf("%s, %s: got %+v", function, body, v)
				}
				if past := slices.Contains(res.Logs, "the timer is past due"); past != p.PastDue {
					t.Errorf("%s: got the logs %q", body, res.Logs)
				}
			}
		}
	}
	if _, err := h.Invoke(t.Context(), "warmup", functions.Warmup()); err != nil {
		t.Error(err)
	}
	for _, line := range c.all() {
		if strings.HasPrefix(line, "error") || strings.HasPrefix(line, "warning") {
			t.Errorf("on stderr: %s", line)
		}
	}
	if !c.has("a singleton does not run in Functions") {
		t.Errorf("nothing is said of the singleton: %q", c.all())
	}
}

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
		"a message":        {"work", functions.Queue("run"), 400},
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
	c.await(t, `"call refused","method":"POST","path":"/tock","code":404`)
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
		origin       string
		code         int
	}{
		{"GET", "", "", 200}, {"HEAD", "", "", 200}, {"GET", "tick", "", 405}, {"PUT", "work", "", 405}, {"GET", "healthz", "", 200},
		{"GET", "nothing", "", 404}, {"POST", "tick", "", 200}, {"POST", "tick", "https://elsewhere.example", 403},
	} {
		req, _ := http.NewRequest(call.method, url+call.path, nil)
		if call.origin != "" {
			req.Header.Set("Origin", call.origin)
		}
		begin := time.Now()
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != call.code {
			t.Errorf("%s /%s: got %d, want %d", call.method, call.path, resp.StatusCode, call.code)
		}
		if call.path == "" && time.Since(begin) > 500*time.Millisecond {
			t.Errorf("the probe took %s", time.Since(begin))
		}
	}
}

// The probe is answered though the storage hangs.
func TestProbeDoesNotWaitForStorage(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, c := soloistHost(t, "SOLOIST_STORAGE=DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;BlobEndpoint=http://"+ln.Addr().String()+"/a;", "SOLOIST_LEASE=15s")
	url := port(t, c)
	for range 3 {
		begin := time.Now()
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(begin); took > 200*time.Millisecond {
			t.Errorf("the probe took %s", took)
		}
	}
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
			me, _ := os.Executable()
			// env(1) is the handler, so that the test's variable is the last one.
			h, c := newHost(t, "program", storage(t), scheduleEnv+"="+yearly)
			h.Command = []string{"/usr/bin/env", test.env, me}
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
	for _, token := range []string{"", "secret"} {
		me, _ := os.Executable()
		h, c := newHost(t, "program", storage(t), scheduleEnv+"="+yearly, "SOLOIST_ADMIN_TOKEN="+token, "SOLOIST_APP=test")
		h.Command = []string{"/bin/sh", "-c", `SOLOIST_ADDR=0.0.0.0:$FUNCTIONS_CUSTOMHANDLER_PORT exec "$0"`, me}
		if err := h.Start(t.Context()); err != nil {
			t.Fatalf("%v: %q", err, c.all())
		}
		want := map[string]string{"": "403", "secret": "401"}[token]
		if _, err := h.Invoke(t.Context(), "tick", timer(time.Now())); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("token %q: got %v, want %s", token, err, want)
		}
		req, _ := http.NewRequest("POST", port(t, c)+"tick", nil)
		req.Header.Set("Authorization", "Bearer secret")
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

// The first invocation ever runs the tick that it comes for.
func TestFirstInvocation(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"tick", "work"} {
		h, _ := soloistHost(t, storage(t), scheduleEnv+"=*/5 * * * * *")
		tick := nextTick(5 * time.Second)
		v, _ := invoke(t, h, function, timer(tick))
		if ran, _, _ := v.of("work"); len(ran) != 1 || !ran[0].Tick.Equal(tick) || ran[0].Status != "succeeded" {
			t.Errorf("%s: got %+v, want a run of %s", function, ran, tick)
		}
	}
}

// A catch-up of a timer names a tick that is over: what is due by the records is
// done.
func TestPastDue(t *testing.T) {
	t.Parallel()
	h, _ := soloistHost(t, storage(t), scheduleEnv+"=*/5 * * * * *")
	old := time.Now().Add(-time.Hour).Truncate(5 * time.Second)
	v, _ := invoke(t, h, "work", functions.Timer{Next: old, Last: old, PastDue: true}.Payload())
	if ran, _, err := v.of("work"); len(ran) != 0 || err != "" {
		t.Errorf("a new job owes nothing: %+v, %s", ran, err)
	}
	nextTick(5 * time.Second)
	v, _ = invoke(t, h, "work", functions.Timer{Next: old, Last: old, PastDue: true}.Payload())
	if ran, _, _ := v.of("work"); len(ran) != 1 || ran[0].Status != "succeeded" {
		t.Errorf("got %+v, want the tick that is due", ran)
	}
}

func TestThreeInstances(t *testing.T) {
	t.Parallel()
	t.Run("directory", func(t *testing.T) {
		t.Parallel()
		threeInstances(t, storage(t), takesEnv+"=16s") // longer than any other answer may take
	})
	t.Run("azurite", func(t *testing.T) {
		t.Parallel()
		threeInstances(t, "SOLOIST_STORAGE="+azurite.Start(t).ConnectionString(), "SOLOIST_LEASE=15s")
	})
}

// Three timers fire at once for one tick, as they do where instances do not
// share a host id: one runs it, two say who does.
func threeInstances(t *testing.T, storage string, env ...string) {
	env = append([]string{scheduleEnv + "=*/20 * * * * *", takesEnv + "=2s"}, env...)
	hosts, consoles := make([]*functions.Host, 3), make([]*console, 3)
	for i := range hosts {
		hosts[i], consoles[i] = soloistHost(t, storage, append(env, fmt.Sprintf("WEBSITE_INSTANCE_ID=instance%d", i))...)
	}
	tick := nextTick(20 * time.Second)
	answers := make(chan told)
	for _, h := range hosts {
		go func() {
			v, _ := invoke(t, h, "work", timer(tick))
			answers <- v
		}()
	}
	var ranBy string
	var holders []string
	for range hosts {
		ran, holder, err := (<-answers).of("work")
		switch {
		case err != "":
			t.Errorf("got the error %s", err)
		case len(ran) == 1 && ran[0].Status == "succeeded" && ran[0].Tick.Equal(tick):
			ranBy += ran[0].Replica
		case len(ran) > 0:
			t.Errorf("got %+v", ran)
		default:
			holders = append(holders, holder)
		}
	}
	if len(holders) != 2 || holders[0] != ranBy || holders[1] != ranBy {
		t.Errorf("it was run by %q, and the others say %q", ranBy, holders)
	}
	begun := 0
	for _, c := range consoles {
		begun += strings.Count(strings.Join(c.all(), "\n"), "stdout: begin work@"+tick.Format(time.RFC3339))
	}
	if begun != 1 {
		t.Errorf("the tick was begun %d times", begun)
	}
}

// A handler is killed while it runs a job. The next invocation gives the tick its
// fate, or its next attempt.
func TestKilledMidRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		job     string
		attempt int
	}{{"work", 0}, {"again", 2}} {
		t.Run(test.job, func(t *testing.T) {
			t.Parallel()
			store := storage(t)
			h, c := soloistHost(t, store, scheduleEnv+"=*/30 * * * * *", takesEnv+"=2s")
			tick := nextTick(30 * time.Second)
			over := make(chan error)
			go func() { _, err := h.Invoke(t.Context(), test.job, timer(tick)); over <- err }()
			c.await(t, "begin "+test.job)
			pid := h.Pid()
			h.Kill()
			if err := <-over; err == nil {
				t.Error("the handler is dead, and its invocation has succeeded")
			}
			wantRestart(t, h, pid, 1)
			time.Sleep(2100 * time.Millisecond) // the lease
			v, _ := invoke(t, h, test.job, functions.Timer{Unwatched: true}.Payload())
			ran, _, err := v.of(test.job)
			if test.attempt > 0 {
				if len(ran) != 1 || ran[0].Attempt != test.attempt || !ran[0].Tick.Equal(tick) || ran[0].Status != "succeeded" {
					t.Errorf("got %+v, %s; want attempt %d", ran, err, test.attempt)
				}
				return
			}
			if len(ran) != 0 || err != "" {
				t.Errorf("got %+v, %s: it is started at most once", ran, err)
			}
			if got := lastFate(t, store, test.job); got.Status != "abandoned" || !got.Tick.Equal(tick) {
				t.Errorf("got the fate %+v", got)
			}
		})
	}
}

// lastFate reads the record in a directory.
func lastFate(t *testing.T, storage, job string) fate {
	t.Helper()
	e, err := local.Dir{Path: strings.TrimPrefix(storage, "SOLOIST_STORAGE=dir:")}.Read(t.Context(), "test/"+job)
	if err != nil {
		t.Fatal(err)
	}
	var rec struct{ History []fate }
	if err := json.Unmarshal(e.Record, &rec); err != nil || len(rec.History) == 0 {
		t.Fatalf("got %s, %v", e.Record, err)
	}
	return rec.History[0]
}

// A run that does not fit is not begun; one that is too long is ended before the
// host would kill the process.
func TestDeadline(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t), scheduleEnv+"=*/30 * * * * *", takesEnv+"=1h")
	os.WriteFile(filepath.Join(h.Root, "host.json"), []byte("\ufeff"+`{"version":"2.0","functionTimeout":"00:00:05"}`), 0o644)
	pid := h.Pid()
	h.Kill() // the file is read at the start
	wantRestart(t, h, pid, 1)
	h.Timeout, pid = 5*time.Second, h.Pid()
	tick := nextTick(30 * time.Second)
	begin := time.Now()
	v, _ := invoke(t, h, "work", timer(tick))
	if ran, _, _ := v.of("work"); len(ran) != 1 || ran[0].Status != "abandoned" || ran[0].Reason != "stopped" {
		t.Errorf("got %+v", v)
	}
	if took := time.Since(begin); took < 3*time.Second || took > 5*time.Second {
		t.Errorf("it was told to stop after %s", took)
	}
	if !c.has("ended work@") || h.Pid() != pid {
		t.Errorf("it was killed: %q", c.all())
	}
	v, res := invoke(t, h, "long", functions.HTTP("POST", "http://localhost/api/long", ""))
	if _, _, err := v.of("long"); !strings.Contains(err, "not started: it may take 1h0m0s") || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"500"`) {
		t.Errorf("got %+v", v)
	}
	if !c.has("never started") {
		t.Errorf("nothing is said of a job that never fits: %q", c.all())
	}
}

// An HTTP trigger runs its job, once for each invocation.
func TestRunByHTTP(t *testing.T) {
	t.Parallel()
	h, _ := soloistHost(t, storage(t))
	for range 2 {
		v, res := invoke(t, h, "work", functions.HTTP("POST", "http://localhost/api/work", "hello"))
		ran, _, _ := v.of("work")
		if len(ran) != 1 || ran[0].Request != res.ID || ran[0].Status != "succeeded" {
			t.Errorf("got %+v, want the request %s", v, res.ID)
		}
		var out struct {
			StatusCode, Body string
			Headers          map[string]string
		}
		if err := json.Unmarshal(res.Outputs["res"], &out); err != nil || out.StatusCode != "200" || !strings.Contains(out.Body, res.ID) || out.Headers["Content-Type"] != "application/json" {
			t.Errorf("got the output %+v, %v", out, err)
		}
	}
	v, res := invoke(t, h, "broke", functions.HTTP("GET", "http://localhost/api/broke", ""))
	if ran, _, _ := v.of("broke"); len(ran) != 1 || ran[0].Status != "failed" || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"500"`) {
		t.Errorf("got %+v, %s", v, res.Outputs)
	}
}

func TestRunByHTTPBesideARun(t *testing.T) {
	t.Parallel()
	store := storage(t)
	a, c := soloistHost(t, store, takesEnv+"=2s", "WEBSITE_INSTANCE_ID=first")
	b, _ := soloistHost(t, store, "WEBSITE_INSTANCE_ID=second")
	over := make(chan bool)
	go func() {
		invoke(t, a, "work", functions.HTTP("POST", "http://localhost/api/work", ""))
		over <- true
	}()
	c.await(t, "begin work")
	v, res := invoke(t, b, "work", functions.HTTP("POST", "http://localhost/api/work", ""))
	if _, _, err := v.of("work"); !strings.Contains(err, "first runs it") || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"409"`) {
		t.Errorf("got %+v, %s", v, res.Outputs)
	}
	<-over
}

// A run that failed is told as the setting says.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"log", "error"} {
		h, c := soloistHost(t, storage(t), scheduleEnv+"=*/5 * * * * *", "SOLOIST_FUNCTION_FAILURE="+mode)
		res, err := h.Invoke(t.Context(), "broke", timer(nextTick(5*time.Second)))
		if mode == "error" {
			if !errors.Is(err, functions.ErrStatus) || !strings.HasSuffix(err.Error(), "500") {
				t.Errorf("got %v", err)
			}
		} else if err != nil || len(res.Logs) != 1 || !strings.HasSuffix(res.Logs[0], "failed: no paper") {
			t.Errorf("got %q, %v", res.Logs, err)
		}
		c.await(t, `"reason":"no paper"`)
	}
}

// A run that has stalled and goes on ends the process, which the host starts
// again without counting it as a crash.
func TestOverrun(t *testing.T) {
	t.Parallel()
	h, c := soloistHost(t, storage(t))
	pid := h.Pid()
	if _, err := h.Invoke(t.Context(), "deaf", functions.HTTP("POST", "http://localhost/api/deaf", "")); err == nil {
		t.Error("the process goes, and its invocation has succeeded")
	}
	wantRestart(t, h, pid, 0)
	if !c.has("the process exits") {
		t.Errorf("got %q", c.all())
	}
	invoke(t, h, "work", timer(time.Now()))
}

// The host stops without a word; what ran is settled as that of any dead runner.
func TestHostStopsMidRun(t *testing.T) {
	t.Parallel()
	store := storage(t)
	h, c := soloistHost(t, store, takesEnv+"=1h")
	go h.Invoke(context.Background(), "work", functions.HTTP("POST", "http://localhost/api/work", ""))
	c.await(t, "begin work")
	begin := time.Now()
	h.Stop()
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %s: the host waits for nobody", took)
	}
	if c.has("stopping") {
		t.Error("it had notice, which the platform does not give")
	}
}
