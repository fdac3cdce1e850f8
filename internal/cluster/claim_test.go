package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An answer without an ETag proves neither the lease nor the claim: a run goes on
// and begins only with what the store has.
func TestAnswerWithoutETagIsNoSuccess(t *testing.T) {
	inEach(t, []string{"create", "read", "acquire", "renew", "write"}, func(c *cluster, op string) {
		running := 0
		job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
			running++
			c.wrong(running > 1, "two run at %s", time.Now())
			r := c.record("work")
			c.wrong(r.Token != run.Token || r.Run.Status != event.Running, "token %d runs, and the record is %+v", run.Token, r)
			_ = pause(ctx, 100*time.Second)
			running--
			return nil
		})
		a := c.replica("a", job)
		if op == "create" || op == "read" {
			a.meets(fail(nil, op))
		}
		c.launch(a)
		time.Sleep(70 * time.Second) // a runs the first tick
		b := c.start("b", job)
		a.meets(fail(nil, op))
		time.Sleep(10 * time.Minute)
		e, err := c.store.Read(c.t.Context(), "soloist/work")
		c.wrong(err != nil || !json.Valid(e.Record), "got %+v, %v", e, err)
		h := b.Health()
		c.wrong(len(c.all()) < 4 || len(h.Broken) > 0, "%d runs, health of b: %+v", len(c.all()), h)
	})
}

// A replica could not write. Since then it has created the entry, or run the job manually: it can write.
func TestAWriteShowsThatWritesArrive(t *testing.T) {
	for name, write := range map[string]func(c *cluster, r *replica){
		"it creates the entry": func(c *cluster, _ *replica) { c.deleteEntry() },
		"it runs manually":     func(_ *cluster, r *replica) { r.byHand("work", "please") },
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job, refused := work("@every 1h", time.Second), fail(fs.ErrPermission, "write")
			a := c.launch(c.replica("a", job).meets(refused))
			time.Sleep(time.Hour + 2*time.Second)
			c.wantIs(a.Health().Broken["work"], fs.ErrPermission)
			c.start("b", job) // which runs the tick
			time.Sleep(5 * time.Second)
			write(c, a.meets(nil))
			a.meets(refused)
			time.Sleep(2 * time.Minute)
			a.wantWell()
		})
	}
}

