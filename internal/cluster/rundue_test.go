package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// One of two processes runs the tick that both are woken up for. Other calls meanwhile, of either process, say who runs it and
// when the next tick is due, also in an outage whose end the run waits for. Between two calls there is no loop that could hang.
func TestRunDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10m", 30*time.Second)
		a, b := c.replica("a", job), c.replica("b", job)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		tick := time.Now().Add(10 * time.Minute)
		if err != nil || len(got.Jobs[0].Ran) != 0 || !got.Next.Equal(tick) {
			t.Fatalf("a new job: got %+v, %v", got, err)
		}
		time.Sleep(10 * time.Minute)
		if h := a.Health(); len(h.Stuck) != 0 {
			t.Errorf("stuck: %q", h.Stuck)
		}
		ended := make(chan soloist.Report)
		go func() { r, _ := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick}); ended <- r }()
		time.Sleep(time.Second)
		beside := func(r *replica) {
			got, err := r.RunDue(c.t.Context(), soloist.Wake{Tick: tick})
			if j := got.Jobs[0]; err != nil || len(j.Ran) != 0 || j.Replica != "a" || got.Next.IsZero() || j.Next.IsZero() {
				t.Errorf("%s, beside the run: got %+v, %v", r.Replica, got, err)
			}
		}
		beside(a)
		beside(b)
		a.tap.meet(fail(errNetwork))
		time.Sleep(8 * time.Second) // two renewals fail
		if a.Health().Storage == nil {
			t.Fatal("the outage is not told")
		}
		beside(a)
		a.tap.meet(nil)
		got = <-ended
		if ran := got.Jobs[0].Ran; len(ran) != 1 || ran[0].Status != event.Succeeded {
			t.Errorf("the runner: got %+v", got)
		}
		if got, _ = b.RunDue(c.t.Context(), soloist.Wake{}); len(got.Jobs[0].Ran) != 0 || got.Jobs[0].Replica != "" {
			t.Errorf("afterwards: got %+v", got)
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
			_, err := c.replica(name, job).RunDue(c.within(900*time.Millisecond), soloist.Wake{})
			wantError(t, err, "first run")
		}
		_, err := c.replica("d", job).RunNow(c.within(900*time.Millisecond), "work", "now")
		wantError(t, err, "first run")
		c.replica("e", job).wake()
		once(t, c.all())
	})
}

// A holder dies between its acquisition and its claim, when others have seen the lease. A call that ends meanwhile says so,
// also if it is shorter than what shows that the holder is gone; another one runs the tick before it says that all is well.
func TestShortCallUnderLeaseWithoutClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		a := c.replica("a", job)
		a.wake()
		until(time.Hour)
		a.tap.meet(after("acquire", a.kill))
		go a.RunDue(c.t.Context(), soloist.Wake{})
		synctest.Wait()
		_, err := c.replica("b", job).RunNow(c.within(5*time.Second), "work", "now")
		wantError(t, err, "leased, not claimed yet", "deadline")
		_, err = c.replica("c", job).RunDue(c.within(5*time.Second), soloist.Wake{})
		wantError(t, err, "leased, not claimed yet", "deadline")
		if got, err := c.replica("d", job).RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(got.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		c.wantOutcomes("work", "succeeded 01:00:00")
	})
}

