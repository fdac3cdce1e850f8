package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// byHTTP is what an HTTP trigger sends.
const byHTTP = `{"Data":{"req":{"Url":"http://localhost/api/beat","Method":"POST"}}}`

// An outage is in no record, so the platform has to see it, whatever the
// setting says of runs that fail. Whoever called an HTTP trigger gets an answer,
// and does not wait for the end of the outage.
func TestOutageFailsInvocation(t *testing.T) {
	for setting, want := range map[string]struct{ timer, http int }{"log": {500, 200}, "error": {500, 500}} {
		environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_FAILURE="+setting)
		synctest.Test(t, func(t *testing.T) {
			s := open(t, host.Program{Store: down(), Work: work()})
			for _, name := range []string{"tick", "beat"} {
				if code, _ := s.invoke(t, name, "{}"); code != want.timer {
					t.Errorf("%s, %s: got code %d, want %d", setting, name, code, want.timer)
				}
			}
			begin := time.Now()
			code, logs := s.invoke(t, "beat", byHTTP)
			if code != want.http || time.Since(begin) > 21*time.Second {
				t.Errorf("%s, by HTTP: got code %d after %s, want %d", setting, code, time.Since(begin), want.http)
			}
			if code == 200 && (len(logs) != 1 || !strings.Contains(logs[0], "no route to the storage") || !strings.Contains(logs[0], "not begun within 20s")) {
				t.Errorf("%s, by HTTP: got %q", setting, logs)
			}
			s.wait()
		})
	}
}

// A wrong clock is told by the calls, once, since nothing goes on between them.
func TestFunctionsTellOfWrongClock(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		off := time.Hour
		s, log := logged(t, host.Program{Store: &local.Memory{}, Work: jobs(soloist.Job{Name: "night"}),
			Now: func() time.Time { return time.Now().Add(off) }})
		for _, want := range []string{"this machine's clock is 59m59s ahead", "", "this machine's clock is right again", ""} {
			time.Sleep(time.Minute)
			if strings.Contains(log.String(), "clock") {
				t.Errorf("between two calls: %s", log.String())
			}
			s.invoke(t, "tick", "{}")
			if got := log.String(); strings.Contains(got, "clock") != (want != "") || !strings.Contains(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if want == "" {
				off = 0
			}
			log.Reset()
		}
	})
}

// A retry by the platform helps after an outage: the tick is still due.
func TestRetryAfterOutage(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		program := func() site {
			return open(t, host.Program{Store: store, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}})
		}
		program().invoke(t, "beat", "{}")
		time.Sleep(time.Hour + time.Second)
		s := program() // which has to read
		store.set(refuse(errDown, "read"))
		if code, _ := s.invoke(t, "beat", "{}"); code != 500 {
			t.Errorf("in the outage: got code %d", code)
		}
		store.set(nil)
		time.Sleep(5 * time.Second)
		if code, logs := s.invoke(t, "beat", "{}"); code != 200 || len(logs) != 1 || !strings.HasSuffix(logs[0], "tick 2000-01-01T01:00:00Z succeeded") {
			t.Errorf("the retry: got code %d, %q", code, logs)
		}
		s.wait()
	})
}

// A new instance has asked the storage before its first call, and is of use also
// where that does not answer.
func TestWarmup(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Store: store, Work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b"})})
		for want, err := range map[string]error{"2 records read": nil, errDown.Error(): errDown} {
			store.set(refuse(err, "read"))
			if code, logs := s.invoke(t, "warmup", `{"Data":{"warmupContext":"{}"}}`); code != 200 || len(logs) != 1 || !strings.Contains(logs[0], want) {
				t.Errorf("got code %d, %q, want %q", code, logs, want)
			}
		}
		s.wait()
	})
}

// A run by hand that has begun is not ended by an outage that others meet.
func TestOutageUnderRunByHand(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		long := func(ctx context.Context, _ *soloist.Run) error { time.Sleep(time.Minute); return ctx.Err() }
		s := open(t, host.Program{Store: store, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1h", Do: long},
			soloist.Job{Name: "other", Schedule: "@every 1h", Do: do},
		}})
		over := make(chan []string)
		go func() { _, logs := s.invoke(t, "beat", byHTTP); over <- logs }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		store.set(refuse(errDown, "read"))
		if code, _ := s.invoke(t, "other", "{}"); code != 500 {
			t.Errorf("the other job: got code %d", code)
		}
		if logs := <-over; len(logs) != 1 || !strings.HasSuffix(logs[0], " succeeded") {
			t.Errorf("got %q", logs)
		}
		s.wait()
	})
}

// The Functions host passes the body on to the caller as it is.
func TestHTTPTriggerAnswersWithoutControlCharacters(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	synctest.Test(t, func(t *testing.T) {
		fails := soloist.Job{Name: "beat", Schedule: "@hourly", Do: func(context.Context, *soloist.Run) error { return errors.New("bad\u009b31m \u202e") }}
		s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{fails}})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7071/beat", strings.NewReader(byHTTP)))
		var answer struct {
			Outputs struct{ Res struct{ Body string } }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		body := answer.Outputs.Res.Body
		if !json.Valid([]byte(body)) || strings.ContainsAny(body, "\u009b\u202e\n") || !strings.Contains(body, `\u009b31m`) {
			t.Errorf("got %q", body)
		}
		s.wait()
	})
}

// A run that takes longer than an invocation is ended before the host would kill the process; one that cannot fit is not
// begun. A run that failed fails its call where the setting says so.
func TestRunsFitTheirInvocation(t *testing.T) {
	for setting, broke := range map[string]int{"log": 200, "error": 500} {
		environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_TIMEOUT=60s", "SOLOIST_FUNCTION_FAILURE="+setting)
		synctest.Test(t, func(t *testing.T) {
			s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{
				soloist.Job{Name: "endless", Schedule: "@every 1h", Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }},
				soloist.Job{Name: "long", Schedule: "@every 1h", Timeout: time.Hour, Do: do},
				soloist.Job{Name: "broke", Schedule: "@every 1h", Do: fail},
				soloist.Singleton{Name: "leader", Do: do},
			}})
			s.invoke(t, "tick", "{}")
			time.Sleep(time.Hour + time.Second)
			begin := time.Now()
			if _, logs := s.invoke(t, "endless", "{}"); len(logs) != 1 || !strings.HasSuffix(logs[0], "abandoned: out of time, stopped") || time.Since(begin) > time.Minute {
				t.Errorf("an endless run: got %q after %s", logs, time.Since(begin))
			}
			if _, logs := s.invoke(t, "long", strings.ReplaceAll(byHTTP, "beat", "long")); len(logs) != 1 || !strings.Contains(logs[0], "not started: it may take 1h0m0s") {
				t.Errorf("a run that does not fit: got %q", logs)
			}
			if code, logs := s.invoke(t, "broke", "{}"); code != broke || !strings.HasSuffix(logs[0], "failed: no paper") {
				t.Errorf("%s: a run that failed: got code %d, %q", setting, code, logs)
			}
			if code, logs := s.invoke(t, "broke", "{}"); code != 200 || len(logs) != 0 {
				t.Errorf("the platform's retry: got code %d, %q", code, logs)
			}
			for name, payload := range map[string]string{"leader": "{}", "healthz": "{}", "endless": "[]"} {
				want := map[bool]int{true: 400, false: 404}[name == "endless"]
				if code, _ := s.invoke(t, name, payload); code != want {
					t.Errorf("%s with %s: got code %d, want %d", name, payload, code, want)
				}
			}
			s.wait()
		})
	}
}
