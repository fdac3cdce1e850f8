package alert_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A world is the records, the store and the receiver that some replicas share.
type world struct {
	t     *testing.T
	store local.Memory
	start time.Time

	mu       sync.Mutex
	slow     time.Duration // of the receiver; set before the replicas start
	all      map[string]desk.Status
	orders   record.Control
	down     bool            // the receiver answers 503
	got      []alert.Message // that the receiver has confirmed
	killAt   string          // the first replica that comes there dies
	replicas []*replica
	writes   int           // of the document
	ahead    time.Duration // of the replicas' wall clocks

	way    http.RoundTripper // to the receiver, for replicas that start from now on; nil: their own
	log    *slog.Logger      // of all replicas
	logged strings.Builder   // what it has
}

// A replica is one Notifier, and its way to the store and the receiver.
type replica struct {
	*alert.Notifier
	w      *world
	dead   chan struct{}
	die    func()
	health soloist.Health
	blind  bool // it cannot read the records, though others can
}

// inWorld runs f in a bubble of virtual time, with so many replicas.
func inWorld(t *testing.T, replicas int, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, start: time.Now(), all: map[string]desk.Status{}}
		w.log = slog.New(slog.NewTextHandler(&w.logged, nil))
		for i := range replicas {
			w.add(fmt.Sprint("r", i))
		}
		f(w)
	})
}

// add starts a replica.
func (w *world) add(name string) *replica {
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &replica{w: w, dead: make(chan struct{})}
	way := w.way
	if way == nil {
		way = r
	}
	r.die = sync.OnceFunc(func() { close(r.dead); cancel() })
	r.Notifier = alert.NewNotifier(alert.Config{App: "demo", Replica: name, Store: r, Failures: 1,
		Webhook: &alert.Webhook{URL: "https://hooks.example/T0/key?sig=secret", Secret: "0123456789abcdef", Client: &http.Client{Transport: way, CheckRedirect: alert.NewClient().CheckRedirect}},
		Look:    r.look, Late: func(string) time.Duration { return time.Minute }, Log: w.log,
		Now:     func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return time.Now().Add(w.ahead) },
		Health:  func() soloist.Health { w.mu.Lock(); defer w.mu.Unlock(); return r.health },
		Control: func(context.Context) (record.Control, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.orders, nil },
		Elapsed: func() time.Duration { return time.Since(w.start) }})
	w.replicas = append(w.replicas, r)
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	w.t.Cleanup(func() { r.die(); all.Wait() })
	return r
}

func (w *world) look(context.Context) (all []desk.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.all {
		all = append(all, st)
	}
	return all
}

func (r *replica) look(ctx context.Context) []desk.Status {
	all := r.w.look(ctx)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for i := range all {
		if r.blind {
			all[i] = desk.Status{Name: all[i].Name, Lease: all[i].Lease, Err: errors.New("the record has schema 2")}
		}
	}
	return all
}

// set changes the record of a job.
func (w *world) set(job string, change func(st *desk.Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, ok := w.all[job]
	if !ok {
		st = desk.Status{Name: job, Lease: store.Available, Record: record.Record{Token: 1, Run: record.Run{Status: event.Succeeded}}}
	}
	change(&st)
	w.all[job] = st
}

// change changes a field under the lock.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// order changes what operators have ordered.
func (w *world) order(job record.JobControl) {
	w.change(func() { w.orders.Jobs = map[string]record.JobControl{"report": job} })
}

// end adds a run with this end.
func (w *world) end(job string, status event.Status) {
	w.set(job, func(st *desk.Status) {
		r := &st.Record
		r.Token++
		r.Run = record.Run{Status: status, Error: "no <paper>", Tick: time.Now(), Finished: time.Now()}
		r.History = slices.Insert(slices.Clone(r.History), 0, event.Outcome{Token: r.Token, Status: status, Reason: "no <paper>", Tick: time.Now()})
		r.History = r.History[:min(20, len(r.History))]
		switch status {
		case event.Failed, event.Stalled:
			r.Failures++
		case event.Succeeded:
			r.Failures = 0
		}
	})
}

// comes kills the replica at a point of its way, if it is the first one there.
func (r *replica) comes(point string) error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.killAt == point {
		r.w.killAt = ""
		r.die()
	}
	select {
	case <-r.dead:
		return errors.New("this replica was killed")
	default:
		return nil
	}
}

func (r *replica) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	if err := r.comes("read"); err != nil {
		return store.Document{}, err
	}
	if name != "demo/.alerts" {
		r.w.t.Errorf("read of %s", name)
	}
	return r.w.store.ReadDocument(ctx, name, etag)
}

func (r *replica) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	point := "claim"
	if strings.Contains(string(body), `"alerted"`) {
		point = "note"
	}
	if err := r.comes(point); err != nil {
		return store.Revision{}, err
	}
	r.w.change(func() { r.w.writes++ })
	return r.w.store.WriteDocument(ctx, name, etag, body)
}

func (r *replica) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := r.comes("send"); err != nil {
		return nil, err
	}
	body, _ := io.ReadAll(q.Body)
	mac := hmac.New(sha256.New, []byte("0123456789abcdef"))
	fmt.Fprintf(mac, "%d.%s", time.Now().Unix(), body)
	if got, want := q.Header.Get("Soloist-Signature"), fmt.Sprintf("t=%d,v1=%x", time.Now().Unix(), mac.Sum(nil)); got != want {
		r.w.t.Errorf("got the signature %q, want %q", got, want)
	}
	time.Sleep(r.w.slow)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	if r.w.down {
		return answered(http.StatusServiceUnavailable), nil
	}
	var m alert.Message
	if err := json.Unmarshal(body, &m); err != nil || m.ID != q.Header.Get("Idempotency-Key") {
		r.w.t.Errorf("%s: %v, key %q", body, err, q.Header.Get("Idempotency-Key"))
	}
	r.w.got = append(r.w.got, m)
	return answered(http.StatusNoContent), nil
}

// after waits, and checks what the receiver got so far.
func (w *world) after(d time.Duration, want ...string) {
	w.t.Helper()
	time.Sleep(d)
	w.want(want...)
}

// logs ends all replicas, and returns what they have logged.
func (w *world) logs() string {
	for _, r := range w.replicas {
		r.die()
	}
	synctest.Wait()
	return w.logged.String()
}

// want compares what the receiver got so far, in any order, as "job kind event".
func (w *world) want(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := []string{}
	for _, m := range w.got {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", m.Job, m.Kind, m.Event)))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("after %s the receiver has got\n%q, want\n%q", time.Since(w.start), got, want)
	}
}
