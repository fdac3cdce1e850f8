package alarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

func TestClearOfWhatIsNoAlarm(t *testing.T) {
	atDesk(t, func(d *desk) {
		time.Sleep(time.Hour)
		now := time.Now()
		old := now.Add(-10 * time.Minute)
		body := func(app string, schema int, at time.Time) string {
			b, _ := json.Marshal(map[string]any{"schema": schema, "app": app, "id": "x", "at": at, "tick": at})
			return string(b)
		}
		for text, left := range map[string]bool{
			"": false,
			"\x00\xff\nevil" + strings.Repeat("x", 1000): false,
			"[]": false, "null": false, "{}": false, `{"schema":"1"}`: false, `{"schema":1,"app":"app","at":"yesterday"}`: false,
			body("", 1, old):                      false,
			body("app", 0, old):                   false,
			body("app", 99, old):                  false, // of a newer program: the pass has done what is due
			body("app", 1, old):                   false, // of a job that is gone, or of this app before
			body("app", 1, time.Time{}):           false,
			body("app", 1, now.Add(time.Minute)):  true, // of a replica whose clock is fast
			body("app", 1, now.AddDate(10, 0, 0)): false,
			body("other", 1, old):                 true,
		} {
			d.queue.Add(text, old, old)
			if d.clear(d.Clock, left); t.Failed() {
				t.Fatalf("of %.60q", text)
			}
			d.empty()
		}
		log := d.log.String()
		if !strings.Contains(log, `\\x00\\xff\\nevilxxx`) || strings.Contains(log, strings.Repeat("x", 101)) || !strings.Contains(log, "SOLOIST_ALARM_QUEUE") {
			t.Errorf("the log has\n%s", log)
		}
	})
}

// Messages of another app are told once in a pass, and do not keep it going.
func TestClearLeavesOtherApps(t *testing.T) {
	atDesk(t, func(d *desk) {
		for range 200 {
			d.old(`{"schema":1,"app":"other"}`)
		}
		d.old("mine")
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate { time.Sleep(time.Second); return alarmtest.Fate{} }
		n, err := d.Clear(d.t.Context(), time.Now())
		if took := time.Since(d.begin); took > 12*time.Second {
			t.Errorf("it took %s", took)
		}
		if n != 1 || err != nil || len(d.queue.All()) != 200 {
			t.Errorf("%d deleted, %d left, %v", n, len(d.queue.All()), err)
		}
		if n := strings.Count(d.log.String(), "another app"); n != 1 {
			t.Errorf("told %d times", n)
		}
	})
}

// Thousands of old messages are gone after a few passes, none of which takes the 20 s that the end of a pass has: nothing is
// wrong with that.
func TestClearOfThousands(t *testing.T) {
	atDesk(t, func(d *desk) {
		for range 10_000 {
			d.old(`{"schema":1,"app":"app"}`)
		}
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate { time.Sleep(100 * time.Millisecond); return alarmtest.Fate{} }
		passes := 0
		for ; len(d.queue.All()) > 1 && passes < 20; passes++ {
			ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
			if err := d.HandOver(ctx, d.begin.Add(24*time.Hour), time.Now()); err != nil {
				t.Errorf("HandOver: %v", err)
			}
			cancel()
		}
		if passes != 7 {
			t.Errorf("%d passes, want 7", passes)
		}
		if late := d.queue.First().Sub(d.begin.Add(24*time.Hour - time.Minute)); len(d.queue.All()) != 1 || late < -time.Second || late > 100*time.Millisecond { // the call took so long
			t.Errorf("got the messages %+v", d.queue.All())
		}
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
		n, body := d.pending(), d.queue.All()[0].Body
		d.empty()
		d.queue.Add(string(body), time.Now(), time.Now())
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
		n := d.pending()
		d.empty()
		for id, after := range map[string]int{"a": 7, "b": 5, "c": 4, "d": 6, n.ID: 8} {
			at := d.begin.Add(time.Duration(after) * time.Hour).Format(time.RFC3339Nano)
			d.queue.Add(fmt.Sprintf(`{"schema": 1, "app": "app", "id": %q, "at": %q, "tick": %q}`, id, at, at), d.begin, d.begin)
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
		got := d.receive(time.Minute)
		if err := d.clock(-time.Second).Set(d.t.Context(), d.begin.Add(30*24*time.Hour)); err != nil {
			t.Error(err)
		}
		_ = d.queue.Delete(d.t.Context(), got.Receipt)
		if len(d.queue.All()) != 1 {
			t.Error("nothing is pending")
		}
	})
}
