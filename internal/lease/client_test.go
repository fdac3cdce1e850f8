package lease

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An answering store answers each read and each creation in the same way.
type answering struct {
	store.Store
	date time.Time
	err  error
}

func (a answering) Read(context.Context, string) (store.Entry, error) {
	return store.Entry{Revision: store.Revision{ETag: "1", Date: a.date}}, a.err
}

func (a answering) Create(ctx context.Context, name string, _ []byte) (store.Entry, error) {
	return a.Read(ctx, name)
}

// An error may be the answer of something other than the store, with a clock of its own.
func TestErrorTellsNoTime(t *testing.T) {
	tests := []struct {
		err          error
		read, create bool // whether its date counts
	}{
		{nil, true, true},
		{fs.ErrNotExist, true, false},
		{fs.ErrExist, false, false},
		{fs.ErrPermission, false, false},
		{errors.New("503"), false, false},
		{context.DeadlineExceeded, false, false},
	}
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range tests {
			for call, want := range map[string]bool{"read": tt.read, "create": tt.create} {
				clock := &Clock{Wall: time.Now, Elapsed: elapsed.Now}
				c := &Client{Store: answering{date: time.Now().Add(time.Hour), err: tt.err}, Length: time.Minute, Clock: clock}
				if call == "read" {
					c.Read(t.Context())
				} else {
					c.Create(t.Context(), nil)
				}
				if got := !clock.Now().Latest.IsZero(); got != want {
					t.Errorf("%s, %v: the date counts: %t, want %t", call, tt.err, got, want)
				}
			}
		}
	})
}

// A replica that follows a run which beats waits for the answer to its first call no longer than a third of the beat, half a
// second at least, and never longer than any call may take.
func TestHaste(t *testing.T) {
	c := &Client{Length: 15 * time.Second}
	for beat, want := range map[time.Duration]time.Duration{
		0:                2500 * time.Millisecond,
		time.Second:      500 * time.Millisecond,
		3 * time.Second:  time.Second,
		14 * time.Second: 2500 * time.Millisecond,
	} {
		rec := &record.Record{Token: 7, Beat: record.Beat{Token: 7, Length: record.Seconds(beat)}, Run: record.Run{Status: event.Running}}
		if got := c.Haste(rec); got != want {
			t.Errorf("a beat of %s: %s, want %s", beat, got, want)
		}
		if got := c.InHaste(rec).Hasty; got != want%c.CallTimeout() {
			t.Errorf("a beat of %s: the first read has %s", beat, got)
		}
		if rec.Run.Status = event.Succeeded; c.Haste(rec) != c.CallTimeout() || c.InHaste(rec) != c {
			t.Errorf("a beat of %s: in haste after the end of the run", beat)
		}
	}
}
