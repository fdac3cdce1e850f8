package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// counting is a job that counts to 100 in its checkpoint, a second each, and
// notes in applied what it counted.
func counting(applied *[]int) soloist.Job {
	return rerun(doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
		var n int
		err := run.Load(ctx, &n)
		for err == nil && n < 100 {
			if err = pause(ctx, time.Second); err == nil {
				n++
				err = run.Save(ctx, n)
			}
			if err == nil {
				*applied = append(*applied, n)
			}
		}
		return err
	}))
}

// A job that is taken over goes on where it was.
func TestCheckpointSurvivesTakeover(t *testing.T) {
	for name, end := range map[string]func(*cluster, *replica){
		"killed":  func(_ *cluster, r *replica) { r.kill() },
		"stopped": func(_ *cluster, r *replica) { r.stop() },
		"broken":  func(c *cluster, _ *replica) { c.breakLease() },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var a, b []int
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
				if n != i+1 {
					t.Fatalf("counted %d", all)
				}
			}
			// After a break either may be first.
			c.wrong(len(all) != 100 || name != "broken" && (len(a) < 39 || len(a) > 45), "counted %d, then %d", a, b)
		})
	}
}

// What a run saves, loads and notes.
func TestCheckpoint(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"it refuses what it cannot save or load": func(c *cluster) {
			var left *soloist.Run
			job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				left = run
				wantError(c.t, run.Save(ctx, strings.Repeat("x", 10)), "12 bytes of JSON and MaxCheckpoint is 10")
				wantError(c.t, run.Save(ctx, math.NaN()), "cannot be written as JSON")
				c.ok(run.Save(ctx, "text"))
				wantError(c.t, run.Load(ctx, new(int)), "does not fit")
				ended, cancel := context.WithCancel(ctx)
				cancel()
				wantError(c.t, run.Save(ended, "late"), context.Canceled.Error())
				return nil
			})
			job.MaxCheckpoint = 10
			a := c.start("a", job, here("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				c.wrong(run.Save(ctx, 1) == nil, "a job without a lease saves")
				c.wrong(run.Remaining() < time.Hour, "it has %s", run.Remaining())
				return errors.Join(run.Heartbeat("x"), run.Check(ctx))
			}))
			time.Sleep(time.Hour)
			a.stop()
			// A goroutine that the job has left behind.
			ctx := c.t.Context()
			for _, err := range []error{left.Save(ctx, "x"), left.Load(ctx, new(string)), left.Heartbeat(""), left.Check(ctx)} {
				wantError(c.t, err, "the run is over")
			}
			c.wantOutcomes("work", "succeeded 00:01:00")
		},
		"a note that comes while a checkpoint is saved is kept": func(c *cluster) {
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
			got := c.record("work").Run.Progress.Note
			c.wrong(got != "page 7", "the note is %q", got)
		},
		"a goroutine that was left behind saves, which the store refuses": func(c *cluster) {
			job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
				go func() { _ = run.Save(context.Background(), "x") }()
				time.Sleep(time.Second)
				return nil
			})
			c.start("a", job).meets(fail(errors.New("413 too large for the proxy"), "save"))
			time.Sleep(time.Hour)
			n := len(c.all())
			c.wrong(n < 50, "%d runs in an hour; the record says %s", n, c.record("work").Run.Status)
		},
		"a machine that is suspended while the answer to Load is under way gets none": func(c *cluster) {
			// Another replica may have saved a newer one by then.
			var machine suspended
			c.launch(c.replica("a", doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				c.wantIs(run.Load(ctx, new(int)), soloist.ErrLost)
				return nil
			})).on(&machine).meets(after("load", func() { machine.slept.Add(int64(D)) })))
			time.Sleep(90 * time.Second)
			c.wantRuns(1)
		},
		"a run that saves in time and sends no heartbeat does not stall": func(c *cluster) {
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
			got := c.record("lead").Run.Status
			c.wrong(got != event.Running, "the run is %s", got)
		},
		"it outlives the success of its tick, and Clear ends it": func(c *cluster) {
			var loaded []string
			c.start("a", doing("0 * * * * *", func(ctx context.Context, run *soloist.Run) error {
				at := "none"
				if err := run.Load(ctx, &at); err != nil {
					return err
				}
				if loaded = append(loaded, at); len(loaded) == 2 {
					return run.Clear(ctx)
				}
				return run.Save(ctx, fmt.Sprint(len(loaded)))
			}))
			time.Sleep(4*time.Minute + 30*time.Second)
			c.stopAll()
			got := strings.Join(loaded, " ")
			c.wrong(got != "none 1 none 3", "loaded %q, want what the tick before saved, and nothing after a Clear", got)
			c.wrong(new(soloist.Run).Clear(c.t.Context()) == nil, "a run that no scheduler made has cleared a checkpoint")
		},
	})
}

// A checkpoint that is too large stays so, also if it is found only after an outage: the run learns of it at once, and
// the store is not called unreachable.
func TestTooLargeCheckpointFailsRun(t *testing.T) {
	inEach(t, []int{0, 3}, func(c *cluster, failures int) {
		a := c.start("a", doing("@every 1h", func(ctx context.Context, run *soloist.Run) error {
			err := run.Load(ctx, new(int))
			c.wrong(!errors.Is(err, store.ErrTooLarge) || errors.Is(err, store.ErrLost) || ctx.Err() != nil,
				"Load says %v, and the run's context %v", err, ctx.Err())
			time.Sleep(20 * time.Minute)
			return err
		}))
		a.meets(inTurn("load", append(slices.Repeat([]error{errNetwork}, failures), fmt.Errorf("load: %w", store.ErrTooLarge))...))
		time.Sleep(time.Hour + 10*time.Minute)
		a.wantWell()
		n := a.tap.counts()["load"]
		c.wrong(n != failures+1, "%d loads", n)
		time.Sleep(20 * time.Minute)
		run := c.record("work").Run
		c.wrong(run.Status != event.Failed || !strings.Contains(run.Error, store.ErrTooLarge.Error()), "the record says %+v", run)
	})
}
