package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// byQueue is the payload of a queue trigger.
func byQueue(message string) string {
	text, _ := json.Marshal(message)
	inner, _ := json.Marshal(string(text))
	return fmt.Sprintf(`{"Data":{"alarm":%s},"Metadata":{"DequeueCount":"1"}}`, inner)
}

const ours = `{"schema":1,"app":"demo","id":"x"}`

// A message has the invocation run what is due, wait for the ticks of the stay, and set the next alarm. A timer once a day
// does the same.
func TestAlarmFunction(t *testing.T) {
	bubble(t, inFunctions, func(t *testing.T) {
		w := newWoken("1,2 * * * *")
		s := open(t, w.Program)
		code, logs := s.invoke(t, "alarm", byQueue(ours))
		if at := time.Now().UTC().Format("15:04"); code != 200 || at != "00:02" || !slices.Equal(logs, []string{"job job-a: tick 2000-01-01T00:01:00Z succeeded", "job job-a: tick 2000-01-01T00:02:00Z succeeded"}) {
			t.Errorf("got %d, %q at %s", code, logs, at)
		}
		w.wantPending(t, "01:00:00")
		time.Sleep(time.Hour)
		code, logs = s.invoke(t, "tick", `{"Data":{"timer":{"IsPastDue":false}}}`)
		if code != 200 || len(logs) != 1 {
			t.Errorf("the daily net: got %d, %q", code, logs)
		}
		w.wantPending(t, "02:00:00")
	})
}

// Whatever is in the queue wakes the app up once, and the host may delete it.
func TestAlarmFunctionAndForeignMessages(t *testing.T) {
	bubble(t, inFunctions, func(t *testing.T) {
		w := newWoken("@hourly")
		s, log := logged(t, w.Program)
		for _, body := range []string{byQueue("garbage \x00"), byQueue(`{"app":"other"}`), byQueue("null"), byQueue(""), `{"Data":{"alarm":7}}`, `{"Data":{"item":{"app":"x"}}}`, ""} {
			s.wantInvoked(t, "alarm", body, 200)
		}
		w.wantPending(t, "00:59:00")
		wantEqual(t, "messages that are told", strings.Count(log.String(), "is not an alarm of this app"), 5)
	})
}

// A record that no call can mend does not have the host call again and again: the alarm is set for the next tick, and the
// answer says what is wrong. A record that cannot be read wants a replica soon.
func TestAlarmFunctionWithUnusableRecord(t *testing.T) {
	for _, test := range []struct {
		name    string
		make    func(t *testing.T, w *woken)
		pending time.Duration // at most
	}{
		{"garbage", func(t *testing.T, w *woken) {
			if _, err := w.Store.Create(t.Context(), "demo/job-a", []byte("garbage")); err != nil {
				t.Fatal(err)
			}
		}, 24 * time.Hour},
		{"unreadable", func(_ *testing.T, w *woken) { w.Store = unreadable{w.Store.(*local.Memory)} }, time.Minute},
	} {
		bubble(t, inFunctions, func(t *testing.T) {
			w := newWoken("@daily", "@daily")
			test.make(t, w)
			s := open(t, w.Program)
			for _, function := range []string{"alarm", "tick"} {
				code, logs := s.invoke(t, function, "")
				if code != 200 || !strings.Contains(strings.Join(logs, "\n"), "job job-a: ") {
					t.Errorf("%s, %s: got %d, %q", test.name, function, code, logs)
				}
				if first := w.queue.First(); first.IsZero() || time.Until(first) > test.pending {
					t.Errorf("%s: got the messages %+v", test.name, w.queue.All())
				}
			}
		})
	}
}

// unreadable is a store in which the record of job-a cannot be read.
type unreadable struct{ *local.Memory }

func (s unreadable) Read(ctx context.Context, name string) (store.Entry, error) {
	if strings.HasSuffix(name, "/job-a") {
		return store.Entry{}, errors.New("503")
	}
	return s.Memory.Read(ctx, name)
}

// Without alarms there is no such function, and a job may have its name; with alarms it may not.
func TestAlarmIsAFunctionOfAlarmsAlone(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_STORAGE=memory:")
	s := open(t, host.Program{Work: jobs(soloist.Job{Name: "night"})})
	s.wantInvoked(t, "alarm", "", 404)
	work := jobs(soloist.Job{Name: "alarm"})
	wantLines(t, host.Program{Work: work}, "validate", 0)
	environment(t, "SOLOIST_ALARM=queue", "SOLOIST_STORAGE=UseDevelopmentStorage=true")
	checkMistakes(t, run(t.Context(), host.Program{Work: work}, "validate"), []string{`job "alarm" has the name of the function that gets the alarms`})
}

// inFunctions are the settings of an app of Functions with alarms.
var inFunctions = []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_ALARM=queue", "SOLOIST_APP=demo"}
