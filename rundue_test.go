package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestRunDueRunsAndReports(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 3*time.Second))
		b := c.replica("b", work("@every 1m", 3*time.Second))
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(got.Jobs[0].Ran) != 0 || !got.Next.Equal(time.Now().Truncate(time.Minute).Add(time.Minute)) {
			t.Fatalf("a new job: got %+v, %v", got, err)
		}
		time.Sleep(61 * time.Second)
		ended := make(chan soloist.Report)
		go func() { r, _ := a.RunDue(c.t.Context(), soloist.Wake{}); ended <- r }()
		time.Sleep(time.Second)
		got, err = b.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(got.Jobs[0].Ran) != 0 || got.Jobs[0].Replica != "a" {
			t.Errorf("beside a run: got %+v, %v", got, err)
		}
		got = <-ended
		if ran := got.Jobs[0].Ran; len(ran) != 1 || ran[0].Status != store.Succeeded {
			t.Errorf("the runner: got %+v", got)
		}
		got, _ = b.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) != 0 || got.Jobs[0].Replica != "" {
			t.Errorf("afterwards: got %+v", got)
		}
	})
}

// The winner dies between its acquisition and its claim, when the loser has
// seen the lease: the loser takes over before it says that all is well.
func TestRunDueFollowsDeadWinner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		b := c.replica("b", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		b.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(after("acquire", a.kill))
		go a.RunDue(c.t.Context(), soloist.Wake{})
		synctest.Wait()
		got, err := b.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) != 1 && got.Jobs[0].Replica == "" && err == nil {
			t.Errorf("nobody has claimed the tick, and b says all is well: %+v, %v", got, err)
		}
		time.Sleep(time.Hour)
		c.replica("c", work("0 * * * *", time.Second)).RunDue(c.t.Context(), soloist.Wake{})
		if got := c.outcomes("work"); !strings.HasPrefix(got[0], "succeeded 01:00:00") {
			t.Errorf("got %q", got)
		}
	})
}

// The first run of a job waits for its token. A call that is too short for that says so, whatever it has for the run.
func TestCallTooShortForFirstRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 100*time.Millisecond)
		c.replica("first", job).wake()
		time.Sleep(time.Hour)
		for _, name := range []string{"b", "c"} {
			if _, err := c.replica(name, job).RunDue(c.within(900*time.Millisecond), soloist.Wake{}); !strings.Contains(fmt.Sprint(err), "first run") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if _, err := c.replica("d", job).RunNow(c.within(900*time.Millisecond), "work", "now"); !strings.Contains(fmt.Sprint(err), "first run") {
			t.Errorf("a manual run: got %v", err)
		}
		c.replica("e", job).wake()
		once(t, c.all())
	})
}

// A client has the lease and claims nothing. A call that ends meanwhile says so, also if it is shorter than what shows that the
// client is no replica.
func TestShortCallUnderLeaseWithoutClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		c.replica("a", job).wake()
		until(time.Hour)
		e, err := c.store.Read(t.Context(), "soloist/work")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.store.Lease("soloist/work", "00000000-0000-4000-8000-000000000000").Acquire(t.Context(), D, e.ETag); err != nil {
			t.Fatal(err)
		}
		_, err = c.replica("b", job).RunNow(c.within(5*time.Second), "work", "now")
		wantError(t, err, "leased, not claimed yet", "deadline")
		_, err = c.replica("c", job).RunDue(c.within(5*time.Second), soloist.Wake{})
		wantError(t, err, "leased, not claimed yet", "deadline")
	})
}

// A claim that is not confirmed is no success.
func TestRunDueTellsFailedClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(fail(errNetwork, "write"))
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) == 0 && err == nil {
			t.Errorf("the tick did not run and nothing is said: %+v", got)
		}
	})
}

// Nor is a run whose outcome the store refuses: what became of its tick is not
// for this call to say.
func TestRunDueTellsRefusedOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(onNth("write", 2, func(apply func() error) error {
			_ = c.store.Break(context.Background(), "soloist/work", 0) // an operator unlocks the job meanwhile
			return apply()
		}))
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(c.all()) != 1 || len(got.Jobs[0].Ran) != 0 {
			t.Fatalf("%d runs, %+v: want one, without an outcome", len(c.all()), got)
		}
		if err == nil || got.Jobs[0].Err == nil || !strings.Contains(err.Error(), "job work: its tick 2000-01-01T01:00:00Z has run, and the outcome, succeeded, was refused") {
			t.Errorf("got %v, %+v", err, got)
		}
		a.tap.meet(nil)
		time.Sleep(time.Hour)
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
			t.Errorf("the next call tells of it again: %v", err)
		}
	})
}

