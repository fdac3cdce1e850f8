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

func TestRunNowRunsOnceForRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		before := c.record("work")
		outcome, err := a.RunNow(c.t.Context(), "work", "request-1")
		if err != nil || outcome.Status != store.Succeeded || outcome.Request != "request-1" || outcome.Replica != "a" {
			t.Errorf("got %+v, %v", outcome, err)
		}
		run := c.all()[len(c.all())-1]
		if run.ID() != "work@request-1" || run.Request != "request-1" || run.Token <= before.Token {
			t.Errorf("got %+v", run.Run)
		}
		after := c.record("work")
		if !after.Watermark.Equal(before.Watermark) || after.Counts[store.Succeeded] != before.Counts[store.Succeeded] {
			t.Errorf("a run by hand counts as a tick: %+v", after)
		}
		// Once more, here and elsewhere: it is known.
		for _, r := range []*replica{a, b} {
			if again, err := r.RunNow(c.t.Context(), "work", "request-1"); err != nil || again.Status != store.Succeeded || again.Token != outcome.Token {
				t.Errorf("%s: got %+v, %v", r.Replica, again, err)
			}
		}
		time.Sleep(time.Hour)
		want := []string{"succeeded 01:00:00", "succeeded 01:01:00", "succeeded 02:00:00"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		c.wantRuns(3)
	})
}

// A job without a tick runs when that is ordered. It is idle, neither over nor overdue.
func TestManualJobRunsWhenOrdered(t *testing.T) {
	for _, text := range []string{"@manual", ""} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", work(text, 10*time.Second))
			time.Sleep(24 * time.Hour)
			all, err := a.Status(c.t.Context())
			if err != nil || len(all) != 1 {
				t.Fatal(all, err)
			}
			st := all[0]
			if !st.Next.IsZero() || !st.Over.IsZero() || !st.Begins.IsZero() || st.Err != nil || st.Schedule != "by hand alone" {
				t.Errorf("%q: got %+v", text, st)
			}
			if outcome, err := a.RunNow(c.t.Context(), "work", "now"); err != nil || outcome.Status != store.Succeeded {
				t.Errorf("%q: got %+v, %v", text, outcome, err)
			}
			time.Sleep(time.Hour)
			if due, err := a.NextDue(c.t.Context()); err != nil || !due.IsZero() {
				t.Errorf("%q: due at %v, %v", text, due, err)
			}
			c.wantRuns(1)
		})
	}
}

// While the job runs, nobody runs it by hand, and a tick that comes due under a
// run by hand is skipped.
func TestRunNowAndTickDoNotOverlap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Minute)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		for _, r := range []*replica{a, b} {
			if _, err := r.RunNow(c.t.Context(), "work", "now"); !errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: got %v", r.Replica, err)
			}
		}
		time.Sleep(55 * time.Minute) // 01:56
		if outcome, err := b.RunNow(c.t.Context(), "work", "now"); err != nil || outcome.Status != store.Succeeded {
			t.Errorf("got %+v, %v", outcome, err)
		}
		time.Sleep(time.Minute)
		want := []string{"succeeded 01:00:00", "succeeded 01:56:00", "skipped 02:00:00 overlap"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		disjoint(t, c.all())
	})
}

// One whose runner dies is abandoned, under either policy, and no tick of the
// job is touched by that.
func TestRunNowAbandonedWhenRunnerDies(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 5*time.Minute)
			job.Interrupted = policy
			a, b := c.start("a", job), c.start("b", job)
			time.Sleep(90 * time.Minute)
			ctx, cancel := context.WithCancel(c.t.Context())
			done := make(chan struct{})
			go func() { defer close(done); a.RunNow(ctx, "work", "now") }()
			defer func() { cancel(); <-done }()
			time.Sleep(time.Minute)
			a.kill()
			time.Sleep(29*time.Minute + 10*time.Minute)
			want := []string{"succeeded 01:00:00", "abandoned 01:30:00 its runner died", "succeeded 02:00:00"}
			if got := c.outcomes("work"); !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", policy, got, want)
			}
			if outcome, err := b.RunNow(c.t.Context(), "work", "now"); err != nil || outcome.Status != store.Abandoned {
				t.Errorf("got %+v, %v", outcome, err)
			}
		})
	}
}

