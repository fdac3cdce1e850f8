package alert_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/internal/alert"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

func TestIncidentsOfRecords(t *testing.T) {
	set := func(change func(st *desk.Status)) func(*world) {
		return func(w *world) { w.set("report", change) }
	}
	ends := func(status event.Status) func(*world) { return func(w *world) { w.end("report", status) } }
	both := func(one, other func(*world)) func(*world) { return func(w *world) { one(w); other(w) } }
	nothing := func(*world) {}
	late := set(func(st *desk.Status) { st.Next = time.Now().Add(-2 * time.Minute) })
	nothingDue := set(func(st *desk.Status) { st.Next = time.Time{} })
	for name, test := range map[string]struct {
		begin, end func(w *world)
		want       alert.Kind // empty: it is no incident
	}{
		"stalled": {both(ends(event.Stalled), set(func(st *desk.Status) { st.Record.Run.Finished = time.Time{} })), // it goes on
			ends(event.Succeeded), alert.Stalled},
		"abandoned": {ends(event.Abandoned), ends(event.Succeeded), alert.Abandoned},
		"missed":    {ends(event.Missed), nothing, ""},
		"cancelled": {ends(event.Cancelled), nothing, ""},
		"singleton": {both(set(func(st *desk.Status) { st.Singleton = true }), ends(event.Abandoned)), nothing, ""},
		"unclaimed": {set(func(st *desk.Status) { st.Occupied = errors.New("leased by a client that has claimed nothing") }),
			set(func(st *desk.Status) { st.Occupied = nil }), alert.Unclaimed},
		"paused itself": {set(func(st *desk.Status) { st.Record.Orders.Paused = record.SelfPause{At: time.Now(), Token: 1} }),
			set(func(st *desk.Status) { st.Record.Orders.Paused = record.SelfPause{} }), alert.Paused},
		"late": {set(func(st *desk.Status) {
			st.Late = record.Late{Since: time.Now(), Tick: time.Now().Add(-time.Hour), Count: 2}
		}), both(ends(event.Succeeded), set(func(st *desk.Status) { st.Late = record.Late{} })), alert.Late},
		"overdue": {late, both(ends(event.Missed), nothingDue), alert.Overdue},
		"overdue in a pause": {both(late, func(w *world) {
			w.order(record.JobControl{Pause: record.Pause{At: time.Now(), By: "ann"}})
		}), nothing, ""},
		"overdue since a pause": {func(w *world) {
			w.set("report", func(st *desk.Status) { st.Next = time.Now().Add(-time.Hour) })
			w.order(record.JobControl{Resumed: record.Resume{At: time.Now().Add(-2 * time.Minute)}})
		}, nothingDue, alert.Overdue},
		"running": {both(late, set(func(st *desk.Status) { st.Record.Run.Status, st.Lease = event.Running, store.Leased })),
			nothing, ""},
		"unreadable": {both(late, set(func(st *desk.Status) { st.Err = fs.ErrPermission })),
			set(func(st *desk.Status) { st.Err, st.Next = nil, time.Time{} }), alert.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				var want []string
				if test.want != "" {
					want = []string{fmt.Sprintf("report %s alert", test.want), fmt.Sprintf("report %s recovered", test.want)}
				}
				w.end("report", event.Succeeded)
				time.Sleep(time.Minute)
				test.begin(w)
				w.after(2*time.Minute, want[:len(want)/2]...)
				test.end(w)
				w.after(2*time.Minute, want...)
			})
		})
	}
}

// A replica that has not noticed yet that a lease is held in vain does not end the incident.
func TestUnclaimedLeaseIsNoticedAtDifferentTimes(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		held := func(st *desk.Status) { st.Lease, st.Next = store.Leased, time.Now().Add(-10*time.Second) }
		w.set("report", held)
		w.set("report", func(st *desk.Status) { st.Occupied = errors.New("leased by a client that has claimed nothing") })
		time.Sleep(30 * time.Second)
		w.set("report", func(st *desk.Status) { st.Occupied = nil })
		w.after(30*time.Second, "report unclaimed alert")
		w.set("report", func(st *desk.Status) { st.Lease, st.Next = store.Available, time.Time{} })
		w.after(time.Minute, "report unclaimed alert", "report unclaimed recovered")
	})
}

