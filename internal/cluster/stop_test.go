package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// The end of Run is a stop, also where its context has a deadline: it counts as
// no death.
func TestDeadlineOfRunIsNoDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("0 * * * *", 100*time.Hour))
		for n := range 7 {
			_ = c.replica("a", job).Run(c.within(2 * time.Hour))
			if got := c.record("work").Run; got.Deaths != 0 || got.Attempt != n+1 {
				t.Fatalf("after stop %d: attempt %d, %d deaths", n+1, got.Attempt, got.Deaths)
			}
		}
	})
}

// A second Run of a Scheduler ends with its context, also while the first goes on. A call that ends with that is no outage.
func TestSecondRunEndsWithContext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		begin := time.Now()
		_ = a.Run(c.within(time.Second))
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it ended after %s", took)
		}
		ctx, cancel := context.WithCancel(c.t.Context())
		b := c.replica("b", work("0 * * * *", time.Second)).meets(func(string, func() error) error { cancel(); return ctx.Err() })
		_ = b.Run(ctx)
		b.wantLines(0, "call to the store failed")
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
		if r := c.record("lead"); r.Run.Replica != "b" || r.Run.Stopping || r.Run.Progress != (record.Progress{}) {
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
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if counts := a.tap.counts(); counts["read"] > 0 || counts["acquire"] > 0 || len(a.Health().Overrun) != 1 {
			t.Errorf("in ten minutes it sends %v, and health is %+v", counts, a.Health())
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
		r := c.replica("a", doing("@every 1h", func(_ context.Context, run *soloist.Run) error {
			for i := range 61 {
				_ = run.Heartbeat(fmt.Sprint("step ", i))
				mute.Store(i >= 58)
				time.Sleep(time.Second)
			}
			time.AfterFunc(time.Second, func() { mute.Store(false) })
			return nil
		}))
		r.tap.before = hanging("write", &mute)
		c.launch(r)
		time.Sleep(time.Hour + 5*time.Minute)
		f := c.record("work").History[0]
		if late := f.End.Sub(c.all()[0].end); late.Abs() > time.Second/10 || f.End.Sub(f.Start).Round(time.Second) != 61*time.Second {
			t.Errorf("the outcome says that it took from %s to %s, %s after its return", f.Start, f.End, late)
		}
	})
}

// Heartbeats keep a leader, and cost a write a minute. A beat that comes late, and a check that fails now and then, alarm
// followers no more than for a moment. Within a short HeartbeatTimeout, or between two calls of HealthCheck that follow each
// other soon, followers cannot come near: that costs no writes.
func TestHeartbeatsCostFewCalls(t *testing.T) {
	lead := func(every, silence, interval time.Duration, check func(context.Context) error) soloist.Singleton {
		s := beating(every, 24*time.Hour, true)
		s.HeartbeatTimeout, s.HealthCheck.Interval, s.HealthCheck.Check = silence, interval, check
		return s
	}
	const s, often = time.Second, 800 * time.Millisecond
	var calls atomic.Int32
	flaps := func(context.Context) error { return sick(calls.Add(1)%3 != 0, errors.New("no data")) }
	for name, tt := range map[string]struct {
		lead        soloist.Singleton
		least, most int // writes in ten minutes
		reads       int // of a follower in ten minutes, at most; zero: the leader is alone
	}{
		"each 50 ms":                          {lead(50*time.Millisecond, silence, 0, nil), 9, 11, 0},
		"each 14 s":                           {lead(14*s, silence, 0, nil), 9, 11, 140},
		"late, each 16 s":                     {lead(16*s, silence, 0, nil), 9, 15 + 2*600/16, 600},
		"as late as can be":                   {lead(silence-s, silence, 0, nil), 10, 12 + 2*33, 0},
		"a short HeartbeatTimeout":            {lead(often, s, 0, nil), 8, 12, 0},
		"a HeartbeatTimeout that is too long": {lead(often, time.Hour, 0, nil), 0, 1, 0},
		"a check each tenth second":           {lead(often, 0, 100*time.Millisecond, flaps), 8, 12, 0},
		"a check each sixth of D":             {lead(often, 0, D/6, flaps), 2 * 75, 2 * 90, 0},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			calls.Store(0)
			all := []*replica{c.start("a", tt.lead)}
			time.Sleep(time.Minute)
			if tt.reads > 0 {
				all = append(all, c.start("b", tt.lead))
			}
			time.Sleep(20 * time.Minute)
			for _, r := range all {
				r.tap.counts()
			}
			time.Sleep(10 * time.Minute)
			if n := all[0].tap.counts()["write"]; n < tt.least || n > tt.most {
				t.Errorf("%d writes in 10 minutes, want %d to %d", n, tt.least, tt.most)
			}
			if n := all[len(all)-1].tap.counts()["read"]; n > tt.reads {
				t.Errorf("%d reads of a follower in 10 minutes", n)
			}
			run := c.record("lead").Run
			if tt.most <= 12 && run.Stopping { // followers would look ten times a second
				t.Error("it is announced")
			}
			p := run.Progress
			if tt.least > 0 && (p.Note != "all well" || time.Since(p.At) > 2*time.Minute || p.At.After(time.Now().Add(s))) {
				t.Errorf("progress is %+v at %s", p, time.Now())
			}
			c.wantRuns(1)
		})
	}
}

// stalling is a job whose runs have to beat.
func stalling(schedule string, do func(context.Context, *soloist.Run) error) soloist.Job {
	job := doing(schedule, do)
	job.HeartbeatTimeout = silence
	return job
}

