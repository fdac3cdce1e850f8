package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// counting is a job that counts to 100 in its checkpoint, a second each, and
// notes in applied what it counted.
func counting(applied *[]string) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, Interrupted: soloist.Rerun,
		Do: func(ctx context.Context, run *soloist.Run) error {
			var n int
			if err := run.Load(ctx, &n); err != nil {
				return err
			}
			for n < 100 {
				if err := pause(ctx, time.Second); err != nil {
					return err
				}
				if err := run.Save(ctx, n+1); err != nil {
					return err
				}
				n++
				*applied = append(*applied, fmt.Sprint(n))
			}
			return nil
		}}
}

// A job that is taken over goes on where it was.
func TestCheckpointSurvivesTakeover(t *testing.T) {
	for name, end := range map[string]func(*cluster, *replica){
		"killed":  func(_ *cluster, r *replica) { r.kill() },
		"stopped": func(_ *cluster, r *replica) { r.stop() },
		"broken":  func(c *cluster, _ *replica) { _ = c.store.Break(c.t.Context(), "soloist/work", 0) },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var a, b []string
			first := c.start("a", counting(&a))
			time.Sleep(time.Minute + time.Second)
			c.start("b", counting(&b))
			time.Sleep(40 * time.Second)
			end(c, first)
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantOutcomes("work", "succeeded 00:01:00")
			all := append(a, b...)
			for i, n := range all {
				if n != fmt.Sprint(i+1) {
					c.t.Fatalf("counted %q", all)
				}
			}
			// After a break either may be first.
			if len(all) != 100 || name != "broken" && (len(a) < 39 || len(a) > 45) {
				t.Errorf("counted %q, then %q", a, b)
			}
		})
	}
}

// It is the job's, not the tick's: the next tick goes on from it.
func TestCheckpointOutlivesItsTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var seen []int
		job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
			n := -1
			if err := run.Load(ctx, &n); err != nil {
				return err
			}
			seen = append(seen, n)
			return run.Save(ctx, n+1)
		})
		a := c.start("a", job)
		time.Sleep(3*time.Minute + time.Second)
		a.stop()
		if fmt.Sprint(seen) != "[-1 0 1]" {
			t.Errorf("loaded %v", seen)
		}
	})
}

// Answers that are lost, at each write of the run, cost nothing.
func TestCheckpointSurvivesLostAnswers(t *testing.T) {
	for _, applied := range []bool{true, false} {
		for nth := 1; nth <= 8; nth++ {
			inCase(t, fmt.Sprintf("call %d, applied: %t", nth, applied), func(t *testing.T, c *cluster) {
				n := 0
				job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
					for i := range 3 {
						var was int
						if err := errors.Join(run.Load(ctx, &was), run.Save(ctx, i+1)); err != nil {
							return err
						}
						if was != i {
							t.Errorf("loaded %d, saved %d", was, i)
						}
					}
					return nil
				})
				a := c.start("a", job)
				time.Sleep(59 * time.Second)
				a.tap.meet(func(op string, apply func() error) error {
					if op == "read" || op == "read document" || op == "acquire" {
						return apply()
					}
					if n++; n != nth {
						return apply()
					}
					if applied {
						_ = apply()
					}
					return errNetwork
				})
				time.Sleep(30 * time.Second)
				c.wantOutcomes("work", "succeeded 00:01:00")
			})
		}
	}
}

// A progress write whose answer was lost, and that is applied late, does not
// cost the outcome.
func TestLateProgressWriteKeepsOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var late atomic.Pointer[func() error]
		lead := beating(time.Second, 90*time.Second, true)
		lead.HeartbeatTimeout, lead.Do = 0, func(ctx context.Context, run *soloist.Run) error {
			for range 90 {
				time.Sleep(time.Second)
				_ = run.Heartbeat("at work")
			}
			if apply := late.Load(); apply != nil {
				_ = (*apply)()
			} else {
				t.Error("no progress was written")
			}
			return nil
		}
		a := c.start("a", lead)
		time.Sleep(time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" && late.CompareAndSwap(nil, &apply) {
				return errNetwork
			}
			return apply()
		})
		time.Sleep(92 * time.Second)
		a.stop()
		if r := c.record("lead"); r.Run.Status != store.Succeeded {
			t.Errorf("got %+v: %q", r, a.log.lines("level=ERROR"))
		}
	})
}

