package host_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
)

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
		if n < 11 {
			t.Errorf("%d ticks have run, want all until the end of the long run", n)
		}
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
		if queued < 3 {
			t.Errorf("%d ticks have waited, want those of some minutes", queued)
		}
	})
}

// In Functions an execution is an invocation.
func TestLongRunHoldsUpNoOtherJobInFunctions(t *testing.T) {
	environment(t, "FUNCTIONS_CUSTOMHANDLER_PORT=7071", "SOLOIST_ALARM=queue", "SOLOIST_APP=demo", "SOLOIST_FUNCTION_TIMEOUT=30m")
	synctest.Test(t, func(t *testing.T) {
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
		if logs := <-done; strings.Count(strings.Join(logs, "\n"), "succeeded") != 6 {
			t.Errorf("got %q", logs)
		}
	})
}

// A run that an HTTP trigger has asked for is found if its instance dies, and a short one wakes nobody up.
func TestRunByTriggerIsFoundAgain(t *testing.T) {
	bubble(t, inFunctions, func(t *testing.T) {
		w := newWoken("@daily")
		w.Work = append(w.Work, lastingJob("long", "@daily", 10*time.Minute))
		s := open(t, w.Program)
		s.invoke(t, "alarm", byQueue(ours))
		s.invoke(t, "job-a", byHTTP)
		if len(w.times()) != 1 {
			t.Fatalf("ran at %q", w.times())
		}
		w.wantPending(t, "23:59:00")
		done := make(chan struct{})
		go func() { defer close(done); s.invoke(t, "long", byHTTP) }()
		time.Sleep(10 * time.Second)
		w.wantAwake(t, 9*time.Minute)
		<-done
		w.wantPending(t, "23:59:00")
	})
}

// An execution that has less time than the lead shortens that: one is enough for a tick.
func TestLeadFitsExecution(t *testing.T) {
	for name, settings := range map[string][]string{
		"a short time": {"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=2m"},
		"a long lead":  {"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=30m", "SOLOIST_ALARM_LEAD=20m", "SOLOIST_STAY=30m"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, settings, func(t *testing.T) {
				w, n := newWoken("@hourly"), 0
				for run(t.Context(), w.Program, "tick"); len(w.times()) == 0 && n < 100; n++ {
					time.Sleep(max(0, time.Until(w.queue.First())) + time.Second)
					run(t.Context(), w.Program, "tick")
				}
				wantEqual(t, "executions for one tick", n, 1)
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

// Ticks nearer than the stay keep the program up, so none is missed but between two executions.
func TestFrequentTicksKeepExecutionUp(t *testing.T) {
	bubble(t, []string{"SOLOIST_ALARM=queue", "SOLOIST_TICK_TIMEOUT=30m"}, func(t *testing.T) {
		w := newWoken("* * * * *", "@every 10s")
		executions := 0
		for end := time.Now().Add(time.Hour); time.Now().Before(end); executions++ {
			run(t.Context(), w.Program, "tick")
			time.Sleep(max(0, time.Until(w.queue.First())))
			time.Sleep(35 * time.Second) // for the platform to look, and to start it
		}
		var s struct {
			Jobs []struct {
				Job    string
				Counts map[string]int
			}
		}
		must(t, json.Unmarshal([]byte(run(t.Context(), w.Program, "status", "--json").out), &s))
		missed := map[string]int{"job-a": 0, "job-b": 4 * executions}
		for _, j := range s.Jobs {
			if n := j.Counts["missed"]; n > missed[j.Job] {
				t.Errorf("%d ticks of %s were missed in %d executions", n, j.Job, executions)
			}
		}
		if executions > 4 {
			t.Errorf("%d executions", executions)
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
		wantEnd(t, code)
		if at := time.Now().UTC().Format("15:04:05"); ended.Load() != 1 || cut.Load() != 0 || at < "00:01:40" || at > "00:01:43" {
			t.Errorf("it ended at %s: %d runs ended, %d were cut off; want one that ended at 00:01:40", at, ended.Load(), cut.Load())
		}
		wantEqual(t, "messages that are left", len(w.queue.All()), 1)
	})
}
