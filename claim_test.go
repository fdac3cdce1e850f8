package soloist_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// An answer without an ETag proves neither the lease nor the claim: a run goes on
// and begins only with what the store has.
func TestAnswerWithoutETagIsNoSuccess(t *testing.T) {
	for _, op := range []string{"create", "read", "acquire", "renew", "write"} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			running := 0
			job := doing("@every 1m", func(ctx context.Context, run *soloist.Run) error {
				running++
				c.wrong(running > 1, "two run at %s", time.Now())
				if r := c.record("work"); r.Token != run.Token || r.Run.Status != store.Running {
					t.Errorf("tick %s runs with token %d, the record says %s with %d", run.Tick, run.Token, r.Run.Status, r.Token)
				}
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
			e, err := c.store.Read(t.Context(), "soloist/work")
			c.wrong(err != nil || !json.Valid(e.Record), "got %+v, %v", e, err)
			h := b.Health()
			c.wrong(len(c.all()) < 4 || len(h.Broken) > 0, "%d runs, health of b: %+v", len(c.all()), h)
		})
	}
}

// A replica could not write. Since then it has created the entry, or run the job manually: it can write.
func TestAWriteShowsThatWritesArrive(t *testing.T) {
	for name, write := range map[string]func(c *cluster, r *replica){
		"it creates the entry": func(c *cluster, _ *replica) { c.deleteEntry() },
		"it runs manually": func(c *cluster, r *replica) {
			if _, err := r.RunNow(c.t.Context(), "work", "please"); err != nil {
				c.t.Error(err)
			}
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := work("@every 1h", time.Second)
			var may atomic.Bool // during the manual run
			a := c.launch(c.replica("a", job).meets(func(op string, apply func() error) error {
				if op == "write" && !may.Load() {
					return fs.ErrPermission
				}
				return apply()
			}))
			time.Sleep(time.Hour + 2*time.Second)
			if why := a.Health().Broken["work"]; !errors.Is(why, fs.ErrPermission) {
				t.Errorf("its health says %v after a claim that was refused", why)
			}
			c.start("b", job) // which runs the tick
			time.Sleep(5 * time.Second)
			may.Store(true)
			write(c, a)
			may.Store(false)
			time.Sleep(2 * time.Minute)
			if why := a.Health().Broken["work"]; why != nil {
				t.Errorf("its health says %v after a write", why)
			}
		})
	}
}

// "A client may need to wait up to one minute before a new lease can be
// acquired": it does not ask all the time.
func TestRefusedAcquisitionsAreRare(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.launch(c.replica("a", work("0 * * * *", time.Second)).meets(fail(store.ErrHeld, "acquire")))
		time.Sleep(time.Hour - time.Second)
		a.tap.counts()
		time.Sleep(time.Minute)
		n := a.tap.counts()
		c.wrong(n["acquire"]+n["read"] > 60, "calls in a minute: %v", n)
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
		c.wrong(r.Run.Status != store.Idle, "got %+v", r)
		c.start("b", leader())
		time.Sleep(5 * time.Second)
		if runs := c.all(); len(runs) != 1 || runs[0].replica != "b" {
			t.Errorf("got %+v", runs)
		}
	})
}

// An entry is claimed, deleted, made anew and claimed again, as fast as that
// goes: tokens grow.
func TestTokensGrowOverDeletions(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(300 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name, work("0 * * * *", 0))
			r.tap.date = wholeSeconds
			for _, request := range []string{"one", "two"} {
				if _, err := r.RunNow(c.t.Context(), "work", request); err != nil {
					t.Fatal(err)
				}
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
	})
}

// A stop ends the wait for the first token: the lease is released, and nothing was
// claimed.
func TestStopEndsWaitForFirstToken(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(500 * time.Millisecond)
		begin := time.Now()
		a.stop()
		took := time.Since(begin)
		c.wrong(took > 100*time.Millisecond, "the stop took %s", took)
		n := a.tap.counts()
		c.wrong(n["write"] != 0 || n["release"] != 1, "calls: %v", n)
	})
}

// A store that refuses each acquisition at the ETag that its reads show is trouble that
// the replica tells once, and that ends with an acquisition.
func TestRefusedETagIsTold(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", work("@every 1m", time.Second))
		time.Sleep(90 * time.Second)
		refuse := fail(store.ErrChanged, "acquire")
		r.tap.meet(refuse)
		broken := func() string { return fmt.Sprint(r.Health().Broken["work"]) }
		time.Sleep(30*time.Second + 2*D) // less than a follower waits for a lease without a claim
		if got := broken(); got != "<nil>" {
			t.Errorf("broken too soon: %s", got)
		}
		time.Sleep(30 * time.Minute)
		wantError(t, r.Health().Broken["work"], "ETag", "a proxy")
		r.wantLines(1, "level=WARN", "a proxy")
		// A call of RunDue has no end of its own: a command without a deadline would not return.
		ctx := c.within(time.Hour)
		_, err := c.replica("b", work("@every 1m", time.Second)).meets(refuse).RunDue(ctx, soloist.Wake{})
		wantError(t, err, "a proxy")
		c.wrong(ctx.Err() != nil, "RunDue does not return")
		r.tap.meet(nil)
		time.Sleep(time.Minute)
		if got := broken(); got != "<nil>" || time.Since(c.record("work").Watermark) > 2*time.Minute {
			t.Errorf("not over: %s", got)
		}
	})
}
