package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
	"github.com/soloist-go/soloist/store"
)

// The fates of the call that a trial is about.
const (
	killBefore = "killed before"
	killAfter  = "killed after"
	unheard    = "the answer is lost"
	refused    = "refused"
)

// A process has a way to queue and notes. One of its calls has a fate, and once it is killed none gets through.
type process struct {
	queue *alarmtest.Queue
	notes store.Documenter
	fatal int // the number of the call that has a fate
	fate  string

	mu    sync.Mutex
	calls int
	dead  bool
}

func (p *process) call(apply func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	isFatal := p.calls == p.fatal
	p.dead = p.dead || isFatal && p.fate == killBefore
	if p.dead || isFatal && p.fate == refused {
		return errors.New("503")
	}
	err := apply()
	if p.dead = isFatal && p.fate == killAfter; p.dead || isFatal {
		return errors.Join(alarmtest.ErrUnclear, err)
	}
	return err
}

func (p *process) Put(ctx context.Context, body []byte, hidden time.Duration) (r alarm.Receipt, err error) {
	err = p.call(func() (err error) { r, err = p.queue.Put(ctx, body, hidden); return err })
	return r, err
}

func (p *process) Receive(ctx context.Context, most int, hide time.Duration) (got []alarm.Message, err error) {
	err = p.call(func() (err error) { got, err = p.queue.Receive(ctx, most, hide); return err })
	return got, err
}

func (p *process) Delete(ctx context.Context, r alarm.Receipt) error {
	return p.call(func() error { return p.queue.Delete(ctx, r) })
}

func (p *process) ReadDocument(ctx context.Context, name, etag string) (d store.Document, err error) {
	err = p.call(func() (err error) { d, err = p.notes.ReadDocument(ctx, name, etag); return err })
	return d, err
}

func (p *process) WriteDocument(ctx context.Context, name, etag string, body []byte) (r store.Revision, err error) {
	err = p.call(func() (err error) { r, err = p.notes.WriteDocument(ctx, name, etag, body); return err })
	return r, err
}

// A process that is killed at any call of a hand-over, or meets a fault there, leaves a message that becomes visible in time
// for the next tick: in the first pass of an app, and in one that an alarm has begun. The next process leaves two at most.
func TestKilledAtAnyCallAnAlarmIsPending(t *testing.T) {
	for _, first := range []bool{true, false} {
		for _, fate := range []string{killBefore, killAfter, unheard, refused} {
			t.Run(fmt.Sprintf("first %t, %s", first, fate), func(t *testing.T) {
				fatal := 1
				for ; trial(t, first, fatal, fate) >= fatal; fatal++ {
				}
				if fatal < 6 {
					t.Errorf("only %d calls were tried", fatal-1)
				}
			})
		}
	}
}

// trial is two passes of an app, the first of which has the fatal call. It returns how many calls that has made.
func trial(t *testing.T, first bool, fatal int, fate string) (calls int) {
	atDesk(t, func(d *desk) {
		if d.set(time.Hour); first {
			d.empty()
			_ = d.store.Delete(d.t.Context(), alarm.NoteName("app"))
			d.queue.Add("by a person, who has deployed the app", d.begin, d.begin)
		}
		pending := func(by time.Duration) {
			if at := d.queue.First(); at.IsZero() || at.After(d.begin.Add(by-time.Minute)) {
				d.t.Errorf("call %d: at %s nothing is pending by %s: %v", fatal, time.Since(d.begin), by, d.queue.All())
			}
		}
		time.Sleep(time.Hour - 50*time.Second)
		p := &process{queue: d.queue, notes: d.store, fatal: fatal, fate: fate}
		c, began := d.clock(0), time.Now()
		c.Queue, c.Notes = p, p
		time.Sleep(10 * time.Second) // the work
		_ = c.HandOver(d.t.Context(), d.begin.Add(2*time.Hour), began)
		pending(2 * time.Hour)

		time.Sleep(max(0, time.Until(d.queue.First())) + 10*time.Second)
		d.handOver(4*time.Hour, time.Now())
		if pending(4 * time.Hour); len(d.queue.All()) > 2 {
			d.t.Errorf("call %d: %d messages after a later pass", fatal, len(d.queue.All()))
		}
		calls = p.calls
	})
	return calls
}