// A call that ends while the store answers nothing does not know what became of
// the outcome, and says that: no store has refused it.
func TestRunDueTellsUnconfirmedOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ctx, cancel := context.WithCancel(c.t.Context())
		defer cancel()
		var a *replica
		job := doing("@hourly", func(context.Context, *soloist.Run) error {
			a.tap.meet(fail(errors.New("no answer")))
			time.AfterFunc(time.Second, cancel)
			return nil
		})
		a = c.replica("a", job)
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(time.Hour)
		_, err := a.RunDue(ctx, soloist.Wake{})
		if err == nil || !strings.Contains(err.Error(), "has run, and the outcome, succeeded, was not confirmed") || strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
		if a.log.lines("the outcome was not confirmed") == nil || a.log.lines("the outcome was refused") != nil {
			t.Errorf("got %q", a.log.lines("the outcome"))
		}
	})
}

// Nor is a tick whose claim was made, and whose lease ran out before it could
// run: the machine was suspended.
func TestRunDueTellsClaimNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		a := c.replica("a", work("0 * * * *", time.Second)).on(&machine)
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(after("write", func() { machine.slept.Store(int64(2 * D)) }))
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(c.all()) != 0 {
			t.Fatalf("it ran: %+v", got)
		}
		if !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "its tick 2000-01-01T01:00:00Z was claimed and not run") {
			t.Errorf("got %v, %+v", err, got)
		}
	})
}

// Between two calls there is no loop that could hang.
func TestRunDueIsNotStuckBetweenCalls(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(10 * time.Minute)
		if h := a.Health(); len(h.Stuck) != 0 {
			t.Errorf("stuck: %q", h.Stuck)
		}
	})
}

func TestRunDueBesideItselfTellsNext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 30*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		go a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Second)
		got, _ := a.RunDue(c.t.Context(), soloist.Wake{})
		if got.Next.IsZero() || got.Jobs[0].Next.IsZero() {
			t.Errorf(`Next is zero, which says "none ever": %+v`, got)
		}
		time.Sleep(time.Minute)
	})
}

// The run itself meets the outage, and waits for its end: the job is looked after.
func TestRunDueBesideItselfInAnOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 30*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		go a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Second)
		a.tap.meet(fail(errNetwork))
		time.Sleep(8 * time.Second) // two renewals fail
		if a.Health().Storage == nil {
			t.Fatal("the outage is not told")
		}
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || got.Jobs[0].Replica != "a" {
			t.Errorf("got %+v, %v, want that a runs it", got, err)
		}
		a.tap.meet(nil)
		time.Sleep(time.Minute)
	})
}

// Where each run makes the next tick due, a call ends all the same.
func TestRunDueEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", 11*time.Second)
		job.Missed = soloist.RunAll
		a := c.replica("a", job)
		ctx, cancel := context.WithCancel(c.t.Context())
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(30 * time.Second)
		begin := time.Now()
		done := make(chan struct{})
		go func() { a.RunDue(ctx, soloist.Wake{}); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Errorf("three ticks were due and RunDue is at work since %s: %d runs", time.Since(begin), len(c.all()))
		}
		cancel()
		<-done
	})
}

func TestRunDueAfterEndOfContextFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		got, err := a.RunDue(ctx, soloist.Wake{})
		if err == nil {
			t.Errorf("nothing was looked after, and there is no error: %+v", got)
		}
	})
}

// In an outage the schedule says when to call again: zero would say never.
func TestRunDueTellsNextInOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.kill()
		next := time.Now().Add(time.Hour)
		ctx := c.within(time.Minute)
		if rep, err := a.RunDue(ctx, soloist.Wake{}); err == nil || !rep.Next.Equal(next) {
			t.Errorf("next is %s, %v: want %s", rep.Next, err, next)
		}
	})
}

