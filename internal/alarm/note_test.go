package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/store"
)

// A note that this program does not understand stays as it is, and the alarm is set all the same.
func TestNoteThatCannotBeUsed(t *testing.T) {
	for body, want := range map[string]string{
		"garbage":                  "delete it",
		"{}":                       "delete it",
		`{"schema":2,"app":"app"}`: "update the program",
		`{"schema":1,"app":"other","id":"x","at":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:00:00Z"}`: `"other"`,
		`{"schema":1,"app":"app","id":"x","at":"0001-01-01T00:00:00Z"}`:                                 "delete it",
		strings.Repeat("x", store.MaxDocument):                                                          "delete it",
	} {
		atDesk(t, func(d *desk) {
			if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), "", []byte(body)); err != nil {
				t.Fatal(err)
			}
			d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
			err := d.HandOver(d.t.Context(), d.begin.Add(time.Hour), time.Now())
			if !errors.Is(err, alarm.ErrPending) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "app/.alarm") {
				t.Errorf("%.40q: %v", body, err)
			}
			if all := d.queue.All(); len(all) != 1 || !all[0].Visible.Equal(d.begin.Add(59*time.Minute)) {
				t.Errorf("%.40q: the queue has %+v", body, all)
			}
			if doc, err := d.store.ReadDocument(d.t.Context(), alarm.NoteName("app"), ""); err != nil || string(doc.Body) != body {
				t.Errorf("%.40q: the note was changed to %.80q, %v", body, doc.Body, err)
			}
			if _, err := d.Pending(d.t.Context()); err == nil {
				t.Errorf("%.40q: Pending has no error", body)
			}
		})
	}
}

// A process that cannot use the note knows which message it has put itself. Once the note can be used, it names that one.
func TestAlarmWithoutNoteIsNotRepeated(t *testing.T) {
	atDesk(t, func(d *desk) {
		if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), "", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		only := func(at time.Duration) {
			t.Helper()
			if all := d.queue.All(); len(all) != 1 || !all[0].Visible.Equal(d.begin.Add(at)) {
				t.Errorf("the queue has %+v", all)
			}
		}
		hands := func(due time.Duration) {
			t.Helper()
			if err := d.HandOver(d.t.Context(), d.begin.Add(due), time.Now()); !errors.Is(err, alarm.ErrPending) {
				t.Errorf("got %v", err)
			}
			only(due - time.Minute)
		}
		for range 5 {
			hands(4 * time.Hour)
			time.Sleep(5 * time.Minute)
		}
		hands(2 * time.Hour) // the later one is not needed then
		time.Sleep(2*time.Hour - time.Since(d.begin))
		hands(4 * time.Hour) // one that has come does not count
		doc, _ := d.store.ReadDocument(d.t.Context(), alarm.NoteName("app"), "")
		old := `{"schema":1,"app":"app","id":"x","at":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:00:00Z"}`
		if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), doc.ETag, []byte(old)); err != nil {
			t.Fatal(err)
		}
		d.set(4 * time.Hour)
		d.want(4*time.Hour - time.Minute)
		d.set(3 * time.Hour)
		d.want(3*time.Hour - time.Minute)
	})
}

// An app that gets another queue has its alarm in that one from the next pass on. The message in the queue before is left.
func TestNoteOfAnotherQueue(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.queue.Name = "https://a/before"
		d.set(6 * time.Hour)
		time.Sleep(time.Hour)
		before := d.queue
		after := &alarmtest.Queue{Name: "https://a/after"}
		d.queue, d.Clock.Queue = after, after
		for range 2 {
			d.set(6 * time.Hour)
			d.want(6*time.Hour - time.Minute)
		}
		if n := len(before.All()); n != 1 || fmt.Sprint(after.Counts()) != "map[put:1]" {
			t.Errorf("%d messages are left in the queue before", n)
		}
	})
}

// The note of an older program does not say which queue it is about. It does not suffice once, and its message is deleted.
func TestNoteOfOlderProgram(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(6 * time.Hour)
		d.queue.Name = "https://a/queue"
		for range 2 {
			d.set(6 * time.Hour)
			d.want(6*time.Hour - time.Minute)
		}
		if got := fmt.Sprint(d.queue.Counts()); got != "map[delete:1 put:2]" {
			t.Errorf("calls: %s", got)
		}
	})
}

// slowNotes keeps notes with the delays of a network, and fails some calls.
type slowNotes struct {
	*local.Memory
	mu   sync.Mutex
	dice *rand.Rand
	fail float64
}

func (s *slowNotes) roll() (wait time.Duration, lost, unheard bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(1+s.dice.IntN(100)) * time.Millisecond, s.dice.Float64() < s.fail, s.dice.Float64() < s.fail
}

func (s *slowNotes) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	wait, lost, _ := s.roll()
	time.Sleep(wait)
	if lost {
		return store.Document{}, errors.New("503")
	}
	return s.Memory.ReadDocument(ctx, name, etag)
}

func (s *slowNotes) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	wait, lost, unheard := s.roll()
	time.Sleep(wait)
	if lost {
		return store.Revision{}, errors.New("503")
	}
	r, err := s.Memory.WriteDocument(ctx, name, etag, body)
	time.Sleep(wait)
	if unheard {
		return store.Revision{}, errors.New("the answer was lost")
	}
	return r, err
}
