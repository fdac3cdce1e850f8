package alarm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

func TestOneAlarmIsPending(t *testing.T) {
	atDesk(t, func(d *desk) {
		if n := d.pending(); n != (alarm.Note{}) {
			t.Errorf("got %+v", n)
		}
		d.want()
		d.set(2 * time.Hour)
		d.want(2*time.Hour - time.Minute)
		time.Sleep(time.Second / 3)
		d.set(2 * time.Hour)
		d.set(3 * time.Hour)
		d.want(2*time.Hour - time.Minute)
		d.set(time.Hour + time.Second/3)
		d.want(time.Hour - time.Minute + time.Second/3)
		if err := d.Set(d.t.Context(), time.Time{}); err != nil {
			t.Error(err)
		}
		d.want(time.Hour - time.Minute + time.Second/3)
		if got := fmt.Sprint(d.queue.Counts()); got != "map[delete:1 put:2]" {
			t.Errorf("calls: %s", got)
		}
		if n := d.pending(); !n.Tick.Equal(d.begin.Add(time.Hour + time.Second/3)) {
			t.Errorf("got %+v", n)
		}
	})
}

// A message is never visible later than the lead before its tick, and at most a second earlier.
func TestAlarmIsNotLate(t *testing.T) {
	atDesk(t, func(d *desk) {
		for i := range 50 {
			d.Lead = time.Duration(rand.IntN(int(3 * time.Minute)))
			due := time.Now().Add(time.Duration(rand.IntN(int(24 * time.Hour))))
			queue := &alarmtest.Queue{}
			c := d.clock(0)
			c.App, c.Queue, c.Lead = fmt.Sprint("app", i), queue, d.Lead
			if err := c.Set(d.t.Context(), due); err != nil {
				t.Fatal(err)
			}
			lead := d.Lead
			if lead == 0 {
				lead = alarm.DefaultLead
			}
			want := due.Add(-lead)
			if want.Before(time.Now()) {
				want = time.Now()
			}
			if early := want.Sub(queue.First()); early < 0 || early >= time.Second {
				t.Errorf("due %s, lead %s: visible %s early", due, d.Lead, early)
			}
		}
	})
}

// A tick that is due has a message that is visible at once; a process that dies at its start again and again leaves one.
func TestAlarmThatIsDueIsNotRepeated(t *testing.T) {
	atDesk(t, func(d *desk) {
		for range 20 {
			d.set(-time.Minute)
			time.Sleep(time.Second)
		}
		d.want(19 * time.Second)
		d.Lead = -1
		d.set(time.Hour)
		d.want(19*time.Second, time.Hour) // the visible one is left to the pass
	})
}

func TestAlarmFarAheadHops(t *testing.T) {
	atDesk(t, func(d *desk) {
		due, hops := 40*24*time.Hour, 0
		for at := time.Duration(0); at < due-time.Minute; hops++ {
			d.handOver(due, time.Now())
			d.handOver(due, time.Now())
			if len(d.queue.All()) == 0 {
				t.Fatal("nothing is pending")
			}
			at = d.queue.All()[len(d.queue.All())-1].Visible.Sub(d.begin)
			if at > time.Since(d.begin)+alarm.Longest {
				t.Fatalf("invisible until %s", at)
			}
			time.Sleep(at - time.Since(d.begin) + 10*time.Second)
		}
		if hops != 7 {
			t.Errorf("%d hops, want 7", hops)
		}
		d.handOver(41*24*time.Hour, time.Now())
		d.want(41*24*time.Hour - time.Minute)
	})
}

// However many replicas set the alarm at once, a message is pending in time for each of them, and few are left.
func TestManySetAtOnce(t *testing.T) {
	for _, fail := range []float64{0, 0.1} {
		for seed := range uint64(20) {
			atDesk(t, func(d *desk) {
				d.Notes = &slowNotes{Memory: d.store, dice: rand.New(rand.NewPCG(seed, 1)), fail: fail}
				dice := rand.New(rand.NewPCG(seed, 2))
				first, failed := time.Hour, atomic.Int64{}
				var all sync.WaitGroup
				for range 40 {
					due := time.Hour - time.Duration(dice.IntN(5))*time.Minute
					first = min(first, due)
					all.Go(func() {
						if err := d.Set(d.t.Context(), d.begin.Add(due)); errors.Is(err, alarm.ErrPending) {
							failed.Add(1)
						} else if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				got, n := d.queue.All(), int(failed.Load())
				if by := d.begin.Add(first - time.Minute); len(got) == 0 || got[0].Visible.After(by) {
					t.Errorf("seed %d: nothing is pending by %s: %v", seed, by, got)
				}
				if fail == 0 && (len(got) != 1 || n > 0) || len(got) > 1+2*n+8 {
					t.Errorf("seed %d: %d messages are left, %d without a note", seed, len(got), n)
				}
			})
		}
	}
}
