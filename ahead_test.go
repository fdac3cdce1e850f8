package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// tooSlow is the time that each call takes in tests of what happens before a tick.
const tooSlow = 100 * time.Millisecond

// ahead returns a job in one of the two modes.
func ahead(claims bool, job soloist.Job) soloist.Job {
	job.ClaimAhead = claims
	return job
}

// inBothModes runs a test with the claim at the tick, and with the claim before it.
func inBothModes(t *testing.T, f func(t *testing.T, c *cluster, claims bool)) {
	for _, claims := range []bool{false, true} {
		inCase(t, fmt.Sprintf("claim ahead %v", claims), func(t *testing.T, c *cluster) { f(t, c, claims) })
	}
}

// late returns how long after its tick each run began.
func late(runs []ran) (all []time.Duration) {
	for _, r := range runs {
		all = append(all, r.start.Sub(r.Tick))
	}
	return all
}

// At the tick only the claim is left, and with ClaimAhead nothing is.
func TestRunStartsAtItsTick(t *testing.T) {
	for _, period := range []string{"@every 1s", "@every 5s", "@every 1m"} {
		for claims, want := range map[bool]time.Duration{false: tooSlow, true: 0} {
			inCase(t, fmt.Sprint(period, claims), func(t *testing.T, c *cluster) {
				job := ahead(claims, work(period, 10*time.Millisecond))
				for _, name := range []string{"a", "b", "c"} {
					r := c.replica(name, job)
					r.tap.meet(func(_ string, apply func() error) error { time.Sleep(tooSlow); return apply() })
					c.launch(r)
				}
				time.Sleep(10*time.Minute + 500*time.Millisecond)
				once(t, c.all())
				for i, d := range late(c.all())[3:] { // the first claim of an entry waits for its token
					c.wrong(d > want || d < 0, "run %d begins %s after its tick, want %s", i+3, d, want)
				}
				c.wantAllSucceeded()
			})
		}
	}
}

// The runner of the last tick dies before the next one: the others find the lease free before
// the tick, so it is not late.
func TestDeathBetweenTicksCostsNoDelay(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		job := ahead(claims, work("@every 10s", 10*time.Millisecond))
		all := c.startAll(job, "a", "b", "c", "d", "e")
		for range 4 {
			time.Sleep(21 * time.Second) // between two ticks
			runs := c.all()
			all[runs[len(runs)-1].replica].kill()
		}
		time.Sleep(25 * time.Second)
		once(t, c.all())
		for i, d := range late(c.all())[1:] {
			c.wrong(d > 0, "run %d begins %s after its tick", i+1, d)
		}
	})
}

// A replica stops, dies, steps down, or its job is paused or run by hand, at each moment before a
// tick. The tick has one outcome, and what began before the trouble is all that runs.
func TestTroubleBeforeTick(t *testing.T) {
	troubles := map[string]func(c *cluster, r *replica){
		"stop":      func(_ *cluster, r *replica) { go r.stop() },
		"kill":      func(_ *cluster, r *replica) { r.kill() },
		"step down": func(_ *cluster, r *replica) { go func() { _ = r.StepDown(context.Background(), "work") }() },
		"pause": func(c *cluster, r *replica) {
			go func() { _, _ = r.Order(context.Background(), soloist.Order{Kind: store.OrderPause, Job: "work"}) }()
		},
		"run": func(c *cluster, r *replica) {
			go func() { _, _ = r.Order(context.Background(), soloist.Order{Kind: store.OrderRun, Job: "work"}) }()
		},
	}
	for name, begin := range troubles {
		for before := -500 * time.Millisecond; before <= 3*time.Second; before += 250 * time.Millisecond {
			inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
				job := ahead(claims, work("0 * * * * *", 100*time.Millisecond))
				all := c.graceful(5*time.Second, job, "a", "b", "c")
				time.Sleep(2*time.Minute + 30*time.Second)
				runs := c.all()
				holder := all[runs[len(runs)-1].replica]
				time.Sleep(30*time.Second - before)
				begin(c, holder)
				time.Sleep(3*time.Minute + before)
				for _, o := range c.record("work").History {
					if o.Tick.IsZero() || o.Status == store.Succeeded || o.Status == store.Skipped && name == "pause" {
						continue
					}
					died := name == "kill" && o.Status == store.Abandoned && (claims || before <= 0)
					overlaps := name == "run" && o.Status == store.Skipped && o.Reason == "overlap"
					c.wrong(!died && !overlaps, "%s %s before the tick: %s", name, before, outcomeText(o))
				}
				ran := map[string]bool{}
				for _, r := range c.all() {
					c.wrong(ran[r.ID()], "%s %s before the tick: %s ran twice", name, before, r.ID())
					ran[r.ID()] = true
					c.wrong(name == "stop" && r.start.Sub(r.Tick) > 100*time.Millisecond && r.Request == "",
						"%s %s before the tick: %s begins %s late", name, before, r.ID(), r.start.Sub(r.Tick))
				}
			})
		}
	}
}

