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
			d.write(body, "")
			d.old("old")
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
		d.write("garbage", "")
		hands := func(due time.Duration) {
			t.Helper()
			if err := d.HandOver(d.t.Context(), d.begin.Add(due), time.Now()); !errors.Is(err, alarm.ErrPending) {
				t.Errorf("got %v", err)
			}
			if all := d.queue.All(); len(all) != 1 || !all[0].Visible.Equal(d.begin.Add(due-time.Minute)) {
				t.Errorf("the queue has %+v", all)
			}
		}
		for range 5 {
			hands(4 * time.Hour)
			time.Sleep(5 * time.Minute)
		}
		hands(2 * time.Hour) // the later one is not needed then
		time.Sleep(2*time.Hour - time.Since(d.begin))
		hands(4 * time.Hour) // one that has come does not count
		doc, _ := d.store.ReadDocument(d.t.Context(), alarm.NoteName("app"), "")
		d.write(`{"schema":1,"app":"app","id":"x","at":"2000-01-01T00:00:00Z","tick":"2000-01-01T00:00:00Z"}`, doc.ETag)
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

// slowNotes keeps notes with the delays of a network, and fails some calls.
type slowNotes struct {
	*local.Memory
	mu   sync.Mutex
	dice *rand.Rand
	fail float64
}

// call makes a call that may be lost before it is applied, or its answer after that.
func (s *slowNotes) call(do func() error) error {
	s.mu.Lock()
	wait, lost, unheard := time.Duration(1+s.dice.IntN(100))*time.Millisecond, s.dice.Float64() < s.fail, s.dice.Float64() < s.fail
	s.mu.Unlock()
	time.Sleep(wait)
	if lost {
		return errors.New("503")
	}
	err := do()
	time.Sleep(wait)
	if unheard {
		return errors.New("the answer was lost")
	}
	return err
}

func (s *slowNotes) ReadDocument(ctx context.Context, name, etag string) (d store.Document, err error) {
	err = s.call(func() (err error) { d, err = s.Memory.ReadDocument(ctx, name, etag); return err })
	return d, err
}

func (s *slowNotes) WriteDocument(ctx context.Context, name, etag string, body []byte) (r store.Revision, err error) {
	err = s.call(func() (err error) { r, err = s.Memory.WriteDocument(ctx, name, etag, body); return err })
	return r, err
}

// unwritable has a document that can be read alone: somebody has a lease on it, or, without an error, something else
// answers the writes. If it is deaf, only the answers are lost.
type unwritable struct {
	store.Documenter
	deaf bool
	err  error
}

var errLeased = errors.New("412: there is a lease")

func (u unwritable) WriteDocument(ctx context.Context, name, etag string, body []byte) (store.Revision, error) {
	if u.deaf {
		_, _ = u.Documenter.WriteDocument(ctx, name, etag, body)
	}
	return store.Revision{}, u.err
}

// A note that was written counts though the answer was lost: the message before is deleted.
func TestNoteWhoseAnswerIsLost(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(2 * time.Hour)
		d.Notes = unwritable{d.store, true, errLeased}
		d.set(time.Hour)
		d.want(time.Hour - time.Minute)
	})
}

// A process that cannot use the note puts its message again at each hand-over, and deletes the one before. It does not forget its
// message when the queue fails.
func TestMessageWithoutNoteIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		unusable func(d *desk)
		outage   func(i int) bool // of the queue at a hand-over
	}{
		"which cannot be written":  {func(d *desk) { d.Notes = unwritable{d.store, false, errLeased} }, func(int) bool { return false }},
		"not written by the store": {func(d *desk) { d.Notes = unwritable{d.store, false, nil} }, func(int) bool { return false }},
		"which is garbage, outage": {func(d *desk) { d.write("garbage", "") }, func(i int) bool { return i%2 == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				test.unusable(d)
				for i := range 48 {
					d.fail("put", errors.New("503"), func() bool { return test.outage(i) })
					err := d.HandOver(d.t.Context(), d.begin.Add(24*time.Hour), time.Now())
					if err == nil || errors.Is(err, alarm.ErrPending) == test.outage(i) {
						t.Errorf("%d: %v", i, err)
					}
					if n := len(d.queue.All()); n != 1 {
						t.Fatalf("%d: %d messages", i, n)
					}
					time.Sleep(5 * time.Minute)
				}
			})
		})
	}
}

// The new message is put before the old one is deleted. One that was put since the pass began stays.
func TestHandOverPutsNewBeforeOld(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(time.Hour)
		time.Sleep(time.Hour - time.Minute + 10*time.Second)
		var order []string
		d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
			order = append(order, c.Op)
			return alarmtest.Fate{}
		}
		began := time.Now()
		time.Sleep(3 * time.Second)
		if err := d.Ring(d.t.Context()); err != nil {
			t.Fatal(err)
		}
		order = nil
		d.handOver(2*time.Hour, began)
		if got := fmt.Sprint(order); got != "[put receive delete receive]" {
			t.Errorf("the calls were %s", got)
		}
		ring := time.Since(d.begin) + 5*time.Second // it is hidden for a moment
		d.want(ring, 2*time.Hour-time.Minute)
		time.Sleep(20 * time.Second)
		d.handOver(2*time.Hour, time.Now())
		d.want(2*time.Hour - time.Minute)
	})
}

// Who hands over goes, or looks again much later, so nothing may rest on a message that somebody has deleted. It is put again for
// its time, and the one before is deleted.
func TestHandOverPutsAgainWhatWasLost(t *testing.T) {
	for name, do := range map[string]func(d *desk, due time.Duration){
		"hand-over": func(d *desk, due time.Duration) { d.handOver(due, time.Now()) },
		"renewal": func(d *desk, due time.Duration) {
			if err := d.Renew(d.t.Context(), d.begin.Add(due)); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				d.set(6 * time.Hour)
				d.empty()
				for range 20 {
					time.Sleep(time.Minute + 300*time.Millisecond)
					do(d, 6*time.Hour)
					if n := len(d.queue.All()); n != 1 || d.begin.Add(6*time.Hour-time.Minute).Sub(d.queue.First()).Truncate(time.Second) != 0 {
						t.Fatalf("got the messages %+v", d.queue.All())
					}
					if n, at := d.pending(), d.begin.Add(6*time.Hour-time.Minute); !d.has(n) || !n.At.Equal(at) {
						t.Fatalf("the note is %+v, want one for %s", n, at)
					}
				}
				do(d, 7*time.Hour) // somebody else has wanted a replica earlier
				if first := d.queue.First().Sub(d.begin).Round(time.Second); len(d.queue.All()) != 1 || first > 6*time.Hour-time.Minute {
					t.Errorf("got the messages %+v", d.queue.All())
				}
			})
		})
	}
}
