package alarm_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

func TestQueueThatIsForbidden(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
		d.queue.Meet = func(alarmtest.Call) alarmtest.Fate {
			return alarmtest.Fate{Err: fmt.Errorf("the role is missing: %w", fs.ErrPermission)}
		}
		for name, err := range map[string]error{
			"Set": d.Set(d.t.Context(), time.Now().Add(time.Hour)), "Ring": d.Ring(d.t.Context()),
			"HandOver": d.HandOver(d.t.Context(), time.Now().Add(time.Hour), time.Now()),
		} {
			if !errors.Is(err, fs.ErrPermission) || errors.Is(err, alarm.ErrPending) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n, err := d.Pending(d.t.Context()); err != nil || n != (alarm.Note{}) || !time.Now().Equal(d.begin) {
			t.Errorf("noted %+v, %v, after %s", n, err, time.Since(d.begin))
		}
		if got := fmt.Sprint(d.queue.Counts()); got != "map[put:3]" {
			t.Errorf("calls: %s", got)
		}
		if _, err := d.Clear(d.t.Context(), time.Now()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Clear: %v", err)
		}
	})
}

// A call that fails is repeated. If the alarm cannot be put, the old message stays.
func TestPutThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fails int
		done  bool
		left  int
	}{"once": {1, false, 1}, "without an answer": {1, true, 2}, "always": {9, false, 1}} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				d.queue.Add("old", time.Now().Add(-time.Hour), time.Now().Add(-time.Hour))
				d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
					if c.Op == "put" && c.N <= tt.fails {
						return alarmtest.Fate{Err: alarmtest.ErrUnclear, Done: tt.done}
					}
					return alarmtest.Fate{}
				}
				err := d.HandOver(d.t.Context(), time.Now().Add(time.Hour), time.Now())
				if (err != nil) != (tt.fails > 3) || len(d.queue.All()) != tt.left {
					t.Errorf("got %v, and %d messages", err, len(d.queue.All()))
				}
				if has := string(d.queue.All()[0].Body) == "old"; has != (tt.fails > 3) {
					t.Errorf("the old message is there: %v", has)
				}
			})
		})
	}
}

// A put that is repeated counts from the clock at each try, so that the message does not come later than its note says.
func TestPutThatTakesLong(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.Lead = 10 * time.Second
		slow := func(c alarmtest.Call) alarmtest.Fate {
			time.Sleep(9 * time.Second)
			if c.N%3 != 0 {
				return alarmtest.Fate{Err: errors.New("503")}
			}
			return alarmtest.Fate{}
		}
		d.queue.Meet = slow
		d.set(time.Hour)
		n, err := d.Pending(d.t.Context())
		if late := d.queue.First().Sub(n.At); err != nil || late > 9*time.Second { // the last call took so long
			t.Errorf("visible %s after the note says, %v", late, err)
		}
		if d.queue.First().Sub(d.begin) > time.Hour {
			t.Errorf("visible after the tick")
		}
	})
}

// The same for one that is put off.
func TestPutOffThatTakesLong(t *testing.T) {
	atDesk(t, func(d *desk) {
		at := d.begin.Add(8 * time.Minute).Format(time.RFC3339Nano)
		d.queue.Add(fmt.Sprintf(`{"schema": 1, "app": "app", "id": "x", "at": %q, "tick": %q}`, at, at), d.begin, d.begin)
		puts := 0
		d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
			if c.Op != "put" {
				return alarmtest.Fate{}
			}
			time.Sleep(3 * time.Second)
			if puts++; puts < 3 {
				return alarmtest.Fate{Err: errors.New("503")}
			}
			return alarmtest.Fate{}
		}
		if _, err := d.Clear(d.t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
		if got := d.queue.First().Sub(d.begin); len(d.queue.All()) != 1 || got > 8*time.Minute+3*time.Second {
			t.Errorf("visible after %s, want 8m", got)
		}
	})
}