// A call that knows no outcome of the tick that is due returns an error. The next call does not repeat it.
func TestRunDueReturnsTrouble(t *testing.T) {
	const tick = "its tick 2000-01-01T01:00:00Z "
	for name, tt := range map[string]struct {
		meets func(c *cluster, m *suspended, cancel func()) fault // in the call
		runs  int
		want  string
		not   string
		is    error
	}{
		"no time": {func(_ *cluster, _ *suspended, cancel func()) fault { cancel(); return nil }, 0, "", "has run", context.Canceled},
		"the claim is not confirmed": {func(*cluster, *suspended, func()) fault { return fail(errNetwork, "write") }, 0,
			"", "has run", nil},
		"the machine is suspended after the claim": {func(_ *cluster, m *suspended, _ func()) fault {
			return after("write", func() { m.slept.Store(int64(2 * D)) })
		}, 0, tick + "was claimed and not run", "has run", store.ErrLost},
		"the outcome is refused": {func(c *cluster, _ *suspended, _ func()) fault {
			return onNth("write", 2, func(apply func() error) error { c.breakLease(); return apply() })
		}, 1, "job work: " + tick + "has run, and the outcome, succeeded, was refused", "not confirmed", nil},
		"the store does not answer": {func(_ *cluster, _ *suspended, cancel func()) fault {
			claims := after("write", func() { time.AfterFunc(time.Second, cancel) })
			return func(op string, apply func() error) error {
				f := claims
				if op == "write" {
					claims = fail(errNetwork)
				}
				return f(op, apply)
			}
		}, 1, "has run, and the outcome, succeeded, was not confirmed", "refused", nil},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var m suspended
			ctx, cancel := context.WithCancel(c.t.Context())
			defer cancel()
			a := c.replica("a", work("@hourly", 0)).on(&m)
			a.wake()
			until(time.Hour + time.Second)
			a.tap.meet(tt.meets(c, &m, cancel))
			got, err := a.RunDue(ctx, soloist.Wake{})
			c.wantRuns(tt.runs)
			wantError(t, err, tt.want)
			if err == nil || strings.Contains(err.Error(), tt.not) || tt.is != nil && !errors.Is(err, tt.is) || len(got.Jobs[0].Ran) != 0 {
				t.Errorf("got %+v, %v", got, err)
			}
			if tt.runs > 0 && (got.Jobs[0].Err == nil || a.log.lines("the outcome was "+tt.not) != nil) {
				t.Errorf("got %+v, and the log has %q", got, a.log.lines("the outcome"))
			}
			a.tap.meet(nil)
			time.Sleep(time.Hour)
			a.wake()
		})
	}
}

// A call ends where each run makes the next tick due, also where it is woken up for a tick of the far future.
func TestRunDueEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", 11*time.Second)
		job.Late.Missed = soloist.RunAll
		a := c.replica("a", job)
		a.wake()
		time.Sleep(30 * time.Second)
		begin := time.Now()
		got, err := a.RunDue(c.within(time.Hour), soloist.Wake{Tick: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)})
		if took := time.Since(begin); err != nil || len(got.Jobs[0].Ran) < 3 || took > time.Minute {
			t.Errorf("got %+v, %v after %s", got, err, took)
		}
	})
}

// The report says when to call again.
func TestRunDueTellsNext(t *testing.T) {
	inCase(t, "in an outage", func(t *testing.T, c *cluster) { // zero would say never
		a := c.replica("a", work("@hourly", 0))
		a.kill()
		next := time.Now().Add(time.Hour)
		if rep, err := a.RunDue(c.within(time.Minute), soloist.Wake{}); err == nil || !rep.Next.Equal(next) {
			t.Errorf("next is %s, %v: want %s", rep.Next, err, next)
		}
	})
	// By the older definition the next tick is in the past, since no replica settles it.
	inCase(t, "another definition is in force", func(t *testing.T, c *cluster) {
		begin := time.Now()
		old := c.replica("old", work("@every 1m", 0))
		old.wake()
		time.Sleep(10 * time.Second)
		c.replica("young", work("@every 7m", 0)).wake()
		time.Sleep(2 * time.Minute)
		rep, err := old.RunDue(c.t.Context(), soloist.Wake{})
		if want := begin.Add(4 * time.Minute); err == nil || !rep.Next.Equal(want) { // @every counts from 1970
			t.Errorf("next is %s, %v: want %s", rep.Next, err, want)
		}
	})
	inCase(t, "a tick has another attempt", func(t *testing.T, c *cluster) {
		job := rerun(doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
			if run.Attempt == 1 {
				<-ctx.Done()
			}
			return ctx.Err()
		}))
		job.HeartbeatTimeout = silence
		a := c.replica("a", job)
		a.wake()
		time.Sleep(time.Minute)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if got.Next.After(time.Now().Add(time.Hour)) {
			t.Errorf("%s: tick 00:01:00 is open, and the next look is to be at %s (%v)", c.record("work").Run.Status, got.Next, err)
		}
	})
}