// A replica of an older definition says when the next tick of the one in force is
// due. By its own the next tick is in the past, since no replica settles it.
func TestRunDueTellsNextTickInForce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		old := c.replica("old", work("@every 1m", 0))
		old.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(10 * time.Second)
		c.replica("young", work("@every 7m", 0)).RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(2 * time.Minute)
		rep, err := old.RunDue(c.t.Context(), soloist.Wake{})
		if want := begin.Add(4 * time.Minute); err == nil || !rep.Next.Equal(want) { // @every counts from 1970
			t.Errorf("next is %s, %v: want %s", rep.Next, err, want)
		}
	})
}

// A process that is woken up every 200 s answers each older definition in time:
// each call looks at the record, also where no tick is due.
func TestRunDueReadsEachTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10m", 0))
		time.Sleep(3 * time.Minute)
		young := c.replica("young", work("30 23 * * *", 0))
		for call := range 40 {
			young.tap.counts()
			if _, err := young.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
				t.Errorf("call %d: %v", call, err)
			}
			if n := young.tap.counts()["read"]; n != 1 {
				t.Errorf("call %d reads %d times", call, n)
			}
			time.Sleep(200 * time.Second)
		}
		if runs := ranBy(c, "old", time.Time{}); len(runs) > 0 {
			t.Errorf("the older definition runs %d ticks; its health is %v", len(runs), old.Health().Broken)
		}
	})
}

// A call ends though the store refuses the outcome of its run without end: other
// replicas settle the run once the lease that the call gave up has expired.
func TestCallEndsDespiteRefusedOutcome(t *testing.T) {
	for name, refusal := range map[string]error{"refused": fs.ErrPermission, "unclear": errNetwork} {
		for how, call := range map[string]func(context.Context, *replica) error{
			"RunDue": func(ctx context.Context, r *replica) error {
				report, err := r.RunDue(ctx, soloist.Wake{})
				if err == nil || len(report.Jobs) != 1 || report.Jobs[0].Err == nil || len(report.Jobs[0].Ran) != 0 {
					t.Errorf("got %+v, %v", report, err)
				}
				return err
			},
			"RunNow": func(ctx context.Context, r *replica) error {
				_, err := r.RunNow(ctx, "work", "wish")
				return err
			},
		} {
			inCase(t, how+" "+name, func(t *testing.T, c *cluster) {
				a := c.replica("a", work("@every 1m", time.Second))
				a.wake()
				time.Sleep(time.Minute)
				a.tap.meet(inTurn("write", nil, refusal))
				ctx := c.within(time.Hour)
				begin := time.Now()
				err := call(ctx, a)
				if took := time.Since(begin); took > 6*D || took < 4*D {
					t.Errorf("it took %s", took)
				}
				wantError(t, err, "has run, and the outcome, succeeded, was not confirmed")
				time.Sleep(D / 2) // since the last renewal
				if e, err := c.store.Read(c.t.Context(), "soloist/work"); err != nil || e.State.Live() {
					t.Errorf("the lease is %s, %v", e.State, err)
				}
			})
		}
	}
}

// The next look is for the next attempt.
func TestRunDueTellsNextOfOpenTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: soloist.Rerun,
			Do: func(ctx context.Context, run *soloist.Run) error {
				if run.Attempt == 1 {
					<-ctx.Done()
				}
				return ctx.Err()
			}}
		a := c.replica("a", job)
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if got.Next.After(time.Now().Add(time.Hour)) {
			t.Errorf("%s %v: tick 00:01:00 is open, and the next look is to be at %s (%v)", c.record("work").Run.Status, c.outcomes("work"), got.Next, err)
		}
	})
}

