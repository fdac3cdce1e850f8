package alarm_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

// A desk is a clock over a queue and notes in memory, in virtual time.
type desk struct {
	*alarm.Clock
	t     *testing.T
	queue *alarmtest.Queue
	store *local.Memory
	log   bytes.Buffer
	begin time.Time
}

// atDesk runs f in a bubble of virtual time.
func atDesk(t *testing.T, f func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{t: t, queue: &alarmtest.Queue{}, store: &local.Memory{}, begin: time.Now()}
		d.Clock = d.clock(0)
		f(d)
	})
}

// clock returns the clock of a replica whose time is off by some.
func (d *desk) clock(skew time.Duration) *alarm.Clock {
	return &alarm.Clock{App: "app", Queue: d.queue, Notes: d.store, Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Now: func() time.Time { return time.Now().Add(skew) }}
}

func (d *desk) set(due time.Duration) {
	d.t.Helper()
	if err := d.Set(d.t.Context(), d.begin.Add(due)); err != nil {
		d.t.Errorf("Set: %v", err)
	}
}

func (d *desk) handOver(due time.Duration, began time.Time) {
	d.t.Helper()
	if err := d.HandOver(d.t.Context(), d.begin.Add(due), began); err != nil {
		d.t.Errorf("HandOver: %v", err)
	}
}

// want checks when the messages in the queue become visible, and that the note names the first of those to come.
func (d *desk) want(visible ...time.Duration) {
	d.t.Helper()
	var got []time.Duration
	for _, m := range d.queue.All() {
		got = append(got, m.Visible.Sub(d.begin))
	}
	if fmt.Sprint(got) != fmt.Sprint(visible) {
		d.t.Errorf("messages are visible at %v, want %v", got, visible)
	}
	if n := d.pending(); len(visible) > 0 && !d.has(n) {
		d.t.Errorf("the note %+v names no message", n)
	}
}

// pending returns the note.
func (d *desk) pending() alarm.Note {
	d.t.Helper()
	n, err := d.Pending(d.t.Context())
	if err != nil {
		d.t.Errorf("Pending: %v", err)
	}
	return n
}

// write writes the document of the note, over that with the ETag.
func (d *desk) write(body, etag string) {
	d.t.Helper()
	if _, err := d.store.WriteDocument(d.t.Context(), alarm.NoteName("app"), etag, []byte(body)); err != nil {
		d.t.Fatal(err)
	}
}

// clear has a clock clear the queue, and checks whether it leaves something.
func (d *desk) clear(c *alarm.Clock, left bool) {
	d.t.Helper()
	n, err := c.Clear(d.t.Context(), time.Now())
	if is := len(d.queue.All()) == 1; err != nil || is != left || (n == 0) != left {
		d.t.Errorf("left %v, want %v; %d deleted, %v", is, left, n, err)
	}
}

// receive takes the message that is visible.
func (d *desk) receive(hide time.Duration) alarm.Message {
	d.t.Helper()
	got, err := d.queue.Receive(d.t.Context(), 1, hide)
	if err != nil || len(got) != 1 {
		d.t.Fatalf("got %+v, %v", got, err)
	}
	return got[0]
}

// fail has calls of an operation fail, or all if that is empty, as long as a function says so.
func (d *desk) fail(op string, err error, fails func() bool) {
	d.queue.Meet = func(c alarmtest.Call) (f alarmtest.Fate) {
		if (op == "" || c.Op == op) && fails() {
			f.Err = err
		}
		return f
	}
}

// old puts a message that has been visible for an hour.
func (d *desk) old(body string) {
	d.queue.Add(body, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
}

func (d *desk) has(n alarm.Note) bool {
	for _, m := range d.queue.All() {
		if strings.Contains(string(m.Body), n.ID) && n.ID != "" {
			return true
		}
	}
	return false
}

// empty has somebody empty the queue.
func (d *desk) empty() {
	for _, m := range d.queue.All() {
		_ = d.queue.Delete(d.t.Context(), m.Receipt)
	}
}