// A call ends though the store refuses the outcome of its run without end: other
// replicas settle the run once the lease that the call gave up has expired.
func TestCallEndsDespiteRefusedOutcome(t *testing.T) {
	for call, do := range map[string]func(context.Context, *replica) error{
		"RunDue": func(ctx context.Context, a *replica) error { _, err := a.RunDue(ctx, soloist.Wake{}); return err },
		"RunNow": func(ctx context.Context, a *replica) error { _, err := a.RunNow(ctx, "work", "wish"); return err },
	} {
		for name, refusal := range map[string]error{"refused": fs.ErrPermission, "unclear": errNetwork} {
			inCase(t, call+", "+name, func(t *testing.T, c *cluster) {
				a := c.replica("a", work("@every 1m", time.Second))
				a.wake()
				time.Sleep(time.Minute)
				a.tap.meet(inTurn("write", nil, refusal))
				begin := time.Now()
				wantError(t, do(c.within(time.Hour), a), "has run, and the outcome, succeeded, was not confirmed")
				if took := time.Since(begin); took > 6*D || took < 4*D {
					t.Errorf("it took %s", took)
				}
				time.Sleep(D / 2) // since the last renewal
				if e, err := c.store.Read(c.t.Context(), "soloist/work"); err != nil || e.State.Live() {
					t.Errorf("the lease is %s, %v", e.State, err)
				}
			})
		}
	}
}

// A call that has no time for a run does not begin it, and says so. It settles what it would not run anyway: else a
// platform whose calls are all short would never record those ticks. Another job, which has time, is run.
func TestRunDueStartsNothingUnfit(t *testing.T) {
	for name, tt := range map[string]struct {
		change   func(*soloist.Job)
		dies     bool // the runner of the tick at 01:00, five minutes after it
		want     []string
		withheld bool // the report says that a run was not started
	}{
		"paused": {func(j *soloist.Job) { j.Paused = true }, false, []string{"skipped 00:00:00-02:00:00 paused"}, false},
		"missed": {func(j *soloist.Job) { j.Late.Start = time.Minute }, false,
			[]string{"missed 00:00:00-02:00:00 past the starting deadline"}, false},
		"due":         {func(*soloist.Job) {}, false, []string{"missed 01:00:00 a newer one was due"}, true},
		"all are due": {func(j *soloist.Job) { j.Late.Missed = soloist.RunAll }, false, nil, true},
		"its runner died": {func(*soloist.Job) {}, true,
			[]string{"abandoned 01:00:00 its runner died"}, true},
		"its runner died, and it has another attempt": {func(j *soloist.Job) { j.Interrupted = soloist.Rerun }, true, nil, true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job, short := work("@hourly", 20*time.Minute), named("short", work("@hourly", 0))
			job.Timeout, short.Timeout = 30*time.Minute, time.Minute
			tt.change(&job)
			a := c.replica("a", job)
			if tt.dies {
				c.launch(a)
				until(time.Hour + 5*time.Minute)
				a.kill()
			} else {
				a.wake()
			}
			b := c.replica("b", job, short)
			b.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"short"}})
			until(2*time.Hour + 5*time.Minute)
			runs := len(c.all())
			for i := range 2 {
				got, err := b.RunDue(c.within(10*time.Minute), soloist.Wake{})
				if tt.withheld {
					wantError(t, err, "job work: not started: it may take 30m0s, and this call ends in 10m0s")
				} else if err != nil {
					t.Error(err)
				}
				if ran := len(got.Jobs[0].Ran) + len(got.Jobs[1].Ran); ran != 1-i || len(c.all()) != runs+1 {
					t.Errorf("call %d: got %+v", i, got)
				}
			}
			c.wantOutcomes("work", tt.want...)
			time.Sleep(30 * time.Minute)
			c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
			if ran := len(c.all()) > runs+1; ran != tt.withheld {
				t.Errorf("in a call without a deadline it ran: %t", ran)
			}
		})
	}
}

