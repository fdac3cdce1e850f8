package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
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
	queue *alarmtest.Queue
	ran   noted
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

func (w *woken) do(context.Context, *soloist.Run) error {
	w.ran.add(time.Now().UTC().Format("15:04:05"))
	return nil
}

// times are when the jobs have run.
func (w *woken) times() []string { return w.ran.all() }

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

// serve runs a replica in the background.
func (w *woken) serve(t *testing.T) (stop func(), code <-chan int) {
	t.Helper()
	return serveOn(t, w.Program, newPiped())
}

// tick waits for ticks that are due within the stay, and then sets the alarm for the next one, less the lead.
func TestTickHandsOverToTheAlarm(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue"}, func(t *testing.T) {
		w := newWoken("1,2 0 * * *", "@hourly")
		begin := time.Now()
		got := run(t.Context(), w.Program, "tick")
		if took := time.Since(begin); got.code != 0 || took < 2*time.Minute || took > 2*time.Minute+5*time.Second || strings.Count(got.out, "succeeded") != 2 {
			t.Errorf("got %+v after %s, want the ticks of 00:01 and 00:02", got, took)
		}
		w.wantPending(t, "00:59:00")
		time.Sleep(time.Until(w.queue.First()))
		got = run(t.Context(), w.Program, "tick")
		if at := time.Now().UTC().Format("15:04"); got.code != 0 || at != "01:00" || strings.Count(got.out, "succeeded") != 1 {
			t.Errorf("got %+v at %s", got, at)
		}
		w.wantPending(t, "01:59:00")
	})
}

// If the alarm cannot be set, tick exits with code 1, and the old message stays. The log says so as an error, which is what
// alerts look for. An invocation fails, so its host keeps the message that has called and calls again.
func TestAlarmThatCannotBeSet(t *testing.T) {
	const says = "the alarm may not be set, so the next tick may wait for the platform's timer"
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_LOG_FORMAT=json"}, func(t *testing.T) {
		w := newWoken("@hourly")
		run(t.Context(), w.Program, "tick")
		time.Sleep(time.Until(w.queue.First()))
		w.queue.Meet = func(c alarmtest.Call) (fate alarmtest.Fate) {
			if c.Op == "put" {
				fate.Err = errors.New("403 AuthorizationPermissionMismatch")
			}
			return fate
		}
		got := run(t.Context(), w.Program, "tick", "--json")
		got.wants(t, "tick", 1, "succeeded")
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
			code, logs := s.invoke(t, function, "")
			if code != 500 || !strings.Contains(strings.Join(logs, ""), says) {
				t.Errorf("%s: got %d, %q", function, code, logs)
			}
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
			stop, code := w.serve(t)
			time.Sleep(10 * time.Minute)
			w.wantPending(t, "00:59:00")
			wantLines(t, w.Program, "wake", 0)
			wantEqual(t, "visible messages, with the one of wake", w.queue.Visible(time.Now()), 1)
			time.Sleep(6 * time.Minute)
			wantEqual(t, "visible messages six minutes later", w.queue.Visible(time.Now()), 0)
			time.Sleep(54 * time.Minute)
			w.wantPending(t, "01:59:00")
			if len(code) != 0 || len(w.times()) != 1 {
				t.Errorf("with a stay of %s: it has ended, or ran at %q", stay, w.times())
			}
			stop()
			<-code
			w.wantPending(t, "01:59:00")
		})
	}
}

// While a job runs nothing is handed over; a stop sets the alarm for what it has left.
func TestServeSetsAlarmWhenStopped(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_GRACE=1s"}, func(t *testing.T) {
		w, long := newWoken(), lastingJob("long", "1 0 * * *", 24*time.Hour)
		long.Interrupted = soloist.Rerun
		w.Work = []soloist.Work{long}
		stop, code := w.serve(t)
		time.Sleep(20 * time.Minute)
		if len(code) != 0 {
			t.Fatal("it has ended under a run")
		}
		wantEqual(t, "messages under a run", len(w.queue.All()), 1)
		w.empty(t)
		stop()
		wantCode(t, <-code, 0)
		if n := w.queue.Visible(time.Now()); n == 0 {
			t.Errorf("the run that was interrupted wakes nobody up: %+v", w.queue.All())
		}
	})
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
		if got := run(ctx, w.Program, "tick"); got.code != 0 || strings.Contains(got.out, "error") {
			t.Errorf("got %+v", got)
		}
		w.wantPending(t, "00:00:35") // put at once, since the tick is less than the lead ahead, and hidden when old ones were cleared
	})
}

