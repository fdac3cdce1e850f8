package host_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// invoke is one invocation as the Functions host makes it.
func (s site) invoke(t *testing.T, name, payload string) (int, []string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7071/"+name, strings.NewReader(payload)))
	var answer struct {
		Outputs map[string]any
		Logs    []string
	}
	if w.Code != http.StatusNotFound {
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Outputs == nil || answer.Logs == nil {
			t.Errorf("got %s, %v: the host would wait for an answer that it understands", w.Body, err)
		}
		wantEqual(t, "the type", w.Header().Get("Content-Type"), "application/json")
	}
	return w.Code, answer.Logs
}

func TestTickFunction(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			lastingJob("slow", "@every 1m", 5*time.Second),
			soloist.Job{Name: "broke", Schedule: "@every 1m", Do: fail},
		}}
		a, b := open(t, p), open(t, p)
		a.wantQuiet(t, "tick", `{"Data":{},"Metadata":{}}`)
		time.Sleep(61 * time.Second)
		first := make(chan []string)
		go func() { _, logs := a.invoke(t, "tick", `{}`); first <- logs }()
		time.Sleep(time.Second)
		_, logs := b.invoke(t, "slow", `{"Data":{"timer":{"IsPastDue":false}}}`)
		if len(logs) != 1 || !strings.HasPrefix(logs[0], "job slow: ") || !strings.HasSuffix(logs[0], " runs it") {
			t.Errorf("beside a run: %q", logs)
		}
		want := []string{"job slow: tick 2000-01-01T00:01:00Z succeeded", `job broke: tick 2000-01-01T00:01:00Z failed: no paper`}
		wantEqual(t, "the runs", <-first, want)
		b.wantQuiet(t, "tick", "")
		b.wantInvoked(t, "tick", strings.Repeat("x", 10<<20), http.StatusRequestEntityTooLarge)
		b.wantInvoked(t, "tock", "{}", http.StatusNotFound)
	})
}

// A run that takes longer than an invocation is ended before the host would kill the process; one that cannot fit is not
// begun. A run that failed fails its call where the setting says so.
func TestRunsFitTheirInvocation(t *testing.T) {
	for setting, broke := range map[string]int{"log": 200, "error": 500} {
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_TIMEOUT=60s", "SOLOIST_FUNCTION_FAILURE=" + setting}, func(t *testing.T) {
			s := open(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{
				soloist.Job{Name: "endless", Schedule: "@every 1h", Do: untilCancelled},
				soloist.Job{Name: "long", Schedule: "@every 1h", Timeout: time.Hour, Do: do},
				soloist.Job{Name: "broke", Schedule: "@every 1h", Do: fail},
				soloist.Singleton{Name: "leader", Do: do},
			}})
			s.invoke(t, "tick", "{}")
			time.Sleep(time.Hour + time.Second)
			begin := time.Now()
			s.wantInvoked(t, "endless", "{}", broke, "abandoned: out of time, stopped")
			wantTook(t, begin, 0, time.Minute)
			s.wantInvoked(t, "long", strings.ReplaceAll(byHTTP, "beat", "long"), broke, "not started: it may take 1h0m0s")
			s.wantInvoked(t, "broke", "{}", broke, "failed: no paper")
			s.wantQuiet(t, "broke", "{}") // the retry of the platform
			for _, name := range []string{"leader", "healthz"} {
				s.wantInvoked(t, name, "{}", 404)
			}
			s.wantInvoked(t, "endless", "[]", 400)
		})
	}
}

// A new instance has asked the storage before its first call, and is of use also
// where that does not answer.
func TestWarmup(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Store: store, Work: jobs(soloist.Job{Name: "a"}, soloist.Job{Name: "b"})})
		for want, err := range map[string]error{"2 records read": nil, errDown.Error(): errDown} {
			store.set(refuse(err, "read"))
			s.wantInvoked(t, "warmup", `{"Data":{"warmupContext":"{}"}}`, 200, want)
		}
	})
}

// The host's probe, which comes again and again, waits for no storage. A browser gets the page.
func TestProbeOfHost(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	s := open(t, host.Program{Store: down(), Work: work()})
	wantAnswer(t, "probe", s.ask("GET", "/", "", nil), 200, `"ReturnValue":"awake"`)
	wantAnswer(t, "browser", s.get("/"), 200, "<title>Soloist</title>")
}

// byHTTP is what an HTTP trigger sends.
const byHTTP = `{"Data":{"req":{"Url":"http://localhost/api/beat","Method":"POST"}}}`

