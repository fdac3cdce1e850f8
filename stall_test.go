package soloist_test

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
	"github.com/soloist-go/soloist/store"
)

func TestHeartbeatKeepsLeader(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(silence-time.Second, time.Hour, true))
		time.Sleep(30 * time.Minute)
		c.wantRuns(1)
		p := c.record("lead").Run.Progress
		if p.Note != "all well" || time.Since(p.At) > 2*time.Minute || p.At.After(time.Now().Add(time.Second)) {
			t.Errorf("progress is %+v at %s", p, time.Now())
		}
		// One a minute tells progress. Each beat comes so late that others are
		// told that they may be needed, which is taken back.
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if n := a.tap.counts()["write"]; n < 10 || n > 12+2*33 {
			t.Errorf("%d writes in 10 minutes", n)
		}
	})
}

func TestProgressIsWrittenOnceAMinute(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(50*time.Millisecond, time.Hour, true))
		time.Sleep(time.Minute)
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if n := a.tap.counts()["write"]; n < 9 || n > 11 {
			t.Errorf("%d writes in 10 minutes", n)
		}
	})
}

// A leader that hangs and obeys: others are near when it is given up.
func TestStalledLeaderIsReplaced(t *testing.T) {
	for phase := range 7 {
		inCluster(t, func(c *cluster) {
			well := 3*time.Minute + time.Duration(phase)*773*time.Millisecond
			a := c.start("a", beating(time.Second, well, true))
			time.Sleep(10 * time.Second)
			c.start("b", beating(time.Second, time.Hour, true))
			c.start("c", beating(time.Second, time.Hour, true))
			time.Sleep(well + silence - 8*time.Second)
			runs := c.succession(2)
			silent := runs[0].start.Add(well.Truncate(time.Second)) // about
			if took := runs[1].start.Sub(silent); took < silence-time.Second || took > silence+2*time.Second {
				t.Errorf("replaced %s after the last heartbeat", took)
			}
			if runs[1].replica == "a" {
				t.Errorf("by itself")
			}
			if gap := runs[1].start.Sub(runs[0].end); gap > 300*time.Millisecond {
				t.Errorf("nobody led for %s", gap)
			}
			if !errors.Is(runs[0].cause, soloist.ErrStalled) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
			if got := c.record("lead").Counts; got[store.Stalled] != 1 || got[store.Abandoned] != 0 {
				t.Errorf("counts are %v", got)
			}
			a.wantLines(1, "the run has stalled", "no heartbeat for 20s", "goroutine")
		})
	}
}

// Alone, it takes over from itself after its pause, later than others could.
func TestStalledLeaderAloneRunsAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", beating(time.Second, time.Minute, true))
		time.Sleep(time.Minute + silence + 6*time.Second)
		if runs := c.all(); len(runs) != 2 {
			t.Errorf("got %d terms", len(runs))
		}
	})
}

// A singleton that stalls whenever it runs rests as one that fails does, and
// never less than the others need to take over.
func TestStalledSingletonRests(t *testing.T) {
	for backoff, want := range map[time.Duration]time.Duration{5 * time.Minute: 5 * time.Minute, time.Millisecond: 1500 * time.Millisecond} {
		inCluster(t, func(c *cluster) {
			lead := beating(time.Second, 0, true)
			lead.HeartbeatTimeout, lead.Backoff = time.Second, backoff
			c.start("a", lead)
			time.Sleep(10 * (want + 3*time.Second))
			runs := c.all()
			for i := 1; i < len(runs); i++ {
				if got := runs[i].start.Sub(runs[i-1].end); got < want || got > want+time.Second {
					c.t.Fatalf("it rests %s after a stall, want %s", got, want)
				}
			}
			if len(runs) < 8 {
				t.Errorf("%d terms", len(runs))
			}
		})
	}
}

