package host_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

// doctor looks at the queue, and compares the alarm that is pending with the next tick.
func TestDoctorOfAlarm(t *testing.T) {
	refused := func(alarmtest.Call) alarmtest.Fate { return alarmtest.Fate{Err: errors.New("refused")} }
	for _, test := range []struct {
		name string
		env  []string
		make func(t *testing.T, w *woken)
		says []string
		code int
	}{
		{"pending", nil, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"ok    queue        ", "a message was put and deleted", "ok    alarm        pending for 2000-01-01 00:59:00Z, for the tick of 2000-01-01 01:00:00Z", "ok    rule"}, 0},
		{"none yet", nil, func(*testing.T, *woken) {},
			[]string{"FAIL  alarm        none is pending, and a replica is wanted at 2000-01-01 01:00:00Z", "start a replica once"}, 1},
		{"queue refused", nil, func(_ *testing.T, w *woken) { w.queue.Meet = refused },
			[]string{"FAIL  queue        refused", "skip  alarm        nothing to learn before the queue can be used"}, 1},
		{"gone", nil, func(t *testing.T, w *woken) {
			run(t.Context(), w.Program, "tick")
			time.Sleep(59*time.Minute + 30*time.Second)
		},
			[]string{"warn  alarm        the last one was for 2000-01-01 00:59:00Z and is gone"}, 0},
		{"another queue", nil, func(t *testing.T, w *woken) {
			w.queue.Name = "https://a/before"
			run(t.Context(), w.Program, "tick")
			w.queue.Name = "https://a/after"
		},
			[]string{"FAIL  alarm        the one that was set last is in another queue, https://a/before, and a replica is wanted at 2000-01-01 01:00:00Z", "start a replica once"}, 1},
		{"a container that ends", []string{"CONTAINER_APP_NAME=demo"}, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"warn  rule         the platform starts a container of an app again", "set SOLOIST_STAY=0"}, 0},
		{"a container that stays", []string{"CONTAINER_APP_NAME=demo", "SOLOIST_STAY=0"}, func(t *testing.T, w *woken) { run(t.Context(), w.Program, "tick") },
			[]string{"ok    rule         the rule that starts a replica cannot be seen from inside; see it with: az containerapp show"}, 0},
	} {
		environment(t, append(test.env, "SOLOIST_ALARM=queue")...)
		synctest.Test(t, func(t *testing.T) {
			w := newWoken("@hourly")
			test.make(t, w)
			before := len(w.queue.All())
			got := run(t.Context(), w.Program, "doctor")
			for _, want := range test.says {
				if !strings.Contains(got.out, want) {
					t.Errorf("%s: no %q in\n%s", test.name, want, got.out)
				}
			}
			if got.code != test.code || len(w.queue.All()) != before {
				t.Errorf("%s: got %+v, and left the messages %+v", test.name, got, w.queue.All())
			}
		})
	}
}