// A run by hand never has the id of a tick.
func TestRunNowRefusesTickAsRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		everywhere := here("@hourly", nil)
		a := c.start("a", work("0 * * * *", 0), everywhere)
		time.Sleep(90 * time.Minute)
		tick := c.all()[0].ID()
		for _, job := range []string{"work", "here"} {
			for request, taken := range map[string]bool{"2000-01-01T01:00:00Z": false, "2000-01-01T02:00:00Z": false, "2000-01-01T01:00:00.5Z": true, "2000-01-01T01:00:00-05:00": true, "2000-01-01": true, "by-2000-01-01T01:00:00Z": true} {
				outcome, err := a.RunNow(c.t.Context(), job, request)
				if taken != (err == nil) || taken != (outcome.Request == request) {
					t.Errorf("%s: %s: got %+v, %v", job, request, outcome, err)
				}
				if !taken && (err == nil || !strings.Contains(err.Error(), request) || !strings.Contains(err.Error(), "tick")) {
					t.Errorf("%s: %s: got %v, want why", job, request, err)
				}
			}
		}
		for _, r := range c.all() {
			if r.Request != "" && r.ID() == tick {
				t.Errorf("a run by hand has the id %s", tick)
			}
		}
	})
}

func TestRunNowRefusesBadRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 0), leader())
		for _, try := range [][2]string{{"nobody", "x"}, {"lead", "x"}, {"work", ""}, {"work", "a b"}, {"work", "\x00"}} {
			if _, err := a.RunNow(c.t.Context(), try[0], try[1]); err == nil {
				t.Errorf("%q is taken", try)
			}
		}
		a.kill()
		ctx := c.within(time.Minute)
		if _, err := a.RunNow(ctx, "work", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with the store out of reach: %v", err)
		}
	})
}

// A job that is paused, one of which a tick is open, and one that is everywhere.
func TestRunNowOfPausedOpenAndEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused, here := work("0 * * * *", 0), work("0 * * * *", 0)
		paused.Name, paused.Paused = "paused", true
		here.Name, here.EveryReplica, here.Lease = "here", true, 0
		a := c.start("a", paused, here)
		for _, name := range []string{"paused", "here"} {
			if outcome, err := a.RunNow(c.t.Context(), name, "x"); err != nil || outcome.Status != store.Succeeded {
				t.Errorf("%s: got %+v, %v", name, outcome, err)
			}
		}
		open := rerun(work("0 * * * *", time.Minute))
		b := c.start("b", open)
		time.Sleep(time.Hour + time.Second)
		b.stop() // the tick is open
		r := c.replica("r", open)
		_, err := r.RunNow(c.t.Context(), "work", "x")
		if !errors.Is(err, store.ErrHeld) || err.Error() != "its tick 2000-01-01T01:00:00Z has to be run again first" {
			t.Errorf("got %v", err)
		}
	})
}

// A run by hand that cannot end in time is not started.
func TestRunNowThatDoesNotFitIsNotStarted(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, here := work("0 * * * *", 0), work("0 * * * *", 0)
		long.Timeout, here.Timeout = time.Hour, time.Hour
		here.Name, here.EveryReplica, here.Lease = "here", true, 0
		a := c.start("a", long, here)
		ctx := c.within(time.Minute)
		for _, name := range []string{"work", "here"} {
			if _, err := a.RunNow(ctx, name, "x"); err == nil || !strings.Contains(err.Error(), "not started: it may take 1h0m0s, and this call ends in 1m0s") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		c.wantRuns(0)
	})
}

// That the entry can be read is no reason to hurry where it cannot be written.
func TestRunNowWithoutWriteAccessIsPatient(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", 0))
		a.RunDue(c.t.Context(), soloist.Wake{})
		a.tap.meet(func(op string, apply func() error) error {
			if op == "read" {
				return apply()
			}
			return fs.ErrPermission
		})
		ctx := c.within(10 * time.Minute)
		a.tap.counts()
		if _, err := a.RunNow(ctx, "work", "x"); err == nil {
			t.Error("it ran")
		}
		if n := a.tap.counts()["acquire"]; n > 300 {
			t.Errorf("%d calls in ten minutes", n)
		}
	})
}

