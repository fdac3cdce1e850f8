package soloist_test

import (
	"cmp"
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

// The end of Run is a stop, also where its context has a deadline: it counts as
// no death.
func TestDeadlineOfRunIsNoDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("0 * * * *", 100*time.Hour))
		for n := range 7 {
			_ = c.replica("a", job).Run(c.within(2 * time.Hour))
			if got := c.record("work"); got.Run.Deaths != 0 || got.Run.Attempt != n+1 {
				t.Fatalf("after stop %d: attempt %d, %d deaths, outcomes %q", n+1, got.Run.Attempt, got.Run.Deaths, c.outcomes("work"))
			}
		}
	})
}

// A call that ends with the context of Run is no outage.
func TestStopIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ctx, cancel := context.WithCancel(c.t.Context())
		a := c.replica("a", work("0 * * * *", time.Second)).meets(func(string, func() error) error {
			cancel()
			return context.Canceled
		})
		_ = a.Run(ctx)
		a.wantLines(0, "call to the store failed")
	})
}

// A second Run of a Scheduler ends with its context, also while the first goes on.
func TestSecondRunEndsWithContext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		begin := time.Now()
		_ = a.Run(c.within(time.Second))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it ended after %s", took)
		}
	})
}

// A last save on the way out, refused for another reason than the lease, does not delay a stop.
func TestRefusedSaveDoesNotDelayStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
			<-ctx.Done()
			return run.Save(context.WithoutCancel(ctx), "where I was")
		}))
		a.meets(fail(errors.New("403 this request is not authorized to perform this operation using this permission"), "save"))
		time.Sleep(2 * time.Minute)
		time.AfterFunc(time.Hour, func() { a.meets(nil) })
		begin := time.Now()
		if a.stop(); time.Since(begin) >= time.Hour {
			t.Errorf("it ends when it may save; the log says %q", a.log.lines("level=WARN"))
		}
	})
}

