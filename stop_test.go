package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestStopWithinGrace(t *testing.T) {
	for name, tt := range map[string]struct {
		grace time.Duration
		want  string
		cause error
	}{
		"within the grace": {20 * time.Second, "succeeded 00:00:10", nil},
		"after the grace":  {2 * time.Second, "abandoned 00:00:10 stopped", soloist.ErrStopped},
		"without a grace":  {0, "abandoned 00:00:10 stopped", soloist.ErrStopped},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", work("@every 10s", 5*time.Second))
			a.Grace = tt.grace
			c.launch(a)
			time.Sleep(11 * time.Second)
			a.stop()
			c.wantOutcomes("work", tt.want)
			if got := c.all(); len(got) != 1 || !errors.Is(got[0].cause, tt.cause) {
				t.Errorf("got %+v, want the cause %v", got, tt.cause)
			}
			e, _ := c.store.Read(c.t.Context(), "soloist/work")
			if e.State != store.Available {
				t.Errorf("the lease is %s after the stop", e.State)
			}
		})
	}
}

func TestIdleStopLosesNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 10s", time.Second))
		c.start("b", work("@every 10s", time.Second))
		time.Sleep(35 * time.Second)
		a.stop()
		time.Sleep(26 * time.Second)
		if got := once(t, c.all()); got != 6 {
			t.Errorf("%d ticks ran, want 6: %q", got, c.outcomes("work"))
		}
	})
}

// The end of Run is a stop, also where its context has a deadline: it counts as
// no death.
func TestDeadlineOfRunIsNoDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("0 * * * *", 100*time.Hour))
		for n := range 7 {
			r := c.replica("a", job)
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Hour)
			_ = r.Run(ctx)
			cancel()
			if got := c.record("work"); got.Run.Deaths != 0 || got.Run.Attempt != n+1 {
				t.Fatalf("after stop %d: attempt %d, %d deaths, outcomes %q", n+1, got.Run.Attempt, got.Run.Deaths, c.outcomes("work"))
			}
		}
	})
}

// The error of a run that a stop has ended is kept.
func TestStopKeepsErrorOfRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("0 * * * *", func(ctx context.Context, _ *soloist.Run) error {
			<-ctx.Done()
			return soloist.Permanent(errors.New("the ledger is corrupt"))
		})
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		if f := c.outcomes("work"); len(f) != 1 || !strings.Contains(f[0], "abandoned 01:00:00 stopped: the ledger is corrupt") {
			t.Errorf("outcomes: %q", f)
		}
		a.wantLines(1, "run ended", "the ledger is corrupt")
	})
}

func TestStopIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancel(c.t.Context())
		a.tap.meet(func(op string, apply func() error) error {
			cancel()
			return context.Canceled
		})
		_ = a.Run(ctx)
		a.wantLines(0, "call to the store failed")
	})
}

func TestSecondRunEndsWithContext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		done := make(chan struct{})
		go func() { _ = a.Run(ctx); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Error("Run with an ended context is at it for an hour")
		}
	})
}

func TestLeaseOutlivesRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(time.Minute)
		c.start("b", leader())
		time.Sleep(10 * time.Second)
		stopped := time.Now()
		a.stop()
		if took := time.Since(stopped); took > 300*time.Millisecond {
			t.Errorf("it stopped after %s", took)
		}
		if got := c.all()[0]; !errors.Is(got.cause, soloist.ErrStopped) {
			t.Errorf("the cause is %v", got.cause)
		}
		time.Sleep(D/3 + time.Second)
		c.succession(2)
	})
}

// A last save on the way out, refused for another reason than the lease.
func TestRefusedSaveDoesNotDelayStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
			<-ctx.Done()
			return run.Save(context.WithoutCancel(ctx), "where I was")
		})
		a := c.start("a", job)
		a.tap.meet(fail(errors.New("403 this request is not authorized to perform this operation using this permission"), "save"))
		time.Sleep(2 * time.Minute)
		go a.stop()
		time.Sleep(6 * time.Hour)
		select {
		case <-a.done:
		default:
			t.Errorf("six hours after the stop it goes on; the log says %q", a.log.lines("level=WARN"))
			a.tap.meet(nil)
		}
	})
}

