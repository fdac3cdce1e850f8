package soloist_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// What a try has announced is not true of the next one.
func TestStoppingOfATryBefore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, MaxTries: 2, Backoff: time.Second,
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
		if r := c.record("work"); r.Stopping {
			t.Errorf("stopping, half an hour into the second try: %+v", r)
		}
	})
}

// Its outcome is the one that others have been told.
func TestARunThatEndsWhileItsStallIsWritten(t *testing.T) {
	for name, late := range map[string]error{"returns nil": nil, "fails": errors.New("oh")} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, HeartbeatTimeout: silence, Interrupted: soloist.Rerun, MaxTries: 2, Backoff: time.Second,
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
					if op == "write" && err == nil && c.record("work").Status == store.Stalled && c.record("work").Finished.IsZero() {
						time.Sleep(2 * time.Second) // the answer takes long
					}
					return err
				})
				time.Sleep(time.Minute + silence + 10*time.Second)
				r := c.record("work")
				t.Logf("%+v %v", r.Status, c.outcomes("work"))
				for _, run := range c.all() {
					t.Logf("attempt %d try %d %s-%s", run.Attempt, run.Try, run.start.Format("05.000"), run.end.Format("05.000"))
				}
				t.Logf("%q", a.log.lines("run ended"))
				if len(a.log.lines("run ended", "outcome=succeeded")) > 0 {
					t.Errorf("the log says succeeded, the record %s, and it ran %d times", r.Status, len(c.all()))
				}
				for _, run := range c.all() {
					if run.Try == 2 {
						t.Error("a second try of a run that has stalled, whose lease is given up")
					}
				}
			})
		})
	}
}

// The end of a stalled run is told, though ticks came due before it returned.
func TestTheEndOfAStalledRunIsKept(t *testing.T) {
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

// A machine that sleeps cannot beat.
func TestASuspensionIsNoSilence(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		lead := beating(500*time.Millisecond, time.Hour, true)
		lead.HeartbeatTimeout = 3 * time.Second
		a := c.replica("a", lead)
		a.Elapsed = machine.elapsed
		c.launch(a)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		machine.slept.Add(int64(4 * time.Second))
		time.Sleep(20 * time.Second)
		if n := len(c.all()); n != 1 {
			t.Errorf("%d terms: %v", n, c.all()[0].cause)
		}
	})
}

// Others have the first go, as after a run.
func TestStepDownInAHoldOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(time.Minute)
		a.kill()
		_ = c.store.Break(c.t.Context(), "soloist/lead", 0)
		b := c.start("b", leader())
		time.Sleep(5 * time.Second)
		before := b.tap.counts()["acquire"]
		if err := b.StepDown(c.t.Context(), "lead"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(D / 3)
		if n := b.tap.counts()["acquire"]; n > 0 {
			t.Errorf("acquired %d times, then %d times within a third of the lease of StepDown", before, n)
		}
	})
}

// The next look is for the next attempt.
func TestRunDueOfAnOpenTick(t *testing.T) {
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
			t.Errorf("%s %v: tick 00:01:00 is open, and the next look is to be at %s (%v)", c.record("work").Status, c.outcomes("work"), got.Next, err)
		}
	})
}

// A run that has stalled, and whose process is gone, is in nobody's way.
func TestAnEarlyTimerAfterAStall(t *testing.T) {
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
				t.Errorf("stalls %t: got %+v, %v; record %s %s", stalls, got, err, c.record("work").Status, c.record("work").Finished)
			}
			time.Sleep(3 * time.Hour)
		})
	}
}

// A replica whose run does not obey is told so in time, also when the storage is
// out of reach and the run's progress is to be written.
func TestProgressDoesNotDelayWhatTheProcessHasToDo(t *testing.T) {
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

// A replica that takes nothing new, since a run here ignores the end of its
// context, does not read the records of its other jobs meanwhile.
func TestDeafReplicaReadsNothing(t *testing.T) {
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
