package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// runNow has a replica run the job "work" for the request x.
func (r *replica) runNow() (store.Outcome, error) {
	return r.RunNow(r.tap.t.Context(), "work", "x")
}

// runsNow begins a manual run of the job "work", which goes on until the channel is closed.
func (r *replica) runsNow(ctx context.Context) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		r.RunNow(ctx, "work", "x") // its outcome is asked for by others
	}()
	return done
}

// wantOutcome checks what a call of RunNow returned.
func wantOutcome(t *testing.T, got store.Outcome, err error, status store.Status, reason string) {
	t.Helper()
	if err != nil || got.Status != status || got.Reason != reason {
		t.Errorf("got %s %q, %v, want %s %q", got.Status, got.Reason, err, status, reason)
	}
}

func TestRunNowRunsOnceForRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		before := c.record("work")
		outcome, err := a.runNow()
		if err != nil || outcome.Status != store.Succeeded || outcome.Request != "x" || outcome.Replica != "a" {
			t.Errorf("got %+v, %v", outcome, err)
		}
		run := c.all()[len(c.all())-1]
		if run.ID() != "work@x" || run.Request != "x" || run.Token <= before.Token {
			t.Errorf("got %+v", run.Run)
		}
		after := c.record("work")
		if !after.Watermark.Equal(before.Watermark) || after.Counts[store.Succeeded] != before.Counts[store.Succeeded] {
			t.Errorf("a manual run counts as a tick: %+v", after)
		}
		for _, r := range []*replica{a, b} {
			if again, err := r.runNow(); err != nil || again.Status != store.Succeeded || again.Token != outcome.Token {
				t.Errorf("%s: got %+v, %v", r.Replica, again, err)
			}
		}
		time.Sleep(time.Hour)
		c.wantOutcomes("work", "succeeded 01:00:00", "succeeded 01:01:00", "succeeded 02:00:00")
		c.wantRuns(3)
	})
}

// A job without a tick runs when that is ordered. It is idle, neither over nor overdue.
func TestManualJobRunsWhenOrdered(t *testing.T) {
	for _, text := range []string{"@manual", ""} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", work(text, 10*time.Second))
			time.Sleep(24 * time.Hour)
			st, err := a.StatusOf(c.t.Context(), "work")
			idle := st.Next.IsZero() && st.Over.IsZero() && st.Begins.IsZero() && st.Schedule == "by hand alone"
			if err := errors.Join(err, st.Err); err != nil || !idle {
				t.Errorf("%q: got %+v, %v", text, st, err)
			}
			outcome, err := a.runNow()
			wantOutcome(t, outcome, err, store.Succeeded, "")
			time.Sleep(time.Hour)
			if due, err := a.NextDue(c.t.Context()); err != nil || !due.IsZero() {
				t.Errorf("%q: due at %v, %v", text, due, err)
			}
			c.wantRuns(1)
		})
	}
}

// While the job runs there is no manual run, and a tick that comes due under one is skipped.
func TestRunNowAndTickDoNotOverlap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Minute)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		for _, r := range []*replica{a, b} {
			if _, err := r.runNow(); !errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: got %v", r.Replica, err)
			}
		}
		time.Sleep(55 * time.Minute) // 01:56
		outcome, err := b.runNow()
		wantOutcome(t, outcome, err, store.Succeeded, "")
		time.Sleep(time.Minute)
		c.wantOutcomes("work", "succeeded 01:00:00", "succeeded 01:56:00", "skipped 02:00:00 overlap")
		disjoint(t, c.all())
	})
}

// A manual run never has the ID of a tick, is of a job of the program, and has a request that is a name.
func TestRunNowRefusesBadRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 0), here("@hourly", nil), leader())
		time.Sleep(90 * time.Minute)
		for _, job := range []string{"work", "here"} {
			for request, isTick := range map[string]bool{"2000-01-01T01:00:00Z": true, "2000-01-01T02:00:00Z": true,
				"2000-01-01T01:00:00.5Z": false, "2000-01-01T01:00:00-05:00": false, "2000-01-01": false, "by-2000-01-01T01:00:00Z": false} {
				outcome, err := a.RunNow(c.t.Context(), job, request)
				if isTick {
					wantError(t, err, request, "tick")
				} else if err != nil || outcome.Request != request {
					t.Errorf("%s: %s: got %+v, %v", job, request, outcome, err)
				}
			}
		}
		for _, try := range [][2]string{{"nobody", "x"}, {"lead", "x"}, {"work", ""}, {"work", "a b"}, {"work", "\x00"}} {
			if _, err := a.RunNow(c.t.Context(), try[0], try[1]); err == nil {
				t.Errorf("%q is taken", try)
			}
		}
	})
}

// A job that is paused, one of which a tick is open, and one that is everywhere.
func TestRunNowOfPausedOpenAndEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused := named("paused", work("0 * * * *", 0))
		paused.Paused = true
		a := c.start("a", paused, here("0 * * * *", nil))
		for _, name := range []string{"paused", "here"} {
			outcome, err := a.RunNow(c.t.Context(), name, "x")
			wantOutcome(t, outcome, err, store.Succeeded, "")
		}
		open := rerun(work("0 * * * *", time.Minute))
		b := c.start("b", open)
		time.Sleep(time.Hour + time.Second)
		b.stop()
		_, err := c.replica("r", open).runNow()
		if !errors.Is(err, store.ErrHeld) || err.Error() != "its tick 2000-01-01T01:00:00Z has to be run again first" {
			t.Errorf("got %v", err)
		}
	})
}

