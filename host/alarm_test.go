package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/alarm/alarmtest"
)

// woken is a program that alarms wake up, its queue, and the times at which its jobs have run.
type woken struct {
	host.Program
	queue    *alarmtest.Queue
	instance site // in Functions, from the first call on
	noted
}

// newWoken makes one with jobs that take no time. In a bubble of synctest it is midnight, 1 January 2000, UTC.
func newWoken(schedules ...string) *woken {
	w := &woken{queue: &alarmtest.Queue{}}
	w.Store = &local.Memory{}
	for i, text := range schedules {
		w.Work = append(w.Work, soloist.Job{Name: "job-" + string(rune('a'+i)), Schedule: text, Do: w.do})
	}
	w.Program = host.WithQueue(w.Program, w.queue)
	return w
}

// do notes the time of a run.
func (w *woken) do(context.Context, *soloist.Run) error {
	w.add(time.Now().UTC().Format("15:04:05"))
	return nil
}

// wantPending wants exactly one message, which becomes visible at that time of day, or within the second before.
func (w *woken) wantPending(t *testing.T, at string) {
	t.Helper()
	all := w.queue.All()
	// Once in some hundred runs one more is left, which costs a start: a guard that two goroutines replace at one instant.
	wanted := slices.ContainsFunc(all, func(m alarmtest.Stored) bool { return m.Visible.Add(time.Second-1).UTC().Format("15:04:05") == at })
	if len(all) > 2 || !wanted {
		t.Errorf("got the messages %+v, want one that is visible at %s", all, at)
	}
}

// executions are the ways of running in which a program is up for a while: the command tick, and invocations in Functions.
var executions = map[string][]string{
	"tick": {"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=30m"}, "alarm": append(inFunctions, "SOLOIST_FUNCTION_TIMEOUT=30m"),
}

// wake is one execution, in Functions by a call of this function, with a message as the host receives it.
func (w *woken) wake(t *testing.T, function string) result {
	if os.Getenv("FUNCTIONS_CUSTOMHANDLER_PORT") == "" {
		return run(t.Context(), w.Program, "tick")
	}
	body := ours
	all, _ := w.queue.Receive(t.Context(), 1, time.Hour)
	for _, m := range all {
		body = string(m.Body)
		defer w.queue.Delete(t.Context(), m.Receipt)
	}
	if w.instance.Handler == nil {
		w.instance = open(t, w.Program)
	}
	code, logs := w.instance.invoke(t, function, map[bool]string{true: byQueue(body)}[function == "alarm"])
	return result{code: code - http.StatusOK, out: strings.Join(logs, "\n")}
}

// wantWoken wants an execution to end now, at this time of day, with so many runs that have succeeded.
func (r result) wantWoken(t *testing.T, at string, runs int) {
	t.Helper()
	if now := time.Now().UTC().Format("15:04"); r.code != 0 || now != at || strings.Count(r.out, "succeeded") != runs {
		t.Errorf("got %+v at %s, want %d runs until %s", r, now, runs, at)
	}
}

// An execution waits for ticks that are due within the stay, and then sets the alarm for the next one, less the lead. In Functions
// a timer once a day does the same as a message.
func TestExecutionHandsOverToTheAlarm(t *testing.T) {
	for _, settings := range executions {
		bubble(t, settings, func(t *testing.T) {
			w := newWoken("1,2 0 * * *", "@hourly")
			w.wake(t, "alarm").wantWoken(t, "00:02", 2)
			w.wantPending(t, "00:59:00")
			time.Sleep(time.Until(w.queue.First()))
			w.wake(t, "tick").wantWoken(t, "01:00", 1)
			w.wantPending(t, "01:59:00")
		})
	}
}

