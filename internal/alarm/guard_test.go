package alarm_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/alarm"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

// A guard is visible soon after the process has died, and never as long as it lives. Work that is done leaves none.
func TestGuardIsPutOffWhileItsProcessLives(t *testing.T) {
	atDesk(t, func(d *desk) {
		release := d.Guard(d.t.Context(), time.Minute)
		for range 100 {
			time.Sleep(7 * time.Second)
			synctest.Wait() // the guard may be put off at the same instant
			all := d.queue.All()
			if len(all) != 1 || time.Until(all[0].Visible) < 39*time.Second || time.Until(all[0].Visible) > time.Minute {
				t.Fatalf("after %s: got %+v", time.Since(d.begin), all)
			}
		}
		release(true)
		if all := d.queue.All(); len(all) != 0 {
			t.Errorf("work that is done leaves %+v", all)
		}
		release = d.Guard(d.t.Context(), time.Minute)
		time.Sleep(time.Second)
		release(false)
		if all := d.queue.All(); len(all) != 1 {
			t.Errorf("work that is not done leaves %+v", all)
		}
		time.Sleep(2 * time.Minute)
		d.clear(d.Clock, false)
	})
}

// The next message is put before the old one is deleted. A queue that fails for a while is tried again.
func TestGuardIsNeverWithoutMessage(t *testing.T) {
	atDesk(t, func(d *desk) {
		var mu sync.Mutex
		var order []string
		var fail atomic.Bool
		d.queue.Meet = func(c alarmtest.Call) alarmtest.Fate {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, c.Op)
			if fail.Load() {
				return alarmtest.Fate{Err: errors.New("no queue")}
			}
			return alarmtest.Fate{}
		}
		ctx, cancel := context.WithCancel(d.t.Context())
		release := d.Guard(ctx, time.Minute)
		cancel() // a stop is no death
		time.Sleep(21 * time.Second)
		fail.Store(true)
		time.Sleep(20 * time.Second)
		fail.Store(false)
		mu.Lock()
		if got := strings.Join(order, " "); got != "put put delete put" {
			t.Errorf("the calls were %s", got)
		}
		mu.Unlock()
		for _, left := range []time.Duration{39 * time.Second, 59 * time.Second} {
			if all := d.queue.All(); len(all) != 1 || time.Until(all[0].Visible) != left {
				t.Errorf("got %+v, want one that is visible in %s", all, left)
			}
			time.Sleep(20 * time.Second)
		}
		release(true)
		if log := d.log.String(); strings.Count(log, "tried again") != 1 || !strings.Contains(log, "no queue") {
			t.Errorf("the log has\n%s", log)
		}
	})
}

func TestQueueThatIsForbidden(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.old("old")
		d.fail("", fmt.Errorf("the role is missing: %w", fs.ErrPermission), func() bool { return true })
		for name, err := range map[string]error{
			"Set": d.Set(d.t.Context(), time.Now().Add(time.Hour)), "Ring": d.Ring(d.t.Context()),
			"HandOver": d.HandOver(d.t.Context(), time.Now().Add(time.Hour), time.Now()),
		} {
			if !errors.Is(err, fs.ErrPermission) || errors.Is(err, alarm.ErrPending) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := d.pending(); n != (alarm.Note{}) || !time.Now().Equal(d.begin) {
			t.Errorf("noted %+v after %s", n, time.Since(d.begin))
		}
		if got := fmt.Sprint(d.queue.Counts()); got != "map[put:3]" {
			t.Errorf("calls: %s", got)
		}
		if _, err := d.Clear(d.t.Context(), time.Now()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("Clear: %v", err)
		}
	})
}

// A put that is repeated counts from the clock at each try, so that the message does not come later than its note says.
func TestPutThatTakesLong(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.Lead = 10 * time.Second
		n := 0
		d.fail("put", errors.New("503"), func() bool { time.Sleep(9 * time.Second); n++; return n%3 != 0 })
		d.set(time.Hour)
		if late := d.queue.First().Sub(d.pending().At); late > 9*time.Second { // the last call took so long
			t.Errorf("visible %s after the note says", late)
		}
		if d.queue.First().Sub(d.begin) > time.Hour {
			t.Errorf("visible after the tick")
		}
	})
}
