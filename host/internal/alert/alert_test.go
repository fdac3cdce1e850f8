package alert_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/desk"
	"github.com/soloist-go/soloist/store"
)

func TestFailingJobIsOneIncident(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.end("report", event.Succeeded)
		w.after(time.Minute)
		w.end("report", event.Failed)
		time.Sleep(time.Minute) // the first look at it
		for range 42 {
			w.end("report", event.Failed)
			time.Sleep(20 * time.Second)
		}
		w.want("report failures alert")
		w.end("report", event.Succeeded)
		w.after(time.Minute, "report failures alert", "report failures recovered")
		w.end("report", event.Failed)
		w.after(time.Minute, "report failures alert", "report failures recovered", "report failures alert")
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
	inWorld(t, 3, func(w *world) {
		w.end("report", event.Failed) // before the first look: old news
		w.end("report", event.Succeeded)
		w.after(time.Minute)
		w.end("report", event.Failed)
		w.end("report", event.Succeeded)
		w.after(2*time.Minute, "report failures alert", "report failures recovered")
	})
}

func TestReceiverThatIsDownGetsEachIncidentOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.change(func() { w.down = true })
		var want []string
		for i := range 30 {
			job := fmt.Sprint("job-", i)
			w.end(job, event.Failed)
			want = append(want, job+" failures alert")
		}
		w.after(90 * time.Second)
		w.change(func() { w.down = false })
		w.after(5*time.Minute, want...)
	})
}

// Wherever the replica that has noticed is killed, another one sends. A message is sent twice
// only if the sender dies before it has noted the send, and then with the same id.
func TestReplicaThatHasNoticedIsKilled(t *testing.T) {
	for at, times := range map[string]int{"read": 1, "claim": 1, "send": 1, "note": 2} {
		t.Run(at, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.end("report", event.Failed)
				w.change(func() { w.killAt = at })
				want := slices.Repeat([]string{"report failures alert"}, times)
				w.after(3*time.Minute, want...)
				for _, m := range w.got {
					if m.ID != w.got[0].ID {
						t.Errorf("got the ids %q and %q", w.got[0].ID, m.ID)
					}
				}
				w.end("report", event.Succeeded)
				w.after(time.Minute, append(want, "report failures recovered")...)
			})
		})
	}
}

// While one replica waits for the receiver no other one sends.
func TestSlowReceiverGetsEachMessageOnce(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.slow = 9 * time.Second
		for i := range 10 {
			w.add(fmt.Sprint("r", i))
		}
		w.end("report", event.Failed)
		w.after(3*time.Minute, "report failures alert")
	})
}

// A replica that goes on from an old reading neither ends an incident nor brings it back.
func TestOldReadingChangesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.end("report", event.Succeeded)
		good := w.look(w.t.Context())[0]
		time.Sleep(time.Minute)
		w.end("report", event.Failed)
		bad := w.look(w.t.Context())[0]
		time.Sleep(time.Minute)
		w.set("report", func(st *desk.Status) { *st = good })
		w.after(time.Minute, "report failures alert")
		w.set("report", func(st *desk.Status) { *st = bad })
		w.end("report", event.Succeeded)
		time.Sleep(time.Minute)
		w.set("report", func(st *desk.Status) { *st = bad })
		w.after(time.Minute, "report failures alert", "report failures recovered")
	})
}

// What another program has written is not overwritten.
func TestForeignDocumentIsLeftAlone(t *testing.T) {
	for _, body := range []string{"{", "[]", `{"schema":2,"app":"demo"}`, `{"schema":1,"app":"other"}`, `{"schema":1,"app":"demo","incidents":[null]}`} {
		inWorld(t, 2, func(w *world) {
			before, err := w.store.WriteDocument(w.t.Context(), "demo/.alerts", "", []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			w.end("report", event.Failed)
			w.after(2 * time.Minute)
			if _, err := w.store.ReadDocument(w.t.Context(), "demo/.alerts", before.ETag); !errors.Is(err, store.ErrUnchanged) {
				t.Errorf("%s: %v", body, err)
			}
		})
	}
}

// After a day without a receiver a message is dropped. The end of what it did not tell is no
// news, and the next incident is.
func TestReceiverThatIsGoneIsGivenUp(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.replicas[0].Hear(event.Event{Kind: event.Skewed, Skew: time.Hour}) // an incident of this replica alone
		w.change(func() { w.down = true })
		w.end("report", event.Failed)
		w.end("short", event.Failed)
		time.Sleep(time.Hour)
		w.end("short", event.Succeeded) // both its messages wait
		time.Sleep(24 * time.Hour)
		w.change(func() { w.down = false })
		w.after(time.Hour)
		w.end("report", event.Failed)
		w.after(time.Hour)
		w.replicas[0].Hear(event.Event{Kind: event.Skewed})
		w.end("report", event.Succeeded)
		w.after(time.Hour)
		w.end("report", event.Failed)
		w.after(time.Hour, "report failures alert")
		given := regexp.MustCompile("is not sent any more.*demo/clock-skew/r0/").FindAllString(w.logs(), -1)
		if len(given) != 1 {
			t.Errorf("the log says %q, want once that the message about the replica is given up", given)
		}
	})
}

