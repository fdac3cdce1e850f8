package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A member is a replica that serves in virtual time, with a browser that has its page open.
type member struct {
	t      *testing.T
	client http.Client
	cancel func()
	code   <-chan int

	mu   sync.Mutex
	last string // of the stream
	ends sync.WaitGroup
}

func join(t *testing.T, name string, p host.Program) *member {
	t.Helper()
	t.Setenv("CONTAINER_APP_REPLICA_NAME", name)
	ln := newPiped()
	m := &member{t: t, client: http.Client{Transport: &http.Transport{DialContext: ln.dial, DisableKeepAlives: true}}}
	p.Stdout = io.Discard
	m.cancel, m.code = serveOn(t, p, ln)
	time.Sleep(time.Second) // it has read its environment
	m.ends.Go(m.follow)
	return m
}

// follow reads the stream, as an open page does.
func (m *member) follow() {
	answer, err := m.client.Get("http://localhost/api/v1/stream")
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
	answer, err := m.client.Get("http://localhost" + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		m.t.Errorf("%s: got code %d, %v: %s", path, answer.StatusCode, err, body)
	}
	return string(body)
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

// inbox is what the receiver of alerts has got.
type inbox struct {
	mu  sync.Mutex
	all []string
}

func (i *inbox) add(text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, text)
}

func (i *inbox) wants(t *testing.T, want ...string) {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Equal(i.all, want) {
		t.Errorf("the receiver of alerts has got %q, want %q", i.all, want)
	}
}

// A job that fails 43 times in a row is red everywhere, whichever replica is asked, and
// one alert is sent. After a success all is green again, and one message says so.
func TestFailingJobIsRedEverywhere(t *testing.T) {
	bubble(t, []string{"SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		var got inbox
		hooks := newPiped()
		receiver := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var m struct{ Kind, Event string }
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Error(err)
			}
			got.add(m.Kind + " " + m.Event)
		})}
		go receiver.Serve(hooks)
		defer receiver.Close()
		defer network.divert("hooks.example", &http.Transport{DialContext: hooks.dial, DisableKeepAlives: true})()
		t.Setenv("SOLOIST_ALERT_WEBHOOK", "http://hooks.example/x")

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
		got.wants(t, "failures alert")
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
		got.wants(t, "failures alert", "failures recovered")
		wantLines(t, p, "status", 0, "  idle  ", "succeeded")
		time.Sleep(time.Hour)
		for _, m := range all {
			m.wants(green)
			m.leave()
		}
		got.wants(t, "failures alert", "failures recovered")
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

// flaky fails until there is a file.
func flaky(context.Context, *soloist.Run) error {
	if _, err := os.Stat(os.Getenv("TEST_FILE")); err != nil {
		return errors.New("no paper")
	}
	return nil
}

// A receiver takes messages and pings, and says what it got: "failures alert", "start".
type receiver struct {
	*httptest.Server
	got chan string

	mu    sync.Mutex
	pings map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: make(chan string, 100), pings: map[string]bool{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if path, ok := strings.CutPrefix(q.URL.Path, "/ping"); ok {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.pings[path] = true
			return
		}
		var m struct{ Event, Kind, Text string }
		if err := json.NewDecoder(q.Body).Decode(&m); err != nil || !strings.HasPrefix(q.Header.Get("Soloist-Signature"), "t=") {
			t.Errorf("got %v, signature %q", err, q.Header.Get("Soloist-Signature"))
		}
		r.got <- m.Kind + " " + m.Event
	}))
	t.Cleanup(r.Close)
	return r
}

// want waits for the next message, and wants it to be this one.
func (r *receiver) want(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-r.got:
		if got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	case <-time.After(90 * time.Second):
		t.Fatalf("no %q in 90 s", want)
	}
}

// Three processes tell once that a job fails, and once that it has succeeded.
func TestAlertOfThreeProcesses(t *testing.T) {
	t.Parallel()
	r, dir := newReceiver(t), t.TempDir()
	file := filepath.Join(dir, "paper")
	var all []process
	for range 3 {
		all = append(all, start(t, "flaky", "SOLOIST_STORAGE=dir:"+filepath.Join(dir, "store"), "SOLOIST_ADDR=127.0.0.1:0", "TEST_FILE="+file, "SOLOIST_GRACE=1s",
			"SOLOIST_ALERT_WEBHOOK="+r.URL+"/hook?key=secret", "SOLOIST_ALERT_SECRET="+key, "SOLOIST_JOB_FLAKY_PING="+r.URL+"/ping"))
	}
	r.want(t, "failures alert")
	must(t, os.WriteFile(file, nil, 0o600))
	r.want(t, "failures recovered")
	for _, p := range all {
		wantEqual(t, "code", p.end(t), 0)
	}
	if len(r.got) > 0 {
		t.Errorf("got %q more", <-r.got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range []string{"/start", "/fail", ""} {
		if !r.pings[path] {
			t.Errorf("got the pings %v, want %q too", r.pings, path)
		}
	}
}

// Without a receiver nothing is written.
func TestNoAlertsNoDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "flaky", "SOLOIST_STORAGE=dir:"+dir, "SOLOIST_ADDR=127.0.0.1:0", "SOLOIST_APP=demo", "TEST_FILE="+filepath.Join(dir, "none"))
	await(t, p.log, "run ended")
	await(t, p.log, "run ended")
	wantEqual(t, "code", p.end(t), 0)
	if all, err := filepath.Glob(filepath.Join(dir, "demo", "*alerts*")); err != nil || len(all) > 0 {
		t.Errorf("got %q, %v", all, err)
	}
}
