package host_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// The storage is away for a minute as the run ends. Its outcome is written when
// the storage is back, and its caller gets it, by a timer and by an HTTP trigger
// alike.
func TestOutageAtEndOfRunLosesNoOutcome(t *testing.T) {
	for _, payload := range []string{"{}", byHTTP} {
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
			backend := newGated(new(local.Memory), nil)
			runs := 0
			s := open(t, host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: func(context.Context, *soloist.Run) error {
				if runs++; runs == 1 {
					backend.away(time.Minute)
				}
				return nil
			}}}})
			s.invoke(t, "tick", "{}")
			time.Sleep(time.Hour + time.Second)
			s.wantInvoked(t, "beat", payload, 200, " succeeded")
			wantEqual(t, "runs", runs, 1)
			if got := lastOutcome(t, backend); got.Status != store.Succeeded {
				t.Errorf("%.9s: the record says %+v, want succeeded", payload, got)
			}
		})
	}
}

// The record of one job cannot be read, and those of others can: that is no outage of the storage, and its caller gets an
// answer as soon as in one.
func TestRunByHandWithUnreadableRecordIsAnswered(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(new(local.Memory), func(op, name string) error {
			if op == "read" && name == "demo/beat" {
				return errDown
			}
			return nil
		})
		s := open(t, host.Program{Store: backend, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do},
			soloist.Job{Name: "other", Schedule: "@every 1h", Do: do},
		}})
		time.AfterFunc(5*time.Second, func() { s.wantInvoked(t, "other", "{}", 200) })
		begin := time.Now()
		wantCode(t, <-s.invoked(t, "beat", byHTTP, "no route to the storage", "not begun within 20s"), 200)
		wantTook(t, begin, 0, 21*time.Second)
	})
}

// In an outage nothing is ready, and a timer waits. Whoever calls an HTTP trigger waits no longer for what comes before the
// jobs than for the job.
func TestOutageBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(new(local.Memory), refuse(errDown))
		s := open(t, host.Program{Store: backend, Work: work(), Before: counting(new(atomic.Int64))})
		begin, says := time.Now(), []string{"no job is started before this is done", "not begun within 20s"}
		timer, one, other := s.invoked(t, "tick", `{}`), s.invoked(t, "beat", byHTTP, says...), s.invoked(t, "beat", byHTTP, says...) // one waits for the other
		time.Sleep(10 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"storage":"`, errDown.Error())
		wantAnswer(t, "readyz", s.get("/readyz"), 503, "migrate for v2", `"storage":"`, errDown.Error())
		wantCode(t, <-one, 200)
		wantCode(t, <-other, 200)
		wantTook(t, begin, 0, 21*time.Second)
		backend.set(nil)
		wantNone(t, "nothing has failed", s.get("/readyz").Body.String(), `"error"`)
		wantCode(t, <-timer, 200)
		s.wantInvoked(t, "beat", byHTTP, 200, " succeeded")
		wantAnswer(t, "healthz after", s.get("/healthz"), 200, `"status":"ok"`)
		wantAnswer(t, "readyz after", s.get("/readyz"), 200)
	})
}

// No outage cuts short what comes before the jobs, once it has begun.
func TestOutageDuringWhatComesBefore(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		backend := newGated(new(local.Memory), nil)
		s := open(t, host.Program{Store: backend, Work: work(), Before: []*soloist.Once{{Name: "migrate", Key: "v2", Lease: time.Minute,
			Do: func(ctx context.Context, _ *soloist.Run) error {
				backend.away(35 * time.Second)
				select {
				case <-ctx.Done():
					t.Errorf("it was cut short: %v", context.Cause(ctx))
				case <-time.After(40 * time.Second):
				}
				return nil
			}}}})
		s.wantInvoked(t, "beat", byHTTP, 200, " succeeded")
	})
}

// lastOutcome is the newest outcome in the record of beat.
func lastOutcome(t *testing.T, backend store.Store) store.Outcome {
	var r store.Record
	must(t, json.Unmarshal([]byte(recordOf(t, backend)), &r))
	if len(r.History) == 0 {
		return store.Outcome{}
	}
	return r.History[0]
}

// Nothing runs between two calls of a function. A page that could read the
// records then tells no outage that is over.
func TestReadEndsOutageInFunctions(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		store := newGated(new(local.Memory), nil)
		s := open(t, host.Program{Store: store, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "0 3 * * *", Do: do}}})
		s.invoke(t, "beat", "{}")
		time.Sleep(3*time.Hour + time.Minute)
		store.away(time.Minute)
		s.invoke(t, "beat", "{}")
		time.Sleep(6 * time.Hour)
		for _, path := range []string{"/api/v1/jobs", "/readyz"} {
			wantAnswer(t, path+", hours after the outage", s.get(path), 200)
		}
	})
}