// The document remembers each job that ever had an incident. When that is too much for it, it
// forgets some, and alerts go on. What the replicas have told is not told again.
func TestFullDocumentForgets(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		closed, size := map[string]int64{}, 0
		for size < store.MaxDocument-1500 { // of later versions than those of the test, so these stay
			job := fmt.Sprintf("job-%04d-%s/failures", len(closed), strings.Repeat("x", 900))
			closed[job], size = 4*1763827200000000, size+len(job)+len(`"":7055308800000000,`)
		}
		body, err := json.Marshal(map[string]any{"schema": 1, "app": "demo", "closed": closed})
		if err == nil {
			_, err = w.store.WriteDocument(w.t.Context(), "demo/.alerts", "", body)
		}
		if err != nil || len(body) < store.MaxDocument-3000 {
			t.Fatal(len(body), err)
		}
		w.add("r0")
		w.add("r1")
		var want []string
		for i := range 30 {
			job := fmt.Sprintf("failed-%02d-%s", i, strings.Repeat("y", 80))
			w.end(job, event.Succeeded)
			want = append(want, job+" failures alert", job+" failures recovered")
		}
		time.Sleep(time.Minute)
		for i := range 30 {
			job := fmt.Sprintf("failed-%02d-%s", i, strings.Repeat("y", 80))
			w.end(job, event.Failed)
			time.Sleep(20 * time.Second)
			w.end(job, event.Succeeded)
			time.Sleep(10 * time.Second)
		}
		w.after(10*time.Minute, want...)
		if d, err := w.store.ReadDocument(w.t.Context(), "demo/.alerts", ""); err != nil || len(d.Body) > store.MaxDocument*3/4 {
			t.Errorf("the document has %d bytes, %v, want about half of %d", len(d.Body), err, store.MaxDocument)
		}
		w.add("r2") // it knows only what the document has
		w.after(10*time.Minute, want...)
	})
}

// Messages about a replica's clock wait by elapsed time: that clock may leap.
func TestMessageAboutAClockThatLeaps(t *testing.T) {
	for what, ahead := range map[string][2]time.Duration{
		"put right":       {48 * time.Hour, 0},
		"ahead since":     {0, 48 * time.Hour},
		"behind, further": {-time.Hour, -48 * time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				w.ahead, w.down = ahead[0], true
				w.add("r0").Hear(event.Event{Kind: event.Skewed, Skew: time.Hour})
				time.Sleep(30 * time.Second) // the receiver has not taken it
				w.change(func() { w.ahead = ahead[1] })
				time.Sleep(time.Minute)
				w.change(func() { w.down = false })
				w.after(3*time.Minute, "clock-skew alert")
				w.replicas[0].Hear(event.Event{Kind: event.Skewed})
				w.after(3*time.Minute, "clock-skew alert", "clock-skew recovered")
				if len(w.got) != 2 {
					return
				}
				for _, m := range w.got { // they tell times by the clock as it is when they are sent
					if d := m.Since.Sub(w.start.Add(ahead[1])); d < 0 || d > 30*time.Second {
						t.Errorf("%s: since %s, want about %s", m.Event, m.Since, w.start.Add(ahead[1]))
					}
				}
				if took := w.got[1].Over.Sub(w.got[1].Since); took < 4*time.Minute || took > 6*time.Minute {
					t.Errorf("over after %s", took)
				}
			})
		})
	}
}