// A leader that is told to stop goes on until others are near.
func TestLeaderIsHandedOver(t *testing.T) {
	for phase := range 10 {
		inCluster(t, func(c *cluster) {
			all := c.graceful(25*time.Second, leader(), "a", "b", "c")
			time.Sleep(time.Minute + time.Duration(phase)*511*time.Millisecond)
			old := all[c.all()[0].replica]
			stopped := time.Now()
			old.stop()
			if took := time.Since(stopped); took < D/3+time.Second || took > D/3+1500*time.Millisecond {
				t.Errorf("stopped after %s", took)
			}
			time.Sleep(time.Second)
			runs := c.succession(2)
			if gap := runs[1].start.Sub(runs[0].end); gap > 300*time.Millisecond {
				t.Errorf("nobody led for %s", gap)
			}
			if !errors.Is(runs[0].cause, soloist.ErrStopped) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
		})
	}
}

// A leader that nobody follows ends at once. A replica that is up all the same finds the released lease soon.
func TestLoneLeaderEndsAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		alone func(context.Context) bool
		takes time.Duration // from the stop to the end of the run
	}{
		"alone":             {func(context.Context) bool { return true }, 0},
		"known after 2 s":   {func(context.Context) bool { time.Sleep(2 * time.Second); return true }, 2 * time.Second},
		"another is up":     {func(context.Context) bool { return false }, D/3 + time.Second},
		"no answer in time": {func(ctx context.Context) bool { <-ctx.Done(); return false }, D/3 + time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", leader())
			a.Grace, a.Alone = 25*time.Second, test.alone
			c.launch(a)
			time.Sleep(time.Minute)
			c.start("b", leader())
			time.Sleep(time.Second)
			stopped := time.Now()
			a.stop()
			if took := c.all()[0].end.Sub(stopped); took < test.takes || took > test.takes+300*time.Millisecond {
				t.Errorf("it ended after %s, want %s", took, test.takes)
			}
			if got := c.outcomes("lead"); len(got) != 1 || !strings.HasPrefix(got[0], "abandoned") || !strings.HasSuffix(got[0], " stopped") {
				t.Errorf("outcomes: %q", got)
			}
			time.Sleep(D/3 + time.Second)
			c.succession(2)
		})
	}
}

// A job has its grace, whether others are up or not.
func TestLoneJobHasItsGrace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 1 0 * * *", 20*time.Second))
		a.Grace, a.Alone = 25*time.Second, func(context.Context) bool { return true }
		c.launch(a)
		time.Sleep(time.Minute + time.Second)
		a.stop()
		c.wantOutcomes("work", "succeeded 00:01:00")
	})
}

// A run that goes on well until the end of its stop is handed over all the same.
func TestHandoverIsNotTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		lead := beating(time.Second, time.Hour, true)
		lead.HeartbeatTimeout = 4 * time.Second
		a := c.graceful(25*time.Second, lead, "a")["a"]
		time.Sleep(time.Minute)
		go a.stop()
		for range int(D/3/time.Second) + 1 {
			time.Sleep(990 * time.Millisecond)
			if r := c.record("lead"); !r.Run.Stopping {
				t.Errorf("after %s the record says that it goes on", time.Since(c.all()[0].start))
			}
		}
		time.Sleep(time.Second)
		c.start("b", leader())
		time.Sleep(time.Second)
		if r := c.record("lead"); r.Run.Replica != "b" || r.Run.Stopping || r.Run.Progress != (store.Progress{}) {
			t.Errorf("got %+v", r)
		}
	})
}

func TestShortGraceEndsHandover(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.graceful(2*time.Second, leader(), "a")["a"]
		time.Sleep(time.Minute)
		stopped := time.Now()
		a.stop()
		if took := time.Since(stopped); took > 2500*time.Millisecond {
			t.Errorf("stopped after %s", took)
		}
	})
}

// A job goes on within the grace, and the record says that it is stopping.
func TestJobIsHandedOver(t *testing.T) {
	for name, test := range map[string]struct {
		takes    time.Duration
		outcomes []string
		start    time.Duration // of the second attempt after the end of the first
	}{
		"ends within the grace": {20 * time.Second, []string{"succeeded 00:01:00"}, 0},
		"does not":              {time.Minute, []string{"succeeded 00:01:00"}, 300 * time.Millisecond},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(work("0 1 0 * * *", test.takes))
			all := c.graceful(25*time.Second, job, "a", "b")
			time.Sleep(time.Minute + 2*time.Second)
			go all[c.all()[0].replica].stop()
			time.Sleep(time.Second)
			if r := c.record("work"); !r.Run.Stopping || r.Run.Status != store.Running {
				t.Errorf("got %+v", r)
			}
			time.Sleep(2 * time.Minute)
			c.wantOutcomes("work", test.outcomes...)
			runs := c.all()
			disjoint(t, runs)
			if test.start == 0 && len(runs) != 1 {
				t.Errorf("got %d runs", len(runs))
			}
			if test.start > 0 && (len(runs) != 2 || runs[1].start.Sub(runs[0].end) > test.start) {
				t.Errorf("got %+v", runs)
			}
			if r := c.record("work"); r.Run.Stopping {
				t.Error("it is over, and the record says that it is stopping")
			}
		})
	}
}