// A tick that was due before is no overlap: it is run.
func TestRunNowLeavesDueTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("30 0 * * *", 2*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(31 * time.Minute) // asleep when the tick came due
		b := c.replica("b", work("30 0 * * *", 2*time.Second))
		if f, err := b.RunNow(c.t.Context(), "work", "operator"); err != nil {
			t.Fatal(f, err)
		}
		rep, err := b.RunDue(c.t.Context(), soloist.Wake{})
		t.Logf("%+v %v", rep, err)
		if got := c.outcomes("work"); len(got) != 2 || got[1] != "succeeded 00:30:00" {
			t.Errorf("got %q", got)
		}
	})
}

// The second call of a request that is under way does not call it abandoned.
func TestRunNowTellsRequestUnderWay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute))
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(10 * time.Second)
		for _, r := range []*replica{a, b} {
			if f, err := r.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Running || f.Replica != "a" {
				t.Errorf("%s: got %+v, %v, want that a runs it", r.Replica, f, err)
			}
		}
		<-done
		if f, err := b.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Succeeded || len(c.all()) != 1 {
			t.Errorf("after its end: got %+v, %v after %d runs", f, err, len(c.all()))
		}
	})
}

// A call that ends in an outage leaves no trouble behind: no call would ever
// learn that it is over.
func TestRunNowInOutageLeavesNoTrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.kill()
		ctx := c.within(time.Minute)
		go func() {
			time.Sleep(50 * time.Second)
			if h := a.Health(); h.Storage == nil {
				t.Errorf("during the call health is %+v", h)
			}
		}()
		if _, err := a.RunNow(ctx, "work", "x"); err == nil {
			t.Error("it ran")
		}
		a.wantWell()
	})
}

// The run is over when its outcome is refused. The caller gets that error, not the outcome
// that others make up for a runner that looks dead.
func TestRunNowTellsRefusedOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		a := c.replica("a", job)
		a.Jobs[0].Do = func(ctx context.Context, _ *soloist.Run) error {
			return a.Unlock(context.WithoutCancel(ctx), "work", true)
		}
		_, err := a.RunNow(c.t.Context(), "work", "x")
		wantError(t, err, "has run, and the outcome, succeeded, was refused")
	})
}

// The end of a run by hand leaves the state of a tick alone that the loop has
// started meanwhile: nothing is stuck, and the tick can be handed over.
func TestRunNowEndLeavesTickAlone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 20*time.Minute)
		job.Missed = soloist.RunAll
		a := c.replica("a", job)
		c.launch(a)
		time.Sleep(2*time.Hour - 5*time.Minute)
		a.tap.meet(after("release", func() { time.Sleep(2 * time.Second) }))
		ctx := c.within(10 * time.Minute)
		_, _ = a.RunNow(ctx, "work", "now")
		time.Sleep(5 * time.Minute)
		if h := a.Health(); len(h.Running) != 1 || len(h.Stuck) > 0 {
			t.Errorf("Health: %+v", h)
		}
		if err := a.StepDown(c.t.Context(), "work"); err != nil {
			t.Error(err)
		}
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
		"skipped":   {func(context.Context, *soloist.Run) error { return soloist.Skip("nothing to do") }, store.Skipped, "nothing to do"},
		"failed":    {func(context.Context, *soloist.Run) error { return errors.New(long) }, store.Failed, long},
		"stopped":   {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }, store.Abandoned, "out of time, stopped"},
		"succeeded": {nil, store.Succeeded, ""},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@hourly", 0)
			job.Do = tt.do
			a := c.replica("a", job)
			ctx := c.within(time.Minute)
			for call, ctx := range []context.Context{ctx, c.t.Context()} {
				f, err := a.RunNow(ctx, "work", "x")
				if err != nil || f.Status != tt.status || f.Reason != tt.reason {
					t.Errorf("call %d: got %s %q, %v", call+1, f.Status, f.Reason, err)
				}
			}
		})
	}
}

// A run that has lost its lease is abandoned for that, also if the time of its call is up when it returns.
func TestLostRunIsNotOutOfTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.Do = func(context.Context, *soloist.Run) error { time.Sleep(time.Minute); return errors.New("too late") }
		a := c.replica("a", job)
		time.AfterFunc(5*time.Second, func() { a.meets(fail(errNetwork)) })
		time.AfterFunc(55*time.Second, func() { a.meets(nil) })
		a.RunNow(c.within(time.Minute), "work", "x")
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Abandoned || !strings.HasPrefix(f.Reason, soloist.ErrLost.Error()) {
			t.Errorf("got %s %q, want that the lease is lost", f.Status, f.Reason)
		}
	})
}