// A leader that hangs and ignores its context keeps its lease until it runs
// out; the process has to go before that.
func TestStalledLeaderThatIgnoresItsContext(t *testing.T) {
	for phase := range 7 {
		inCluster(t, func(c *cluster) {
			well := time.Minute + time.Duration(phase)*773*time.Millisecond
			a := c.replica("a", beating(time.Second, well, false), work("@every 1s", 0))
			var overran atomic.Pointer[time.Time]
			a.Overrun = func(job string, cause error) {
				if job != "lead" || !errors.Is(cause, soloist.ErrStalled) {
					t.Errorf("%s overran: %v", job, cause)
				}
				now := time.Now()
				overran.Store(&now)
			}
			c.launch(a)
			time.Sleep(10 * time.Second)
			c.start("b", beating(time.Second, 2*time.Hour, true))
			time.Sleep(well + silence - 10*time.Second + time.Second)
			if overran.Load() != nil {
				t.Error("it had no time to return")
			}
			time.Sleep(D / 6)
			if r := c.record("lead"); r.Run.Status != store.Stalled || !r.Run.Finished.IsZero() || r.Run.Replica != "a" {
				t.Errorf("got %+v", r)
			}
			if now := time.Now(); overran.Load() == nil || now.Sub(*overran.Load()) > 2*time.Second {
				t.Errorf("overran at %v, and its context ended %s before %s", overran.Load(), D/6, now)
			}
			time.Sleep(D)
			var lead []ran
			for _, r := range c.all() {
				if r.Job == "lead" {
					lead = append(lead, r)
				}
			}
			if len(lead) != 2 {
				t.Fatalf("got %d terms", len(lead))
			}
			if took := lead[1].start.Sub(lead[0].start.Add(well.Truncate(time.Second))); took > silence+D+3*time.Second {
				t.Errorf("replaced %s after the last heartbeat", took)
			}
			if at := overran.Load(); at == nil || !at.Before(lead[1].start) {
				t.Errorf("overran at %v, replaced at %s", at, lead[1].start)
			}
			if h := a.Health(); h.Overrun["lead"] == nil {
				t.Errorf("health is %+v", h)
			}
			ticks := len(c.all())
			time.Sleep(10 * time.Minute)
			if n := len(c.all()); n != ticks {
				t.Errorf("it took %d ticks of another job", n-ticks)
			}
			time.Sleep(time.Hour)
			if h := a.Health(); len(h.Overrun) > 0 {
				t.Errorf("it has returned, and health is %+v", h)
			}
			if n := len(c.all()); n == ticks {
				t.Error("it has returned, and takes no ticks")
			}
		})
	}
}

// The tick of a stalled run is another's under Rerun, and over without.
func TestStalledTickFollowsPolicy(t *testing.T) {
	for policy, want := range map[soloist.InterruptedPolicy]string{
		soloist.Abandon: "stalled 00:01:00 no heartbeat for 20s",
		soloist.Rerun:   "succeeded 00:01:00",
	} {
		inCluster(t, func(c *cluster) {
			job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: policy,
				Do: func(ctx context.Context, run *soloist.Run) error {
					if run.Attempt == 1 {
						<-ctx.Done()
					}
					return ctx.Err()
				}}
			c.start("a", job)
			c.start("b", job)
			time.Sleep(time.Minute + silence + 2*time.Second)
			if got := c.outcomes("work"); len(got) != 1 || got[0] != want {
				t.Errorf("%q: got %q, want %q", policy, got, want)
			}
			if runs := c.all(); policy == soloist.Rerun && (len(runs) != 2 || runs[1].Attempt != 2) {
				t.Errorf("got %+v", runs)
			}
		})
	}
}

func TestTickThatAlwaysStallsEndsStalled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: soloist.Rerun,
			Do: func(ctx context.Context, run *soloist.Run) error { <-ctx.Done(); return ctx.Err() }}
		c.start("a", job)
		time.Sleep(time.Hour)
		if got := c.outcomes("work"); len(got) != 1 || !strings.HasPrefix(got[0], "stalled 00:01:00") {
			t.Errorf("got %q", got)
		}
		c.wantRuns(5)
	})
}

// With the store out of reach a stalled run is ended all the same.
func TestStallInOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(time.Second, time.Minute, true))
		time.Sleep(time.Minute + silence - 2*time.Second)
		a.kill()
		time.Sleep(2*time.Second + D/6 + time.Second)
		if got := c.all()[0]; got.end.IsZero() || !errors.Is(got.cause, soloist.ErrStalled) {
			t.Errorf("got %+v, cause %v", got.end, got.cause)
		}
	})
}

// An answer to the write of "stalled" that is lost does not cost the outcome.
func TestStallSurvivesLostAnswer(t *testing.T) {
	for name, loss := range map[string]func(string, int64) fault{"applied": lose, "not applied": drop} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.start("a", beating(time.Second, time.Minute, true))
			time.Sleep(time.Minute + silence - 3*time.Second)
			a.tap.meet(loss("write", 1))
			time.Sleep(10 * time.Second)
			if got := c.record("lead").Counts; got[store.Stalled] != 1 || len(got) != 1 {
				t.Errorf("counts are %v", got)
			}
			c.wantRuns(2)
		})
	}
}

