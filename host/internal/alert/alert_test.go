package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	"github.com/soloist-go/soloist/store"
)

// A world is the records, the store and the receiver that some replicas share.
type world struct {
	t     *testing.T
	store local.Memory
	start time.Time

	mu       sync.Mutex
	slow     time.Duration // of the receiver; set before the replicas start
	all      map[string]soloist.JobStatus
	orders   store.Control
	down     bool            // the receiver answers 503
	got      []alert.Message // that the receiver has confirmed
	killAt   string          // the first replica that comes there dies
	replicas []*replica
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

func newWorld(t *testing.T, replicas int) *world {
	w := &world{t: t, start: time.Now(), all: map[string]soloist.JobStatus{}}
	for i := range replicas {
		w.add(fmt.Sprint("r", i))
	}
	return w
}

// add starts a replica.
func (w *world) add(name string) *replica {
	return w.addWith(name, slog.New(slog.DiscardHandler), nil)
}

// addWith starts a replica with a log, and another way to the receiver if that is not nil.
func (w *world) addWith(name string, log *slog.Logger, way http.RoundTripper) *replica {
	ctx, cancel := context.WithCancel(w.t.Context())
	r := &replica{w: w, dead: make(chan struct{})}
	if way == nil {
		way = r
	}
	r.die = sync.OnceFunc(func() { close(r.dead); cancel() })
	r.Notifier = alert.NewNotifier(alert.Config{App: "demo", Replica: name, Store: r, Failures: 1,
		Webhook: &alert.Webhook{URL: "https://hooks.example/T0/key?sig=secret", Secret: "0123456789abcdef", Client: &http.Client{Transport: way, CheckRedirect: alert.NewClient().CheckRedirect}},
		Look:    r.look, Late: func(string) time.Duration { return time.Minute }, Now: time.Now, Log: log,
		Health:  func() soloist.Health { w.mu.Lock(); defer w.mu.Unlock(); return r.health },
		Control: func(context.Context) (store.Control, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.orders, nil },
		Elapsed: func() time.Duration { return time.Since(w.start) }})
	w.replicas = append(w.replicas, r)
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	w.t.Cleanup(func() { r.die(); all.Wait() })
	return r
}

func (w *world) look(context.Context) (all []soloist.JobStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, st := range w.all {
		all = append(all, st)
	}
	return all
}

func (r *replica) look(ctx context.Context) []soloist.JobStatus {
	all := r.w.look(ctx)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for i := range all {
		if r.blind {
			all[i] = soloist.JobStatus{Name: all[i].Name, Lease: all[i].Lease, Err: errors.New("the record has schema 2")}
		}
	}
	return all
}

// set changes the record of a job.
func (w *world) set(job string, change func(st *soloist.JobStatus)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, ok := w.all[job]
	if !ok {
		st = soloist.JobStatus{Name: job, Lease: store.Available, Record: store.Record{Token: 1, Run: store.Run{Status: store.Succeeded}}}
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
func (w *world) order(job store.JobControl) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.orders.Jobs = map[string]store.JobControl{"report": job}
}

// end adds a run with this end.
func (w *world) end(job string, status store.Status) {
	w.set(job, func(st *soloist.JobStatus) {
		r := &st.Record
		r.Token++
		r.Run = store.Run{Status: status, Error: "no <paper>", Tick: time.Now(), Finished: time.Now()}
		r.History = slices.Insert(slices.Clone(r.History), 0, store.Outcome{Token: r.Token, Status: status, Reason: "no <paper>", Tick: time.Now()})
		r.History = r.History[:min(20, len(r.History))]
		switch status {
		case store.Failed, store.Stalled:
			r.Failures++
		case store.Succeeded:
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
	return r.w.store.WriteDocument(ctx, name, etag, body)
}

func (r *replica) RoundTrip(q *http.Request) (*http.Response, error) {
	if err := r.comes("send"); err != nil {
		return nil, err
	}
	time.Sleep(r.w.slow)
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	body, _ := io.ReadAll(q.Body)
	var at int64
	fmt.Sscanf(q.Header.Get("Soloist-Signature"), "t=%d,", &at)
	if got, want := q.Header.Get("Soloist-Signature"), alert.Signature("0123456789abcdef", at, body); got != want || at == 0 {
		r.w.t.Errorf("got the signature %q, want %q", got, want)
	}
	answer := &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody}
	if r.w.down {
		answer.StatusCode = http.StatusServiceUnavailable
		return answer, nil
	}
	var m alert.Message
	if err := json.Unmarshal(body, &m); err != nil || m.ID != q.Header.Get("Idempotency-Key") {
		r.w.t.Errorf("%s: %v, key %q", body, err, q.Header.Get("Idempotency-Key"))
	}
	r.w.got = append(r.w.got, m)
	return answer, nil
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

func TestFailingJobIsOneIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.want()
		w.end("report", store.Failed)
		time.Sleep(time.Minute) // the first look at it
		for range 42 {
			w.end("report", store.Failed)
			time.Sleep(20 * time.Second)
		}
		w.want("report failures alert")
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.want("report failures alert", "report failures recovered")
		w.end("report", store.Failed)
		time.Sleep(time.Minute)
		w.want("report failures alert", "report failures recovered", "report failures alert")
		if w.got[0].ID == w.got[2].ID || w.got[0].Incident != w.got[1].Incident {
			t.Errorf("got the ids %q, %q and %q of two incidents", w.got[0].ID, w.got[1].ID, w.got[2].ID)
		}
		if got, want := w.got[0].Text, "demo: report has failed: no &lt;paper&gt;"; got != want {
			t.Errorf("got the text %q, want %q", got, want)
		}
	})
}

// A failure that was made good before any replica looked is told all the same.
func TestShortIncidentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.end("report", store.Failed) // before the first look: old news
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.want()
		w.end("report", store.Failed)
		w.end("report", store.Succeeded)
		time.Sleep(2 * time.Minute)
		w.want("report failures alert", "report failures recovered")
	})
}