// wake puts a message that is visible at once, and status says which alarm is pending.
func TestWakeAndStatusOfAlarm(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue"}, func(t *testing.T) {
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

// empty has somebody empty the queue.
func (w *woken) empty(t *testing.T) {
	for _, m := range w.queue.All() {
		w.queue.Delete(t.Context(), m.Receipt)
	}
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
	bubble(t, []string{"SOLOIST_ALARM=queue"}, func(t *testing.T) {
		w := newWoken("*/5 * * * *", "@daily")
		w.Work = append(w.Work, lastingJob("long", "0 1 * * *", 25*time.Minute))
		time.Sleep(59 * time.Minute)
		done := make(chan result, 1)
		go func() { done <- run(t.Context(), w.Program, "tick") }()
		time.Sleep(time.Minute + 30*time.Second)
		w.wantAwake(t, 21*time.Minute)
		wantLines(t, w.Program, "run job-b --no-wait", 0)
		time.Sleep(time.Minute)
		wantEqual(t, "runs, of each five minutes and of the order", len(w.times()), 6)
		got := <-done
		if at := time.Now().UTC().Format("15:04"); got.code != 0 || at != "01:25" || strings.Count(got.out, "succeeded") != 8 {
			t.Errorf("got %+v at %s", got, at)
		}
		if want := []string{"01:00:00", "01:05:00", "01:10:00", "01:15:00", "01:20:00", "01:25:00"}; !slices.Equal(slices.DeleteFunc(w.times(), func(at string) bool { return !strings.HasSuffix(at, "0:00") && !strings.HasSuffix(at, "5:00") }), want) {
			t.Errorf("ran at %q, want %q", w.times(), want)
		}
		w.wantPending(t, "01:29:00")
	})
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

// In Functions an execution is an invocation.
func TestLongRunHoldsUpNoOtherJobInFunctions(t *testing.T) {
	bubble(t, append(inFunctions, "SOLOIST_FUNCTION_TIMEOUT=30m"), func(t *testing.T) {
		w := newWoken("*/5 * * * *")
		w.Work = append(w.Work, lastingJob("long", "0 1 * * *", 21*time.Minute))
		time.Sleep(59 * time.Minute)
		s := open(t, w.Program)
		done := make(chan []string)
		go func() {
			_, logs := s.invoke(t, "alarm", byQueue(ours))
			done <- logs
		}()
		time.Sleep(90 * time.Second)
		w.wantAwake(t, 18*time.Minute)
		wantEqual(t, "runs until 01:19", len(w.times()), 4)
		wantEqual(t, "runs", strings.Count(strings.Join(<-done, "\n"), "succeeded"), 6)
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
			s.wantInvoked(t, "job-a", byHTTP, 200)
			wantEqual(t, "runs", len(w.times()), 1)
			w.wantPending(t, "23:59:00")
			if newer {
				s.wantInvoked(t, "job-a", byHTTP, 200)
				w.wantPending(t, "23:59:00")
				wantText(t, "log", log.String(), "update the program")
				wantNone(t, "log", log.String(), "ERROR")
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

// An execution, or an invocation, that has less time than the lead shortens that: one is enough for a tick. Else the platform
// would call again and again until the tick is near.
func TestLeadFitsExecution(t *testing.T) {
	for name, settings := range map[string][]string{
		"a short time":               {"SOLOIST_TICK_TIMEOUT=2m"},
		"a long lead":                {"SOLOIST_TICK_TIMEOUT=30m", "SOLOIST_ALARM_LEAD=20m", "SOLOIST_STAY=30m"},
		"a short invocation":         {"SOLOIST_FUNCTION_TIMEOUT=2m"},
		"an invocation of few calls": {"SOLOIST_FUNCTION_TIMEOUT=10s"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, append(settings, "SOLOIST_ALARM=queue"), func(t *testing.T) {
				w, n := newWoken("@hourly"), 0
				wake := func() { run(t.Context(), w.Program, "tick") }
				if strings.Contains(name, "invocation") {
					t.Setenv("FUNCTIONS_CUSTOMHANDLER_PORT", "7071")
					s := open(t, w.Program)
					body := ours
					wake = func() { // as the host does
						all, _ := w.queue.Receive(t.Context(), 1, 10*time.Minute)
						for _, m := range all {
							body = string(m.Body)
							defer w.queue.Delete(t.Context(), m.Receipt)
						}
						s.wantInvoked(t, "alarm", byQueue(body), 200)
					}
				}
				for wake(); len(w.times()) == 0 && n < 100; n++ {
					time.Sleep(max(0, time.Until(w.queue.First())) + 300*time.Millisecond) // the way to the message
					wake()
				}
				wantEqual(t, "executions for one tick", n, 1)
				wantEqual(t, "ran at", w.times(), []string{"01:00:00"})
			})
		})
	}
}

// An execution leaves what it has no time for to the next one: a backfill, and ticks nearer than the stay. The time that is
// left is enough for a run.
func TestPassesEndBeforeTheExecution(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=30m"}, func(t *testing.T) {
		w := newWoken("*/5 * * * *", "@every 30s")
		w.Work = append(w.Work, lastingJob("slow", "*/10 * * * *", 20*time.Second))
		run(t.Context(), w.Program, "tick")
		time.Sleep(24*time.Hour + time.Minute)
		run(t.Context(), w.Program, "tick")
		wantLines(t, w.Program, "backfill slow --from 2000-01-01T00:00:00Z --to 2000-01-02T00:00:00Z --all", 0)
		before, begin := len(w.times()), time.Now()
		got := run(t.Context(), w.Program, "tick")
		took := time.Since(begin)
		if got.code != 0 || took < 14*time.Minute || took > 24*time.Minute {
			t.Errorf("code %d after %s", got.code, took)
		}
		if n, want := len(w.times())-before, int(took/time.Minute)*2; n < want {
			t.Errorf("the other jobs ran %d times in %s", n, took)
		}
		if n := w.queue.Visible(time.Now().Add(5 * time.Second)); n == 0 {
			t.Errorf("the backfill wakes nobody up: %+v", w.queue.All())
		}
	})
}

// At the end of its time a run gets the grace. With an alarm, what is left wakes the app up again.
func TestExecutionEndsUnderRun(t *testing.T) {
	for _, alarm := range []string{"queue", ""} {
		bubble(t, []string{"SOLOIST_ALARM=" + alarm, "SOLOIST_TICK_TIMEOUT=10m", "SOLOIST_GRACE=20s"}, func(t *testing.T) {
			w, long := newWoken(), lastingJob("long", "1 0 * * *", time.Hour)
			long.Interrupted = soloist.Rerun
			w.Work = []soloist.Work{long}
			if alarm == "" {
				run(t.Context(), w.Program, "tick")
				time.Sleep(2 * time.Minute)
			}
			begin := time.Now()
			wantLines(t, w.Program, "tick", 1)
			wantTook(t, begin, 8*time.Minute, 10*time.Minute-5*time.Second)
			if n := w.queue.Visible(time.Now().Add(time.Minute)); (n == 0) != (alarm == "") {
				t.Errorf("with the alarm %q: got the messages %+v", alarm, w.queue.All())
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
		stop, code := w.serve(t)
		defer stop()
		<-code
		if at := time.Now().UTC().Format("15:04"); at != "00:12" || !slices.Contains(w.times(), "00:10:00") {
			t.Errorf("it ended at %s, and the job ran at %q, want a run at 00:10:00", at, w.times())
		}
	})
}

// The stay does not end under a run of a job of EveryReplica, whose runs do not prolong it either.
func TestStayEndsUnderNoRun(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_STAY=65s", "SOLOIST_GRACE=0s"}, func(t *testing.T) {
		w := newWoken("@yearly")
		var ended, cut atomic.Int32
		w.Work = append(w.Work, soloist.Job{Name: "cache", Schedule: "* * * * *", EveryReplica: true, Do: func(ctx context.Context, _ *soloist.Run) error {
			select {
			case <-time.After(40 * time.Second):
				ended.Add(1)
			case <-ctx.Done():
				cut.Add(1)
			}
			return ctx.Err()
		}})
		stop, code := w.serve(t)
		defer stop()
		wantCode(t, <-code, 0)
		if at := time.Now().UTC().Format("15:04:05"); ended.Load() != 1 || cut.Load() != 0 || at < "00:01:40" || at > "00:01:43" {
			t.Errorf("it ended at %s: %d runs ended, %d were cut off; want one that ended at 00:01:40", at, ended.Load(), cut.Load())
		}
		wantEqual(t, "messages that are left", len(w.queue.All()), 1)
	})
}