func TestHealthCheck(t *testing.T) {
	errSick := errors.New("the feed has no data")
	for name, test := range map[string]struct {
		healthy func(ctx context.Context, n int) error // the nth call
		end     time.Duration                          // of the run; zero: it goes on
		reason  string
	}{
		"well":                {healthy: func(context.Context, int) error { return nil }},
		"now and then not":    {healthy: func(_ context.Context, n int) error { return sick(n%3 != 0, errSick) }},
		"sick":                {func(context.Context, int) error { return errSick }, 30 * time.Second, "stalled: unhealthy 3 times in a row: the feed has no data"},
		"sick after a minute": {func(_ context.Context, n int) error { return sick(n > 6, errSick) }, 90 * time.Second, "unhealthy 3 times in a row"},
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

// Others are told before the last failure, and are near when it comes.
func TestUnhealthyLeaderIsReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		unwell := leader()
		unwell.HealthCheck.Check = func(context.Context) error { return fmt.Errorf("no data") }
		c.start("a", unwell)
		time.Sleep(time.Second)
		c.start("b", leader())
		time.Sleep(40 * time.Second)
		runs := c.all()
		if len(runs) != 2 || runs[1].replica != "b" {
			t.Fatalf("got %+v", runs)
		}
		if gap := runs[1].start.Sub(runs[0].end); gap > 300*time.Millisecond {
			t.Errorf("nobody led for %s", gap)
		}
	})
}

// A leader that often beats late alarms others no more than for a moment.
func TestLateHeartbeatAlarmsBriefly(t *testing.T) {
	for every, most := range map[time.Duration]int{10 * time.Second: 800, 14 * time.Second: 800, 16 * time.Second: 3600} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", beating(every, 24*time.Hour, true))
			time.Sleep(time.Minute)
			b := c.start("b", beating(every, 24*time.Hour, true))
			time.Sleep(time.Hour)
			a.tap.counts()
			b.tap.counts()
			time.Sleep(time.Hour)
			if n := b.tap.counts()["read"]; n > most {
				t.Errorf("a beat each %s: %d reads in an hour", every, n)
			}
			if n := a.tap.counts()["write"]; n > 90+2*3600/16 {
				t.Errorf("a beat each %s: %d writes in an hour", every, n)
			}
		})
	}
}

// Followers cannot come near within a short HeartbeatTimeout, or between two calls of
// HealthCheck that follow each other soon: late heartbeats and a check that fails
// now and then cost no writes.
func TestShortTimeoutsAreNotAnnounced(t *testing.T) {
	lead := func(silence, every time.Duration, healthy func(context.Context) error) soloist.Singleton {
		s := beating(800*time.Millisecond, 24*time.Hour, true)
		s.HeartbeatTimeout, s.HealthCheck.Interval, s.HealthCheck.Check = silence, every, healthy
		return s
	}
	var calls atomic.Int32
	flaps := func(context.Context) error { return sick(calls.Add(1)%3 != 0, errors.New("no data")) }
	for name, test := range map[string]struct {
		lead        soloist.Singleton
		least, most int // writes in 10 minutes
	}{
		"a short HeartbeatTimeout":            {lead(time.Second, 0, nil), 8, 12},
		"a check each tenth second":           {lead(0, 100*time.Millisecond, flaps), 8, 12},
		"a check each sixth of D":             {lead(0, D/6, flaps), 2 * 75, 2 * 90},
		"a HeartbeatTimeout of D/3 and 1 s":   {lead(D/3+time.Second, 0, nil), 8, 12},
		"a HeartbeatTimeout that is too long": {lead(time.Hour, 0, nil), 0, 1},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			calls.Store(0)
			a := c.start("a", test.lead)
			time.Sleep(time.Minute)
			a.tap.counts()
			time.Sleep(10 * time.Minute)
			if n := a.tap.counts()["write"]; n < test.least || n > test.most {
				t.Errorf("%d writes in 10 minutes, want %d to %d", n, test.least, test.most)
			}
			if test.most <= 12 && c.record("lead").Run.Stopping { // followers would look ten times a second
				t.Error("it is announced")
			}
			c.wantRuns(1)
		})
	}
}

// What a try has announced is not true of the next one.
func TestStoppingEndsWithTry(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second},
			Do: func(ctx context.Context, run *soloist.Run) error {
				if run.Try == 1 {
					time.Sleep(16 * time.Second)
					return errors.New("slow")
				}
				for ctx.Err() == nil {
					_ = run.Heartbeat("")
					time.Sleep(time.Second)
				}
				return nil
			}}
		c.start("a", job)
		time.Sleep(30 * time.Minute)
		if r := c.record("work"); r.Run.Stopping {
			t.Errorf("stopping, half an hour into the second try: %+v", r)
		}
	})
}