func TestCheckpointRefusals(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var left *soloist.Run
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, MaxCheckpoint: 10,
			Do: func(ctx context.Context, run *soloist.Run) error {
				left = run
				for want, v := range map[string]any{
					"12 bytes of JSON and MaxCheckpoint is 10": strings.Repeat("x", 10),
					"cannot be written as JSON":                math.NaN(),
				} {
					wantError(t, run.Save(ctx, v), want)
				}
				if err := run.Save(ctx, "text"); err != nil {
					t.Errorf("Save: %v", err)
				}
				var n int
				wantError(t, run.Load(ctx, &n), "does not fit")
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if err := run.Save(ended, "late"); !errors.Is(err, context.Canceled) {
					t.Errorf("Save under a context that has ended says %v", err)
				}
				return nil
			}}
		everywhere := soloist.Job{Name: "here", Schedule: "0 1 0 * * *", EveryReplica: true, Do: func(ctx context.Context, run *soloist.Run) error {
			if err := run.Save(ctx, 1); err == nil {
				t.Error("a job without a lease saves")
			}
			if err := errors.Join(run.Heartbeat("x"), run.Check(ctx)); err != nil || run.Remaining() < time.Hour {
				t.Errorf("got %v, %s", err, run.Remaining())
			}
			return nil
		}}
		a := c.start("a", job, everywhere)
		time.Sleep(time.Hour)
		a.stop()
		// A goroutine that the job has left behind.
		var s string
		for _, err := range []error{left.Save(c.t.Context(), "x"), left.Load(c.t.Context(), &s), left.Heartbeat(""), left.Check(c.t.Context())} {
			wantError(t, err, "the run is over")
		}
		c.wantOutcomes("work", "succeeded 00:01:00")
	})
}

// A run that has lost its lease while it slept through all of it saves nothing.
func TestStaleRunSavesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		var stale error
		ran := false
		job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D, Interrupted: soloist.Rerun,
			Do: func(ctx context.Context, run *soloist.Run) error {
				if run.Attempt == 1 {
					time.Sleep(2 * time.Minute)
					stale = run.Save(context.WithoutCancel(ctx), "stale")
					return nil
				}
				ran = true
				return run.Save(ctx, "fresh")
			}}
		a := c.launch(c.replica("a", job).on(&machine))
		time.Sleep(time.Minute + time.Second)
		a.tap.cut.Store(true) // as good as asleep
		c.start("b", job)
		time.Sleep(time.Minute)
		a.tap.cut.Store(false)
		time.Sleep(2 * time.Minute)
		c.stopAll()
		if !ran || !errors.Is(stale, store.ErrLost) {
			t.Errorf("ran elsewhere: %t, Save says %v", ran, stale)
		}
	})
}

// Later progress is written all the same.
func TestProgressContinuesAfterLostAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", beating(time.Second, 3*time.Hour, true))
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(time.Hour)
		if p := c.record("lead").Run.Progress; time.Since(p.At) > 3*time.Minute {
			t.Errorf("progress is of %s, an hour after one lost answer: %d failures", p.At, len(a.log.lines("the record was not updated")))
		}
	})
}

// The run has its lease, and goes on.
func TestLoadAfterLostProgressAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		loaded := make(chan error, 9)
		lead := beating(time.Second, time.Hour, true)
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			for range 70 {
				_ = run.Heartbeat("")
				time.Sleep(time.Second)
			}
			var n int
			loaded <- run.Load(ctx, &n)
			<-ctx.Done()
			return nil
		}
		a := c.start("a", lead)
		time.Sleep(time.Second)
		a.tap.meet(lose("write", 1))
		time.Sleep(72 * time.Second)
		if err := <-loaded; err != nil {
			t.Errorf("Load says %v, and the run ended for %v", err, c.all()[0].cause)
		}
	})
}

// A note that comes while a checkpoint is saved is kept.
func TestNoteDuringSaveIsKept(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("0 * * * *", func(ctx context.Context, run *soloist.Run) error {
			_ = run.Heartbeat("page 6")
			go func() {
				time.Sleep(time.Second)
				_ = run.Heartbeat("page 7")
			}()
			_ = run.Save(ctx, 7)
			time.Sleep(3 * time.Minute)
			return nil
		})
		c.launch(c.replica("a", job).meets(after("save", func() { time.Sleep(2 * time.Second) })))
		time.Sleep(time.Hour + 150*time.Second)
		if got := c.record("work").Run.Progress.Note; got != "page 7" {
			t.Errorf("the note is %q", got)
		}
	})
}

// The checkpoint of a save without an ETag is saved again.
func TestSaveWithoutETagIsRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var a *replica
		a = c.replica("a", doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
			a.meets(fail(nil, "save"))
			time.AfterFunc(3*time.Second, func() { a.meets(nil) })
			if err := run.Save(ctx, "where I was"); err != nil {
				return err
			}
			var got string
			if err := run.Load(ctx, &got); err != nil || got != "where I was" {
				t.Errorf("got %q, %v", got, err)
			}
			return nil
		}))
		c.launch(a)
		time.Sleep(90 * time.Second)
		c.wantOutcomes("work", "succeeded 00:01:00")
	})
}

