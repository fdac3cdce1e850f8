package alarm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/store"
)

// unwritable has a document that can be read alone: somebody has a lease on it.
type unwritable struct{ store.Documenter }

func (unwritable) WriteDocument(context.Context, string, string, []byte) (store.Revision, error) {
	return store.Revision{}, errors.New("412: there is a lease")
}

// A process that cannot write the note puts its message again at each hand-over, and deletes the one before.
func TestNoteThatCannotBeWritten(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.Notes = unwritable{d.store}
		for range 48 {
			if err := d.HandOver(d.t.Context(), d.begin.Add(24*time.Hour), time.Now()); !errors.Is(err, alarm.ErrPending) {
				t.Error(err)
			}
			if n := len(d.queue.All()); n != 1 {
				t.Fatalf("%d messages", n)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// Nor does a process that cannot use the note forget its message when the queue fails.
func TestMessageWithoutNoteIsKeptThroughOutage(t *testing.T) {
	atDesk(t, func(d *desk) {
		if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), "", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			outage := i%2 == 1
			d.queue.Meet = func(c alarmtest.Call) (f alarmtest.Fate) {
				if outage && c.Op == "put" {
					f.Err = errors.New("503")
				}
				return f
			}
			if err := d.HandOver(d.t.Context(), d.begin.Add(24*time.Hour), time.Now()); err == nil || errors.Is(err, alarm.ErrPending) == outage {
				t.Errorf("%d: %v", i, err)
			}
			if n := len(d.queue.All()); n != 1 {
				t.Fatalf("%d: %d messages", i, n)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}