// It is taken back all the same.
func TestStoppingIsTakenBackAfterLostAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		n := 0
		lead := beating(time.Second, time.Hour, true)
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			for ctx.Err() == nil {
				n++
				_ = run.Heartbeat("")
				if n == 1 {
					time.Sleep(15 * time.Second)
				}
				time.Sleep(time.Second)
			}
			return nil
		}
		a := c.start("a", lead)
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(time.Hour)
		if r := c.record("lead"); r.Run.Stopping {
			t.Errorf("the record says that it is stopping, an hour later")
		}
	})
}

// Its outcome is the one that others have been told.
func TestRunEndsWhileStallIsWritten(t *testing.T) {
	for name, late := range map[string]error{"returns nil": nil, "fails": errors.New("oh")} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: soloist.Rerun, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second},
				Do: func(ctx context.Context, run *soloist.Run) error {
					if run.Attempt == 1 && run.Try == 1 {
						time.Sleep(silence + time.Second)
						return late
					}
					<-ctx.Done()
					return nil
				}}
			a := c.start("a", job)
			a.tap.meet(func(op string, apply func() error) error {
				err := apply()
				if op == "write" && err == nil && c.record("work").Run.Status == store.Stalled && c.record("work").Run.Finished.IsZero() {
					time.Sleep(2 * time.Second) // the answer takes long
				}
				return err
			})
			time.Sleep(time.Minute + silence + 10*time.Second)
			r := c.record("work")
			t.Logf("%+v %v", r.Run.Status, c.outcomes("work"))
			for _, run := range c.all() {
				t.Logf("attempt %d try %d %s-%s", run.Attempt, run.Try, run.start.Format("05.000"), run.end.Format("05.000"))
			}
			t.Logf("%q", a.log.lines("run ended"))
			if len(a.log.lines("run ended", "outcome=succeeded")) > 0 {
				t.Errorf("the log says succeeded, the record %s, and it ran %d times", r.Run.Status, len(c.all()))
			}
			for _, run := range c.all() {
				if run.Try == 2 {
					t.Error("a second try of a run that has stalled, whose lease is given up")
				}
			}
		})
	}
}

// The end of a stalled run is told, though ticks came due before it returned.
func TestStalledRunKeepsItsEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 10s", Lease: D, HeartbeatTimeout: silence,
			Do: func(ctx context.Context, _ *soloist.Run) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil
			}}
		c.start("a", job)
		time.Sleep(10*time.Second + silence + 2*time.Second)
		h := c.record("work").History
		i := slices.IndexFunc(h, func(f store.Outcome) bool { return f.Status == store.Stalled })
		if i < 1 || h[i-1].Reason != "overlap" {
			c.t.Fatalf("got %q", c.outcomes("work"))
		}
		if took := h[i].End.Sub(h[i].Start); took < silence || took > silence+2*time.Second {
			t.Errorf("the stalled run is told to have taken %s, from %s to %s", took, h[i].Start, h[i].End)
		}
	})
}

// The answer to "stalled" is lost, and the run saves on its way out: the
// watermark must not go back, or whoever saw it leaves the job alone.
func TestSaveKeepsStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "@every 15s", Lease: D, HeartbeatTimeout: silence,
			Do: func(ctx context.Context, run *soloist.Run) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				_ = run.Save(context.WithoutCancel(ctx), "where I was") // on the way out
				time.Sleep(time.Hour)
				return nil
			}}
		a := c.start("a", job)
		time.Sleep(25 * time.Second)
		job.Do = nil
		b := c.start("b", job)
		var through time.Time
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && c.record("work").Run.Status == store.Stalled {
				through = c.record("work").Watermark
				a.tap.meet(nil)
				return errNetwork
			}
			return err
		})
		time.Sleep(11500 * time.Millisecond)
		if now := c.record("work").Watermark; now.Before(through) {
			t.Errorf("the watermark went back from %s to %s", through, now)
		}
		a.kill() // its host exits, since it overran
		time.Sleep(6 * time.Hour)
		if n := len(c.all()); n < 1000 {
			t.Errorf("b ran %d ticks in six hours: %v", n-1, b.Health().Broken)
		}
	})
}