// A goroutine that was left behind saves, which the store refuses.
func TestRefusedSaveDoesNotDelayOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
			go func() { _ = run.Save(context.Background(), "x") }()
			time.Sleep(time.Second)
			return nil
		})
		a := c.start("a", job)
		a.tap.meet(fail(errors.New("413 too large for the proxy"), "save"))
		time.Sleep(time.Hour)
		if n := len(c.all()); n < 50 {
			t.Errorf("%d runs in an hour; the record says %s", n, c.record("work").Run.Status)
		}
	})
}

// A checkpoint that is too large stays so: the run learns of it at once, and
// the store is not called unreachable.
func TestTooLargeCheckpointFailsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
			var n int
			err := run.Load(ctx, &n)
			if !errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrLost) || ctx.Err() != nil {
				t.Errorf("Load says %v, and the run's context %v", err, ctx.Err())
			}
			return err
		})
		a := c.start("a", job)
		a.tap.meet(fail(fmt.Errorf("load: %w", store.ErrTooLarge), "load"))
		time.Sleep(10*time.Minute + 30*time.Second)
		a.wantWell()
		if loads, runs := a.tap.counts()["load"], len(c.all()); runs < 10 || loads != runs {
			t.Errorf("%d loads in %d runs", loads, runs)
		}
		if r := c.record("work"); r.Run.Status != store.Failed || !strings.Contains(r.Run.Error, store.ErrTooLarge.Error()) {
			t.Errorf("the record says %s: %s", r.Run.Status, r.Run.Error)
		}
	})
}

// A load that fails first and then finds too much leaves no trouble behind.
func TestTooLargeCheckpointEndsOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
			err := run.Load(ctx, new(int))
			time.Sleep(time.Hour)
			return err
		})
		a := c.start("a", job)
		a.tap.meet(inTurn("load", errNetwork, errNetwork, errNetwork, store.ErrTooLarge))
		time.Sleep(30 * time.Minute)
		a.wantWell()
		if n := a.tap.counts()["load"]; n != 4 {
			t.Errorf("%d loads", n)
		}
	})
}

// A machine that is suspended while the answer to Load is under way gets no checkpoint:
// another replica may have saved a newer one by then.
func TestLoadAfterSuspension(t *testing.T) {
	inCluster(t, func(c *cluster) {
		loaded := make(chan error, 9)
		task := leader()
		task.Do = func(ctx context.Context, run *soloist.Run) error {
			loaded <- run.Load(ctx, new(int))
			<-ctx.Done()
			return ctx.Err()
		}
		var thaw atomic.Int64 // since midnight; zero: it has not slept
		c.launch(c.replica("a", task).meets(func(op string, apply func() error) error {
			until(time.Duration(thaw.Load()))
			if op != "load" || thaw.Load() > 0 {
				return apply()
			}
			err := apply()
			thaw.Store(int64(sinceMidnight() + time.Minute))
			time.Sleep(time.Minute)
			return err
		}))
		time.Sleep(90 * time.Second)
		if err := <-loaded; !errors.Is(err, soloist.ErrLost) {
			t.Errorf("got %v, want that the lease is lost", err)
		}
	})
}

// A run that saves in time and sends no heartbeat does not stall.
func TestSaveIsHeartbeat(t *testing.T) {
	inCluster(t, func(c *cluster) {
		task := leader()
		task.HeartbeatTimeout = time.Minute
		task.Do = func(ctx context.Context, run *soloist.Run) error {
			for n := 0; ctx.Err() == nil; n++ {
				if err := run.Save(ctx, n); err != nil {
					return err
				}
				time.Sleep(45 * time.Second)
			}
			return ctx.Err()
		}
		c.start("a", task)
		time.Sleep(10 * time.Minute)
		c.wantRuns(1)
		if got := c.record("lead").Run.Status; got != store.Running {
			t.Errorf("the run is %s", got)
		}
	})
}

// A checkpoint outlives the success of its tick, and Clear ends it.
func TestClearEndsCheckpoint(t *testing.T) {
	inCase(t, "clear", func(t *testing.T, c *cluster) {
		var loaded []string
		c.start("a", soloist.Job{Name: "work", Schedule: "0 * * * * *", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			at := "none"
			if err := run.Load(ctx, &at); err != nil {
				return err
			}
			if loaded = append(loaded, at); len(loaded) == 2 {
				return run.Clear(ctx)
			}
			return run.Save(ctx, fmt.Sprint(len(loaded)))
		}})
		time.Sleep(4*time.Minute + 30*time.Second)
		c.stopAll()
		if got := strings.Join(loaded, " "); got != "none 1 none 3" {
			t.Errorf("loaded %q, want what the tick before saved, and nothing after a Clear", got)
		}
		if err := new(soloist.Run).Clear(t.Context()); err == nil {
			t.Error("a run that no scheduler made has cleared a checkpoint")
		}
	})
}