// A stop that cuts off a run is no success: the log names what runs.
func TestStopThatCutsOffRunFails(t *testing.T) {
	bubble(t, stopsAtOnce, func(t *testing.T) {
		began, release := make(chan struct{}), make(chan struct{})
		code, log := stopUnder(t, new(local.Memory), soloist.Job{Do: func(context.Context, *soloist.Run) error {
			close(began)
			<-release // it ignores the end of its context
			return nil
		}}, began)
		wantCode(t, <-code, 1)
		close(release)
		wantText(t, "the error", (<-log.last).Error, "jobs that run: beat")
	})
}

// The outcome of a run whose lease is longer than SOLOIST_LEASE is written in the
// time that its own lease gives, and the host has its answer.
func TestStopWaitsForLongestLease(t *testing.T) {
	bubble(t, stopsAtOnce, func(t *testing.T) {
		backend := newGated(new(local.Memory), nil)
		began := make(chan struct{})
		code, log := stopUnder(t, backend, soloist.Job{Lease: 30 * time.Second, Do: func(ctx context.Context, _ *soloist.Run) error {
			close(began)
			<-ctx.Done()
			backend.away(1500 * time.Millisecond) // more than grace and SOLOIST_LEASE
			return context.Cause(ctx)
		}}, began)
		wantCode(t, <-code, 0)
		if got := lastOutcome(t, backend); got.Status != store.Abandoned || got.Reason != "stopped" {
			t.Errorf("got the outcome %+v, want abandoned, as the run was stopped", got)
		}
		wantText(t, "the answer", <-log.answer, "abandoned: stopped")
	})
}

// stopsAtOnce are the settings of an app of Functions whose runs have no grace.
var stopsAtOnce = []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=0s", "SOLOIST_LEASE=1s"}

// stopUnder runs the job once in Functions and stops the program under the run.
func stopUnder(t *testing.T, backend store.Store, job soloist.Job, began <-chan struct{}) (code <-chan int, log *lastError) {
	t.Helper()
	job.Name, job.Schedule = "beat", "@every 1h"
	ln, log := newPiped(), &lastError{last: make(chan message, 1), answer: make(chan string, 1)}
	stop, code := serveOn(t, host.Program{Stdout: log, Store: backend, Work: []soloist.Work{job}}, ln)
	go func() {
		resp, err := ln.web().Post("http://127.0.0.1:7071/beat", "application/json", strings.NewReader(byHTTP))
		if err == nil {
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			log.answer <- string(body)
		}
	}()
	<-began
	stop()
	return code, log
}

// lastError keeps the line of the log that tells why the program stopped, and the answer of the invocation.
type lastError struct {
	last   chan message
	answer chan string
}

func (l *lastError) Write(b []byte) (int, error) {
	var m message
	if json.Unmarshal(b, &m) == nil && m.Msg == "stopped" {
		l.last <- m
	}
	return len(b), nil
}

// An outage is in no record, so the platform has to see it, whatever the setting says of runs that fail. Whoever called an
// HTTP trigger gets an answer, and does not wait for the end of the outage.
func TestOutageFailsInvocation(t *testing.T) {
	for setting, byHand := range map[string]int{"log": 200, "error": 500} {
		bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_FUNCTION_FAILURE=" + setting}, func(t *testing.T) {
			s := open(t, host.Program{Store: down(), Work: work()})
			s.wantInvoked(t, "tick", "{}", 500)
			s.wantInvoked(t, "beat", "{}", 500)
			begin := time.Now()
			wantCode(t, <-s.invoked(t, "beat", byHTTP, "no route to the storage", "not begun within 20s"), byHand)
			wantTook(t, begin, 0, 21*time.Second)
		})
	}
}

// A retry by the platform helps after an outage: the tick is still due.
func TestRetryAfterOutage(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		program := func() site {
			return open(t, host.Program{Store: store, Work: []soloist.Work{soloist.Job{Name: "beat", Schedule: "@every 1h", Do: do}}})
		}
		program().invoke(t, "beat", "{}")
		time.Sleep(time.Hour + time.Second)
		s := program() // which has to read
		store.set(refuse(errDown, "read"))
		s.wantInvoked(t, "beat", "{}", 500)
		store.set(nil)
		time.Sleep(5 * time.Second)
		s.wantInvoked(t, "beat", "{}", 200, "tick 2000-01-01T01:00:00Z succeeded")
	})
}

// A run by hand that has begun is not ended by an outage that others meet.
func TestOutageUnderRunByHand(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		store := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Store: store, Work: []soloist.Work{
			lastingJob("beat", "@every 1h", time.Minute), soloist.Job{Name: "other", Schedule: "@every 1h", Do: do}}})
		code := s.invoked(t, "beat", byHTTP, " succeeded")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		store.set(refuse(errDown, "read"))
		s.wantInvoked(t, "other", "{}", 500)
		wantCode(t, <-code, 200)
	})
}