// A call that has no time for a run settles what it would not run anyway: else a
// platform whose calls are all short would never record those ticks.
func TestRunDueTooShortSettlesTicks(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*soloist.Job)
		dies     bool // the runner of the tick at 01:00, five minutes after it
		want     []string
		withheld bool // the report says that a run was not started
	}{
		"paused":      {func(j *soloist.Job) { j.Paused = true }, false, []string{"skipped 00:00:00-02:00:00 paused"}, false},
		"missed":      {func(j *soloist.Job) { j.StartingDeadline = time.Minute }, false, []string{"missed 00:00:00-02:00:00 past the starting deadline"}, false},
		"due":         {func(*soloist.Job) {}, false, []string{"missed 01:00:00 a newer one was due"}, true},
		"all are due": {func(j *soloist.Job) { j.Missed = soloist.RunAll }, false, nil, true},
		"its runner died": {func(*soloist.Job) {}, true,
			[]string{"abandoned 01:00:00 its runner died"}, true},
		"its runner died, and it has another attempt": {func(j *soloist.Job) { j.Interrupted = soloist.Rerun }, true, nil, true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@hourly", 20*time.Minute)
			job.Timeout = 30 * time.Minute
			tt.change(&job)
			a := c.replica("a", job)
			if tt.dies {
				c.launch(a)
				time.Sleep(time.Hour + 5*time.Minute)
				a.kill()
			} else {
				a.RunDue(c.t.Context(), soloist.Wake{})
				time.Sleep(time.Hour + 5*time.Minute)
			}
			time.Sleep(time.Hour)
			runs := len(c.all())
			b := c.replica("b", job)
			for range 2 {
				ctx := c.within(10 * time.Minute)
				_, err := b.RunDue(ctx, soloist.Wake{})
				if withheld := err != nil && strings.Contains(err.Error(), "not started: it may take 30m0s"); withheld != tt.withheld || !withheld && err != nil {
					t.Errorf("the error is %v", err)
				}
			}
			c.wantOutcomes("work", tt.want...)
			if len(c.all()) > runs {
				t.Error("it ran in a call that is shorter than its Timeout")
			}
			time.Sleep(30 * time.Minute)
			c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
			if ran := len(c.all()) > runs; ran != tt.withheld {
				t.Errorf("in a call without a deadline it ran: %t", ran)
			}
		})
	}
}

// The first wake-up ever is for a tick, which is then run.
func TestWakeOfNewJob(t *testing.T) {
	for name, test := range map[string]struct {
		at, tick time.Duration
		want     []string
	}{
		"on time":          {time.Hour + 300*time.Millisecond, time.Hour, []string{"succeeded 01:00:00"}},
		"late":             {time.Hour + 20*time.Second, time.Hour, []string{"succeeded 01:00:00"}},
		"a moment early":   {time.Hour - 30*time.Millisecond, time.Hour, []string{"succeeded 01:00:00"}},
		"not told":         {time.Hour + 300*time.Millisecond, -1, nil},
		"far too late":     {time.Hour + 10*time.Minute, time.Hour, nil},
		"no tick of its":   {time.Hour + time.Second, time.Hour + time.Second/2, nil},
		"before a tick":    {time.Hour + 10*time.Second, time.Hour - 20*time.Second, nil},
		"in a year's time": {time.Hour, 365 * 24 * time.Hour, nil},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			begin := time.Now()
			time.Sleep(test.at)
			a := c.replica("a", work("0 * * * *", time.Second))
			var wake soloist.Wake
			if test.tick >= 0 {
				wake.Tick = begin.Add(test.tick)
			}
			called := time.Now()
			if _, err := a.RunDue(c.t.Context(), wake); err != nil {
				t.Errorf("RunDue: %v", err)
			}
			if took := time.Since(called); took > 3*time.Second {
				t.Errorf("it took %s", took)
			}
			c.wantOutcomes("work", test.want...)
		})
	}
}

// A wake-up does not go on from tick to tick until one that it names in the far
// future.
func TestWakeFarAheadEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("* * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		called := time.Now()
		ctx := c.within(time.Hour)
		report, err := a.RunDue(ctx, soloist.Wake{Tick: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)})
		if took := time.Since(called); err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 1 || took > 3*time.Second {
			t.Errorf("got %+v, %v after %s, want the one run that was due", report, err, took)
		}
	})
}

// A timer that fires a moment before the tick gets it run all the same.
func TestEarlyWakeRunsItsTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour - 1500*time.Millisecond)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: begin.Add(time.Hour)})
		if err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
		if early := begin.Add(time.Hour).Sub(c.all()[0].start); early > time.Second {
			t.Errorf("started %s early", early)
		}
	})
}

