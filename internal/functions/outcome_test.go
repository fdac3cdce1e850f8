//go:build unix

package functions_test

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/functions"
	"github.com/soloist-go/soloist/internal/proctest"
)

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
	a, c := soloistHost(t, store, takesEnv+"=10s", "WEBSITE_INSTANCE_ID=first")
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

// A run that failed is told as the setting says. A retry by the platform does
// not repeat it: its tick has its outcome.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"log", "error"} {
		tick, schedule := soon(2 * time.Second)
		h, c := soloistHost(t, storage(t), schedule, "SOLOIST_FUNCTION_FAILURE="+mode)
		time.Sleep(time.Until(tick))
		res, err := h.Invoke(t.Context(), "broke", timer(tick))
		if mode == "error" {
			if !errors.Is(err, functions.ErrStatus) || !strings.HasSuffix(err.Error(), "500") {
				t.Errorf("got %v", err)
			}
		} else if err != nil || len(res.Logs) != 1 || !strings.HasSuffix(res.Logs[0], "failed: no paper") {
			t.Errorf("got %q, %v", res.Logs, err)
		}
		c.await(t, `"reason":"no paper"`)
		v, _ := invoke(t, h, "broke", functions.Timer{Next: tick, Retry: 1}.Payload())
		if ran, _, err := v.of("broke"); len(ran) != 0 || err != "" {
			t.Errorf("the retry: got %+v, %s", ran, err)
		}
	}
}

// at is a blob storage that is expected at an address.
func at(address net.Addr) proctest.Storage {
	return proctest.Storage{Lease: 15 * time.Second,
		Setting: "DefaultEndpointsProtocol=http;AccountName=shopstore;AccountKey=YQ==;BlobEndpoint=http://" + address.String() + "/shopstore"}
}

// An outage is a failure for the platform, whatever the setting says of runs,
// and costs no restart. Whoever called an HTTP trigger gets an answer in time.
func TestOutage(t *testing.T) {
	t.Parallel()
	furtherCase(t) // of what host tests in virtual time
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close() // nobody listens any more
	h, c := soloistHost(t, at(ln.Addr()))
	pid := h.Pid()
	for _, function := range []string{"tick", "work"} {
		if _, err := h.Invoke(t.Context(), function, timer(time.Now())); !errors.Is(err, functions.ErrStatus) || !strings.HasSuffix(err.Error(), "500") {
			t.Errorf("%s: got %v", function, err)
		}
	}
	v, res := invoke(t, h, "work", functions.HTTP("POST", "http://localhost/api/work", ""))
	if _, _, err := v.of("work"); !strings.Contains(err, "not begun within 20s") || !strings.Contains(string(res.Outputs["res"]), `"statusCode":"500"`) {
		t.Errorf("got %+v, %s", v, res.Outputs)
	}
	if h.Pid() != pid || h.Errors() != 0 || c.has("YQ==") {
		t.Errorf("it was started again, or tells its key: %q", c.all())
	}
}

// hostBeforeTick starts a host over a directory, in which the records of its jobs are made before a tick. A busy machine takes
// longer for that.
func hostBeforeTick(t *testing.T) (h *functions.Host, c *console, dir string, tick time.Time) {
	t.Helper()
	for after := 4 * time.Second; after < time.Minute; after *= 2 {
		s, schedule := storage(t), ""
		dir = strings.TrimPrefix(s.Setting, "dir:")
		tick, schedule = soon(after)
		h, c = soloistHost(t, s, schedule)
		if invoke(t, h, "work", functions.Timer{}.Payload()); time.Now().Before(tick) {
			return h, c, dir, tick
		}
	}
	t.Fatal("this machine is too slow to begin before a tick")
	return nil, nil, "", tick
}

// A storage that is out of reach when a timer fires costs no tick: the platform
// calls again, and the tick is still due.
func TestRetryRunsTickAfterOutage(t *testing.T) {
	t.Parallel()
	h, c, dir, tick := hostBeforeTick(t)
	away := dir + ".away"
	outage := func() error { return errors.Join(os.Rename(dir, away), os.WriteFile(dir, nil, 0o600)) }
	over := func() error { return errors.Join(os.Remove(dir), os.Rename(away, dir)) }
	if err := outage(); err != nil {
		t.Fatal(err)
	}
	app := functions.App{Host: h, Retries: map[string]functions.Retry{"work": {Most: 20, Delay: 500 * time.Millisecond}}}
	time.Sleep(time.Until(tick))
	type fired struct {
		functions.Result
		err error
	}
	done := make(chan fired, 1)
	go func() {
		res, err := app.Fire(t.Context(), "work", functions.Timer{Next: tick})
		done <- fired{res, err}
	}()
	c.await(t, "the invocation fails")
	if err := over(); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || len(got.Logs) == 0 || !strings.Contains(got.Logs[0], "tick "+tick.Format(time.RFC3339)+" succeeded") {
		t.Errorf("got %q, %v: %q", got.Logs, got.err, c.all())
	}
	// Without retries it is as it was: the failure is the last word. The other job
	// has the same tick.
	if err := outage(); err != nil {
		t.Fatal(err)
	}
	app.Retries = nil
	if _, err := app.Fire(t.Context(), "again", functions.Timer{Next: tick}); !errors.Is(err, functions.ErrStatus) {
		t.Errorf("got %v", err)
	}
	if err := over(); err != nil {
		t.Fatal(err)
	}
}