func TestHealthCheck(t *testing.T) {
	no := errors.New("no data")
	for name, test := range map[string]struct {
		healthy func(ctx context.Context, n int) error // the nth call
		end     time.Duration                          // of the run; zero: it goes on
		reason  string
	}{
		"well":                {healthy: func(context.Context, int) error { return nil }},
		"now and then not":    {healthy: func(_ context.Context, n int) error { return sick(n%3 != 0, no) }},
		"sick":                {func(context.Context, int) error { return no }, 30 * time.Second, "stalled: unhealthy 3 times in a row: no data"},
		"sick after a minute": {func(_ context.Context, n int) error { return sick(n > 6, no) }, 90 * time.Second, "unhealthy 3 times"},
		"panics":              {func(context.Context, int) error { panic("oh") }, 30 * time.Second, "panic: oh"},
		"hangs": {func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() },
			40 * time.Second, "no answer before the next check was due"},
		"hangs, and ignores its context": {func(context.Context, int) error { time.Sleep(35 * time.Second); return nil },
			40 * time.Second, "no answer before"},
		"is well, and too late each time": {func(context.Context, int) error { time.Sleep(15 * time.Second); return nil },
			50 * time.Second, "no answer before"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var calls atomic.Int32
			lead := leader()
			lead.HealthCheck.Check = func(ctx context.Context) error { return test.healthy(ctx, int(calls.Add(1))) }
			c.start("a", lead)
			time.Sleep(2*time.Minute - time.Second)
			first := c.all()[0]
			if test.end == 0 {
				if !first.end.IsZero() || calls.Load() != 11 {
					t.Errorf("ended at %s for %v, after %d calls", first.end, first.cause, calls.Load())
				}
				return
			}
			if took := first.end.Sub(first.start); took < test.end || took > test.end+2*time.Second {
				t.Errorf("ended after %s, want %s", took, test.end)
			}
			if !errors.Is(first.cause, soloist.ErrStalled) || !strings.Contains(first.cause.Error(), test.reason) {
				t.Errorf("the cause is %v", first.cause)
			}
		})
	}
}

func sick(really bool, err error) error {
	if really {
		return err
	}
	return nil
}

// What followers were told of an end that may come is taken back by the next beat, also if the answer to that write was lost,
// and by the next try.
func TestStoppingIsTakenBack(t *testing.T) {
	for name, f := range map[string]fault{"next try": nil, "next beat, an answer lost": lose("write", 1)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := stalling("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				if _ = run.Heartbeat(""); run.Try == 1 {
					if time.Sleep(16 * time.Second); f == nil {
						return errors.New("slow")
					}
				}
				for pause(ctx, time.Second) == nil {
					_ = run.Heartbeat("")
				}
				return nil
			})
			job.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
			a := c.start("a", job)
			until(time.Minute + time.Second)
			a.meets(f)
			time.Sleep(30 * time.Minute)
			if r := c.record("work"); r.Run.Stopping || r.Run.Status != event.Running {
				t.Errorf("half an hour later the record says %+v", r.Run)
			}
		})
	}
}

// The end of a stalled run is told, though ticks came due before it returned. They are told once. The log has its reason, and the
// goroutines.
func TestStalledRunKeepsItsEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", stalling("@every 10s", func(ctx context.Context, _ *soloist.Run) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		}))
		book := a.tells()
		c.launch(a)
		time.Sleep(10*time.Second + silence + 2*time.Second)
		r, wrote := c.record("work"), map[event.Status]int{}
		i := slices.IndexFunc(r.History, func(f event.Outcome) bool { return f.Status == event.Stalled })
		if i < 1 || r.History[i-1].Reason != "overlap" {
			t.Fatalf("got %q", c.outcomes("work"))
		}
		if took := r.History[i].End.Sub(r.History[i].Start); took < silence || took > silence+2*time.Second {
			t.Errorf("the stalled run is told to have taken %s", took)
		}
		for _, f := range r.History {
			wrote[f.Status]++
		}
		if told := outcomesIn(book); !maps.Equal(told, wrote) {
			t.Errorf("the events tell %v, the record %q", told, c.outcomes("work"))
		}
		a.wantLines(1, "the run has stalled", "no heartbeat for 20s", "goroutine")
	})
}

// A replica whose run does not obey is told so in time, also when the storage is
// out of reach and the run's progress is to be written.
func TestProgressDoesNotDelayOverrun(t *testing.T) {
	for range 8 { // if it does, it does so by chance
		inCluster(t, func(c *cluster) {
			var began time.Time
			var overran overrunLog
			a := c.replica("a", stalling("0 1 0 * * *", func(_ context.Context, run *soloist.Run) error {
				began = time.Now()
				for time.Since(began) < time.Minute-silence {
					time.Sleep(silence / 4)
					_ = run.Heartbeat("")
				}
				time.Sleep(time.Minute)
				return nil
			}))
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(2*time.Minute - time.Second)
			a.tap.cut.Store(true)
			time.Sleep(time.Minute)
			a.tap.cut.Store(false)
			c.stopAll()
			if took := overran.all()[0].at.Sub(began.Add(time.Minute)); took < D/6 || took > 2*D/6+time.Second {
				t.Errorf("told %s after it had stalled; it takes %s to tell others, and then the run has %s", took, D/6, D/6)
			}
		})
	}
}