// Replicas share the jobs that come due together, also after each of them was restarted.
func TestReplicasShareJobs(t *testing.T) {
	for _, period := range []string{"@every 1s", "@every 10s"} {
		inCase(t, period, func(t *testing.T, c *cluster) {
			var jobs []soloist.Work
			for i := range 20 {
				jobs = append(jobs, named(fmt.Sprintf("work-%d", i), work(period, time.Millisecond)))
			}
			for _, name := range []string{"a", "b", "c"} {
				c.start(name, jobs...)
			}
			time.Sleep(time.Minute)
			for i, name := range []string{"a2", "b2", "c2"} {
				c.started[i].stop()
				c.start(name, jobs...)
				time.Sleep(20 * time.Second)
			}
			time.Sleep(40 * time.Second)
			before := len(c.all())
			time.Sleep(time.Minute)
			share, runs := map[string]int{}, c.all()[before:]
			for _, r := range runs {
				share[r.replica]++
			}
			for name, k := range share {
				c.wrong(k > len(runs)*6/10, "%s runs %d of %d", name, k, len(runs))
			}
		})
	}
}

// A lease that is kept from tick to tick is given up now and then: a manual run of another process gets it.
func TestRunByHandGetsKeptLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1s", 10*time.Millisecond)
		a := c.startAll(job, "a", "b")["a"]
		time.Sleep(time.Minute + 500*time.Millisecond)
		n := a.tap.counts()["acquire"]
		c.wrong(n > 10, "%d acquisitions in a minute", n)
		other, ctx := c.replica("by hand", job), c.within(2*time.Minute)
		o, err := other.RunNow(ctx, "work", "by-hand")
		for errors.Is(err, store.ErrHeld) && ctx.Err() == nil { // it has met a run, for which it does not wait
			time.Sleep(100 * time.Millisecond)
			o, err = other.RunNow(ctx, "work", "by-hand")
		}
		c.wrong(err != nil || o.Status != store.Succeeded, "%+v, %v", o, err)
	})
}

// A stop while the claim is written keeps the run from beginning, where others do not count on this replica: an ordered run, and
// a tick whose lease was to be acquired before it, and was not until after it.
func TestStopDuringClaimNearTick(t *testing.T) {
	for name, ordered := range map[string]bool{"acquired late": false, "an ordered run": true} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.graceful(20*time.Second, work("0 * * * * *", 5*time.Second), "a")["a"]
			until(2*time.Minute + 30*time.Second)
			var late atomic.Bool
			var stopped time.Time
			a.tap.meet(func(op string, apply func() error) error {
				if op == "write" && stopped.IsZero() {
					stopped = time.Now()
					go a.stop()
					time.Sleep(100 * time.Millisecond)
				}
				err := apply()
				if op == "acquire" && !ordered && late.CompareAndSwap(false, true) {
					time.Sleep(2400 * time.Millisecond)
				}
				return err
			})
			until(2*time.Minute + 58800*time.Millisecond)
			if ordered {
				if _, err := a.Order(context.Background(), soloist.Order{Kind: store.OrderRun, Job: "work"}); err != nil {
					t.Fatal(err)
				}
			}
			until(4 * time.Minute)
			<-a.done
			for _, r := range c.all()[2:] {
				c.wrong(r.start.After(stopped) && r.Tick.Before(stopped.Add(time.Second)),
					"%s begins %s after the stop", r.ID(), r.start.Sub(stopped))
			}
			c.wrong(stopped.IsZero() || late.Load() == ordered, "stopped at %s; acquired late: %t", stopped, late.Load())
		})
	}
}

