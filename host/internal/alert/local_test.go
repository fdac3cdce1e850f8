package alert_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
)

// Messages about a replica's clock wait by elapsed time: that clock may leap.
func TestMessageAboutAClockThatLeaps(t *testing.T) {
	for what, ahead := range map[string][2]time.Duration{
		"put right":       {48 * time.Hour, 0},
		"ahead since":     {0, 48 * time.Hour},
		"behind, further": {-time.Hour, -48 * time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0)
				w.ahead, w.down = ahead[0], true
				w.add("r0").Hear(event.Event{Kind: event.Skewed, Skew: time.Hour})
				time.Sleep(30 * time.Second) // the receiver has not taken it
				w.change(func() { w.ahead = ahead[1] })
				time.Sleep(time.Minute)
				w.change(func() { w.down = false })
				time.Sleep(3 * time.Minute)
				w.want("clock-skew alert")
				w.replicas[0].Hear(event.Event{Kind: event.Skewed})
				time.Sleep(3 * time.Minute)
				w.want("clock-skew alert", "clock-skew recovered")
				if len(w.got) != 2 {
					return
				}
				for _, m := range w.got { // they tell times by the clock as it is when they are sent
					if d := m.Since.Sub(w.start.Add(ahead[1])); d < 0 || d > 30*time.Second {
						t.Errorf("%s: since %s, want about %s", m.Event, m.Since, w.start.Add(ahead[1]))
					}
				}
				if took := w.got[1].Over.Sub(w.got[1].Since); took < 4*time.Minute || took > 6*time.Minute {
					t.Errorf("over after %s", took)
				}
			})
		})
	}
}

// A message about a replica that no receiver has taken for a day is given up, which the log says.
func TestMessageAboutAReplicaIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0)
		w.down = true
		var log strings.Builder
		r := w.addWith("r0", slog.New(slog.NewTextHandler(&log, nil)), nil)
		w.change(func() { r.health.Storage = errors.New("no route") })
		time.Sleep(25 * time.Hour)
		r.die()
		synctest.Wait()
		if n := strings.Count(log.String(), "is not sent any more"); n != 1 || !strings.Contains(log.String(), "demo/storage/r0/") {
			t.Errorf("the log says %d times that a message is given up, want once; it ends:\n%s", n, log.String()[max(0, log.Len()-400):])
		}
	})
}