// A machine that sleeps cannot beat.
func TestSuspensionIsNoSilence(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		lead := beating(500*time.Millisecond, time.Hour, true)
		lead.HeartbeatTimeout = 3 * time.Second
		c.launch(c.replica("a", lead).on(&machine))
		time.Sleep(10*time.Second + 100*time.Millisecond)
		machine.slept.Add(int64(4 * time.Second))
		time.Sleep(20 * time.Second)
		if n := len(c.all()); n != 1 {
			t.Errorf("%d terms: %v", n, c.all()[0].cause)
		}
	})
}

// A run that has stalled, and whose process is gone, is in nobody's way.
func TestEarlyWakeAfterStall(t *testing.T) {
	for _, stalls := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			job := soloist.Job{Name: "work", Schedule: "@hourly", Lease: D, HeartbeatTimeout: silence,
				Do: func(ctx context.Context, run *soloist.Run) error {
					if stalls && len(c.all()) == 1 {
						time.Sleep(3 * time.Hour)
					}
					return nil
				}}
			a := c.replica("a", job)
			_, _ = a.RunDue(c.t.Context(), soloist.Wake{})
			time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
			ctx, cancel := context.WithCancel(c.t.Context())
			go func() { _, _ = a.RunDue(ctx, soloist.Wake{}) }()
			defer func() { cancel(); time.Sleep(time.Hour) }()
			time.Sleep(silence + 5*time.Second)
			if stalls {
				a.kill() // its host exits
			}
			next := time.Now().Truncate(time.Hour).Add(time.Hour)
			time.Sleep(time.Until(next.Add(-3 * time.Second)))
			b := c.replica("b", job)
			got, err := b.RunDue(c.t.Context(), soloist.Wake{Tick: next})
			if len(got.Jobs[0].Ran) != 1 {
				t.Errorf("stalls %t: got %+v, %v; record %s %s", stalls, got, err, c.record("work").Run.Status, c.record("work").Run.Finished)
			}
			time.Sleep(3 * time.Hour)
		})
	}
}

// A process ends while its stalled run goes on, as Overrun is for, and each later
// wake-up is a new process with a short starting deadline. A write that claims
// nothing closes that run: without it each process would hold off until its tick
// is too late.
func TestStalledRunIsClosedByNextWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		wakes := 0
		wake := func(hang bool) {
			wakes++
			job := soloist.Job{Name: "work", Schedule: "@hourly", Lease: D, StartingDeadline: 10 * time.Second, HeartbeatTimeout: 5 * time.Second}
			if hang {
				job.Do = func(ctx context.Context, _ *soloist.Run) error { time.Sleep(40 * time.Second); return nil }
			}
			r := c.replica(fmt.Sprint("p", wakes), job)
			ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
			defer cancel()
			if hang {
				r.Overrun = func(string, error) { r.kill(); cancel() }
			}
			_, err := r.RunDue(ctx, soloist.Wake{})
			if err != nil && !hang {
				t.Errorf("wake-up %d: %v", wakes, err)
			}
		}
		wake(false)
		midnight := time.Now().Truncate(time.Hour)
		until(time.Hour + time.Second)
		wake(true)
		until(2*time.Hour + 10*time.Minute) // too late for its tick
		wake(false)
		until(3*time.Hour + time.Second)
		wake(false)
		if r := c.record("work"); r.Run.Status != store.Succeeded || !r.Run.Tick.Equal(midnight.Add(3*time.Hour)) {
			t.Errorf("the record says %s, tick %s: %+v", r.Run.Status, r.Run.Tick, r.History)
		}
	})
}

// A replica whose run does not obey is told so in time, also when the storage is
// out of reach and the run's progress is to be written.
func TestProgressDoesNotDelayOverrun(t *testing.T) {
	for range 8 { // if it does, it does so by chance
		inCluster(t, func(c *cluster) {
			var began, overran time.Time
			job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence,
				Do: func(_ context.Context, run *soloist.Run) error {
					began = time.Now()
					for time.Since(began) < time.Minute-silence {
						time.Sleep(silence / 4)
						_ = run.Heartbeat("")
					}
					time.Sleep(time.Minute)
					return nil
				}}
			a := c.replica("a", job)
			a.Overrun = func(string, error) { overran = time.Now() }
			c.launch(a)
			time.Sleep(2*time.Minute - time.Second)
			a.tap.cut.Store(true)
			time.Sleep(time.Minute)
			a.tap.cut.Store(false)
			c.stopAll()
			if took := overran.Sub(began.Add(time.Minute)); took < D/6 || took > 2*D/6+time.Second {
				t.Errorf("told %s after it had stalled; it takes %s to tell others, and then the run has %s", took, D/6, D/6)
			}
		})
	}
}