// A manual run that cannot end in time is not started.
func TestRunNowThatDoesNotFitIsNotStarted(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, here := work("0 * * * *", 0), here("0 * * * *", nil)
		long.Timeout, here.Timeout = time.Hour, time.Hour
		a := c.start("a", long, here)
		ctx := c.within(time.Minute)
		for _, name := range []string{"work", "here"} {
			_, err := a.RunNow(ctx, name, "x")
			wantError(t, err, "not started: it may take 1h0m0s, and this call ends in 1m0s")
		}
		c.wantRuns(0)
	})
}

// Where each claim fails, a call says why. RunNow does once its time is up or, if writes are denied, at once. A denial to acquire
// may pass: the call is patient, and does not hurry. Health shows no trouble of the store after it, since no later call would end
// that.
func TestCallTellsWhyNothingRuns(t *testing.T) {
	full := errors.New("no space left on device")
	for name, tt := range map[string]struct {
		fault fault
		want  error
		late  bool // the call waits until its time is up
	}{
		"out of reach":   {fail(errNetwork), errNetwork, true},
		"no space":       {fail(full, "write"), full, true},
		"may not write":  {failWrites(fs.ErrPermission), fs.ErrPermission, false},
		"may read alone": {fail(fs.ErrPermission, "acquire", "write", "save"), fs.ErrPermission, true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", work("@hourly", 0))
			a.wake()
			a.tap.meet(tt.fault)
			a.tap.counts()
			begin := time.Now()
			_, err := a.RunNow(c.within(10*time.Minute), "work", "x")
			took, calls := time.Since(begin), a.tap.counts()
			late := errors.Is(err, context.DeadlineExceeded) && took > time.Minute
			if !errors.Is(err, tt.want) || late != tt.late || calls["acquire"] > 300 {
				t.Errorf("RunNow after %s and the calls %v: %v", took, calls, err)
			}
			if h := a.Health(); h.Storage != nil {
				t.Errorf("health after the call: %+v", h)
			}
			until(time.Hour)
			_, err = a.RunDue(c.within(10*time.Minute), soloist.Wake{})
			if !errors.Is(err, tt.want) || sinceMidnight() > time.Hour+time.Minute {
				t.Errorf("RunDue after %s: %v", sinceMidnight()-time.Hour, err)
			}
			c.wantRuns(0)
		})
	}
}

// The second call of a request that is under way does not call it abandoned. Once it is over, its outcome is that of the run.
func TestRunNowTellsRequestUnderWay(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			a, b := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute))
			done := a.runsNow(c.t.Context())
			time.Sleep(10 * time.Second)
			for _, r := range []*replica{a, b} {
				if f, err := r.runNow(); err != nil || f.Status != store.Running || f.Replica != "a" {
					t.Errorf("%s: got %+v, %v, want that a runs it", r.Replica, f, err)
				}
			}
			status, reason := store.Succeeded, ""
			if unlocked {
				status, reason = store.Abandoned, "unlocked by b"
				if err := b.Unlock(c.t.Context(), "work", true); err != nil {
					t.Error(err)
				}
			}
			<-done
			f, err := b.runNow()
			wantOutcome(t, f, err, status, reason)
			c.wantRuns(1)
		})
	}
}

// The run is over when its outcome is refused, or not confirmed. The caller gets that error, not the outcome
// that others make up for a runner that looks dead.
func TestRunNowTellsUnconfirmedOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.Jobs[0].Do = func(ctx context.Context, _ *soloist.Run) error {
			return a.Unlock(context.WithoutCancel(ctx), "work", true)
		}
		_, err := a.runNow()
		wantError(t, err, "has run, and the outcome, succeeded, was refused")
		b := c.replica("b", named("other", work("@hourly", 30*time.Second)))
		time.AfterFunc(20*time.Second, b.kill)
		_, err = b.RunNow(c.within(2*time.Minute), "other", "x")
		wantError(t, err, "has run, and the outcome, ", "not confirmed")
	})
}

// The second call with a request returns the outcome that the first one did.
func TestRequestTellsSameOutcomeTwice(t *testing.T) {
	long := strings.Repeat("why ", 60)
	for name, tt := range map[string]struct {
		do     func(context.Context, *soloist.Run) error
		status store.Status
		reason string
	}{
		"failed":  {func(context.Context, *soloist.Run) error { return errors.New(long) }, store.Failed, long},
		"stopped": {work("", time.Hour).Do, store.Abandoned, "out of time, stopped"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, ctx := c.replica("a", doing("@hourly", tt.do)), c.within(time.Minute)
			for _, ctx := range []context.Context{ctx, c.t.Context()} {
				f, err := a.RunNow(ctx, "work", "x")
				wantOutcome(t, f, err, tt.status, tt.reason)
			}
		})
	}
}

