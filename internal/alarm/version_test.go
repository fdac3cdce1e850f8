package alarm_test

import (
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
)

// A message of wake waits for the version that was deployed: a process that was up before leaves it. One that has started
// since answers it, since it may differ by its settings alone, and so does each after an hour, in case of a rollback.
func TestWakeIsAnsweredByNewVersion(t *testing.T) {
	for name, test := range map[string]struct {
		work    string        // of the process
		started time.Duration // after the message
		after   time.Duration // how long after the message it clears
		left    bool
	}{
		"the same version":                {"new", -time.Hour, time.Minute, false},
		"the version before":              {"old", -time.Hour, time.Minute, true},
		"the version before, much later":  {"old", -time.Hour, 59 * time.Minute, true},
		"after a rollback":                {"old", -time.Hour, 61 * time.Minute, false},
		"an execution created before":     {"old", time.Minute, 2 * time.Minute, true},
		"other settings, started since":   {"old", 3 * time.Minute, 4 * time.Minute, false},
		"a process that does not compare": {"", -time.Hour, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				d.Work = "new"
				time.Sleep(2 * time.Hour)
				if err := d.Wake(d.t.Context()); err != nil {
					t.Fatal(err)
				}
				c := d.clock(time.Second)
				c.Work, c.Started = test.work, time.Now().Add(test.started)
				time.Sleep(test.after)
				d.clear(c, test.left)
			})
		})
	}
}

// Who deploys may have a clock that is wrong: what counts is when the queue took the message.
func TestWakeByWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{-70 * time.Minute, -5 * time.Minute, 5 * time.Minute, 3 * time.Hour} {
		for name, give := range map[string]func(*desk, *alarm.Clock){
			"cleared":     func(d *desk, c *alarm.Clock) { d.clear(c, true) },
			"handed over": func(d *desk, c *alarm.Clock) { d.giveBack(c) },
		} {
			t.Run(skew.String()+" "+name, func(t *testing.T) {
				atDesk(t, func(d *desk) {
					time.Sleep(2 * time.Hour)
					wrong := d.clock(skew)
					wrong.Work = "new"
					if err := wrong.Wake(d.t.Context()); err != nil {
						t.Fatal(err)
					}
					old := d.clock(0)
					old.Work, old.Started = "old", time.Now().Add(-time.Minute)
					for range 2 { // what is put again is as old as before
						time.Sleep(11 * time.Minute)
						if give(d, old); len(d.queue.All()) != 1 {
							t.Errorf("%d messages are left", len(d.queue.All()))
						}
					}
				})
			})
		}
	}
}

// giveBack is a platform that hands a message over to processes, and then deletes it.
func (d *desk) giveBack(to ...*alarm.Clock) {
	d.t.Helper()
	m := d.receive(time.Hour)
	for _, c := range to {
		if err := c.GiveBack(d.t.Context(), string(m.Body), m.Inserted); err != nil {
			d.t.Error(err)
		}
	}
	_ = d.queue.Delete(d.t.Context(), m.Receipt)
}

// A platform deletes the message that it has handed over. What is for another version is put again, as old as it was.
func TestWakeIsGivenBack(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.Work = "new"
		if err := d.Wake(d.t.Context()); err != nil {
			t.Fatal(err)
		}
		old := d.clock(0)
		old.Work, old.Started = "old", time.Now()
		times := 0
		for ; len(d.queue.All()) > 0 && times < 100; times++ {
			time.Sleep(time.Until(d.queue.First()))
			d.giveBack(d.Clock, old)
			if n := len(d.queue.All()); n > 1 {
				t.Fatalf("%d messages", n)
			}
		}
		if times != 61 {
			t.Errorf("given back for %d minutes, want an hour", times-1)
		}
	})
}