// A run by hand that stalled has that outcome, also once its lease has expired and
// it has not returned.
func TestRequestThatStalledIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.HeartbeatTimeout = 2 * time.Second
		job.Do = func(context.Context, *soloist.Run) error { time.Sleep(20 * time.Minute); return nil }
		a, b := c.replica("a", job), c.replica("b", job)
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(5 * time.Minute)
		f, err := b.RunNow(c.t.Context(), "work", "x")
		if err != nil || f.Status != store.Stalled || !strings.Contains(f.Reason, "no heartbeat") {
			t.Errorf("got %s %q, %v: want that it stalled", f.Status, f.Reason, err)
		}
		<-done
	})
}

// A run by hand whose lease is lost before it begins has not run: the call says
// so, and does not return the outcome of a run that goes on.
func TestRunNowTellsClaimNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		a := c.replica("a", work("@hourly", time.Second)).on(&machine)
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() { machine.slept.Add(int64(2 * D)) }})
		f, err := a.RunNow(c.t.Context(), "work", "x")
		if len(c.all()) != 0 {
			t.Fatal("it ran")
		}
		if !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "claimed and not run") {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// The store refuses the outcome: the call says that the run is over.
func TestRunNowTellsUnconfirmedOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 30*time.Second))
		ctx := c.within(2 * time.Minute)
		time.AfterFunc(20*time.Second, a.kill)
		_, err := a.RunNow(ctx, "work", "x")
		wantError(t, err, "has run, and the outcome, ", "not confirmed")
	})
}

// Where each claim fails until the call ends, the call says why.
func TestRunNowTellsFailedClaims(t *testing.T) {
	inCluster(t, func(c *cluster) {
		full := errors.New("no space left on device")
		a := c.replica("a", work("@hourly", 0))
		a.tap.meet(fail(full, "write"))
		ctx := c.within(5 * time.Minute)
		_, err := a.RunNow(ctx, "work", "x")
		if !errors.Is(err, full) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}

// The runner of a request is cut off for longer than its lease, and then writes its
// outcome: another call with the request is not told another one meanwhile.
func TestRequestHasOneOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.Lease = D
		job.Do = func(ctx context.Context, _ *soloist.Run) error {
			select {
			case <-ctx.Done(): // cut off, it still ends well
			case <-time.After(40 * time.Second):
			}
			return nil
		}
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Minute)
		done := make(chan struct{})
		var told, first store.Outcome
		go func() {
			defer close(done)
			var err error
			if first, err = a.RunNow(c.t.Context(), "work", "x"); err != nil {
				t.Error(err)
			}
		}()
		time.Sleep(2 * time.Second)
		a.tap.meet(fail(errNetwork))
		time.Sleep(23 * time.Second) // the lease has expired, and no replica has acquired it
		b.tap.meet(fail(errNetwork, "acquire"))
		ctx := c.within(2 * time.Second)
		if f, err := b.RunNow(ctx, "work", "x"); err == nil {
			told = f
		}
		b.tap.meet(nil)
		a.tap.meet(nil)
		<-done
		history := c.record("work").History
		if len(history) != 1 || history[0].Status != first.Status || told.Status != "" && told.Status != first.Status {
			t.Errorf("told %q and %q, recorded %+v", told.Status, first.Status, history)
		}
	})
}

// The runner of a request is gone: a call with the same request writes the outcome,
// and does not run it again.
func TestRequestOfDeadRunnerIsNotRunAgain(t *testing.T) {
	for name, gone := range map[string]func(*replica){
		"calls fail": func(a *replica) { a.tap.meet(fail(errNetwork)) },
		"calls hang": func(a *replica) { a.kill() },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := doing("@hourly", func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() })
			a := c.replica("a", job)
			ctx := c.within(time.Hour)
			done := make(chan struct{})
			go func() { defer close(done); a.RunNow(ctx, "work", "x") }()
			time.Sleep(2 * time.Second)
			gone(a)
			time.Sleep(time.Minute)
			job.Do = nil
			b := c.replica("b", job)
			for range 2 {
				f, err := b.RunNow(c.t.Context(), "work", "x")
				if err != nil || f.Status != store.Abandoned || f.Reason != "its runner died" {
					t.Errorf("got %s %q, %v", f.Status, f.Reason, err)
				}
			}
			<-done
			if r := c.record("work"); len(r.History) != 1 || r.History[0].Request != "x" || len(c.all()) != 1 {
				t.Errorf("recorded %+v, %d runs", r.History, len(c.all()))
			}
		})
	}
}