// The document has a limit. What does not fit is told when there is room.
func TestManyIncidents(t *testing.T) {
	nightly.Only(t, "takes seconds of CPU")
	inWorld(t, 2, func(w *world) {
		var first, rest []string
		for i := range 600 {
			job := fmt.Sprintf("job-%03d", i)
			w.end(job, event.Failed)
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
			w.end(m.Job, event.Succeeded)
		}
		time.Sleep(20 * time.Minute)
		for _, st := range w.look(w.t.Context()) {
			if st.Record.Failures > 0 {
				w.end(st.Name, event.Succeeded)
			}
		}
		w.after(20*time.Minute, append(first, rest...)...)
	})
}

// A tick that is overdue only until the replicas have started is no incident, nor is a
// backlog that is being run.
func TestBacklogIsNotOverdue(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for n := range 60 {
			w.set("report", func(st *desk.Status) { st.Next = w.start.Add(time.Duration(n-600) * time.Minute) })
			time.Sleep(10 * time.Second)
		}
		w.want()
	})
}

// Nobody can agree on anything while the store is out of reach: each replica tells it.
func TestTroubleOfAReplica(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.replicas[0].Hear(event.Event{Kind: event.Skewed, Skew: time.Hour})
		for _, r := range w.replicas {
			w.change(func() { r.health.Storage = errors.New("no route") })
		}
		w.after(50*time.Second, "clock-skew alert")
		w.after(time.Minute, "clock-skew alert", "storage alert", "storage alert")
		if w.got[1].ID == w.got[2].ID {
			t.Errorf("two replicas send %q", w.got[1].ID)
		}
		w.replicas[0].Hear(event.Event{Kind: event.Skewed})
		for _, r := range w.replicas {
			w.change(func() { r.health.Storage = nil })
		}
		w.after(2*time.Minute, "clock-skew alert", "storage alert", "storage alert", "clock-skew recovered", "storage recovered", "storage recovered")
		if _, err := w.store.ReadDocument(w.t.Context(), "demo/.alerts", ""); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("there is a document without an incident of a job: %v", err)
		}
	})
}

// A record that cannot be read is one incident each time, and none if that is short.
func TestUnreadableRecord(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		unreadable := func(d time.Duration) {
			w.set("report", func(st *desk.Status) { st.Err = errors.New("the record has schema 99") })
			time.Sleep(d)
			w.set("report", func(st *desk.Status) { st.Err = nil })
			time.Sleep(time.Minute)
		}
		w.end("report", event.Succeeded)
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
	inWorld(t, 1, func(w *world) {
		w.end("report", event.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].health.Storage = errors.New("no route") })
		w.set("report", func(st *desk.Status) { st.Err = errors.New("no route") })
		w.after(time.Hour, "storage alert")
		w.change(func() { w.replicas[0].health.Storage = nil })
		time.Sleep(50 * time.Second)
		w.set("report", func(st *desk.Status) { st.Err = nil })
		w.after(time.Hour, "storage alert", "storage recovered")
	})
}

// A record that a newer program has written can be read by some replicas alone. That is told once, and not each time that they look
// in turn. They write to each other only meanwhile, and seldom. When none of those is left the job does not run, which is an
// incident of its own.
func TestRecordThatSomeReplicasCanRead(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		wantWrites := func(least, most int) {
			t.Helper()
			w.change(func() { w.writes = 0 })
			time.Sleep(24 * time.Hour)
			w.change(func() {
				if w.writes < least || w.writes > most {
					t.Errorf("%d writes in a day, want %d to %d", w.writes, least, most)
				}
			})
		}
		w.end("report", event.Succeeded)
		time.Sleep(time.Minute)
		w.change(func() { w.replicas[0].blind = true })
		want := []string{"report unreadable alert", "report unreadable recovered"}
		w.after(time.Hour, want...)
		wantWrites(24*2, 24*60/5*2) // at most two each five minutes
		w.want(want...)
		w.replicas[1].die()
		w.after(time.Hour, want...) // one can read it still
		w.replicas[2].die()
		w.after(10*time.Minute, append(want, "report unreadable alert")...)
		w.after(48*time.Hour, append(want, "report unreadable alert")...)
		if len(w.got) < 3 {
			t.FailNow()
		}
		if w.got[0].ID == w.got[2].ID || !w.got[2].Since.After(w.got[1].Over) {
			t.Errorf("two incidents: got the ids %q and %q, since %s and %s", w.got[0].ID, w.got[2].ID, w.got[0].Since, w.got[2].Since)
		}
		w.add("r3")
		w.after(time.Hour, slices.Repeat(want, 2)...)
		w.change(func() { w.replicas[0].blind = false })
		time.Sleep(10 * time.Minute)
		wantWrites(0, 0) // all is well
	})
}
