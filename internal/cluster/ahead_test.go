package cluster_test

import (
	"context"
	"errors"
	"fmt"
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

// wantLateBy checks that no run but the first ones began later than d after its tick, or before it.
func (c *cluster) wantLateBy(d time.Duration, first int) {
	c.t.Helper()
	for i, r := range c.all()[first:] {
		late := r.start.Sub(r.Tick)
		c.wrong(late > d || late < 0, "run %d begins %s after its tick, want %s", i+first, late, d)
	}
}

// At the tick only the claim is left, and with ClaimAhead nothing is.
func TestRunStartsAtItsTick(t *testing.T) {
	for _, period := range []string{"@every 1s", "@every 5s", "@every 1m"} {
		for claims, want := range map[bool]time.Duration{false: tooSlow, true: 0} {
			inCase(t, fmt.Sprint(period, claims), func(t *testing.T, c *cluster) {
				for _, name := range letters(3) {
					r := c.replica(name, ahead(claims, work(period, 10*time.Millisecond)))
					c.launch(r.meets(func(_ string, apply func() error) error { time.Sleep(tooSlow); return apply() }))
				}
				time.Sleep(10*time.Minute + 500*time.Millisecond)
				once(t, c.all())
				c.wantLateBy(want, 3) // the first claim of an entry waits for its token
				c.wantAllSucceeded()
			})
		}
	}
}

// The runner of the last tick dies before the next one: the others find the lease free before
// the tick, so it is not late.
func TestDeathBetweenTicksCostsNoDelay(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		all := c.startAll(ahead(claims, work("@every 10s", 10*time.Millisecond)), letters(5)...)
		for range 4 {
			time.Sleep(21 * time.Second) // between two ticks
			all[c.last().replica].kill()
		}
		time.Sleep(25 * time.Second)
		once(t, c.all())
		c.wantLateBy(0, 1)
	})
}

// A replica stops, dies, steps down, or its job is paused, cancelled or run by hand, at each moment before a tick. The tick has
// one outcome, and what began before the trouble is all that runs.
func TestTroubleBeforeTick(t *testing.T) {
	for name, begin := range map[string]func(r *replica){
		"stop":      func(r *replica) { go r.stop() },
		"kill":      func(r *replica) { r.kill() },
		"step down": func(r *replica) { go func() { _ = r.StepDown(context.Background(), "work") }() },
		"pause":     func(r *replica) { go r.orders(soloist.OrderPause) },
		"cancel":    func(r *replica) { go r.orders(soloist.OrderCancel) },
		"run":       func(r *replica) { go r.orders(soloist.OrderRun) },
	} {
		for before := -500 * time.Millisecond; before <= 3*time.Second; before += 250 * time.Millisecond {
			inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
				all := c.graceful(5*time.Second, ahead(claims, work("0 * * * * *", 100*time.Millisecond)), letters(3)...)
				until(3*time.Minute - before)
				begin(all[c.last().replica])
				until(6 * time.Minute)
				at, cancelled := fmt.Sprint(name, " ", before, " before the tick"), map[time.Time]bool{}
				for _, o := range c.record("work").History {
					cancelled[o.Tick] = name == "cancel" && o.Status == event.Cancelled && before > 0
					fine := map[string]bool{
						"pause":  o.Status == event.Skipped,
						"kill":   o.Status == event.Abandoned && (claims || before <= 0),
						"cancel": o.Status == event.Cancelled && (claims || before <= 0),
						"run":    o.Status == event.Skipped && o.Reason == "overlap",
					}
					c.wrong(!o.Tick.IsZero() && o.Status != event.Succeeded && !fine[name], "%s: %s", at, outcomeText(o))
				}
				ran := map[string]bool{}
				for _, r := range c.all() {
					c.wrong(ran[r.ID()] || cancelled[r.Tick], "%s: %s ran twice, or was cancelled", at, r.ID())
					ran[r.ID()] = true
					late := r.start.Sub(r.Tick)
					c.wrong(name == "stop" && late > 100*time.Millisecond && r.Request == "",
						"%s: %s begins %s late", at, r.ID(), late)
				}
			})
		}
	}
}

// Replicas share the jobs that come due together, also after each of them was restarted.
func TestReplicasShareJobs(t *testing.T) {
	inEach(t, []string{"@every 1s", "@every 10s"}, func(c *cluster, period string) {
		jobs := crowd(20, period)
		c.each(jobs, "a", "b", "c")
		time.Sleep(time.Minute)
		for i, name := range []string{"a2", "b2", "c2"} {
			c.started[i].stop()
			c.start(name, jobs...)
			time.Sleep(20 * time.Second)
		}
		time.Sleep(40 * time.Second)
		since, before := time.Now(), len(c.all())
		time.Sleep(time.Minute)
		runs := len(c.all()) - before
		for _, r := range c.started {
			k := len(ranBy(c, r.Replica, since))
			c.wrong(k > runs*6/10, "%s runs %d of %d", r.Replica, k, runs)
		}
	})
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
		c.wrong(err != nil || o.Status != event.Succeeded, "%+v, %v", o, err)
	})
}