// What a claim needs, and what becomes of it.
func TestClaims(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"who is refused a lease does not ask all the time": func(c *cluster) {
			// "A client may need to wait up to one minute before a new lease can be acquired."
			a := c.launch(c.replica("a", work("0 * * * *", time.Second)).meets(fail(store.ErrHeld, "acquire")))
			time.Sleep(time.Hour - time.Second)
			a.tap.counts()
			time.Sleep(time.Minute)
			n := a.tap.counts()
			c.wrong(n["acquire"]+n["read"] > 60, "calls in a minute: %v", n)
		},
		"tokens grow, also if an entry is deleted and made anew as fast as that goes": func(c *cluster) {
			time.Sleep(300 * time.Millisecond)
			for _, name := range letters(3) {
				r := c.replica(name, work("0 * * * *", 0))
				r.tap.date = wholeSeconds
				for _, request := range []string{"one", "two"} {
					r.byHand("work", request)
				}
				c.deleteEntry()
			}
			var last int64
			for _, r := range c.all() {
				c.wrong(r.Token <= last, "token %d after %d", r.Token, last)
				last = r.Token
			}
			took := c.all()[5].start.Sub(c.all()[0].start)
			c.wrong(took > 7*time.Second, "six runs took %s", took)
		},
		"a stop ends the wait for the first token: the lease is released, and nothing was claimed": func(c *cluster) {
			a := c.start("a", leader())
			time.Sleep(500 * time.Millisecond)
			begin := time.Now()
			a.stop()
			took := time.Since(begin)
			c.wrong(took > 100*time.Millisecond, "the stop took %s", took)
			n := a.tap.counts()
			c.wrong(n["write"] != 0 || n["release"] != 1, "calls: %v", n)
		},
		"a store that refuses each acquisition at the ETag that its reads show is told once": func(c *cluster) {
			// That trouble ends with an acquisition.
			r := c.start("a", work("@every 1m", time.Second))
			time.Sleep(90 * time.Second)
			refuse := fail(store.ErrChanged, "acquire")
			r.meets(refuse)
			time.Sleep(30*time.Second + 2*D) // less than a follower waits for a lease without a claim
			r.wantWell()
			time.Sleep(30 * time.Minute)
			wantError(c.t, r.Health().Broken["work"], "ETag", "a proxy")
			r.wantLines(1, "level=WARN", "a proxy")
			// A call of RunDue has no end of its own: a command without a deadline would not return.
			ctx := c.within(time.Hour)
			_, err := c.replica("b", work("@every 1m", time.Second)).meets(refuse).RunDue(ctx, soloist.Wake{})
			wantError(c.t, err, "a proxy")
			c.wrong(ctx.Err() != nil, "RunDue does not return")
			r.meets(nil)
			time.Sleep(time.Minute)
			r.wantWell()
			c.wrong(time.Since(c.record("work").Watermark) > 2*time.Minute, "nothing is run")
		},
		"a run by hand whose claim was applied, and that was cut off then, does not run": func(c *cluster) {
			// Its caller gets an error, and does not learn that the run goes on. So does the caller of RunDue.
			a := c.replica("a", leased(time.Minute, work("0 * * * *", 0))).meets(cutOffAfter("write", true, 5*time.Second))
			_, err := a.RunNow(c.t.Context(), "work", "r1")
			wantError(c.t, err, "was claimed and not run")
			time.Sleep(time.Hour)
			_, err = a.RunDue(c.t.Context(), soloist.Wake{})
			c.wrong(err == nil, "RunDue: no error")
			time.Sleep(30 * time.Second)
			_, err = a.RunDue(c.t.Context(), soloist.Wake{})
			wantError(c.t, err, "was claimed and not run")
			c.wantRuns(0)
		},
		"who is cut off after a claim that was applied does not release its lease once it is answered": func(c *cluster) {
			// The record says that the tick may be running.
			a := c.launch(c.replica("a", leased(time.Minute, work("@every 10m", 0))).meets(cutOffAfter("write", true, 5*time.Second)))
			time.Sleep(10*time.Minute + 40*time.Second)
			c.wantLease(store.Leased)
			c.wrong(c.record("work").Run.Status != event.Running, "the record says %+v", c.record("work").Run)
			n := a.tap.counts()["release"]
			c.wrong(n != 0 || len(c.all()) != 0, "%d releases, %d runs", n, len(c.all()))
		},
		"a replica whose writes hang delays no tick that nobody looks for": func(c *cluster) {
			// Here a pause ends with each tick.
			job := work("@every 1h", time.Second)
			c.start("b", job)
			c.unheard("a", job)
			time.Sleep(30 * time.Minute)
			slow := 0
			for range 24 {
				tick := time.Now().Add(30 * time.Minute)
				c.order(soloist.Order{Kind: soloist.OrderPause, Until: tick}, job)
				time.Sleep(time.Hour)
				if late := c.newest().Start.Sub(tick); late < 0 || late > time.Second {
					slow++
				}
			}
			c.wrong(slow > 1, "%d of 24 ticks were late", slow) // a may be first once, before it knows
		},
	})
}

// onClaim calls f while a claim is on its way to the store, the first time.
func onClaim(f func()) fault {
	return onNth("write", 1, func(apply func() error) error {
		f()
		time.Sleep(100 * time.Millisecond)
		return apply()
	})
}

// stopDuringAClaim has a replica of its own claim a tick and be stopped
// meanwhile, beside others that are up.
func (c *cluster) stopDuringAClaim(work ...soloist.Work) *replica {
	r := c.replica("stops", work...)
	claims := make(chan struct{})
	r.tap.meet(onClaim(func() { close(claims) }))
	c.launch(r)
	go func() { <-claims; r.stop() }()
	return r
}

