package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

func untilStopped(ctx context.Context, _ *soloist.Run) error {
	<-ctx.Done()
	return nil
}

func wantCode(t *testing.T, got, want int) {
	t.Helper()
	if got != want {
		t.Errorf("got exit code %d, want %d", got, want)
	}
}

func TestHTTPAnswersUntilLastJobIsDone(t *testing.T) {
	bubble(t, []string{"SOLOIST_GRACE=30s"}, func(t *testing.T) {
		started, release, ln := make(chan context.Context, 1), make(chan struct{}), newPiped()
		long := soloist.Job{Name: "long", Schedule: "@every 1m", Do: func(ctx context.Context, _ *soloist.Run) error {
			started <- ctx
			<-release
			return ctx.Err()
		}}
		stop, code := serveOn(t, host.Program{Store: &local.Memory{}, Work: []soloist.Work{long}}, ln)
		ctx := <-started
		stop()
		time.Sleep(10 * time.Second)
		wantAnswer(t, "healthz", ln.get(t, "/healthz"), 200)
		wantEqual(t, "the context of the job, in its grace", ctx.Err(), nil)
		close(release)
		wantCode(t, <-code, 0)
		if _, err := ln.dial(t.Context(), "", ""); err == nil {
			t.Error("HTTP answers after the end")
		}
	})
}

// refusesAll is a store that takes no credentials.
type refusesAll struct{ *gated }

func (refusesAll) Explain(error) (text, advice string) { return "403", "replace the key" }

func (refusesAll) Patience() time.Duration { return 0 }

func TestServeEndsWhenStoreRefusesIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		refused := newGated(down(), refuse(fmt.Errorf("read: %w", fs.ErrPermission), "read", "read document"))
		for _, before := range [][]*soloist.Once{nil, counting(new(atomic.Int64))} {
			var log strings.Builder
			_, code := serveOn(t, host.Program{Work: work(), Before: before, Store: refusesAll{refused}, Stdout: &log}, newPiped())
			wantCode(t, <-code, 1)
			wantText(t, "log", log.String(), "the store has refused this program since it started, for 0s: 403: replace the key")
		}
	})
}

// still is a job that is silent for too long and does not stop until released.
func still(release <-chan struct{}) soloist.Job {
	return soloist.Job{Name: "still", Schedule: "@every 1m", HeartbeatTimeout: 2 * time.Second, Do: func(context.Context, *soloist.Run) error {
		<-release
		return nil
	}}
}

// A run that goes on without its lease ends the process, with its last words: a lease that somebody has taken, or that is not
// renewed since the run has stalled. In Functions another code has its host start the program again.
func TestOverrunExits(t *testing.T) {
	const functions, stalled = "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "stalled: no heartbeat for 2s"
	for _, test := range []struct {
		setting string
		broken  bool
		code    int
		cause   string
		takes   time.Duration // at most
	}{
		{"X=1", false, 3, stalled, 9 * time.Second},
		{functions, false, 200, stalled, 9 * time.Second},
		{"X=1", true, 3, store.ErrLost.Error(), 30 * time.Second},
	} {
		bubble(t, []string{test.setting}, func(t *testing.T) {
			release, backend := make(chan struct{}), &local.Memory{}
			var codes []int
			job := still(release)
			p := host.WithExit(host.Program{Work: []soloist.Work{job}, Store: backend}, func(code int) {
				codes = append(codes, code)
				close(release)
			})
			if test.broken {
				job.HeartbeatTimeout = 0
				p.Work[0] = job
				time.AfterFunc(time.Minute+5*time.Second, func() { must(t, backend.Break(t.Context(), "demo/still", 0)) })
			}
			for range 1000 {
				go func() { <-release }() // more than a log should have to hold
			}
			call(t, p, "tick")
			time.Sleep(time.Minute)
			begin := time.Now()
			got := call(t, p, "tick")
			wantEqual(t, "exit codes", codes, []int{test.code})
			wantTook(t, begin, 0, test.takes)
			words := await(t, messages(strings.NewReader(got.err)), "the process exits")
			wantText(t, "the cause", words.Cause, test.cause)
			wantEqual(t, "the last words", fmt.Sprint(words.Level, " ", words.Job, " ", words.Code), fmt.Sprint("ERROR still ", test.code))
			wantEqual(t, "bytes of goroutines", len(words.Goroutines), 64<<10)
			got.wants(t, "tick", 1, strings.TrimSuffix(test.cause, ": no heartbeat for 2s"))
		})
	}
}