// A timer that fires for a tick, or a moment before it, gets the tick run, as if it had been on time: also the first one ever
// of a job, and where older ticks are due. A call that comes earlier runs those meanwhile.
func TestWakeForTick(t *testing.T) {
	newest := func(*soloist.Job) {}
	all := func(j *soloist.Job) { j.Late.Missed = soloist.RunAll }
	none := func(j *soloist.Job) { j.Late.Missed = soloist.SkipMissed }
	every10s := func(j *soloist.Job) { j.Schedule = "@every 10s" }
	const ten, ms, year = 10 * time.Second, time.Millisecond, 365 * 24 * time.Hour
	one, both := []string{"succeeded 01:00:00"}, []string{"succeeded 01:00:00", "succeeded 02:00:00"}
	second := []string{"missed 01:00:00 a newer one was due", "succeeded 02:00:00"}
	some := []string{"missed 00:00:00-00:01:00 a newer one was due", "succeeded 00:01:10", "succeeded 00:01:20",
		"succeeded 00:01:30", "succeeded 00:01:40"}
	for name, tt := range map[string]struct {
		first time.Duration // when the job is new; negative: at the wake-up
		job   func(*soloist.Job)
		takes time.Duration
		tick  time.Duration // zero: none is named
		early time.Duration
		want  []string
	}{
		"new, a moment early":  {-1, newest, time.Second, time.Hour, 30 * ms, one},
		"new, no tick named":   {-1, newest, time.Second, 0, -time.Hour - 300*ms, nil},
		"new, for a year on":   {-1, newest, time.Second, year, year - time.Hour, nil},
		"time for both":        {0, newest, ten, 2 * time.Hour, 20 * time.Second, both},
		"all, due under a run": {0, all, ten, 2 * time.Hour, 8 * time.Second, both},
		"none":                 {0, none, ten, 2 * time.Hour, 1500 * ms, second},
		"several":              {0, every10s, time.Second, 100 * time.Second, 25 * time.Second, some},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var wake soloist.Wake
			if tt.tick > 0 {
				wake.Tick = time.Now().Add(tt.tick)
			}
			job := work("@hourly", tt.takes)
			tt.job(&job)
			a := c.replica("a", job)
			if tt.first >= 0 {
				a.wake()
			}
			until(tt.tick - tt.early)
			called := time.Now()
			if _, err := a.RunDue(c.t.Context(), wake); err != nil {
				t.Error(err)
			}
			if took := time.Since(called); took > 33*time.Second {
				t.Errorf("it took %s", took)
			}
			c.wantOutcomes("work", tt.want...)
			for _, r := range c.all() {
				if early := r.Tick.Sub(r.start); early > time.Second {
					t.Errorf("tick %s started %s early", r.Tick, early)
				}
			}
		})
	}
}