// If the alarm cannot be set, tick exits with code 1, and the old message stays. The log says so as an error, which is what
// alerts look for. An invocation fails, so its host keeps the message that has called and calls again.
func TestAlarmThatCannotBeSet(t *testing.T) {
	const says = "the alarm may not be set, so the next tick may wait for the platform's timer"
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_LOG_FORMAT=json"}, func(t *testing.T) {
		w := newWoken("@hourly")
		call(t, w.Program, "tick")
		time.Sleep(time.Until(w.queue.First()))
		w.queue.Meet = func(c alarmtest.Call) (fate alarmtest.Fate) {
			if c.Op == "put" {
				fate.Err = errors.New("403 AuthorizationPermissionMismatch")
			}
			return fate
		}
		got := wantLines(t, w.Program, "tick --json", 1, "succeeded")
		m := await(t, messages(strings.NewReader(got.err)), says)
		wantText(t, m.Level, m.Msg, "AuthorizationPermissionMismatch")
		wantEqual(t, "level and number of lines", m.Level+fmt.Sprint(strings.Count(got.err, says)), "ERROR1")
		w.wantPending(t, "00:59:00")
	})
	bubble(t, inFunctions, func(t *testing.T) {
		w := newWoken("@hourly")
		w.queue.Meet = noQueue
		s := open(t, w.Program)
		for _, function := range []string{"alarm", "tick", "job-a"} {
			wantCode(t, <-s.invoked(t, function, "", says), 500)
		}
		s.wantInvoked(t, "warmup", "", 200)
	})
}

// SOLOIST_STAY=0, or a singleton, keeps it up: it hands over, and so it does after each alarm. A message that asks for nothing
// does not keep an app up until the next tick.
func TestServeStays(t *testing.T) {
	for stay, work := range map[string][]soloist.Work{"0": nil, "2m": {soloist.Singleton{Name: "leader", Do: untilStopped}}} {
		bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_STAY=" + stay}, func(t *testing.T) {
			w := newWoken("@hourly")
			w.Work = append(w.Work, work...)
			stop, code := serveOn(t, w.Program, newPiped())
			time.Sleep(10 * time.Minute)
			w.wantPending(t, "00:59:00")
			wantLines(t, w.Program, "wake", 0)
			wantEqual(t, "visible messages, with the one of wake", w.queue.Visible(time.Now()), 1)
			time.Sleep(6 * time.Minute)
			wantEqual(t, "visible messages six minutes later", w.queue.Visible(time.Now()), 0)
			time.Sleep(54 * time.Minute)
			w.wantPending(t, "01:59:00")
			wantEqual(t, "it has ended, and runs", []int{len(code), len(w.all())}, []int{0, 1})
			stop()
			<-code
			w.wantPending(t, "01:59:00")
		})
	}
}

// While a job runs nothing is handed over; a stop sets the alarm for what it has left.
func TestServeSetsAlarmWhenStopped(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_GRACE=1s"}, func(t *testing.T) {
		w := overlong(24 * time.Hour)
		stop, code := serveOn(t, w.Program, newPiped())
		time.Sleep(20 * time.Minute)
		wantEqual(t, "ends, and messages, under a run", []int{len(code), len(w.queue.All())}, []int{0, 1})
		for _, m := range w.queue.All() { // somebody empties the queue
			w.queue.Delete(t.Context(), m.Receipt)
		}
		stop()
		wantCode(t, <-code, 0)
		w.wantVisible(t, 0)
	})
}

// overlong has a job of 00:01 that takes so long, and is run again if it is interrupted.
func overlong(takes time.Duration) *woken {
	w, long := newWoken(), lastingJob("long", "1 0 * * *", takes)
	long.Interrupted = soloist.Rerun
	w.Work = []soloist.Work{long}
	return w
}

// wantVisible wants a message that is visible within this time: what is left wakes somebody up.
func (w *woken) wantVisible(t *testing.T, within time.Duration) {
	t.Helper()
	if w.queue.Visible(time.Now().Add(within)) == 0 {
		t.Errorf("what is left wakes nobody up: %+v", w.queue.All())
	}
}