func TestReceiverThatIsDownGetsEachIncidentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.change(func() { w.down = true })
		var want []string
		for i := range 30 {
			job := fmt.Sprint("job-", i)
			w.end(job, store.Failed)
			want = append(want, job+" failures alert")
		}
		time.Sleep(90 * time.Second)
		w.want()
		w.change(func() { w.down = false })
		time.Sleep(5 * time.Minute)
		w.want(want...)
	})
}

// Wherever the replica that has noticed is killed, another one sends. A message is sent twice
// only if the sender dies before it has noted the send, and then with the same id.
func TestReplicaThatHasNoticedIsKilled(t *testing.T) {
	for _, test := range []struct {
		at    string
		twice bool
	}{{"read", false}, {"claim", false}, {"send", false}, {"note", true}} {
		t.Run(test.at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3)
				w.end("report", store.Failed)
				w.change(func() { w.killAt = test.at })
				time.Sleep(3 * time.Minute)
				want := []string{"report failures alert"}
				if test.twice {
					want = append(want, want[0])
				}
				w.want(want...)
				for _, m := range w.got {
					if m.ID != w.got[0].ID {
						t.Errorf("got the ids %q and %q", w.got[0].ID, m.ID)
					}
				}
				w.end("report", store.Succeeded)
				time.Sleep(time.Minute)
				w.want(append(want, "report failures recovered")...)
			})
		})
	}
}

// While one replica waits for the receiver no other one sends.
func TestSlowReceiverGetsEachMessageOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.slow = 9 * time.Second
		for i := range 10 {
			w.add(fmt.Sprint("r", i))
		}
		w.end("report", store.Failed)
		time.Sleep(3 * time.Minute)
		w.want("report failures alert")
	})
}

// A replica that goes on from an old reading neither ends an incident nor brings it back.
func TestOldReadingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.end("report", store.Succeeded)
		good := w.look(t.Context())[0]
		time.Sleep(time.Minute)
		w.end("report", store.Failed)
		bad := w.look(t.Context())[0]
		time.Sleep(time.Minute)
		w.set("report", func(st *soloist.JobStatus) { *st = good })
		time.Sleep(time.Minute)
		w.want("report failures alert")
		w.set("report", func(st *soloist.JobStatus) { *st = bad })
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.set("report", func(st *soloist.JobStatus) { *st = bad })
		time.Sleep(time.Minute)
		w.want("report failures alert", "report failures recovered")
	})
}