// Each call looks at the record, also where no tick is due: a process that is woken up every 200 s answers each older
// definition in time. A call soon after another one does not, as the clocks agree. What the process knew before a platform
// froze it is as old as the wall clock says, which alone has counted that time, as where a machine goes on from a snapshot.
func TestRunDueReads(t *testing.T) {
	inCase(t, "each time", func(t *testing.T, c *cluster) {
		old := c.start("old", work("@every 10m", 0))
		time.Sleep(3 * time.Minute)
		young := c.replica("young", work("30 23 * * *", 0))
		for call := range 40 {
			young.tap.counts()
			young.wake()
			if n := young.tap.counts()["read"]; n != 1 {
				t.Errorf("call %d reads %d times", call, n)
			}
			time.Sleep(200 * time.Second)
		}
		if runs := ranBy(c, "old", time.Time{}); len(runs) > 0 {
			t.Errorf("the older definition runs %d ticks; its health is %v", len(runs), old.Health().Broken)
		}
	})
	for name, tt := range map[string]struct {
		awake, frozen time.Duration // after the call before
		reads         int
	}{
		"soon after another call": {59 * time.Second, time.Second, 0},
		"after a freeze":          {0, time.Hour, 2},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var gone atomic.Int64
			a := c.replica("a", work("* * * * *", 0), named("other", work("* * * * *", 0)))
			a.Now = func() time.Time { return time.Now().Add(time.Duration(gone.Load())) }
			c.store.Now = a.Now
			a.wake()
			for call := range 3 {
				time.Sleep(tt.awake)
				gone.Add(int64(tt.frozen))
				a.tap.counts()
				report, err := a.RunDue(c.t.Context(), soloist.Wake{})
				if err != nil || len(report.Jobs[0].Ran) != 1 || len(report.Jobs[1].Ran) != 1 {
					t.Errorf("call %d: got %+v, %v, want one run of each job", call, report, err)
				}
				if n := a.tap.counts()["read"]; n != tt.reads {
					t.Errorf("call %d reads %d times, want %d", call, n, tt.reads)
				}
			}
		})
	}
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
		inCase(t, name, func(t *testing.T, c *cluster) {
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
			if ran := report.Jobs[0].Ran; len(ran) == 0 || ran[0].Status != event.Failed || ran[0].Reason != "no route" {
				t.Errorf("got %+v, %v", report, err)
			}
			if tries != tt.tries {
				t.Errorf("%d tries, want %d", tries, tt.tries)
			}
		})
	}
}

func TestRunNowRunsOnceForRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		before := c.record("work")
		outcome, err := a.runNow()
		run, after := c.all()[1], c.record("work")
		if outcome.Request != "x" || outcome.Replica != "a" || run.ID() != "work@x" || run.Request != "x" || run.Token <= before.Token {
			t.Errorf("got %+v of %+v", outcome, run.Run)
		}
		if !after.Watermark.Equal(before.Watermark) || after.Counts[event.Succeeded] != before.Counts[event.Succeeded] {
			t.Errorf("a manual run counts as a tick: %+v", after)
		}
		wantOutcome(t, outcome, err, event.Succeeded, "")
		for _, r := range []*replica{a, b} {
			if again, err := r.runNow(); err != nil || again.Status != event.Succeeded || again.Token != outcome.Token {
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
			wantOutcome(t, outcome, err, event.Succeeded, "")
			time.Sleep(time.Hour)
			if due, err := a.NextDue(c.t.Context()); err != nil || !due.IsZero() {
				t.Errorf("%q: due at %v, %v", text, due, err)
			}
			c.wantRuns(1)
		})
	}
}