// An order by a command or over HTTP puts a message: else nobody obeys it, or the platform ends the replica that has taken it
// as one that has nothing to do. If that fails, the order stands, and the command says so.
func TestOrderRings(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_STAY=0", "SOLOIST_ADMIN_TOKEN=" + adminToken}, func(t *testing.T) {
		w := newWoken("@hourly")
		s := open(t, w.Program)
		s.tick()
		cookies := signedIn(t, s, adminToken)
		for i, order := range []string{"run", "pause", "resume"} {
			command := order + " job-a"
			if order == "run" {
				command += " --no-wait"
			}
			wantLines(t, w.Program, command, 0)
			wantEqual(t, "visible messages after the command "+order, w.queue.Visible(time.Now()), 2*i+1)
			wantAnswer(t, order, s.ask("POST", "/api/v1/jobs/job-a/"+order, "", cookies), 200)
			wantEqual(t, "visible messages after a POST of "+order, w.queue.Visible(time.Now()), 2*i+2)
		}
		time.Sleep(10 * time.Second)
		wantLines(t, w.Program, "tick", 0, "succeeded") // the runs that were ordered
		w.wantPending(t, "00:59:00")
		w.queue.Meet = noQueue
		wantLines(t, w.Program, "run job-a --no-wait", 1,
			"it is ordered, but no replica could be woken up: the next one that is up obeys")
	})
}

// With no tick to come there is no alarm, and no error. A stop while tick waits for the next tick is no failure either: it
// sets the alarm, and does nothing else.
func TestTickSetsTheAlarmItNeeds(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue"}, func(t *testing.T) {
		w := newWoken()
		w.Work = []soloist.Work{soloist.Job{Name: "over", Schedule: "@hourly", Days: soloist.Days{Until: time.Now().Add(time.Minute)}, Do: w.do}}
		wantLines(t, w.Program, "tick", 0, "no tick is to come")
		wantEqual(t, "messages", len(w.queue.All()), 0)
		w.Work = newWoken("1 * * * *").Work
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		defer stop()
		run(ctx, w.Program, "tick").wants(t, "tick that is stopped", 0, "!error")
		w.wantPending(t, "00:00:35") // put at once, since the tick is less than the lead ahead, and hidden when old ones were cleared
	})
}

// wake puts a message that is visible at once, and status says which alarm is pending.
func TestWakeAndStatusOfAlarm(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "COLUMNS=100"}, func(t *testing.T) {
		w := newWoken("@hourly")
		w.queue.Name = "https://a/before"
		run(t.Context(), w.Program, "tick")
		wantLines(t, w.Program, "status", 0, "\nalarm: at 2000-01-01 00:59:00Z, in 59m, for the tick of 2000-01-01 01:00:00Z\n")
		w.queue.Name = "https://a/after"
		wantLines(t, w.Program, "status", 0, "\nalarm: none is set in this queue: the last one is in https://a/before\n")
		w.queue.Name = "https://a/before"
		wantLines(t, w.Program, "wake", 0, "a message is in the queue demo-alarm")
		wantEqual(t, "visible messages", w.queue.Visible(time.Now()), 1)
		time.Sleep(59*time.Minute + time.Second)
		wantLines(t, w.Program, "status", 0,
			"\nalarm: the last one was at 2000-01-01 00:59:00Z: a replica answers it, and sets the next one\n")
		w.queue.Meet = noQueue
		wantLines(t, w.Program, "wake --json", 1, `could not be put into the queue: no queue"`)
	})
	environment(t)
	wantLines(t, host.Program{Work: work()}, "wake", 2, "set SOLOIST_ALARM=queue")
}

// noQueue is a queue out of reach.
func noQueue(alarmtest.Call) alarmtest.Fate { return alarmtest.Fate{Err: errors.New("no queue")} }