// A run that has lost its lease is abandoned for that, also if the time of its call is up when it returns.
func TestLostRunIsNotOutOfTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", doing("@hourly", func(context.Context, *soloist.Run) error {
			time.Sleep(time.Minute)
			return errors.New("too late")
		}))
		time.AfterFunc(5*time.Second, func() { a.meets(fail(errNetwork)) })
		time.AfterFunc(55*time.Second, func() { a.meets(nil) })
		<-a.runsNow(c.within(time.Minute))
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Abandoned || !strings.HasPrefix(f.Reason, soloist.ErrLost.Error()) {
			t.Errorf("got %s %q, want that the lease is lost", f.Status, f.Reason)
		}
	})
}

// A manual run whose lease is lost before it begins has not run: the call says
// so, and does not return the outcome of a run that goes on.
func TestRunNowTellsClaimNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		a := c.replica("a", work("@hourly", time.Second)).on(&machine)
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() { machine.slept.Add(int64(2 * D)) }})
		f, err := a.runNow()
		c.wantRuns(0)
		if !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "claimed and not run") {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// The runner of a request is gone: a call with the same request writes the outcome,
// and does not run it again. The ticks of the job are what they were.
func TestRequestOfDeadRunnerIsNotRunAgain(t *testing.T) {
	for name, gone := range map[string]func(*replica){
		"calls fail": func(a *replica) { a.tap.meet(fail(errNetwork)) },
		"calls hang": func(a *replica) { a.kill() },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(work("@hourly", time.Hour))
			a := c.replica("a", job)
			done := a.runsNow(c.within(time.Hour))
			time.Sleep(2 * time.Second)
			gone(a)
			time.Sleep(time.Minute)
			b := c.replica("b", job)
			for range 2 {
				f, err := b.runNow()
				wantOutcome(t, f, err, store.Abandoned, "its runner died")
			}
			<-done
			if r := c.record("work"); len(r.History) != 1 || r.History[0].Request != "x" {
				t.Errorf("recorded %+v", r.History)
			}
			c.wantRuns(1)
		})
	}
}

// A manual run that goes back is unknown: it can be asked for again.
func TestRunNowIsTakenBackByStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancelCause(c.t.Context())
		why := errors.New("enough")
		a.tap.meet(onClaim(func() { cancel(why) }))
		if outcome, err := a.RunNow(ctx, "work", "x"); !errors.Is(err, why) {
			t.Errorf("got %+v, %v", outcome, err)
		}
		outcome, err := a.runNow()
		wantOutcome(t, outcome, err, store.Succeeded, "")
		c.wantRuns(1)
	})
}

// A manual run of a program with another definition, which started later, leaves the one in force as it is, and its ticks. After
// a deploy the new definition comes into force with its first tick.
func TestRunNowLeavesDefinitionInForce(t *testing.T) {
	for name, takes := range map[string]time.Duration{"over before the tick": time.Second, "over after the tick": 70 * time.Minute} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.start("a", work("0 2 * * *", time.Second))
			until(25 * time.Hour)
			before := c.record("work")
			tool := c.replica("tool", work("*/30 * * * *", takes))
			f, err := tool.runNow()
			wantOutcome(t, f, err, store.Succeeded, "")
			after := c.record("work")
			if after.Definition != before.Definition || !after.Watermark.Equal(before.Watermark) || !after.Due.Equal(before.Due) {
				t.Errorf("the record was %+v and is %+v", before, after)
			}
			until(47 * time.Hour)
			var ran []string
			for _, r := range c.all() {
				ran = append(ran, r.ID())
			}
			slices.Sort(ran)
			if !slices.Equal(ran, []string{"work@2000-01-01T02:00:00Z", "work@2000-01-02T02:00:00Z", "work@x"}) {
				t.Errorf("got %q", ran)
			}
			a.stop()
			c.launch(tool)
			time.Sleep(time.Hour + 2*takes)
			got := c.record("work")
			if got.Definition.Spec == before.Definition.Spec || !got.Run.Tick.After(before.Watermark.Add(24*time.Hour)) {
				t.Errorf("the record is %+v", got)
			}
		})
	}
}

// A run whose outcome the definition in force has to decide is not settled by a manual run of another one.
func TestRunNowOfOtherDefinitionSettlesNoRun(t *testing.T) {
	for name, end := range map[string]func(*replica){
		"died":    func(a *replica) { a.kill() },
		"stopped": func(a *replica) { a.stop() },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(work("0 * * * *", 10*time.Minute))
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Minute)
			end(a)
			time.Sleep(time.Minute)
			_, err := c.replica("tool", work("30 * * * *", time.Second)).runNow()
			if !errors.Is(err, soloist.ErrHeld) || !strings.HasPrefix(err.Error(), "another schedule is in force") {
				t.Errorf("RunNow: %v", err)
			}
			c.start("b", job)
			time.Sleep(20 * time.Minute)
			if r := c.record("work"); r.Run.Attempt != 2 || r.Run.Status != store.Succeeded {
				t.Errorf("the tick is not run again: %+v", r)
			}
		})
	}
}
