package host_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A job that the settings pause stays shown as paused after an order to pause it and one to
// resume it, and the answer to the resume says so.
func TestResumeOfJobPausedBySettings(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			soloist.Job{Name: "nightly", Schedule: "0 2 * * *", Do: do, Paused: true}, soloist.Job{Name: "free", Schedule: "0 2 * * *", Do: do}}}
		s := open(t, p)
		s.tick()
		time.Sleep(26 * time.Hour)
		s.tick() // the tick is skipped
		change := func(job, what string) string {
			t.Helper()
			got := s.send("POST", "/api/v1/jobs/"+job+"/"+what, "Bearer "+adminToken)
			wantAnswer(t, what, got, 200, `"kind":"`+what+`"`)
			time.Sleep(time.Minute)
			return got.Body.String()
		}
		change("nightly", "pause")
		if note := change("nightly", "resume"); !strings.Contains(note, "the settings of this replica pause nightly too") {
			t.Errorf("the resume answers %s", note)
		}
		change("free", "pause")
		if note := change("free", "resume"); strings.Contains(note, `"note"`) {
			t.Errorf("the resume of another job answers %s", note)
		}
		wantAnswer(t, "after the resume", s.get("/api/v1/jobs/nightly"), 200, `"state":"paused"`)
		wantAnswer(t, "the other job", s.get("/api/v1/jobs/free"), 200, `"state":"idle"`)
		s.wait()
	})
}

// A run that ends while the order to hand it over is written is no reason to call the order
// refused.
func TestStepDownOfRunThatEnds(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		short := soloist.Job{Name: "short", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error {
			time.Sleep(6 * time.Second)
			return nil
		}}
		backend := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Work: []soloist.Work{short}, Store: backend})
		ended := s.underway(5 * time.Second)
		backend.set(func(op, _ string) error {
			if op == "write document" {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		got := s.send(http.MethodPost, "/api/v1/jobs/short/step-down", "Bearer "+adminToken)
		wantAnswer(t, "step down", got, 202, `"status":"ordered"`, `"kind":"step-down"`, `"note":"its run is over"`)
		ended()
		s.wait()
	})
}

// What can never be done is no trouble with the store, which a client would ask for again.
func TestOrdersRefusedForGood(t *testing.T) {
	environment(t, "SOLOIST_ADMIN_TOKEN="+adminToken)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, host.Program{Work: obedient(), Store: &local.Memory{}})
		ended := s.underway(5 * time.Second)
		ask := func(path string) (code int, text string) {
			got := s.send(http.MethodPost, "/api/v1/jobs/"+path, "Bearer "+adminToken)
			return got.Code, got.Body.String()
		}
		for range 100 {
			if code, text := ask("beat/run"); code != 200 {
				t.Fatal(code, text)
			}
		}
		if code, text := ask("beat/run"); code != 409 || !strings.Contains(text, "100 runs of beat are ordered already") {
			t.Errorf("one run too many: %d %s", code, text)
		}
		if code, text := ask("long/cancel"); code != 200 { // else it never ends
			t.Error(code, text)
		}
		ended()
		s.wait()
	})
}

// In an outage a run that goes on without its lease is told as trouble, though the store tells
// nothing new of its job.
func TestOverrunInOutageIsTrouble(t *testing.T) {
	environment(t)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := soloist.Job{Name: "deaf", Schedule: "@every 1m", Do: func(context.Context, *soloist.Run) error { <-release; return nil }}
		backend := newGated(&local.Memory{}, nil)
		s := open(t, host.Program{Work: []soloist.Work{deaf}, Store: backend})
		ended := s.underway(5 * time.Second)
		wantAnswer(t, "before", s.get("/api/v1/jobs"), 200, `"trouble":0`)
		backend.set(refuse(errDown))
		time.Sleep(2 * time.Minute)
		wantAnswer(t, "healthz", s.get("/healthz"), 503, `"status":"overrun"`)
		s.get("/api/v1/jobs") // has the records read
		time.Sleep(5 * time.Second)
		wantAnswer(t, "in the outage", s.get("/api/v1/jobs"), 200, `"trouble":1`, `"trouble":true`)
		backend.set(nil)
		close(release)
		ended()
		s.wait()
	})
}