// The id of an invocation is 36 characters long. Of another one the log has the beginning.
func TestLongInvocationIsCut(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071")
	s, log := logged(t, host.Program{Work: jobs(soloist.Job{Name: "night", Schedule: "@daily"}), Store: &local.Memory{}})
	s.ask("POST", "/night", byHTTP, nil, "X-Azure-Functions-InvocationId", strings.Repeat("i", 20_000))
	wantText(t, "log", log.String(), "not run by hand", "!"+strings.Repeat("i", 200))
}

// A caller of a public address who has no token neither fills the log nor hears the names of the jobs.
func TestStrangerFillsNoLogAndHearsNoJobs(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_ADDR=:7071", "SOLOIST_ADMIN_TOKEN="+adminToken)
	s, log := logged(t, host.Program{Store: new(local.Memory), Work: work()})
	for header, code := range map[string]int{"": http.StatusUnauthorized, "Bearer " + adminToken: http.StatusNotFound} {
		got := s.send(http.MethodPost, "/nosuch", header)
		wantAnswer(t, "with the header "+header, got, code)
		wantEqual(t, "the answer names the jobs", strings.Contains(got.Body.String(), "night-report"), header != "")
		log.Reset()
		for range 100 {
			s.send(http.MethodPost, "/"+strings.Repeat("x", 20000), header)
		}
		wantWithin(t, "bytes of log", log.Len(), 0, 20000)
	}
}

// A wrong clock is told by the calls, once, since nothing goes on between them.
func TestFunctionsTellOfWrongClock(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		off := time.Hour
		s, log := logged(t, host.Program{Store: &local.Memory{}, Work: jobs(soloist.Job{Name: "night"}), Now: func() time.Time { return time.Now().Add(off) }})
		for i, want := range []string{"this machine's clock is 59m59s ahead", "!clock", "this machine's clock is right again", "!clock"} {
			if time.Sleep(time.Minute); i == 2 {
				off = 0
			}
			log.Reset()
			s.invoke(t, "tick", "{}")
			wantText(t, "log", log.String(), want)
		}
	})
}

// In Functions each call writes that the instance is up, if that is due. A store that hangs
// holds up no call for long.
func TestFunctionsWriteTheirPresence(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "WEBSITE_INSTANCE_ID=0123456789abcdef"}, func(t *testing.T) {
		backend := newGated(&local.Memory{}, nil)
		p := host.Program{Store: backend, Work: work()[:1]}
		s := open(t, p)
		for range 5 {
			s.wantInvoked(t, "tick", `{}`, 200)
			time.Sleep(time.Minute)
		}
		states, differs := fleetOf(t, p)
		wantEqual(t, "replicas and differences", append(states, differs...), []string{"0123456789ab up ok"})
		time.Sleep(30 * time.Minute)
		states, _ = fleetOf(t, p)
		wantEqual(t, "replicas", states, []string{"0123456789ab asleep ok"})
		backend.set(func(op, name string) error {
			if op == "read document" && strings.HasSuffix(name, "/.replicas") {
				return errHangs
			}
			return nil
		})
		begin := time.Now()
		s.wantInvoked(t, "tick", `{}`, 200)
		wantTook(t, begin, 0, 2500*time.Millisecond)
	})
}

// wantInvoked wants an invocation to come to this code, and one line for each of these texts, which has it. If there are
// none, the lines do not matter.
func (s site) wantInvoked(t *testing.T, name, payload string, code int, lines ...string) {
	t.Helper()
	got, logs := s.invoke(t, name, payload)
	if got != code || len(lines) > 0 && len(logs) != len(lines) {
		t.Errorf("%s: got code %d and %q, want %d and %q", name, got, logs, code, lines)
		return
	}
	for i, text := range lines {
		wantText(t, name, logs[i], text)
	}
}