// A stop or a step-down arrives while the claim is being written, and there is no grace: the
// claim goes back, and a replica that looks again runs the tick within a lease.
func TestStopDuringClaimTakesItBack(t *testing.T) {
	job := work("0 * * * *", time.Second)
	for name, begin := range map[string]func(c *cluster) *replica{
		"stop": func(c *cluster) *replica { return c.stopDuringAClaim(job) },
		"step-down": func(c *cluster) *replica {
			a := c.replica("steps down", job)
			return c.launch(a.meets(onClaim(func() { go func() { _ = a.StepDown(context.Background(), "work") }() })))
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			stops := begin(c)
			time.Sleep(time.Hour - time.Second)
			c.launch(c.replica("other", job).meets(slow(20*time.Millisecond, "acquire")))
			time.Sleep(time.Minute)
			runs := c.all()
			c.wrong(len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > D+3*time.Second, "got %+v", runs)
			c.wantOutcomes("work", "succeeded 01:00:00")
			n := stops.tap.counts()
			c.wrong(runs[0].replica == "other" && (n["write"] != 2 || n["release"] != 1), "calls: %v", n)
			stops.wantLines(1, "the claim was taken back")
		})
	}
	inCase(t, "singleton", func(t *testing.T, c *cluster) {
		c.stopDuringAClaim(leader())
		time.Sleep(time.Minute)
		r := c.record("lead")
		c.wrong(r.Run.Status != record.Idle, "got %+v", r)
		c.start("b", leader())
		time.Sleep(5 * time.Second)
		c.wantRuns(1)
		c.wrong(c.last().replica != "b", "got %+v", c.last())
	})
}

// A replica that is cut off after each claim, or after each acquisition, cannot release
// its lease then. It releases it once it is answered, and leaves the job to the others.
// So does one whose claims alone get no answer, or whose next read is refused.
func TestReplicaThatIsCutOffCostsNoTick(t *testing.T) {
	const m, s = time.Minute, time.Second
	claim := func(block time.Duration) fault { return cutOffAfter("write", false, block) }
	acquisition := func(block time.Duration) fault { return cutOffAfter("acquire", true, block) }
	for name, tt := range map[string]struct {
		lease time.Duration
		meets fault
		late  time.Duration // at most
		says  bool          // the log says that the job is left alone: the replica is the first to claim
	}{
		"unanswered claims":                {m, fail(errNetwork, "write"), 5 * s, false},
		"unanswered claims, refused reads": {m, refusedAfterWrite(), m, false},
		"claims, 1 s":                      {D, claim(s), 30 * s, true},
		"claims, 5 s":                      {D, claim(5 * s), 30 * s, true},
		"claims, 1 s of a minute":          {m, claim(s), m, true},
		"claims, 5 s of a minute":          {m, claim(5 * s), m, true},
		// The others may have been first by the time that an acquisition is answered.
		"acquisitions, 1 s":             {D, acquisition(s), 30 * s, false},
		"acquisitions, 5 s":             {D, acquisition(5 * s), 30 * s, false},
		"acquisitions, 1 s of a minute": {m, acquisition(s), m, false},
		"acquisitions, 5 s of a minute": {m, acquisition(5 * s), m, false},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := leased(tt.lease, work("@every 1m", 0))
			a := c.replica("a", job).meets(tt.meets)
			if tt.says {
				c.launch(a)
				time.Sleep(59 * s)
				c.start("b", job)
			} else {
				c.start("b", job)
				c.launch(a)
			}
			until(4*time.Hour + 30*s)
			n := c.record("work").Counts
			c.wrong(n[event.Succeeded] != 240 || len(n) != 1, "240 ticks: %v", n)
			c.wantInTime(tt.late)
			told := len(a.log.lines("the job is left alone", "leaves the job to other replicas", errNetwork.Error()))
			c.wrong(tt.says && told == 0, "the log says %q", a.log.lines("level=ERROR"))
		})
	}
}

