package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

const silence = 20 * time.Second

// beating leads and beats each interval until its context ends, or for so long
// as it goes well; then it hangs, and obeys its context if obeys is set.
func beating(every, well time.Duration, obeys bool) soloist.Singleton {
	return soloist.Singleton{Name: "lead", Lease: D, HeartbeatTimeout: silence, Do: func(ctx context.Context, run *soloist.Run) error {
		for begin := time.Now(); time.Since(begin) < well; {
			if err := run.Heartbeat("all well"); err != nil {
				return err
			}
			select {
			case <-time.After(every):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if obeys {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(time.Hour)
		return nil
	}}
}

func TestAHeartbeatKeepsALeader(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(silence-time.Second, time.Hour, true))
		time.Sleep(30 * time.Minute)
		if got := c.all(); len(got) != 1 {
			t.Errorf("got %d terms", len(got))
		}
		p := c.record("lead").Progress
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
func TestAStalledLeaderIsReplaced(t *testing.T) {
	for phase := range 7 {
		inCluster(t, func(c *cluster) {
			well := 3*time.Minute + time.Duration(phase)*773*time.Millisecond
			a := c.start("a", beating(time.Second, well, true))
			time.Sleep(10 * time.Second)
			c.start("b", beating(time.Second, time.Hour, true))
			c.start("c", beating(time.Second, time.Hour, true))
			time.Sleep(well + silence - 8*time.Second)
			runs := c.all()
			if len(runs) != 2 {
				t.Fatalf("got %d terms", len(runs))
			}
			disjoint(t, runs)
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
			if len(a.log.lines("the run has stalled", "no heartbeat for 20s", "goroutine")) != 1 {
				t.Errorf("the log has no goroutines: %q", a.log.lines("stalled"))
			}
		})
	}
}

// Alone, it takes over from itself after its pause, later than others could.
func TestAStalledLeaderThatIsAloneGoesOn(t *testing.T) {
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
func TestTheRestAfterAStall(t *testing.T) {
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
func TestAStalledLeaderThatDoesNotObey(t *testing.T) {
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
			if r := c.record("lead"); r.Status != store.Stalled || !r.Finished.IsZero() || r.Replica != "a" {
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
func TestAStalledTick(t *testing.T) {
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

func TestATickThatStallsEachTimeIsStalledInTheEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: soloist.Rerun,
			Do: func(ctx context.Context, run *soloist.Run) error { <-ctx.Done(); return ctx.Err() }}
		c.start("a", job)
		time.Sleep(time.Hour)
		if got := c.outcomes("work"); len(got) != 1 || !strings.HasPrefix(got[0], "stalled 00:01:00") {
			t.Errorf("got %q", got)
		}
		if n := len(c.all()); n != 5 {
			t.Errorf("%d attempts", n)
		}
	})
}

// With the store out of reach a stalled run is ended all the same.
func TestAStallInAnOutage(t *testing.T) {
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
func TestALostAnswerToAStall(t *testing.T) {
	for _, applied := range []bool{true, false} {
		inCluster(t, func(c *cluster) {
			a := c.start("a", beating(time.Second, time.Minute, true))
			time.Sleep(time.Minute + silence - 3*time.Second)
			lost := false
			a.tap.meet(func(op string, apply func() error) error {
				if op == "write" && !lost {
					lost = true
					if applied {
						_ = apply()
					}
					return errNetwork
				}
				return apply()
			})
			time.Sleep(10 * time.Second)
			if got := c.record("lead").Counts; got[store.Stalled] != 1 || len(got) != 1 {
				t.Errorf("applied: %t: counts are %v", applied, got)
			}
			if n := len(c.all()); n != 2 {
				t.Errorf("applied: %t: %d terms", applied, n)
			}
		})
	}
}

func TestHealthy(t *testing.T) {
	errSick := errors.New("the feed has no data")
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, test := range map[string]struct {
		healthy func(n int) func(context.Context) error // for the nth call
		end     time.Duration                           // of the run; zero: it goes on
		reason  string
	}{
		"well": {healthy: func(int) func(context.Context) error { return func(context.Context) error { return nil } }},
		"now and then not": {healthy: func(n int) func(context.Context) error {
			return func(context.Context) error { return sick(n%3 != 0, errSick) }
		}},
		"sick": {func(int) func(context.Context) error { return func(context.Context) error { return errSick } }, 30 * time.Second, "stalled: unhealthy 3 times in a row: the feed has no data"},
		"sick after a minute": {func(n int) func(context.Context) error {
			return func(context.Context) error { return sick(n > 6, errSick) }
		}, 90 * time.Second, "unhealthy 3 times in a row"},
		"panics": {func(int) func(context.Context) error { return func(context.Context) error { panic("oh") } }, 30 * time.Second, "panic: oh"},
		"hangs":  {func(int) func(context.Context) error { return hangs }, 40 * time.Second, "no answer before the next check was due"},
		"hangs, and ignores its context": {func(int) func(context.Context) error {
			return func(context.Context) error { time.Sleep(35 * time.Second); return nil }
		}, 40 * time.Second, "no answer before"},
		"is well, and too late each time": {func(int) func(context.Context) error {
			return func(context.Context) error { time.Sleep(15 * time.Second); return nil }
		}, 50 * time.Second, "no answer before"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				var calls atomic.Int32
				lead := leader()
				lead.HealthCheck = func(ctx context.Context) error { return test.healthy(int(calls.Add(1)))(ctx) }
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
func TestAnUnhealthyLeaderIsReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		unwell := leader()
		unwell.HealthCheck = func(context.Context) error { return fmt.Errorf("no data") }
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
func TestALateHeartbeatIsNoAlarmForLong(t *testing.T) {
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
func TestWhatIsTooShortIsNotAnnounced(t *testing.T) {
	lead := func(silence, every time.Duration, healthy func(context.Context) error) soloist.Singleton {
		s := beating(800*time.Millisecond, 24*time.Hour, true)
		s.HeartbeatTimeout, s.HealthInterval, s.HealthCheck = silence, every, healthy
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
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				calls.Store(0)
				a := c.start("a", test.lead)
				time.Sleep(time.Minute)
				a.tap.counts()
				time.Sleep(10 * time.Minute)
				if n := a.tap.counts()["write"]; n < test.least || n > test.most {
					t.Errorf("%d writes in 10 minutes, want %d to %d", n, test.least, test.most)
				}
				if test.most <= 12 && c.record("lead").Stopping { // followers would look ten times a second
					t.Error("it is announced")
				}
				if n := len(c.all()); n != 1 {
					t.Errorf("%d terms", n)
				}
			})
		})
	}
}

// An EveryReplica job has nobody to alarm, and waits in peace.
func TestHeartbeatTimeoutEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", soloist.Job{Name: "here", Schedule: "0 1 0 * * *", EveryReplica: true, HeartbeatTimeout: silence,
			Do: func(ctx context.Context, run *soloist.Run) error { <-ctx.Done(); return nil }})
		time.Sleep(time.Minute + silence + time.Second)
		a.stop()
		if r := c.all()[0]; !errors.Is(r.cause, soloist.ErrStalled) || r.end.Sub(r.start) != silence {
			t.Errorf("ended after %s for %v", r.end.Sub(r.start), r.cause)
		}
	})
}

// A run that takes its time to return after a time-out, but no longer than its
// lease, keeps nobody from running.
func TestASlowReturn(t *testing.T) {
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
