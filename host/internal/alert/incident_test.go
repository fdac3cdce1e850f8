package alert_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

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
		"late": {func(w *world) {
			w.set("report", func(st *soloist.JobStatus) {
				st.Late = store.Late{Since: time.Now(), Tick: time.Now().Add(-time.Hour), Count: 2}
			})
		}, func(w *world) {
			w.end("report", store.Succeeded)
			w.set("report", func(st *soloist.JobStatus) { st.Late = store.Late{} })
		}, alert.Late},
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
	nightly.Only(t, "takes seconds of CPU")
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