func TestIncidentsOfRecords(t *testing.T) {
	occupied := errors.New("leased by a client that has claimed nothing")
	late := func(st *soloist.JobStatus) { st.Next = time.Now().Add(-2 * time.Minute) }
	for name, test := range map[string]struct {
		begin, end func(w *world)
		want       alert.Kind // empty: it is no incident
	}{
		"stalled":   {func(w *world) { w.stall() }, func(w *world) { w.end("report", store.Succeeded) }, alert.Stalled},
		"abandoned": {func(w *world) { w.end("report", store.Abandoned) }, func(w *world) { w.end("report", store.Succeeded) }, alert.Abandoned},
		"missed":    {func(w *world) { w.end("report", store.Missed) }, func(w *world) {}, ""},
		"unclaimed": {func(w *world) { w.set("report", func(st *soloist.JobStatus) { st.Occupied = occupied }) },
			func(w *world) { w.set("report", func(st *soloist.JobStatus) { st.Occupied = nil }) }, alert.Unclaimed},
		"paused itself": {func(w *world) {
			w.set("report", func(st *soloist.JobStatus) { st.Record.Orders.Paused = store.SelfPause{At: time.Now(), Token: 1} })
		}, func(w *world) {
			w.set("report", func(st *soloist.JobStatus) { st.Record.Orders.Paused = store.SelfPause{} })
		}, alert.Paused},
		"overdue": {func(w *world) { w.set("report", late) }, func(w *world) {
			w.end("report", store.Missed)
			w.set("report", func(st *soloist.JobStatus) { st.Next = time.Time{} })
		}, alert.Overdue},
		"overdue in a pause": {func(w *world) {
			w.set("report", late)
			w.order(store.JobControl{Pause: store.Pause{At: time.Now(), By: "ann"}})
		}, func(w *world) {}, ""},
		"overdue since a pause": {func(w *world) {
			w.set("report", func(st *soloist.JobStatus) { st.Next = time.Now().Add(-time.Hour) })
			w.order(store.JobControl{Resumed: store.Resume{At: time.Now().Add(-2 * time.Minute)}})
		}, func(w *world) { w.set("report", func(st *soloist.JobStatus) { st.Next = time.Time{} }) }, alert.Overdue},
		"running": {func(w *world) {
			w.set("report", late)
			w.set("report", func(st *soloist.JobStatus) { st.Record.Run.Status, st.Lease = store.Running, store.Leased })
		}, func(w *world) {}, ""},
		"unreadable": {func(w *world) {
			w.set("report", late)
			w.set("report", func(st *soloist.JobStatus) { st.Err = fs.ErrPermission })
		}, func(w *world) {
			w.set("report", func(st *soloist.JobStatus) { st.Err, st.Next = nil, time.Time{} })
		}, alert.Unreadable},
		"singleton": {func(w *world) {
			w.set("report", func(st *soloist.JobStatus) { st.Singleton = true })
			w.end("report", store.Abandoned)
		}, func(w *world) {}, ""},
		"of cancelled": {func(w *world) { w.end("report", store.Cancelled) }, func(w *world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3)
				w.end("report", store.Succeeded)
				time.Sleep(time.Minute)
				test.begin(w)
				time.Sleep(2 * time.Minute)
				var want []string
				if test.want != "" {
					want = []string{fmt.Sprintf("report %s alert", test.want)}
				}
				w.want(want...)
				test.end(w)
				time.Sleep(2 * time.Minute)
				if test.want != "" {
					want = append(want, fmt.Sprintf("report %s recovered", test.want))
				}
				w.want(want...)
			})
		})
	}
}

// A record that cannot be read is one incident each time, and none if that is short.
func TestUnreadableRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		unreadable := func(d time.Duration) {
			w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("the record has schema 99") })
			time.Sleep(d)
			w.set("report", func(st *soloist.JobStatus) { st.Err = nil })
			time.Sleep(time.Minute)
		}
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		unreadable(50 * time.Second)
		w.want()
		unreadable(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered")
		if got, want := w.got[0].Text, "cannot be read: the record has schema 99"; !strings.Contains(got, want) {
			t.Errorf("got the text %q, want %q", got, want)
		}
		unreadable(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered", "report unreadable alert", "report unreadable recovered")
		if w.got[0].ID == w.got[2].ID {
			t.Errorf("two incidents have the id %q", w.got[0].ID)
		}
	})
}

// While the store is out of reach that is the incident, and not each record.
func TestUnreadableRecordsInOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].health.Storage = errors.New("no route") })
		w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("no route") })
		time.Sleep(time.Hour)
		w.want("storage alert")
		w.change(func() { w.replicas[0].health.Storage = nil })
		time.Sleep(50 * time.Second)
		w.set("report", func(st *soloist.JobStatus) { st.Err = nil })
		time.Sleep(time.Hour)
		w.want("storage alert", "storage recovered")
	})
}

// A record that a newer program has written can be read by some replicas alone. That is told
// once, and not each time that they look in turn.
func TestRecordThatSomeReplicasCanRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.end("report", store.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].blind = true })
		time.Sleep(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered")
		w.set("report", func(st *soloist.JobStatus) { st.Err = errors.New("the record has schema 99") }) // now none can
		time.Sleep(time.Hour)
		w.want("report unreadable alert", "report unreadable recovered", "report unreadable alert")
	})
}

