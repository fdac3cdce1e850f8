package alarm_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

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
			n, err := d.Clear(d.t.Context(), now)
			if is := len(d.queue.All()) == 1; err != nil || is != left || (n == 0) != left {
				t.Errorf("%.60q: left %v, want %v; %d deleted, %v", text, is, left, n, err)
			}
			for _, m := range d.queue.All() {
				_ = d.queue.Delete(d.t.Context(), m.Receipt)
			}
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
		old := time.Now().Add(-time.Hour)
		for range 200 {
			d.queue.Add(`{"schema":1,"app":"other"}`, old, old)
		}
		d.queue.Add("mine", old, old)
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
		old := time.Now().Add(-time.Hour)
		for range 10_000 {
			d.queue.Add(`{"schema":1,"app":"app"}`, old, old)
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