// lastingJob is a job whose run takes so long, or ends with its context.
func lastingJob(name, schedule string, d time.Duration) soloist.Job {
	return soloist.Job{Name: name, Schedule: schedule, Do: func(ctx context.Context, _ *soloist.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}
}

// wantAwake wants a message in the queue, at each moment until a time, that is visible within a minute: it wakes the app up
// if this process dies.
func (w *woken) wantAwake(t *testing.T, until time.Duration) {
	t.Helper()
	for end := time.Now().Add(until); time.Now().Before(end); time.Sleep(7 * time.Second) {
		first := w.queue.First()
		if first.IsZero() || time.Until(first) > time.Minute {
			t.Errorf("at %s no message is visible within a minute: %+v", time.Now().UTC().Format("15:04:05"), w.queue.All())
			time.Sleep(time.Until(end))
		}
	}
}

// A run of 25 minutes keeps no other job waiting whose ticks come meanwhile. An order is obeyed, too.
func TestLongRunHoldsUpNoOtherJob(t *testing.T) {
	for _, settings := range executions {
		bubble(t, settings, func(t *testing.T) {
			w := newWoken("*/5 * * * *", "@daily")
			w.Work = append(w.Work, lastingJob("long", "0 1 * * *", 25*time.Minute))
			time.Sleep(59 * time.Minute)
			done := make(chan result, 1)
			go func() { done <- w.wake(t, "alarm") }()
			time.Sleep(time.Minute + 30*time.Second)
			w.wantAwake(t, 21*time.Minute)
			wantLines(t, w.Program, "run job-b --no-wait", 0)
			time.Sleep(time.Minute)
			wantEqual(t, "runs, of each five minutes and of the order", len(w.all()), 6)
			(<-done).wantWoken(t, "01:25", 8)
			onTime := slices.DeleteFunc(w.all(), func(at string) bool { return !strings.HasSuffix(at, "0:00") && !strings.HasSuffix(at, "5:00") })
			wantEqual(t, "ran at", onTime, []string{"01:00:00", "01:05:00", "01:10:00", "01:15:00", "01:20:00", "01:25:00"})
			w.wantPending(t, "01:29:00")
		})
	}
}

// A tick that is due and cannot be begun, since it may take longer than what is left of the execution, keeps no other one
// waiting.
func TestTickThatCannotBeginHoldsUpNoOtherJob(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=30m"}, func(t *testing.T) {
		w, n := newWoken(), 0
		needs := lastingJob("needs", "11 1 * * *", time.Minute)
		needs.Timeout = 20 * time.Minute
		short := soloist.Job{Name: "short", Schedule: "@every 130s", Do: func(_ context.Context, run *soloist.Run) error {
			n++
			if late := time.Since(run.Tick); late > 2*time.Second && n > 1 {
				t.Errorf("the tick of %s begins %s after it was due", run.Tick.Format("15:04:05"), late)
			}
			return nil
		}}
		w.Work = append(w.Work, lastingJob("long", "0 1 * * *", 25*time.Minute), needs, short)
		time.Sleep(59 * time.Minute)
		run(t.Context(), w.Program, "tick")
		wantWithin(t, "ticks that have run until the end of the long run", n, 11, 100)
	})
}

// A tick that waits for a run of its job begins when that has ended, also while another job runs.
func TestQueuedTickBesideLongRun(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue"}, func(t *testing.T) {
		w, ended, queued := newWoken(), time.Time{}, 0
		job := soloist.Job{Name: "queues", Schedule: "@every 1m", Overlap: soloist.QueueOne, Do: func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Before(ended) {
				queued++
				if late := time.Since(ended); late > 2*time.Second {
					t.Errorf("the tick of %s begins %s after the run that it has waited for", run.Tick.Format("15:04:05"), late)
				}
			}
			time.Sleep(61 * time.Second)
			ended = time.Now()
			return nil
		}}
		w.Work = append(w.Work, lastingJob("long", "0 1 * * *", 5*time.Minute), job)
		time.Sleep(59 * time.Minute)
		ctx, stop := context.WithTimeout(t.Context(), 6*time.Minute)
		defer stop()
		run(ctx, w.Program, "tick")
		wantWithin(t, "ticks that have waited", queued, 3, 10)
	})
}

