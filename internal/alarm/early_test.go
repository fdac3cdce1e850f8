package alarm_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
)

// A fast clock wakes the app up too early, and loses nothing: the message is put again for its time.
func TestClocksThatAreOff(t *testing.T) {
	atDesk(t, func(d *desk) {
		fast := d.clock(5 * time.Minute)
		if err := fast.Set(d.t.Context(), d.begin.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := d.queue.First().Sub(d.begin); got != 54*time.Minute {
			t.Errorf("visible after %s", got)
		}
		time.Sleep(55 * time.Minute)
		d.handOver(time.Hour, time.Now()) // by a right clock: the message is put again for its time
		d.want(59 * time.Minute)
		time.Sleep(5 * time.Minute)
		slow := d.clock(-3 * time.Minute)
		began := slow.Now()
		if err := slow.HandOver(d.t.Context(), d.begin.Add(2*time.Hour), began); err != nil {
			t.Error(err)
		}
		d.want(time.Hour + 2*time.Minute) // to it the old message is still to come, so it is put again
		time.Sleep(2*time.Minute + 10*time.Second)
		d.handOver(2*time.Hour, time.Now())
		d.want(2*time.Hour - time.Minute)
	})
}

// A process knows the store's time from its first answer on. One whose clock was fast until then does not take the alarm that
// it has just set for one that it has answered.
func TestClockThatIsCorrectedInPass(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.handOver(0, d.begin.Add(2*time.Hour)) // something is due at once
		if len(d.queue.All()) != 1 {
			t.Error("nothing is pending")
		}
	})
}

// A queue that shows a message early, and a writer whose clock is fast, do not have the platform start a replica again and
// again until the time has come.
func TestMessageThatIsEarly(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(time.Hour)
		n, err := d.Pending(d.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body := d.queue.All()[0].Body
		_ = d.queue.Delete(d.t.Context(), n.Receipt)
		if _, err := d.queue.Put(d.t.Context(), body, 0); err != nil {
			t.Fatal(err)
		}
		for _, most := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} { // the clock of the replica may be the one that is wrong
			time.Sleep(10 * time.Second)
			d.handOver(time.Hour, time.Now())
			if wait, left := time.Until(d.queue.First()), time.Until(n.At); wait > min(most, left) || wait < min(most, left)-2*time.Second {
				t.Errorf("visible %s later, want %s of the %s that are left", wait, most, left)
			}
			time.Sleep(time.Until(d.queue.First()))
		}
		if time.Since(n.At) < -2*time.Second {
			t.Errorf("the last time it is visible %s before its time", time.Until(n.At))
		}
	})
}

// Of several messages that are visible early, only the first to come, and the one on which other replicas rely, wake the app
// up before their times.
func TestManyMessagesThatAreEarly(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(8*time.Hour + time.Minute)
		n, err := d.Pending(d.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = d.queue.Delete(d.t.Context(), n.Receipt)
		for id, after := range map[string]int{"a": 7, "b": 5, "c": 4, "d": 6, n.ID: 8} {
			at := d.begin.Add(time.Duration(after) * time.Hour).Format(time.RFC3339Nano)
			body := fmt.Sprintf(`{"schema": 1, "app": "app", "id": %q, "at": %q, "tick": %q}`, id, at, at)
			if _, err := d.queue.Put(d.t.Context(), []byte(body), 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		if _, err := d.Clear(d.t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		var after []time.Duration
		for _, m := range d.queue.All() {
			after = append(after, m.Visible.Sub(d.begin).Round(time.Minute))
		}
		slices.Sort(after)
		if want := []time.Duration{10 * time.Minute, 10 * time.Minute, 5 * time.Hour, 6 * time.Hour, 7 * time.Hour}; !slices.Equal(after, want) {
			t.Errorf("they come after %s, want %s", after, want)
		}
	})
}

// A platform that receives messages itself deletes the one that it has woken the app up for. A pass that is over at
// once, on a replica whose clock is a second behind, does not take it for one that is still to come.
func TestAlarmThatHasJustCome(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(30 * 24 * time.Hour)
		time.Sleep(alarm.Longest + 100*time.Millisecond)
		got, err := d.queue.Receive(d.t.Context(), 1, time.Minute)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %v, %v", got, err)
		}
		if err := d.clock(-time.Second).Set(d.t.Context(), d.begin.Add(30*24*time.Hour)); err != nil {
			t.Error(err)
		}
		_ = d.queue.Delete(d.t.Context(), got[0].Receipt)
		if len(d.queue.All()) != 1 {
			t.Error("nothing is pending")
		}
	})
}