// A run that is cancelled before its function is called does not begin, and says so: the replica
// waits for its log to take the line of the start.
func TestCancelWhileLogBlocks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		called := false
		job := work("0 * * * * *", 0)
		job.Do = func(context.Context, *soloist.Run) error { called = true; return nil }
		a, release := c.blocked("run started", job)
		defer release()
		var kinds []event.Kind
		a.Events = func(e event.Event) {
			if e.Run.Token != 0 {
				kinds = append(kinds, e.Kind)
			}
		}
		c.launch(a)
		until(time.Minute + time.Second)
		if _, err := a.Order(context.Background(), soloist.Order{Kind: store.OrderCancel, Job: "work"}); err != nil {
			t.Fatal(err)
		}
		until(time.Minute + 30*time.Second)
		a.stop()
		want := []event.Kind{event.Claimed, event.Started, event.NotStarted, event.Ended}
		c.wrong(called || !slices.Equal(kinds, want), "Do was called: %t; events %s, want %s", called, kinds, want)
		c.wantOutcomes("work", "cancelled 00:01:00 by a")
	})
}

// No attempt starts after its starting deadline, also where the machine sleeps while the claim is armed.
func TestStartingDeadlineWhileArmed(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		m := &suspended{}
		c.store.Now = func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
		job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
		job.StartingDeadline = 1 * time.Second
		r := c.replica("a", job).on(m)
		r.Now = c.store.Now
		c.launch(r)
		until(2*time.Minute + 59*time.Second)
		m.slept.Add(int64(3 * time.Second))
		before := len(c.all())
		time.Sleep(10 * time.Second)
		for _, run := range c.all()[before:] {
			if late := run.start.Add(3 * time.Second).Sub(run.Tick); late > job.StartingDeadline {
				t.Errorf("%s began %s after its tick, and the starting deadline is %s", run.ID(), late, job.StartingDeadline)
			}
		}
	})
}

// A store without dates, and a wall clock that is set back while the lease is held before a tick.
func TestClockSetBackBeforeTick(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		var back atomic.Int64
		job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
		a := c.replica("a", job)
		a.tap.date = noDate
		a.Now = func() time.Time { return time.Now().Add(time.Duration(back.Load())) }
		c.launch(a)
		b := c.replica("b", job)
		b.tap.date = noDate
		until(2*time.Minute + 30*time.Second)
		c.launch(b)
		until(2*time.Minute + 59*time.Second)
		back.Store(int64(-time.Hour))
		time.Sleep(20 * time.Minute)
		if runs := c.all(); time.Since(runs[len(runs)-1].start) > 5*time.Minute {
			t.Errorf("nothing has run for %s", time.Since(runs[len(runs)-1].start))
		}
	})
}

// A claim that is armed is taken back by a step-down. The next claim of that tick is made in spite of the order, so its run
// goes on.
func TestStepDownOfArmedClaimEndsNoOther(t *testing.T) {
	for _, grace := range []time.Duration{0, 5 * time.Second} {
		inCase(t, grace.String(), func(t *testing.T, c *cluster) {
			all := c.graceful(grace, ahead(true, work("0 * * * * *", 20*time.Second)), "a", "b")
			until(2*time.Minute + 58300*time.Millisecond)
			armed := c.record("work")
			if !armed.Run.Armed {
				t.Fatalf("not armed: %+v", armed.Run)
			}
			if _, err := all[armed.Run.Replica].Order(t.Context(), soloist.Order{Kind: store.OrderStepDown, Job: "work"}); err != nil {
				t.Fatal(err)
			}
			until(3*time.Minute + 50*time.Second)
			if last := c.record("work").History[0]; last.Status != store.Succeeded || last.Replica == armed.Run.Replica {
				t.Errorf("%s was to hand over, and %s %s (%s)", armed.Run.Replica, last.Replica, last.Status, last.Reason)
			}
		})
	}
}