// A leader that is asked to stop goes on until others are near, unless its grace ends before that or no other replica is up.
// A replica that is up all the same finds the released lease soon.
func TestLeaderIsHandedOver(t *testing.T) {
	const grace, handover = 25 * time.Second, D/3 + time.Second
	alone := func(after time.Duration, is bool) func(context.Context) bool {
		return func(ctx context.Context) bool { _ = pause(ctx, after); return is }
	}
	for name, tt := range map[string]struct {
		grace time.Duration
		alone func(context.Context) bool
		takes time.Duration // from the stop to the end of the run
	}{
		"followed":          {grace, nil, handover},
		"no grace":          {0, nil, 0},
		"a short grace":     {2 * time.Second, nil, 2 * time.Second},
		"alone":             {grace, alone(0, true), 0},
		"known after 2 s":   {grace, alone(2*time.Second, true), 2 * time.Second},
		"another is up":     {grace, alone(0, false), handover},
		"no answer in time": {grace, alone(time.Hour, false), handover},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", leader())
			a.Grace, a.Alone = tt.grace, tt.alone
			c.launch(a)
			time.Sleep(time.Minute)
			c.startAll(leader(), "b", "c")
			time.Sleep(time.Second)
			stopped := time.Now()
			a.stop()
			if took := c.all()[0].end.Sub(stopped); took < tt.takes || took > tt.takes+500*time.Millisecond {
				t.Errorf("it ended after %s, want %s", took, tt.takes)
			}
			if got := c.outcomes("lead"); len(got) != 1 || !strings.HasPrefix(got[0], "abandoned") || !strings.HasSuffix(got[0], " stopped") {
				t.Errorf("outcomes: %q", got)
			}
			time.Sleep(D/3 + time.Second)
			runs := c.succession(2)
			if !errors.Is(runs[0].cause, soloist.ErrStopped) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
			if gap := runs[1].start.Sub(runs[0].end); tt.takes == handover && gap > 300*time.Millisecond {
				t.Errorf("no replica led for %s", gap)
			}
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

func TestStepDownHandsOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.graceful(25*time.Second, leader(), "a", "b")
		time.Sleep(time.Minute)
		old := all[c.all()[0].replica]
		for name, r := range all {
			if err := r.StepDown(c.t.Context(), "lead"); (err == nil) != (r == old) {
				t.Errorf("%s, of which %s leads, steps down: %v", name, old.Replica, err)
			}
		}
		if err := old.StepDown(c.t.Context(), "nobody"); err == nil {
			t.Error("an unknown job steps down")
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
// before another replica has the lease: Overrun is called once, a sixth of the lease after a
// renewal shows the loss, unless the run has returned by then. A log that blocks does not delay that.
func TestOverrunAfterEndAndLoss(t *testing.T) {
	for name, test := range map[string]struct {
		timeout time.Duration
		stop    bool
		lost    time.Duration // when the lease is, a minute after the start of the replica
		returns time.Duration // after the loss; zero: not in time
	}{
		"time-out":                {timeout: 10 * time.Second, lost: 9 * time.Minute},
		"time-out, blocked log":   {timeout: 10 * time.Second, lost: 9 * time.Minute},
		"time-out, soon lost":     {timeout: 10 * time.Second, lost: 12 * time.Second},
		"stop":                    {stop: true, lost: time.Minute + time.Second},
		"nothing before the loss": {lost: time.Minute},
		"returns in time":         {lost: time.Minute, returns: D/6 - time.Millisecond},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := doing("0 1 0 * * *", func(ctx context.Context, _ *soloist.Run) error {
				if test.returns > 0 {
					<-ctx.Done()
				}
				time.Sleep(cmp.Or(test.returns, 20*time.Minute))
				return nil
			})
			job.Timeout = test.timeout
			a, release := c.blocked("ignores the end", job)
			defer release()
			if name != "time-out, blocked log" {
				a = c.replica("a", job)
			}
			var overran overrunLog
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(time.Minute + test.lost - time.Second)
			if test.stop {
				go a.stop()
			}
			time.Sleep(time.Second + time.Second/2) // no renewal is under way then
			if calls := overran.all(); len(calls) > 0 {
				t.Fatalf("the lease is kept: Overrun was called %d times", len(calls))
			}
			if test.lost == 9*time.Minute && !errors.Is(a.Health().Overrun["work"], soloist.ErrTimeout) {
				t.Fatalf("health says %v", a.Health().Overrun)
			}
			lost := make(chan time.Time, 100)
			a.meets(func(op string, apply func() error) error {
				err := apply()
				if op == "renew" && errors.Is(err, store.ErrLost) {
					lost <- time.Now()
				}
				return err
			})
			c.breakLease()
			at := <-lost
			time.Sleep(D)
			calls, health := overran.all(), a.Health().Overrun["work"]
			switch {
			case test.returns > 0:
				if len(calls) > 0 {
					t.Errorf("Overrun was called with %+v", calls)
				}
			case len(calls) != 1 || calls[0].job != "work" || !errors.Is(calls[0].cause, store.ErrLost):
				t.Errorf("Overrun was called with %+v, want one call with ErrLost", calls)
			case calls[0].at.Sub(at) != D/6:
				t.Errorf("Overrun was called %s after the loss of the lease, want %s", calls[0].at.Sub(at), D/6)
			case !errors.Is(health, store.ErrLost):
				t.Errorf("health says %v, want ErrLost", health)
			}
		})
	}
}

// A run that ignores the end of its context keeps no other job from running for as long as its lease lasts. After that the
// replica takes nothing new, and does not read the records of its other jobs, until the run returns.
func TestOverrunTakesNothingNew(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ignores := named("ignores", deaf(30*time.Minute))
		ignores.Timeout = time.Second
		a := c.start("a", ignores, work("@every 1s", 0))
		time.Sleep(time.Minute + D + 500*time.Millisecond)
		if n := len(c.all()); n < 73 {
			t.Errorf("%d runs in 75 s: %v", n, a.Health())
		}
		time.Sleep(time.Minute)
		if len(a.Health().Overrun) != 1 {
			t.Fatalf("health is %+v", a.Health())
		}
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if counts := a.tap.counts(); counts["read"] > 0 || counts["acquire"] > 0 {
			t.Errorf("in ten minutes it sends %v", counts)
		}
		before := len(c.all())
		time.Sleep(20 * time.Minute)
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
