package alert_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

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
