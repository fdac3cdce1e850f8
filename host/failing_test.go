package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A member is a replica that serves in virtual time, with a browser that has its page open.
type member struct {
	t      *testing.T
	ln     piped
	cancel func()
	code   <-chan int

	mu   sync.Mutex
	last string // of the stream
	ends sync.WaitGroup
}

func join(t *testing.T, name string, p host.Program) *member {
	t.Helper()
	t.Setenv("CONTAINER_APP_REPLICA_NAME", name)
	m := &member{t: t, ln: newPiped()}
	p.Stdout = io.Discard
	m.cancel, m.code = serveOn(t, p, m.ln)
	time.Sleep(time.Second) // it has read its environment
	m.ends.Go(m.follow)
	return m
}

// follow reads the stream, as an open page does.
func (m *member) follow() {
	answer, err := m.ln.web().Get("http://localhost/api/v1/stream")
	if err != nil {
		m.t.Error(err)
		return
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	news := false
	for lines.Scan() {
		switch data, ok := strings.CutPrefix(lines.Text(), "data: "); {
		case ok && news:
			m.mu.Lock()
			m.last = data
			m.mu.Unlock()
		case !ok && lines.Text() != "":
			news = lines.Text() == "event: news"
		}
	}
}

func (m *member) get(path string) string {
	m.t.Helper()
	got := m.ln.get(m.t, path)
	wantAnswer(m.t, path, got, http.StatusOK)
	return got.Body.String()
}

func (m *member) leave() {
	m.t.Helper()
	m.cancel()
	wantCode(m.t, <-m.code, 0)
	m.ends.Wait()
}

// A colour is what an operator sees of the job.
type colour struct {
	state    string
	failures int
	trouble  int // how many jobs are in trouble: the title of the page, and red
}

var (
	red   = colour{"failing", 43, 1}
	green = colour{"idle", 0, 0}
)

// wants checks API, page and metrics of one replica.
func (m *member) wants(want colour) {
	m.t.Helper()
	m.mu.Lock()
	page := m.last
	m.mu.Unlock()
	for what, body := range map[string]string{"list": m.get("/api/v1/jobs"), "stream": page} {
		var got struct {
			App  struct{ Trouble int }
			Jobs []struct {
				State    string
				Failures int
				Trouble  bool
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || len(got.Jobs) != 1 {
			m.t.Fatalf("%s: %v in %s", what, err, body)
		}
		if j := got.Jobs[0]; got.App.Trouble != want.trouble || (colour{j.State, j.Failures, want.trouble}) != want || j.Trouble != (want.trouble > 0) {
			m.t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	line := fmt.Sprintf(`soloist_job_failures{job_name="report"} %d`, want.failures)
	if all := strings.Split(m.get("/metrics"), "\n"); !slices.Contains(all, line) {
		m.t.Errorf("the metrics have no %s", line)
	}
}

// A job that fails 43 times in a row is red everywhere, whichever replica is asked, and
// one alert is sent. After a success all is green again, and one message says so.
func TestFailingJobIsRedEverywhere(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		var got noted
		receive(t, "hooks.example", func(_ http.ResponseWriter, r *http.Request) {
			var m struct{ Kind, Event string }
			err, signature := json.NewDecoder(r.Body).Decode(&m), r.Header.Get("Soloist-Signature")
			if err != nil || !strings.HasPrefix(signature, "t=") {
				t.Errorf("got %v, signature %q", err, signature)
			}
			got.add(m.Kind + " " + m.Event)
		})
		t.Setenv("SOLOIST_ALERT_WEBHOOK", "http://hooks.example/x?key=secret")
		t.Setenv("SOLOIST_ALERT_SECRET", key)

		var runs atomic.Int64
		backend := new(local.Memory)
		p := host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "report", Schedule: "@every 20s", Do: func(context.Context, *soloist.Run) error {
			if runs.Add(1) <= 43 {
				return errors.New("no paper")
			}
			return nil
		}}}}
		var all []*member
		for _, name := range []string{"replica-a", "replica-b", "replica-c"} {
			all = append(all, join(t, name, p))
		}
		for runs.Load() < 43 {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.wants(red)
		}
		wantEqual(t, "the alerts", got.all(), []string{"failures alert"})
		wantLines(t, p, "status", 0, "  failing x43  ", "failed")
		wantLines(t, p, "history", 0, "  failing x43  ")
		wantLines(t, p, "status --json", 0, `"state": "failing"`, `"failures": 43`)

		for runs.Load() < 44 {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.wants(green)
		}
		wantEqual(t, "the alerts", got.all(), []string{"failures alert", "failures recovered"})
		wantLines(t, p, "status", 0, "  idle  ", "succeeded")
		time.Sleep(time.Hour)
		for _, m := range all {
			m.wants(green)
			m.leave()
		}
		wantEqual(t, "the alerts", got.all(), []string{"failures alert", "failures recovered"})
	})
}

// network is the default transport of this process. Requests to some hosts go to receivers of
// tests. It stays there after a test, since goroutines of earlier ones may be about to use it.
var network = &diverted{others: http.DefaultTransport, hosts: map[string]http.RoundTripper{}}

func init() { http.DefaultTransport = network }

type diverted struct {
	others http.RoundTripper

	mu    sync.Mutex
	hosts map[string]http.RoundTripper
}

// divert has requests to a host use a transport, until restore is called.
func (d *diverted) divert(host string, to http.RoundTripper) (restore func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hosts[host] = to
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.hosts, host)
	}
}

func (d *diverted) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	to, ok := d.hosts[r.URL.Hostname()]
	d.mu.Unlock()
	if !ok {
		to = d.others
	}
	return to.RoundTrip(r)
}

// Without a receiver nothing is written.
func TestNoAlertsNoDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := newGated(&local.Memory{}, func(op, name string) error {
			if strings.Contains(name, "alerts") {
				t.Errorf("%s of %s", op, name)
			}
			return nil
		})
		defer beginServing(t, host.Program{Store: backend, Work: []soloist.Work{soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail}}})()
		time.Sleep(10 * time.Minute)
	})
}

// receive answers the requests to a host name of a test's own.
func receive(t *testing.T, name string, f http.HandlerFunc) {
	t.Helper()
	ln := newPiped()
	server := &http.Server{Handler: f}
	go server.Serve(ln)
	restore := network.divert(name, ln.web().Transport)
	t.Cleanup(func() { restore(); server.Close() })
}

// The switch of a job gets each run, and how it ended.
func TestPingsOfRuns(t *testing.T) {
	const here = "_PING=http://pings.example/"
	bubble(t, []string{"SOLOIST_JOB_BEAT" + here + "beat", "SOLOIST_JOB_SAD" + here + "sad"}, func(t *testing.T) {
		var got noted
		receive(t, "pings.example", func(_ http.ResponseWriter, r *http.Request) { got.add(r.URL.Path) })
		p := host.Program{Store: &local.Memory{}, Work: []soloist.Work{
			soloist.Job{Name: "beat", Schedule: "@every 1m", Do: do},
			soloist.Job{Name: "sad", Schedule: "@every 1m", Do: fail},
		}}
		run(t.Context(), p, "tick")
		time.Sleep(time.Minute)
		run(t.Context(), p, "tick")
		wantEqual(t, "pings", slices.Sorted(slices.Values(got.all())), []string{"/beat", "/beat/start", "/sad/fail", "/sad/start"})
	})
}