// Whatever is sent to a function is answered. What is refused runs nothing and leaves the record as it is, byte for byte.
// [FuzzReadCall] of the package functions has more.
func TestPayloads(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		runs, backend := noted{}, &local.Memory{}
		s := open(t, host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1m", Do: noting(&runs, do)}}})
		s.wantInvoked(t, "tick", `{"data":{"timer":{"isPastDue":true}}}`, 200, "the timer is past due")
		for payload, code := range map[string]int{
			"": 200, " \r\n": 200, "null": 400, "[]": 400, "{": 400, `"tick"`: 400, `{"Data":null}`: 200, `{"Data":[]}`: 400, "{\"Data\":{\"\xff\":null}}\x00": 400,
			`{"Data":{"timer":{"Schedule":{},"ScheduleStatus":null,"IsPastDue":false}}}`:                   200,
			`{"data":{"timer":{"schedule":{},"scheduleStatus":{"next":"2000-01-01T00:02:00+00:00"}}}}`:     200,
			`{"Data":{"timer":{"ScheduleStatus":{"Next":7}}}}`:                                             200,
			`{"Data":{"req":{"Url":"http://localhost/api/beat","Method":"POST","Query":{},"Headers":{}}}}`: 200,
			`{"Data":{"queueItem":"\"HelloWorld\""},"Metadata":{"DequeueCount":"4"}}`:                      400,
			`{"Data":{"a":{"` + strings.Repeat(`a":{"`, 200) + `"}}`:                                       400,
			strings.Repeat(`{"Data":`, 20000):                                                              400, strings.Repeat(" ", 1<<20): 200, strings.Repeat(" ", 1<<20+1): 413,
		} {
			time.Sleep(61 * time.Second) // a tick is due
			n, before := len(runs.all()), recordOf(t, backend)
			s.wantInvoked(t, "beat", payload, code)
			if began := len(runs.all()) - n; began > 2 || (began > 0) != (code == 200) || code != 200 && recordOf(t, backend) != before {
				t.Errorf("%.80q: %d runs began", payload, began)
			}
		}
	})
}

func recordOf(t *testing.T, backend store.Store) string {
	t.Helper()
	e, err := backend.Read(t.Context(), "demo/beat")
	must(t, err)
	return string(e.Record)
}

// wantQuiet wants an invocation that succeeds and has nothing to say.
func (s site) wantQuiet(t *testing.T, name, payload string) {
	t.Helper()
	if code, logs := s.invoke(t, name, payload); code != 200 || len(logs) != 0 {
		t.Errorf("%s: got code %d and %q, want 200 and nothing", name, code, logs)
	}
}

// invoked makes an invocation in the background, and returns the code that it comes to.
func (s site) invoked(t *testing.T, name, payload string, lines ...string) <-chan int {
	code := make(chan int, 1)
	go func() {
		got, logs := s.invoke(t, name, payload)
		wantText(t, name, strings.Join(logs, ""), lines...)
		code <- got
	}()
	return code
}

// The record of one job cannot be read, and those of others can: that is no outage of the storage, and its caller gets an
// answer as soon as in one.
func TestRunByHandWithUnreadableRecordIsAnswered(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		s := open(t, host.Program{Store: newGated(new(local.Memory), unreadable("demo/beat")), Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do},
			soloist.Job{Name: "other", Schedule: "@every 1h", Do: do},
		}})
		time.AfterFunc(5*time.Second, func() { s.wantInvoked(t, "other", "{}", 200) })
		begin := time.Now()
		wantCode(t, <-s.invoked(t, "beat", byHTTP, "no route to the storage", "not begun within 20s"), 200)
		wantTook(t, begin, 0, 21*time.Second)
	})
}

// unreadable is the gate at which one record cannot be read.
func unreadable(record string) gate {
	return func(op, name string) error {
		if op == "read" && name == record {
			return errDown
		}
		return nil
	}
}