// A timer that fires a moment early, when an older tick is due, gets its own tick run
// all the same: the call waits, as if the timer had been on time. A call that comes
// earlier runs the older tick meanwhile.
func TestEarlyWakeWithOlderTickDue(t *testing.T) {
	for name, test := range map[string]struct {
		job   func(*soloist.Job)
		early time.Duration
		want  []string
	}{
		"the newest":           {func(*soloist.Job) {}, 20 * time.Millisecond, []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}},
		"with time for both":   {func(*soloist.Job) {}, 20 * time.Second, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"all":                  {func(j *soloist.Job) { j.Missed = soloist.RunAll }, 1500 * time.Millisecond, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"all, due under a run": {func(j *soloist.Job) { j.Missed = soloist.RunAll }, 8 * time.Second, []string{"succeeded 01:00:00", "succeeded 02:00:00"}},
		"none":                 {func(j *soloist.Job) { j.Missed = soloist.SkipMissed }, 1500 * time.Millisecond, []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			tick := time.Now().Add(2 * time.Hour)
			job := work("@hourly", 10*time.Second)
			test.job(&job)
			a := c.replica("a", job)
			a.RunDue(c.t.Context(), soloist.Wake{})
			until(2*time.Hour - test.early)
			report, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
			if err != nil || len(report.Jobs[0].Ran) == 0 {
				t.Errorf("got %+v, %v", report, err)
			}
			c.wantOutcomes("work", test.want...)
		})
	}
}

// So does one that comes when the runner of an older tick has died, which is run again.
func TestEarlyWakeAfterDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		tick := time.Now().Add(2 * time.Hour)
		job := rerun(work("@hourly", 10*time.Second))
		a, b := c.replica("a", job), c.replica("b", job)
		a.RunDue(c.t.Context(), soloist.Wake{})
		until(time.Hour)
		time.AfterFunc(5*time.Second, a.kill)
		ctx := c.within(time.Minute)
		a.RunDue(ctx, soloist.Wake{})
		until(2*time.Hour - time.Second)
		report, err := b.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		if err != nil || len(report.Jobs[0].Ran) != 2 {
			t.Errorf("got %+v, %v, want both ticks", report, err)
		}
		c.wantOutcomes("work", "succeeded 01:00:00", "succeeded 02:00:00")
	})
}

// Where ticks come due between the call and the tick that it is for, all are run.
func TestEarlyWakeBySeveralTicks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 10s", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		until(75 * time.Second)
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().Add(25 * time.Second)}); err != nil {
			t.Error(err)
		}
		c.wantOutcomes("work", "missed 00:00:00-00:01:00 a newer one was due", "succeeded 00:01:10", "succeeded 00:01:20", "succeeded 00:01:30", "succeeded 00:01:40")
	})
}

// The timer of each instance fires, and one of them runs the tick.
func TestWakeBesideRunElsewhere(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.replica("a", job), c.replica("b", job)
		a.RunDue(c.t.Context(), soloist.Wake{})
		b.RunDue(c.t.Context(), soloist.Wake{})
		tick := time.Now().Truncate(time.Hour).Add(time.Hour)
		time.Sleep(time.Until(tick) + time.Second)
		go a.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		time.Sleep(3 * time.Second)
		report, err := b.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
		if err != nil || len(report.Jobs) != 1 || len(report.Jobs[0].Ran) != 0 || report.Jobs[0].Replica != "a" {
			t.Errorf("got %+v, %v, want that a runs it", report, err)
		}
		time.Sleep(time.Minute)
	})
}

func TestWakeOfSomeJobs(t *testing.T) {
	inCluster(t, func(c *cluster) {
		one, two := work("@every 1m", 0), work("@every 1m", 0)
		two.Name = "other"
		a := c.replica("a", one, two, leader())
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"other"}})
		if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Job != "other" || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", report, err)
		}
		c.wantRuns(1)
		for _, name := range []string{"nobody", "lead"} {
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{name}}); err == nil {
				t.Errorf("%s is taken", name)
			}
		}
	})
}

// A job that cannot end in time is not started; one that can is.
func TestRunDueStartsNothingUnfit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, short := work("@every 1h", time.Second), work("@every 1h", time.Second)
		long.Timeout, short.Timeout, short.Name = 20*time.Minute, time.Minute, "short"
		a := c.replica("a", long, short)
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour)
		ctx := c.within(10 * time.Minute)
		report, err := a.RunDue(ctx, soloist.Wake{})
		wantError(t, err, "job work: not started: it may take 20m0s, and this call ends in 10m0s")
		if len(report.Jobs[0].Ran) != 0 || len(report.Jobs[1].Ran) != 1 {
			t.Errorf("got %+v", report)
		}
		if report, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(report.Jobs[0].Ran) != 1 {
			t.Errorf("without a deadline: got %+v, %v", report, err)
		}
	})
}