// A job on each replica has no lease, so its run ends no process. All replicas run it at once, so a 503 would restart them all
// at once.
func TestRunOnEachReplicaEndsNoProcess(t *testing.T) {
	bubble(t, nil, func(t *testing.T) {
		release := make(chan struct{})
		j := still(release)
		j.EveryReplica, j.HeartbeatTimeout = true, 0
		j.HealthCheck.Interval, j.HealthCheck.Check = time.Second, func(context.Context) error { return errDown }
		s := open(t, host.WithExit(host.Program{Store: &local.Memory{}, Work: []soloist.Work{j}}, os.Exit))
		go s.tick() // it runs at once
		time.Sleep(80 * time.Second)
		wantAnswer(t, "healthz", s.get("/healthz"), 200, `"status":"degraded"`, `"broken":{"still":"its run goes on though its context has ended (stalled: `)
		wantAnswer(t, "list", s.get("/api/v1/jobs"), 200, "stalled: ", `"trouble":true`)
		close(release)
	})
}

// late is a job that ignores its time-out, and keeps its lease.
func late(release <-chan struct{}) []soloist.Work {
	j := still(release)
	j.Name, j.HeartbeatTimeout, j.Timeout = "late", 0, 10*time.Second
	return []soloist.Work{j, work()[0]}
}

func TestRunThatIgnoresTimeoutIsTold(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071"}, func(t *testing.T) {
		release := make(chan struct{})
		s := open(t, host.WithExit(host.Program{Work: late(release), Store: &local.Memory{}}, os.Exit))
		ended := s.underway(14 * time.Second)
		wantAnswer(t, "healthz in time", s.get("/healthz"), 200, `"status":"ok"`)
		time.Sleep(50 * time.Second)

		// The job beside it is left alone, and the replica not just degraded.
		const words = "goes on though its context has ended (timed out after 10s)"
		s.wantInvoked(t, "tick", "{}", 500, "job late: "+words+": only a restart helps", "job beat: late "+words)
		s.wantInvoked(t, "late", "{}", 500, "only a restart helps")
		wantAnswer(t, "healthz", s.get("/healthz"), 503, `"status":"overrun"`, `"overrun":{"late":"timed out after 10s"}`, `"broken":{"beat":"late `+words)
		wantAnswer(t, "app", s.get("/api/v1/app"), 200, `"overrun":{"late":"timed out after 10s"}`)
		wantAnswer(t, "metrics", s.get("/metrics"), 200, `soloist_overrun{job_name="late"} 1`, `soloist_overrun{job_name="beat"} 0`, `soloist_job_broken{job_name="beat"} 1`)

		close(release)
		ended()
		s.tick()
		wantAnswer(t, "healthz after", s.get("/healthz"), http.StatusOK, `"status":"ok"`)
	})
}

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
// that invocation, which is under way already and is not sent again.
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
}

// An idle connection is soon closed, and in Functions one that does not get on with its request.
func TestHalfRequestIsCutOff(t *testing.T) {
	const functions, elsewhere = "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "X=1"
	for _, test := range []struct {
		env, sent, answer string
		want              time.Duration
	}{
		{functions, "", "!200 OK", 5 * time.Second},
		{functions, "POST /tick HTTP/1.1\r\nHost: 127.0.0.1\r\nX", "!200 OK", 5 * time.Second},
		{functions, "POST /tick HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n", "!200 OK", 10 * time.Second},
		{elsewhere, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "200 OK", 30 * time.Second},
	} {
		bubble(t, []string{test.env}, func(t *testing.T) {
			c, _ := connected(t, &local.Memory{}, work())
			fmt.Fprint(c, test.sent)
			after, text := c.cutOff()
			wantEqual(t, "closed after", after, test.want)
			wantText(t, test.sent, text, test.answer)
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

// A stop in Functions waits for the invocation, however long its grace is: a run may take longer than other answers. A connection
// that breaks is no stop.
func TestLongInvocation(t *testing.T) {
	bubble(t, []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_GRACE=3m"}, func(t *testing.T) {
		ln, p := newPiped(), host.Program{Store: &local.Memory{}, Work: []soloist.Work{lastingJob("long", "@every 1m", 2*time.Minute)}}
		stop, code := serveOn(t, p, ln)
		defer stop()
		c := ln.client(t)
		call := func(c client, says string) {
			t.Helper()
			if got, body, err := c.post("/tick"); err != nil || got != 200 || !strings.Contains(body, says) {
				t.Errorf("got code %d, %s, %v, want %s", got, body, err, says)
			}
		}
		call(c, "")
		time.Sleep(time.Minute)
		broken := ln.client(t)
		fmt.Fprint(broken, "POST /tick HTTP/1.1\r\nHost: 127.0.0.1:7071\r\nContent-Length: 2\r\n\r\n{}")
		time.Sleep(time.Second)
		broken.Close()
		time.Sleep(3 * time.Minute)
		wantLines(t, host.Program{Store: p.Store, Work: p.Work}, "history", 0, "succeeded", "2m0s")
		time.AfterFunc(time.Second, stop)
		call(c, "succeeded")
		wantCode(t, <-code, 0)
	})
}

// A client is one connection to a program.
type client struct {
	net.Conn
	answers *bufio.Reader
}