// A run by hand that goes back is unknown: it can be asked for again.
func TestRunNowIsTakenBackByStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancelCause(c.t.Context())
		why := errors.New("enough")
		a.tap.meet(onClaim(func() { cancel(why) }))
		if outcome, err := a.RunNow(ctx, "work", "please"); !errors.Is(err, why) {
			t.Errorf("got %+v, %v", outcome, err)
		}
		if outcome, err := a.RunNow(c.t.Context(), "work", "please"); err != nil || outcome.Status != store.Succeeded {
			t.Errorf("asked again: %+v, %v", outcome, err)
		}
		c.wantRuns(1)
	})
}

// A run by hand that was unlocked.
func TestRunNowThatWasUnlocked(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute))
		done := make(chan struct{})
		go func() { defer close(done); a.RunNow(c.t.Context(), "work", "x") }()
		time.Sleep(12 * time.Second)
		if err := b.Unlock(c.t.Context(), "work", true); err != nil {
			t.Fatal(err)
		}
		<-done
		if f, err := b.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Abandoned || f.Reason != "unlocked by b" {
			t.Errorf("got %+v, %v", f, err)
		}
	})
}

// A run by hand and a wake-up say why nothing runs.
func TestCallsWithoutWriteAccessAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@every 1m", time.Second))
		r.tap.meet(failWrites(fs.ErrPermission))
		ctx := c.within(time.Hour)
		begin := time.Now()
		if _, err := r.RunNow(ctx, "work", "please"); !errors.Is(err, fs.ErrPermission) || time.Since(begin) > time.Minute {
			t.Errorf("RunNow after %s: %v", time.Since(begin), err)
		}
		time.Sleep(2 * time.Minute)
		begin = time.Now()
		if _, err := r.RunDue(ctx, soloist.Wake{}); !errors.Is(err, fs.ErrPermission) || time.Since(begin) > time.Minute {
			t.Errorf("RunDue after %s: %v", time.Since(begin), err)
		}
	})
}

// A run by hand of a Scheduler with another definition, which started later,
// leaves the one in force as it is, and its ticks.
func TestRunNowLeavesDefinitionInForce(t *testing.T) {
	for name, takes := range map[string]time.Duration{"over before the tick": time.Second, "over after the tick": 70 * time.Minute} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.start("a", work("0 2 * * *", time.Second))
			time.Sleep(25 * time.Hour)
			before := c.record("work")
			tool := c.replica("tool", work("*/30 * * * *", takes))
			if f, err := tool.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Succeeded {
				t.Fatal(f, err)
			}
			after := c.record("work")
			if after.Definition.Spec != before.Definition.Spec || !after.Definition.Since.Equal(before.Definition.Since) || !after.Watermark.Equal(before.Watermark) || !after.Due.Equal(before.Due) {
				t.Errorf("the record was %+v and is %+v", before, after)
			}
			time.Sleep(22 * time.Hour)
			ticks := 0
			for _, r := range c.all() {
				if r.Request == "" {
					ticks++
				}
			}
			if ticks != 2 {
				t.Errorf("%d daily ticks ran, want 2: %q", ticks, c.outcomes("work"))
			}
		})
	}
}

// A run whose outcome the definition in force has to decide is not settled by a run
// by hand of another one.
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
			tool := c.replica("tool", work("30 * * * *", time.Second))
			_, err := tool.RunNow(c.t.Context(), "work", "x")
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

// What is claimed by hand and taken back leaves the definition in force too; after
// a deploy the new definition comes into force with its first tick.
func TestNewDefinitionWaitsForTickAfterRunNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 2 * * *", time.Second))
		time.Sleep(25 * time.Hour)
		old := c.record("work").Definition.Spec
		a.stop()
		b := c.replica("b", work("*/30 * * * *", time.Second))
		if _, err := b.RunNow(c.t.Context(), "work", "x"); err != nil {
			t.Fatal(err)
		}
		if got := c.record("work").Definition.Spec; got != old {
			t.Errorf("the definition in force is %s, was %s", got, old)
		}
		c.launch(b)
		time.Sleep(time.Hour)
		if got := c.record("work"); got.Definition.Spec == old || got.Run.Tick.Minute()%30 != 0 {
			t.Errorf("the record is %+v", got)
		}
	})
}