// A manual run never has the ID of a tick, is of a job of the program, and has a request that is a name.
func TestRunNowRefusesBadRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 0), here("@hourly", nil), leader())
		time.Sleep(90 * time.Minute)
		for _, job := range []string{"work", "here"} {
			for _, tick := range []string{"2000-01-01T01:00:00Z", "2000-01-01T02:00:00Z"} {
				_, err := a.RunNow(c.t.Context(), job, tick)
				wantError(t, err, tick, "tick")
			}
			for _, at := range []string{"2000-01-01T01:00:00.5Z", "2000-01-01T01:00:00-05:00", "2000-01-01", "by-2000-01-01T01:00:00Z"} {
				if outcome, err := a.RunNow(c.t.Context(), job, at); err != nil || outcome.Request != at {
					t.Errorf("%s: %s: got %+v, %v", job, at, outcome, err)
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

// A job that is paused, one of which a tick is open, and one that is everywhere. A run that cannot end in time is not started.
func TestRunNowOfPausedOpenAndEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused, each := named("paused", work("0 * * * *", 0)), here("0 * * * *", nil)
		paused.Paused, paused.Timeout, each.Timeout = true, time.Hour, time.Hour
		a := c.start("a", paused, each)
		for _, name := range []string{"paused", "here"} {
			_, err := a.RunNow(c.within(time.Minute), name, "y")
			wantError(t, err, "not started: it may take 1h0m0s, and this call ends in 1m0s")
			outcome, err := a.RunNow(c.t.Context(), name, "x")
			wantOutcome(t, outcome, err, event.Succeeded, "")
		}
		c.wantRuns(2)
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

// While a request is under way, a second call of it does not call it abandoned, and another one has to wait for it. Once it is
// over, its outcome is that of the run.
func TestRunNowTellsRequestUnderWay(t *testing.T) {
	for _, unlocked := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			a, b, done := c.replica("a", work("@hourly", time.Minute)), c.replica("b", work("@hourly", time.Minute)), make(chan error)
			go func() { _, err := a.runNow(); done <- err }()
			time.Sleep(10 * time.Second)
			for _, r := range []*replica{a, b} {
				if f, err := r.runNow(); err != nil || f.Status != event.Running || f.Replica != "a" {
					t.Errorf("%s: got %+v, %v, want that a runs it", r.Replica, f, err)
				}
				if f, err := r.RunNow(c.t.Context(), "work", "y"); !errors.Is(err, store.ErrHeld) {
					t.Errorf("%s, another request: got %+v, %v", r.Replica, f, err)
				}
			}
			status, reason := event.Succeeded, ""
			if unlocked {
				status, reason = event.Abandoned, "unlocked by b"
				c.ok(b.Unlock(c.t.Context(), "work", true))
			}
			if err := <-done; unlocked {
				wantError(t, err, "has run, and the outcome, ", "was refused")
			} else {
				c.ok(err)
			}
			f, err := b.runNow()
			wantOutcome(t, f, err, status, reason)
			c.wantRuns(1)
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
		if f := c.newest(); f.Status != event.Abandoned || !strings.HasPrefix(f.Reason, soloist.ErrLost.Error()) {
			t.Errorf("got %s %q, want that the lease is lost", f.Status, f.Reason)
		}
	})
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
			if r := c.record("work"); r.Run.Attempt != 2 || r.Run.Status != event.Succeeded {
				t.Errorf("the tick is not run again: %+v", r)
			}
		})
	}
}

// The store's clock was ten minutes ahead: the record is right by itself at 00:59, after its daily tick of 00:55. A replica that
// stays up runs that tick then; at zero replicas the next pass is wanted at the tick of the next day, and the tick is missed.
func TestWantedWhenRecordIsRightAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("0 55 0 * * *", time.Second)
		until(50 * time.Minute)
		c.replica("a", w).wake()
		rec := c.record("work")
		ahead := time.Now().Add(10 * time.Minute)
		rec.Run = record.Run{Status: event.Succeeded, Request: "by-hand", Tick: ahead, Claimed: ahead, Finished: ahead, Attempt: 1}
		b, err := json.Marshal(&rec)
		c.ok(err)
		c.deleteEntry()
		c.createEntry(string(b))
		until(55 * time.Minute)
		for range 10 { // as a platform does: a pass, and the next one when a replica is wanted
			r := c.replica("pass", w)
			_, _ = r.RunDue(c.t.Context(), soloist.Wake{})
			at, err := r.NextDue(c.t.Context())
			if err != nil || at.IsZero() || at.After(time.Now().Add(time.Hour)) {
				break
			}
			time.Sleep(max(time.Until(at), time.Minute))
		}
		if got := c.all(); len(got) != 1 {
			t.Errorf("at %s the tick of 00:55 has %d runs, and no replica is wanted today", time.Now().Format(time.TimeOnly), len(got))
		}
	})
}