// A replica that is cut off after its claim or its acquisition need not wait for its own lease to expire: a run by hand starts
// once the replica is answered, and the next call runs what is due.
func TestOwnLeaseIsFreed(t *testing.T) {
	for _, op := range []string{"write", "acquire"} {
		for _, byHand := range []bool{true, false} {
			inCase(t, fmt.Sprintf("%s, by hand %t", op, byHand), func(t *testing.T, c *cluster) {
				a, soon := c.replica("a", leased(time.Minute, work("0 * * * *", 0))), 2*time.Second
				a.wake()
				until(time.Hour)
				a.meets(cutOffAfter(op, op == "acquire", 5*time.Second))
				if byHand {
					soon = 30 * time.Second
					time.AfterFunc(10*time.Second, func() { a.meets(nil) })
					a.byHand("work", "r1")
				} else {
					_, err := a.RunDue(c.t.Context(), soloist.Wake{})
					c.wrong(err == nil, "a call that is cut off reports no error")
					a.meets(nil).wake()
				}
				c.wantRuns(1)
				c.wrong(c.last().start.Sub(time.Now().Truncate(time.Hour)) > soon, "it began at %s", c.last().start)
			})
		}
	}
}

// A replica that does not know whether its calls arrive gives the others less of a head start than a tick has time: it may be
// alone. The first token waits for a second that begins after the entry was seen. A replica that has settled the first tick as
// missed has seen it then, so the second tick need not wait.
func TestFailedAcquisitionsMissFewTicks(t *testing.T) {
	for missed, errs := range map[int64][]error{
		0: {nil, errNetwork, errNetwork, nil}, // the acquisition of the second tick, and its repetition
		1: append(slices.Repeat([]error{errNetwork}, 6), nil),
	} {
		inCase(t, fmt.Sprint(missed), func(t *testing.T, c *cluster) {
			job := work("@every 1m", 0)
			job.Late.Start = time.Second
			c.launch(c.replica("a", job).meets(inTurn("acquire", errs...)))
			time.Sleep(3*time.Minute + 30*time.Second)
			n := c.record("work").Counts
			c.wrong(n[event.Missed] != missed || n[event.Succeeded] != 3-missed, "3 ticks, of which %d are missed: %v", missed, n)
		})
	}
}

// hanging returns what has calls of op wait until their caller gives up, while on is set.
func hanging(op string, on *atomic.Bool) func(context.Context, string) error {
	return func(ctx context.Context, got string) error {
		if got != op || !on.Load() {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// unheard launches a replica whose writes get no answer while mute is set.
func (c *cluster) unheard(name string, work ...soloist.Work) (mute *atomic.Bool) {
	r, mute := c.replica(name, work...), &atomic.Bool{}
	mute.Store(true)
	r.tap.before = hanging("write", mute)
	c.launch(r)
	return mute
}

// A replica whose writes hang costs the others no tick, also if it runs most jobs and would leave some ticks to it: they
// come first until a write of its own has succeeded.
func TestHangingWritesCostNoTick(t *testing.T) {
	for _, tt := range []struct {
		jobs  int
		ahead bool
	}{{1, false}, {8, false}, {8, true}} {
		inCase(t, fmt.Sprint(tt), func(t *testing.T, c *cluster) {
			jobs := crowd(tt.jobs, "@every 1m")
			for i, w := range jobs {
				jobs[i] = ahead(tt.ahead, w.(soloist.Job))
			}
			c.start("b", jobs...)
			c.unheard("a", jobs...)
			time.Sleep(time.Hour + 30*time.Second)
			prompt := map[string]int{}
			for _, run := range c.all() {
				if run.start.Sub(run.Tick) <= 100*time.Millisecond {
					prompt[run.Job]++
				}
			}
			for i := range jobs {
				n := prompt[fmt.Sprintf("job-%d", i)] // a may be first once, before it knows
				c.wrong(n < 59, "%d of 60 ticks of job-%d began on time", n, i)
			}
		})
	}
}

// Once its writes arrive again it runs its part of the ticks.
func TestReplicaThatWritesAgainRunsTicks(t *testing.T) {
	crowded(t)
	inEach(t, []string{"@every 1m", "@every 5s"}, func(c *cluster, every string) {
		jobs := crowd(8, every)
		c.start("b", jobs...)
		mute := c.unheard("a", jobs...)
		time.Sleep(5 * time.Minute)
		mute.Store(false)
		time.Sleep(25 * time.Minute)
		since := time.Now()
		time.Sleep(6 * time.Minute)
		a, b := len(ranBy(c, "a", since)), len(ranBy(c, "b", since))
		c.wrong(a < b/4, "of the ticks 25 minutes later it runs %d, and the other replica %d", a, b)
	})
}