// A run that an HTTP trigger has asked for is found if its instance dies, and a short one wakes nobody up. With a note that a
// newer program has written the alarm is set all the same, and the log tells of the note: no run fails for it.
func TestRunByTriggerIsFoundAgain(t *testing.T) {
	for _, newer := range []bool{false, true} {
		bubble(t, append(inFunctions, "SOLOIST_FUNCTION_FAILURE=error"), func(t *testing.T) {
			w := newWoken("@daily")
			w.Work = append(w.Work, lastingJob("long", "@daily", 10*time.Minute))
			if newer {
				_, err := w.Store.(*local.Memory).WriteDocument(t.Context(), "demo/.alarm", "", []byte(`{"schema":2,"app":"demo","id":"x"}`))
				must(t, err)
			}
			s, log := logged(t, w.Program)
			s.invoke(t, "alarm", byQueue(ours))
			for range 2 {
				s.wantInvoked(t, "job-a", byHTTP, 200)
				w.wantPending(t, "23:59:00")
			}
			wantEqual(t, "runs", len(w.all()), 2)
			if newer {
				wantText(t, "log", log.String(), "update the program", "!ERROR")
				return
			}
			code := s.invoked(t, "long", byHTTP)
			time.Sleep(10 * time.Second)
			w.wantAwake(t, 9*time.Minute)
			wantCode(t, <-code, 200)
			w.wantPending(t, "23:59:00")
		})
	}
}

// An execution that has less time than the lead shortens that: one is enough for a tick. Else the platform would call again and
// again until the tick is near.
func TestLeadFitsExecution(t *testing.T) {
	for name, settings := range map[string][]string{
		"a short time":               {"SOLOIST_TICK_TIMEOUT=2m"},
		"a long lead":                {"SOLOIST_TICK_TIMEOUT=30m", "SOLOIST_ALARM_LEAD=20m", "SOLOIST_STAY=30m"},
		"a short invocation":         append(inFunctions, "SOLOIST_FUNCTION_TIMEOUT=2m"),
		"an invocation of few calls": append(inFunctions, "SOLOIST_FUNCTION_TIMEOUT=10s"),
	} {
		bubble(t, append(settings, "SOLOIST_ALARM=queue"), func(t *testing.T) {
			w, n := newWoken("@hourly"), 0
			for w.wake(t, "alarm"); len(w.all()) == 0 && n < 100; n++ {
				time.Sleep(max(0, time.Until(w.queue.First())) + 300*time.Millisecond) // the way to the message
				w.wake(t, "alarm")
			}
			wantEqual(t, name+": executions for one tick", n, 1)
			wantEqual(t, name+": ran at", w.all(), []string{"01:00:00"})
		})
	}
}

// An execution leaves what it has no time for to the next one: a backfill, and ticks nearer than the stay. The time that is
// left is enough for a run.
func TestPassesEndBeforeTheExecution(t *testing.T) {
	bubble(t, executions["tick"], func(t *testing.T) {
		w := newWoken("*/5 * * * *", "@every 30s")
		w.Work = append(w.Work, lastingJob("slow", "*/10 * * * *", 20*time.Second))
		call(t, w.Program, "tick")
		time.Sleep(24*time.Hour + time.Minute)
		call(t, w.Program, "tick")
		wantLines(t, w.Program, "backfill slow --from 2000-01-01T00:00:00Z --to 2000-01-02T00:00:00Z --all", 0)
		before, begin := len(w.all()), time.Now()
		wantLines(t, w.Program, "tick", 0)
		wantTook(t, begin, 14*time.Minute, 24*time.Minute)
		wantWithin(t, "runs of the other jobs", len(w.all())-before, int(time.Since(begin)/time.Minute)*2, 1000)
		w.wantVisible(t, 5*time.Second)
	})
}