// A long grace costs those that wait for it ever less.
func TestWaitForLongStopIsCheap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("0 1 0 * * *", time.Hour))
		a := c.graceful(30*time.Minute, job, "a")["a"]
		time.Sleep(time.Minute + time.Second)
		b := c.graceful(time.Second, job, "b")["b"]
		time.Sleep(10 * time.Second)
		go a.stop()
		b.tap.counts()
		time.Sleep(20 * time.Minute)
		if n := b.tap.counts()["read"]; n > 1600 {
			t.Errorf("%d reads in 20 minutes", n)
		}
		time.Sleep(20 * time.Minute)
		if runs := c.all(); len(runs) != 2 || runs[1].start.Sub(runs[0].end) > D/3+time.Second {
			t.Errorf("got %+v", runs)
		}
	})
}

func TestStepDownHandsOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.graceful(25*time.Second, leader(), "a", "b")
		time.Sleep(time.Minute)
		old := all[c.all()[0].replica]
		for name, r := range all {
			if r != old {
				if err := r.StepDown(t.Context(), "lead"); err == nil {
					t.Errorf("%s does not lead, and steps down", name)
				}
			}
		}
		if err := old.StepDown(c.t.Context(), "nobody"); err == nil {
			t.Error("an unknown job steps down")
		}
		if err := old.StepDown(c.t.Context(), "lead"); err != nil {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 2 || runs[1].replica == old.Replica || runs[1].start.Sub(runs[0].end) > 300*time.Millisecond {
			t.Errorf("got %+v", runs)
		}
		ctx := c.within(time.Second)
		if err := all[runs[1].replica].StepDown(ctx, "lead"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(time.Minute)
		if runs := c.all(); len(runs) != 3 {
			t.Errorf("got %d terms", len(runs))
		}
	})
}

// One that steps down without others leads again after a while.
func TestStepDownAloneLeadsAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.graceful(25*time.Second, leader(), "a")["a"]
		time.Sleep(time.Minute)
		if err := a.StepDown(c.t.Context(), "lead"); err != nil {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(D/3 + 1500*time.Millisecond)
		if n := len(c.all()); n != 2 {
			t.Errorf("got %d terms", n)
		}
	})
}

// An overrunLog keeps the calls of Overrun.
type overrunLog struct {
	mu    sync.Mutex
	calls []overrunCall
}

type overrunCall struct {
	job   string
	cause error
	at    time.Time
}

func (l *overrunLog) add(job string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, overrunCall{job, cause, time.Now()})
}

func (l *overrunLog) all() []overrunCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// What has ended the context of a run leaves it its lease, so there is time. Once the
// lease is lost, also before Health tells of the overrun, the process has to end
// before another replica has the lease.
func TestOverrunAfterEndAndLoss(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		stop    bool
		lost    time.Duration // when the lease is, a minute after the start of the replica
	}{
		"time-out":            {timeout: 10 * time.Second, lost: 9 * time.Minute},
		"time-out, soon lost": {timeout: 10 * time.Second, lost: 12 * time.Second},
		"stop":                {stop: true, lost: time.Minute + time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var overran overrunLog
			job := deaf(20 * time.Minute)
			job.Timeout = test.timeout
			a := c.replica("a", job)
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(time.Minute + test.lost - time.Second)
			if test.stop {
				go a.stop()
			}
			time.Sleep(time.Second)
			if calls := overran.all(); len(calls) > 0 {
				t.Fatalf("the lease is kept: Overrun was called %d times", len(calls))
			}
			if name == "time-out" && !errors.Is(a.Health().Overrun["work"], soloist.ErrTimeout) {
				t.Fatalf("health says %v", a.Health().Overrun)
			}
			wantOverrunAfterLoss(c, a, &overran)
		})
	}
}

