package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
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
					if d > want || d < 0 {
						t.Errorf("run %d begins %s after its tick, want %s", i+3, d, want)
					}
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
			if d > 0 {
				t.Errorf("run %d begins %s after its tick", i+1, d)
			}
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
					if !died && !overlaps {
						t.Errorf("%s %s before the tick: %s", name, before, outcomeText(o))
					}
				}
				ran := map[string]bool{}
				for _, r := range c.all() {
					if ran[r.ID()] {
						t.Errorf("%s %s before the tick: %s ran twice", name, before, r.ID())
					}
					ran[r.ID()] = true
					if name == "stop" && r.start.Sub(r.Tick) > 100*time.Millisecond && r.Request == "" {
						t.Errorf("%s %s before the tick: %s begins %s late", name, before, r.ID(), r.start.Sub(r.Tick))
					}
				}
			})
		}
	}
}

// Replicas share the jobs that come due together, also after each of them was restarted.
func TestReplicasShareJobs(t *testing.T) {
	for _, period := range []string{"@every 1s", "@every 10s"} {
		inCase(t, period, func(t *testing.T, c *cluster) {
			const n = 20
			var jobs []soloist.Work
			for i := range n {
				job := work(period, time.Millisecond)
				job.Name = fmt.Sprintf("work-%d", i)
				jobs = append(jobs, job)
			}
			var running []*replica
			for _, name := range []string{"a", "b", "c"} {
				running = append(running, c.start(name, jobs...))
			}
			time.Sleep(time.Minute)
			for i, name := range []string{"a2", "b2", "c2"} {
				running[i].stop()
				c.start(name, jobs...)
				time.Sleep(20 * time.Second)
			}
			time.Sleep(40 * time.Second)
			before := len(c.all())
			time.Sleep(time.Minute)
			share := map[string]int{}
			runs := c.all()[before:]
			for _, r := range runs {
				share[r.replica]++
			}
			for name, k := range share {
				if k > len(runs)*6/10 {
					t.Errorf("%s runs %d of %d", name, k, len(runs))
				}
			}
			t.Log(share)
		})
	}
}

// A lease that is kept from tick to tick is given up now and then: a run by hand of another
// process gets it.
func TestRunByHandGetsKeptLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1s", 10*time.Millisecond)
		a := c.start("a", job)
		c.start("b", job)
		time.Sleep(time.Minute + 500*time.Millisecond)
		if n := a.tap.counts()["acquire"]; n > 10 {
			c.t.Errorf("%d acquisitions in a minute", n)
		}
		other := c.replica("by hand", job)
		begin := time.Now()
		ctx := c.within(2 * time.Minute)
		o, err := other.RunNow(ctx, "work", "by-hand")
		for errors.Is(err, store.ErrHeld) && ctx.Err() == nil { // it has met a run, for which it does not wait
			time.Sleep(100 * time.Millisecond)
			o, err = other.RunNow(ctx, "work", "by-hand")
		}
		if err != nil || o.Status != store.Succeeded {
			c.t.Errorf("%+v, %v after %s", o, err, time.Since(begin))
		}
		c.t.Log(time.Since(begin))
	})
}

// A younger definition comes into force although the lease of the job is kept from tick to tick.
func TestYoungerDefinitionGetsKeptLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		older := c.start("older", work("@every 1s", 10*time.Millisecond))
		time.Sleep(time.Minute + 500*time.Millisecond)
		c.start("younger", work("@every 2s", 10*time.Millisecond))
		spec := c.record("work").Definition.Spec
		begin := time.Now()
		for c.record("work").Definition.Spec == spec && time.Since(begin) < 5*time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(begin); took > 3*D {
			c.t.Errorf("it took %s", took)
		}
		older.stop()
	})
}