// At the end of its time a run gets the grace. With an alarm, what is left wakes the app up again.
func TestExecutionEndsUnderRun(t *testing.T) {
	for _, alarm := range []string{"queue", ""} {
		bubble(t, []string{"SOLOIST_ALARM=" + alarm, "SOLOIST_TICK_TIMEOUT=10m", "SOLOIST_GRACE=20s"}, func(t *testing.T) {
			w := overlong(time.Hour)
			if alarm == "" {
				call(t, w.Program, "tick")
				time.Sleep(2 * time.Minute)
			}
			begin := time.Now()
			wantLines(t, w.Program, "tick", 1)
			wantTook(t, begin, 8*time.Minute, 10*time.Minute-5*time.Second)
			if alarm != "" {
				w.wantVisible(t, time.Minute)
			}
		})
	}
}

// A stay that has waited for a run of a job of EveryReplica waits for a tick that is near by then, too.
func TestStayLooksAgainAfterItHasWaited(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_STAY=2m"}, func(t *testing.T) {
		w := newWoken("10 0 * * *")
		cache := lastingJob("cache", "1 0 1 1 *", 8*time.Minute+50*time.Second)
		cache.EveryReplica = true
		w.Work = append(w.Work, cache)
		stop, code := serveOn(t, w.Program, newPiped())
		defer stop()
		<-code
		wantEqual(t, "the end, and the run", append(w.all(), time.Now().UTC().Format("15:04")), []string{"00:10:00", "00:12"})
	})
}

// The stay does not end under a run of a job of EveryReplica, whose runs do not prolong it either.
func TestStayEndsUnderNoRun(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_STAY=65s", "SOLOIST_GRACE=0s"}, func(t *testing.T) {
		w := newWoken("@yearly")
		cache := lastingJob("cache", "* * * * *", 40*time.Second)
		cache.EveryReplica, cache.Do = true, noting(&w.noted, cache.Do)
		w.Work = append(w.Work, cache)
		begin := time.Now()
		stop, code := serveOn(t, w.Program, newPiped())
		defer stop()
		wantCode(t, <-code, 0)
		wantTook(t, begin, 100*time.Second, 103*time.Second)
		wantEqual(t, "runs, and messages that are left", append(w.all(), fmt.Sprint(len(w.queue.All()))), []string{"<nil>", "1"})
	})
}

// noting notes what each run returns.
func noting(n *noted, do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		err := do(ctx, run)
		n.add(fmt.Sprint(err))
		return err
	}
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
	for fault, pending := range map[string]time.Duration{"garbage": 24 * time.Hour, "unreadable": time.Minute} { // at most
		bubble(t, inFunctions, func(t *testing.T) {
			w := newWoken("@daily", "@daily")
			if fault == "garbage" {
				put(t, w.Store, "demo/job-a", fault, false)
			} else {
				w.Store = newGated(w.Store, unreadable("demo/job-a"))
			}
			s := open(t, w.Program)
			for _, function := range []string{"alarm", "tick"} {
				wantCode(t, <-s.invoked(t, function, "", "job job-a: "), 200)
				if first := w.queue.First(); first.IsZero() || time.Until(first) > pending {
					t.Errorf("%s: got the messages %+v", fault, w.queue.All())
				}
			}
		})
	}
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

// byQueue is the payload of a queue trigger.
func byQueue(message string) string {
	text, _ := json.Marshal(message)
	inner, _ := json.Marshal(string(text))
	return fmt.Sprintf(`{"Data":{"alarm":%s},"Metadata":{"DequeueCount":"1"}}`, inner)
}

const ours = `{"schema":1,"app":"demo","id":"x"}`

// inFunctions are the settings of an app of Functions with alarms.
var inFunctions = []string{"FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_ALARM=queue", "SOLOIST_APP=demo"}