// frozen is a replica of a process that a platform freezes between two calls. Of its
// clocks only the wall clock has counted the time, as where a machine goes on
// from a snapshot.
type frozen struct {
	*replica
	gone atomic.Int64
}

func (c *cluster) frozen(work ...soloist.Work) *frozen {
	f := &frozen{replica: c.replica("a", work...)}
	now := func() time.Time { return time.Now().Add(time.Duration(f.gone.Load())) }
	f.Now, c.store.Now = now, now
	return f
}

func (f *frozen) freeze(d time.Duration) { f.gone.Add(int64(d)) }

// What the process knew before it was frozen is as old as the wall clock says. By
// its other clocks nothing is due.
func TestRunDueAfterFreeze(t *testing.T) {
	inCluster(t, func(c *cluster) {
		other := named("other", work("@hourly", 0))
		f := c.frozen(work("@hourly", 0), other)
		f.wake()
		for hour := 1; hour <= 3; hour++ {
			f.freeze(time.Hour)
			f.tap.counts()
			report, err := f.RunDue(c.t.Context(), soloist.Wake{})
			if err != nil || len(report.Jobs[0].Ran) != 1 || len(report.Jobs[1].Ran) != 1 {
				t.Errorf("call %d: got %+v, %v, want one run of each job", hour, report, err)
			}
			if n := f.tap.counts()["read"]; n != 2 {
				t.Errorf("call %d reads %d times, want once for each job", hour, n)
			}
		}
		c.wantOutcomes("work", "succeeded 01:00:00", "succeeded 02:00:00", "succeeded 03:00:00")
	})
}

// A call soon after another one reads nothing, as the clocks agree.
func TestRunDueSoonAfterAnotherReadsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		f := c.frozen(work("@every 1m", 0))
		f.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(59 * time.Second)
		f.freeze(time.Second)
		f.tap.counts()
		if _, err := f.RunDue(c.t.Context(), soloist.Wake{}); err != nil || f.tap.counts()["read"] != 0 || len(c.all()) != 1 {
			t.Errorf("%v, %d runs", err, len(c.all()))
		}
	})
}

// A try that cannot begin, or have its Timeout, before the call ends is not waited for. It
// would be cut off, which counts as the death of its runner and hides why the try before
// has failed.
func TestRunDueBeginsNoTryWithoutTime(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout, after time.Duration
		everyReplica   bool
		tries          int
	}{
		"no time for the Timeout":  {4 * time.Minute, 0, false, 2}, // the third would begin after 20 s + 40 s
		"no time for the pause":    {0, 10 * time.Minute, false, 1},
		"a pause without an end":   {time.Second, math.MaxInt64, false, 1},
		"no time on every replica": {4 * time.Minute, 0, true, 2},
		"time for all":             {0, 0, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("* * * * *", 0)
				job.Timeout, job.Retry = tt.timeout, soloist.Retry{MaxTries: 4, Backoff: time.Second}
				if job.EveryReplica = tt.everyReplica; tt.everyReplica {
					job.Lease = 0
				}
				tries := 0
				job.Do = func(context.Context, *soloist.Run) error {
					tries++
					if tt.timeout != time.Second {
						time.Sleep(time.Duration(tries) * 20 * time.Second)
					}
					return soloist.RetryAfter(errors.New("no route"), tt.after)
				}
				a := c.replica("a", job)
				a.wake()
				tries = 0 // a job of EveryReplica has run
				time.Sleep(time.Minute)
				report, err := a.RunDue(c.within(5*time.Minute), soloist.Wake{})
				if ran := report.Jobs[0].Ran; len(ran) == 0 || ran[0].Status != store.Failed || ran[0].Reason != "no route" {
					t.Errorf("got %+v, %v", report, err)
				}
				if tries != tt.tries {
					t.Errorf("%d tries, want %d", tries, tt.tries)
				}
			})
		})
	}
}