// In an outage nothing is ready, and a timer waits. Whoever calls an HTTP trigger waits no longer for what comes before the
// jobs than for the job.
func TestOutageBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(new(local.Memory), refuse(errDown))
		s := open(t, host.Program{Store: backend, Work: work(), Before: counting(new(atomic.Int64))})
		begin, says := time.Now(), []string{"no job is started before this is done", "not begun within 20s"}
		timer := s.invoked(t, "tick", `{}`)
		one, other := s.invoked(t, "beat", byHTTP, says...), s.invoked(t, "beat", byHTTP, says...) // one waits for the other
		time.Sleep(10 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"storage":"`, errDown.Error())
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2", `"storage":"`, errDown.Error())
		wantCode(t, <-one, 200)
		wantCode(t, <-other, 200)
		wantTook(t, begin, 0, 21*time.Second)
		backend.set(nil)
		wantText(t, "nothing has failed", s.get("/readyz").Body.String(), `!"error"`)
		wantCode(t, <-timer, 200)
		s.wantInvoked(t, "beat", byHTTP, 200, " succeeded")
		wantAnswer(t, "healthz after", s.get("/healthz"), 200, `"status":"ok"`)
		wantAnswer(t, "readyz after", s.get("/readyz"), 200)
	})
}

// What comes before the jobs, and a run by hand, is cut short by no outage once it has begun. The outcome of the run is written
// when the storage is back, and its caller gets it.
func TestOutageUnderWhatHasBegun(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(new(local.Memory), nil)
		var ran noted
		takes := lastingJob("beat", "@every 1h", 25*time.Second)
		outage := noting(&ran, func(ctx context.Context, r *soloist.Run) error {
			backend.away(35 * time.Second)
			return takes.Do(ctx, r)
		})
		s := open(t, host.Program{Store: backend, Before: []*soloist.Once{{Name: "migrate", Key: "v2", Lease: time.Minute, Do: outage}},
			Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Lease: time.Minute, Do: outage},
				soloist.Job{Name: "other", Schedule: "@every 1h", Do: do}}})
		code := s.invoked(t, "beat", byHTTP, " succeeded")
		time.Sleep(50 * time.Second)
		s.wantInvoked(t, "other", "{}", 500)
		wantCode(t, <-code, 200)
		wantEqual(t, "the outcome in the record", lastOutcome(t, backend).Status, event.Succeeded)
		wantEqual(t, "what comes before the jobs, and the job, returned", ran.all(), []string{"<nil>", "<nil>"})
	})
}

// lastOutcome is the newest outcome in the record of beat.
func lastOutcome(t *testing.T, backend store.Store) event.Outcome {
	var r record.Record
	must(t, json.Unmarshal([]byte(recordOf(t, backend)), &r))
	return append(r.History, event.Outcome{})[0]
}

// The outcome of a run whose lease is longer than SOLOIST_LEASE is written in the time that its own lease gives, and the host
// has its answer. A stop that cuts off a run is no success: the log names what runs.
func TestStopUnderInvocation(t *testing.T) {
	for _, ignores := range []bool{false, true} { // the end of its context
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=0s", "SOLOIST_LEASE=1s"}, func(t *testing.T) {
			backend := newGated(new(local.Memory), nil)
			began, release, answer := make(chan struct{}), make(chan struct{}), make(chan string, 1)
			var log strings.Builder
			ln := newPiped()
			beat := soloist.Job{Name: "beat", Schedule: "@every 1h", Lease: 30 * time.Second, Do: func(ctx context.Context, _ *soloist.Run) error {
				if close(began); ignores {
					<-release
					return nil
				}
				<-ctx.Done()
				backend.away(1500 * time.Millisecond) // more than grace and SOLOIST_LEASE
				return context.Cause(ctx)
			}}
			stop, code := serveOn(t, host.Program{Stdout: &log, Store: backend, Work: []soloist.Work{beat}}, ln)
			go func() {
				if resp, err := ln.web().Post("http://127.0.0.1:7071/beat", "application/json", strings.NewReader(byHTTP)); err == nil {
					body, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					answer <- string(body)
				}
			}()
			<-began
			stop()
			if ignores {
				wantCode(t, <-code, 1)
				wantText(t, "log", log.String(), "jobs that run: beat")
				close(release)
				return
			}
			wantCode(t, <-code, 0)
			got := lastOutcome(t, backend)
			wantEqual(t, "the outcome", string(got.Status)+": "+got.Reason, "abandoned: stopped")
			wantText(t, "the answer", <-answer, "abandoned: stopped")
		})
	}
}

// An outage is in no record, so the platform has to see it, whatever the setting says of runs that fail. Whoever called an
// HTTP trigger gets an answer, and does not wait for the end of the outage. A retry by the platform helps: the tick is still due.
func TestOutageFailsInvocation(t *testing.T) {
	for setting, byHand := range map[string]int{"log": 200, "error": 500} {
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_FAILURE=" + setting}, func(t *testing.T) {
			backend := newGated(new(local.Memory), nil)
			open(t, host.Program{Store: backend, Work: work()}).tick()
			time.Sleep(time.Minute)
			backend.set(refuse(errDown))
			s := open(t, host.Program{Store: backend, Work: work()}) // which has to read
			s.wantInvoked(t, "tick", "{}", 500)
			s.wantInvoked(t, "beat", "{}", 500)
			begin := time.Now()
			wantCode(t, <-s.invoked(t, "beat", byHTTP, "no route to the storage", "not begun within 20s"), byHand)
			wantTook(t, begin, 0, 21*time.Second)
			backend.set(nil)
			time.Sleep(5 * time.Second)
			s.wantInvoked(t, "beat", "{}", 200, "tick 2000-01-01T00:01:00Z succeeded") // a retry by the platform
			time.Sleep(time.Hour)
			backend.away(time.Minute)
			s.invoke(t, "beat", "{}")
			time.Sleep(time.Hour) // nothing runs between two calls: a page that can read the records ends the outage
			wantAnswer(t, "list", s.get("/api/v1/jobs"), 200)
			wantAnswer(t, "readyz", s.get("/readyz"), 200)
		})
	}
}