// A stop while the claim is written keeps the run from beginning, where others do not count on this replica: an ordered run, and
// a tick whose lease was to be acquired before it, and was not until after it.
func TestStopDuringClaimNearTick(t *testing.T) {
	inRows(t, map[string]bool{"acquired late": false, "an ordered run": true}, func(c *cluster, _ string, ordered bool) {
		a := c.graceful(20*time.Second, work("0 * * * * *", 5*time.Second), "a")["a"]
		until(2*time.Minute + 30*time.Second)
		var late atomic.Bool
		var stopped time.Time
		a.meets(func(op string, apply func() error) error {
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
			c.ok(a.orders(soloist.OrderRun))
		}
		until(4 * time.Minute)
		<-a.done
		for _, r := range c.all()[2:] {
			c.wrong(r.start.After(stopped) && r.Tick.Before(stopped.Add(time.Second)),
				"%s begins at %s after the stop", r.ID(), r.start)
		}
		c.wrong(stopped.IsZero() || late.Load() == ordered, "stopped at %s; acquired late: %t", stopped, late.Load())
	})
}

// A run that is cancelled before its function is called does not begin, and says so: the replica
// waits for its log to take the line of the start.
func TestCancelWhileLogBlocks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		called := false
		job := doing("0 * * * * *", func(context.Context, *soloist.Run) error { called = true; return nil })
		a, release := c.blocked("run started", job)
		defer release()
		book := a.tells()
		c.launch(a)
		until(time.Minute + time.Second)
		c.ok(a.orders(soloist.OrderCancel))
		until(time.Minute + 30*time.Second)
		a.stop()
		book.want(t, "work", event.Claimed, event.Started, event.NotStarted, event.Ended)
		c.wrong(called, "Do was called")
		c.wantOutcomes("work", "cancelled 00:01:00 by a")
	})
}

// No attempt starts after its starting deadline, also where the machine sleeps while the claim is armed.
func TestStartingDeadlineWhileArmed(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		m := &suspended{}
		c.store.Now = func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
		job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
		job.Late.Start = time.Second
		r := c.replica("a", job).on(m)
		r.Now = c.store.Now
		c.launch(r)
		until(2*time.Minute + 59*time.Second)
		m.slept.Add(int64(3 * time.Second))
		before := len(c.all())
		time.Sleep(10 * time.Second)
		for _, run := range c.all()[before:] {
			late := run.start.Add(3 * time.Second).Sub(run.Tick)
			c.wrong(late > job.Late.Start, "%s began %s after its tick", run.ID(), late)
		}
	})
}

// An order for a manual run that comes after a stop does not keep the holder from the tick that others expect it to run.
func TestOrderAfterStopBeforeTick(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		all := c.graceful(10*time.Second, ahead(claims, work("0 * * * * *", 10*time.Millisecond)), letters(3)...)
		until(2*time.Minute + 59*time.Second)
		holder := all[c.last().replica]
		go holder.stop()
		time.Sleep(300 * time.Millisecond)
		c.ok(holder.orders(soloist.OrderRun))
		until(3*time.Minute + 50*time.Second)
		c.wantAllSucceeded()
		for _, r := range c.all() {
			c.wrong(r.Request == "" && r.start.After(r.Tick), "%s begins at %s", r.ID(), r.start)
		}
	})
}

// A store without dates, and a wall clock that is set back while the lease is held before a tick.
func TestClockSetBackBeforeTick(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		var back atomic.Int64
		job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
		a, b := c.replica("a", job), c.replica("b", job)
		a.tap.date, b.tap.date = noDate, noDate
		a.Now = func() time.Time { return time.Now().Add(time.Duration(back.Load())) }
		c.launch(a)
		until(2*time.Minute + 30*time.Second)
		c.launch(b)
		until(2*time.Minute + 59*time.Second)
		back.Store(int64(-time.Hour))
		time.Sleep(20 * time.Minute)
		idle := time.Since(c.last().start)
		c.wrong(idle > 5*time.Minute, "nothing has run for %s", idle)
	})
}

// A claim that is armed is taken back by a step-down. The next claim of that tick is made in spite of the order, so its run
// goes on.
func TestStepDownOfArmedClaimEndsNoOther(t *testing.T) {
	inEach(t, []time.Duration{0, 5 * time.Second}, func(c *cluster, grace time.Duration) {
		all := c.graceful(grace, ahead(true, work("0 * * * * *", 20*time.Second)), "a", "b")
		until(2*time.Minute + 58300*time.Millisecond)
		armed := c.record("work").Run
		c.wrong(!armed.Armed, "not armed: %+v", armed)
		c.ok(all[armed.Replica].orders(soloist.OrderStepDown))
		until(3*time.Minute + 50*time.Second)
		last := c.newest()
		c.wrong(last.Status != event.Succeeded || last.Replica == armed.Replica,
			"%s was to hand over, and %s %s (%s)", armed.Replica, last.Replica, last.Status, last.Reason)
	})
}
