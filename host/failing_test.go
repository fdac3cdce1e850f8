package host_test

import (
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
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
)

// A member is a replica that serves in virtual time.
type member struct {
	piped
	stop func()
	code <-chan int
}

func join(t *testing.T, name string, p host.Program) (m member) {
	t.Helper()
	t.Setenv("CONTAINER_APP_REPLICA_NAME", name)
	m.piped, p.Stdout = newPiped(), io.Discard
	m.stop, m.code = serveOn(t, p, m.piped)
	time.Sleep(time.Second) // it has read its environment
	return m
}

// wants checks API and metrics of one replica. trouble is how many jobs are red.
func (m member) wants(t *testing.T, state string, failures, trouble int) {
	t.Helper()
	wantAnswer(t, "list", m.get(t, "/api/v1/jobs"), 200, fmt.Sprintf(`"trouble":%d`, trouble), `"state":"`+state+`"`)
	wantAnswer(t, "red jobs", m.get(t, "/api/v1/jobs?trouble=true"), 200, fmt.Sprintf(`"matched":%d`, trouble))
	wantAnswer(t, "metrics", m.get(t, "/metrics"), 200, fmt.Sprintf("\nsoloist_job_failures{job_name=\"report\"} %d\n", failures))
}

// A job that fails 43 times in a row is red everywhere, whichever replica is asked, and one alert is sent. After a success all
// is green again, and one message says so.
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
		var all []member
		for _, name := range []string{"replica-a", "replica-b", "replica-c"} {
			all = append(all, join(t, name, p))
		}
		for runs.Load() < 43 {
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		for _, m := range all {
			m.wants(t, "failing", 43, 1)
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
			m.wants(t, "idle", 0, 0)
		}
		wantEqual(t, "the alerts", got.all(), []string{"failures alert", "failures recovered"})
		wantLines(t, p, "status", 0, "  idle  ", "succeeded")
		time.Sleep(time.Hour)
		for _, m := range all {
			m.wants(t, "idle", 0, 0)
			m.stop()
			wantCode(t, <-m.code, 0)
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
