package alarm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

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
					n, err := d.Pending(d.t.Context())
					if at := d.begin.Add(6*time.Hour - time.Minute); err != nil || !d.has(n) || !n.At.Equal(at) {
						t.Fatalf("the note is %+v, %v, want one for %s", n, err, at)
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