// wantOverrunAfterLoss breaks the lease of a's job: Overrun is called once, a
// sixth of the lease after the next renewal shows the loss.
func wantOverrunAfterLoss(c *cluster, a *replica, overran *overrunLog) {
	c.t.Helper()
	time.Sleep(time.Second / 2) // no renewal is under way then
	lost := make(chan time.Time, 1)
	a.tap.meet(func(op string, apply func() error) error {
		err := apply()
		if op == "renew" && errors.Is(err, store.ErrLost) {
			select {
			case lost <- time.Now():
			default:
			}
		}
		return err
	})
	c.breakLease()
	at := <-lost
	time.Sleep(D)
	calls := overran.all()
	if len(calls) != 1 || calls[0].job != "work" || !errors.Is(calls[0].cause, store.ErrLost) {
		c.t.Fatalf("Overrun was called with %+v, want one call with ErrLost", calls)
	}
	if took := calls[0].at.Sub(at); took != D/6 {
		c.t.Errorf("Overrun was called %s after the loss of the lease, want %s", took, D/6)
	}
	if cause := a.Health().Overrun["work"]; !errors.Is(cause, store.ErrLost) {
		c.t.Errorf("health says %v, want ErrLost", cause)
	}
}

// After the loss of the lease alone, and when the run returns in time.
func TestOverrunAfterLoss(t *testing.T) {
	for returns, want := range map[time.Duration]int{D/6 - time.Millisecond: 0, D/6 + time.Millisecond: 1} {
		inCluster(t, func(c *cluster) {
			var overran overrunLog
			a := c.replica("a", soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D,
				Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); time.Sleep(returns); return nil }})
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(2 * time.Minute)
			c.breakLease()
			time.Sleep(D)
			if got := len(overran.all()); got != want {
				t.Errorf("the run returned %s after the loss of its lease: Overrun was called %d times, want %d", returns, got, want)
			}
		})
	}
}

// A run that takes its time to return after a time-out, but no longer than its
// lease, keeps nobody from running.
func TestSlowReturnBlocksNoJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		slow := soloist.Job{Name: "slow", Schedule: "0 1 0 * * *", Lease: D, Timeout: time.Second,
			Do: func(ctx context.Context, run *soloist.Run) error { time.Sleep(D); return nil }}
		a := c.start("a", slow, work("@every 1s", 0))
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		if n := len(c.all()); n < 180 {
			t.Errorf("%d runs in 180 s: %v", n, a.Health())
		}
	})
}

// A replica that takes nothing new, since a run here ignores the end of its
// context, does not read the records of its other jobs meanwhile.
func TestOverrunReadsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := soloist.Job{Name: "deaf", Schedule: "0 1 0 * * *", Lease: D, Timeout: time.Second,
			Do: func(context.Context, *soloist.Run) error { time.Sleep(30 * time.Minute); return nil }}
		a := c.start("a", deaf, work("@every 10s", 0))
		time.Sleep(2 * time.Minute)
		if len(a.Health().Overrun) != 1 {
			t.Fatalf("health is %+v", a.Health())
		}
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if counts := a.tap.counts(); counts["read"] > 0 || counts["acquire"] > 0 {
			t.Errorf("in ten minutes it sends %v", counts)
		}
		before := len(c.all())
		time.Sleep(30 * time.Minute)
		if len(c.all()) <= before {
			t.Error("it does not go on once the run has returned")
		}
	})
}

// The end of a run is when its function has returned, whatever the replica waits for after that: here for the write of a
// progress note that gets no answer.
func TestEndIsWhenTheFunctionReturned(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var mute atomic.Bool
		var returned time.Time
		job := work("@every 1h", 0)
		job.Do = func(_ context.Context, run *soloist.Run) error {
			for i := range 61 {
				_ = run.Heartbeat(fmt.Sprint("step ", i))
				mute.Store(i >= 58)
				time.Sleep(time.Second)
			}
			time.AfterFunc(time.Second, func() { mute.Store(false) })
			returned = time.Now()
			return nil
		}
		r := c.replica("a", job)
		r.tap.before = hanging("write", &mute)
		c.launch(r)
		time.Sleep(time.Hour + 5*time.Minute)
		f := c.record("work").History[0]
		if late := f.End.Sub(returned); late.Abs() > time.Second/10 {
			t.Errorf("the outcome says that it ended at %s, %s after its return", f.End.Format(time.TimeOnly), late)
		}
		if took := f.End.Sub(f.Start).Round(time.Second); took != 61*time.Second {
			t.Errorf("it took %s, want 61s", took)
		}
	})
}
