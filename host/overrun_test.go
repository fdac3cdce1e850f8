package host_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// The lease is taken from a run that does not stop: its process is gone when the lease may be another's.
func TestProcessThatLosesLeaseExits(t *testing.T) {
	t.Parallel()
	dir := local.Dir{Path: t.TempDir()}
	p := start(t, "deaf", "SOLOIST_APP=demo", "SOLOIST_LEASE=1s", "SOLOIST_STORAGE=dir:"+dir.Path, "SOLOIST_ADDR=127.0.0.1:0")
	await(t, p.log, "run started")
	must(t, dir.Break(t.Context(), "demo/deaf", 0))
	if m := await(t, p.log, "the process exits"); m.Level != "ERROR" || m.Job != "deaf" || m.Code != 3 || !strings.Contains(m.Cause, store.ErrLost.Error()) {
		t.Errorf("got the last words %+v", m)
	}
	wantCode(t, p.code(t), 3)
}

// still is a job that is silent for too long and does not stop until released.
func still(release <-chan struct{}) soloist.Job {
	return soloist.Job{Name: "still", Schedule: "@every 1m", HeartbeatTimeout: 2 * time.Second, Do: func(context.Context, *soloist.Run) error {
		<-release
		return nil
	}}
}

func TestTickExitsUnderStalledRun(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
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
		if len(codes) != 1 || codes[0] != 3 {
			t.Errorf("got the codes %d, want one 3", codes)
		}
		wantTook(t, begin, 0, 2*time.Second+30*time.Second/6+2*time.Second)
		words := await(t, messages(strings.NewReader(got.err)), "the process exits")
		if words.Job != "still" || words.Cause != "stalled: no heartbeat for 2s" || words.Code != 3 || len(words.Goroutines) != 64<<10 {
			t.Errorf("got the last words %+v", words)
		}
		got.wants(t, "tick", 1, "stalled in")
	})
}

func TestFunctionsRestartsOverrunProcess(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		release := make(chan struct{})
		code := 0
		s := open(t, host.WithExit(host.Program{Work: []soloist.Work{still(release)}, Store: &local.Memory{}}, func(c int) {
			code = c
			close(release)
		}))
		s.tick()
		time.Sleep(time.Minute)
		s.tick()
		wantCode(t, code, 200)
	})
}

// Whoever calls Program.Run has other things in the process. A job on each
// replica has no lease.
func TestWhoDoesNotExit(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(*host.Program, *soloist.Job)
		code int
		want []string
	}{
		"a library": {func(*host.Program, *soloist.Job) {}, 503, []string{`"status":"overrun"`, `"overrun":{"still":"stalled: `}},
		// All replicas run it at once, so a 503 would restart them all at once.
		"a job on each replica": {func(p *host.Program, j *soloist.Job) {
			*p, j.EveryReplica = host.WithExit(*p, os.Exit), true
			j.HeartbeatTimeout, j.HealthCheck.Interval, j.HealthCheck.Check = 0, time.Second, func(context.Context) error { return errDown }
		}, 200, []string{`"status":"degraded"`, `"broken":{"still":"its run goes on though its context has ended (stalled: `}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T) {
				release := make(chan struct{})
				p, j := host.Program{Store: &local.Memory{}}, still(release)
				test.set(&p, &j)
				p.Work = []soloist.Work{j}
				s := open(t, p)
				go s.tick() // the job on each replica runs at once
				time.Sleep(time.Minute)
				go s.tick()
				time.Sleep(20 * time.Second)
				wantAnswer(t, "healthz", s.get("/healthz"), test.code, test.want...)
				wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "stalled: ", `"trouble":true`)
				close(release)
			})
		})
	}
}

// stuckPipe takes no line with this text until it is released.
type stuckPipe struct {
	text    string
	release <-chan struct{}
}

func (s stuckPipe) Write(b []byte) (int, error) {
	if strings.Contains(string(b), s.text) {
		<-s.release
	}
	return len(b), nil
}

// A log that nobody reads does not keep the process.
func TestBlockedLogDoesNotHoldUpExit(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		exit, release := make(chan int, 1), make(chan struct{})
		p := host.Program{Work: []soloist.Work{still(release)}, Store: &local.Memory{}, Stdout: stuckPipe{"the process exits", release}}
		stop, code := serveOn(t, host.WithExit(p, func(code int) { exit <- code }), newPiped())
		select {
		case code := <-exit:
			wantCode(t, code, 3)
		case <-time.After(10 * time.Minute):
			t.Error("the process goes on")
		}
		close(release)
		stop()
		<-code
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