// A replica that has not noticed yet that a lease is held in vain does not end the incident.
func TestUnclaimedLeaseIsNoticedAtDifferentTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		held := func(st *soloist.JobStatus) { st.Lease, st.Next = store.Leased, time.Now().Add(-10*time.Second) }
		w.set("report", held)
		w.set("report", func(st *soloist.JobStatus) { st.Occupied = errors.New("leased by a client that has claimed nothing") })
		time.Sleep(30 * time.Second)
		w.set("report", func(st *soloist.JobStatus) { st.Occupied = nil })
		time.Sleep(30 * time.Second)
		w.want("report unclaimed alert")
		w.set("report", func(st *soloist.JobStatus) { st.Lease, st.Next = store.Available, time.Time{} })
		time.Sleep(time.Minute)
		w.want("report unclaimed alert", "report unclaimed recovered")
	})
}

// The document has a limit. What does not fit is told when there is room.
func TestManyIncidents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		var first, rest []string
		for i := range 600 {
			job := fmt.Sprintf("job-%03d", i)
			w.end(job, store.Failed)
			first, rest = append(first, job+" failures alert"), append(rest, job+" failures recovered")
		}
		time.Sleep(10 * time.Minute)
		w.mu.Lock()
		got := len(w.got)
		w.mu.Unlock()
		if got != 500 {
			t.Errorf("got %d messages, want 500", got)
		}
		for _, m := range w.got {
			w.end(m.Job, store.Succeeded)
		}
		time.Sleep(20 * time.Minute)
		for _, st := range w.look(t.Context()) {
			if st.Record.Failures > 0 {
				w.end(st.Name, store.Succeeded)
			}
		}
		time.Sleep(20 * time.Minute)
		w.want(append(first, rest...)...)
	})
}

// stall makes the record say that the last run has stalled, and goes on.
func (w *world) stall() {
	w.end("report", store.Stalled)
	w.set("report", func(st *soloist.JobStatus) { st.Record.Run.Finished = time.Time{} })
}

// A tick that is overdue only until the replicas have started is no incident, nor is a
// backlog that is being run.
func TestBacklogIsNotOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		for n := range 60 {
			w.set("report", func(st *soloist.JobStatus) { st.Next = w.start.Add(time.Duration(n-600) * time.Minute) })
			time.Sleep(10 * time.Second)
		}
		w.want()
	})
}

// Nobody can agree on anything while the store is out of reach: each replica tells it.
func TestTroubleOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.replicas[0].Hear(event.Event{Kind: event.Skewed, Skew: time.Hour})
		for _, r := range w.replicas {
			w.change(func() { r.health.Storage = errors.New("no route") })
		}
		time.Sleep(50 * time.Second)
		w.want("clock-skew alert")
		time.Sleep(time.Minute)
		w.want("clock-skew alert", "storage alert", "storage alert")
		if w.got[1].ID == w.got[2].ID {
			t.Errorf("two replicas send %q", w.got[1].ID)
		}
		w.replicas[0].Hear(event.Event{Kind: event.Skewed})
		w.mu.Lock()
		for _, r := range w.replicas {
			r.health.Storage = nil
		}
		w.mu.Unlock()
		time.Sleep(2 * time.Minute)
		w.want("clock-skew alert", "storage alert", "storage alert", "clock-skew recovered", "storage recovered", "storage recovered")
		if _, err := w.store.ReadDocument(t.Context(), "demo/.alerts", ""); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a document without an incident of a job: %v", err)
		}
	})
}

// What another program has written is not overwritten.
func TestForeignDocumentIsLeftAlone(t *testing.T) {
	for _, body := range []string{"{", "[]", `{"schema":2,"app":"demo"}`, `{"schema":1,"app":"other"}`, `{"schema":1,"app":"demo","incidents":[null]}`} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 2)
			before, err := w.store.WriteDocument(t.Context(), "demo/.alerts", "", []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			w.end("report", store.Failed)
			time.Sleep(2 * time.Minute)
			w.want()
			if _, err := w.store.ReadDocument(t.Context(), "demo/.alerts", before.ETag); !errors.Is(err, store.ErrUnchanged) {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}

// After a day without a receiver a message is dropped. The end of what it did not tell is no
// news, and the next incident is.
func TestReceiverThatIsGoneIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		w.replicas[0].Hear(event.Event{Kind: event.Skewed, Skew: time.Hour}) // an incident of this replica alone
		w.change(func() { w.down = true })
		w.end("report", store.Failed)
		w.end("short", store.Failed)
		time.Sleep(time.Hour)
		w.end("short", store.Succeeded) // both its messages wait
		time.Sleep(24 * time.Hour)
		w.change(func() { w.down = false })
		time.Sleep(time.Hour)
		w.want()
		w.end("report", store.Failed)
		time.Sleep(time.Hour)
		w.want()
		w.replicas[0].Hear(event.Event{Kind: event.Skewed})
		w.end("report", store.Succeeded)
		time.Sleep(time.Hour)
		w.want()
		w.end("report", store.Failed)
		time.Sleep(time.Hour)
		w.want("report failures alert")
	})
}
