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

// onClaim calls f while a claim is on its way to the store, the first time.
func onClaim(f func()) func(op string, apply func() error) error {
	claimed := false
	return func(op string, apply func() error) error {
		if op == "write" && !claimed {
			claimed = true
			f()
			time.Sleep(100 * time.Millisecond)
		}
		return apply()
	}
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

// A stop arrives while the claim is being written: the claim goes back, and
// another replica runs the tick at once.
func TestAStopDuringTheClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", time.Second)
		stops := c.stopDuringAClaim(job)
		time.Sleep(time.Hour - time.Second)
		other := c.replica("other", job)
		other.tap.meet(func(op string, apply func() error) error { // it loses the race
			if op == "acquire" {
				time.Sleep(20 * time.Millisecond)
			}
			return apply()
		})
		c.launch(other)
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 1 || runs[0].replica != "other" || runs[0].start.Sub(runs[0].Tick) > 3*time.Second {
			t.Errorf("got %+v", runs)
		}
		if got := c.outcomes("work"); !slices.Equal(got, []string{"succeeded 01:00:00"}) {
			t.Errorf("got %q", got)
		}
		if n := stops.tap.counts(); n["write"] != 2 || n["release"] != 1 {
			t.Errorf("calls: %v", n)
		}
		if len(stops.log.lines("the claim was taken back")) != 1 {
			t.Errorf("the log says %q", stops.log.lines(""))
		}
	})
}

// The token of a claim that was taken back is spent, and the record is as before.
func TestAClaimThatIsTakenBackSpendsItsToken(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", time.Second)
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Minute)
		a.stop()
		before := c.record("work")
		c.stopDuringAClaim(job)
		time.Sleep(time.Hour)
		after := c.record("work")
		if after.Token != before.Token+1 {
			t.Errorf("token %d after %d", after.Token, before.Token)
		}
		if after.Status != store.Succeeded || !after.Tick.Equal(before.Tick) || !after.Finished.Equal(before.Finished) ||
			after.Replica != "a" || !after.Due.Equal(before.Due) || !after.Watermark.Equal(before.Watermark) || len(after.History) != 1 {
			t.Errorf("got %+v, want %+v", after, before)
		}
	})
}

// A step-down is a stop, too: the replica leaves the tick to others.
func TestAStepDownDuringTheClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", time.Second)
		a := c.replica("a", job)
		a.tap.meet(onClaim(func() { go func() { _ = a.StepDown(context.Background(), "work") }() }))
		c.launch(a)
		time.Sleep(time.Hour - time.Second)
		b := c.replica("b", job)
		b.tap.meet(func(op string, apply func() error) error {
			if op == "acquire" {
				time.Sleep(20 * time.Millisecond)
			}
			return apply()
		})
		c.launch(b)
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 1 || runs[0].replica != "b" || runs[0].start.Sub(runs[0].Tick) > 3*time.Second {
			t.Errorf("got %+v", runs)
		}
	})
}

// A further attempt that is taken back is claimed again under its number.
func TestAFurtherAttemptIsTakenBack(t *testing.T) {
	for interrupted, want := range map[soloist.InterruptedPolicy][]string{
		soloist.Rerun:   {"succeeded 01:00:00", "succeeded 02:00:00"},
		soloist.Abandon: {"abandoned 01:00:00 its runner died", "succeeded 02:00:00"},
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 10*time.Second)
			job.Interrupted = interrupted
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Second)
			a.kill()
			if interrupted == soloist.Abandon {
				time.Sleep(time.Hour) // the next claim settles the tick as well
			}
			c.stopDuringAClaim(job)
			time.Sleep(30 * time.Second)
			if interrupted == soloist.Rerun {
				if r := c.record("work"); r.Status != store.Abandoned || r.Attempt != 1 || r.Replica != "a" {
					t.Errorf("after it went back: %+v", r)
				}
			}
			c.start("b", job)
			time.Sleep(time.Hour + time.Minute)
			if got := c.outcomes("work"); len(got) < 2 || !slices.Equal(got[:2], want) {
				t.Errorf("%s: got %q, want %q", interrupted, got, want)
			}
			runs := c.all()[1:]
			if interrupted == soloist.Rerun && (runs[0].replica != "b" || runs[0].Attempt != 2) {
				t.Errorf("%s: got %+v", interrupted, runs)
			}
		})
	}
}

// A singleton's claim goes back, too.
func TestASingletonsClaimIsTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.stopDuringAClaim(leader())
		time.Sleep(time.Minute)
		if r := c.record("lead"); r.Status != store.Idle {
			t.Errorf("got %+v", r)
		}
		c.start("b", leader())
		time.Sleep(5 * time.Second)
		if runs := c.all(); len(runs) != 1 || runs[0].replica != "b" {
			t.Errorf("got %+v", runs)
		}
	})
}

// A run by hand that goes back is unknown: it can be asked for again.
func TestARunByHandIsTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancelCause(c.t.Context())
		why := errors.New("enough")
		a.tap.meet(onClaim(func() { cancel(why) }))
		if outcome, err := a.RunNow(ctx, "work", "please"); !errors.Is(err, why) {
			t.Errorf("got %+v, %v", outcome, err)
		}
		if outcome, err := a.RunNow(c.t.Context(), "work", "please"); err != nil || outcome.Status != store.Succeeded {
			t.Errorf("asked again: %+v, %v", outcome, err)
		}
		if n := len(c.all()); n != 1 {
			t.Errorf("%d runs", n)
		}
	})
}

// While it is unknown whether a claim was taken back, its lease is not released.
func TestATakeBackOfUnknownOutcomeKeepsTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		writes, claims := 0, make(chan struct{})
		a.tap.meet(func(op string, apply func() error) error {
			if op != "write" {
				return apply()
			}
			if writes++; writes == 1 {
				close(claims)
				time.Sleep(100 * time.Millisecond)
				return apply()
			}
			return errNetwork
		})
		c.launch(a)
		go func() { <-claims; a.stop() }()
		time.Sleep(time.Hour + time.Minute)
		if n := a.tap.counts(); n["write"] < 2 || n["release"] != 0 {
			t.Errorf("calls: %v", n)
		}
		if len(c.all()) != 0 {
			t.Errorf("it ran")
		}
	})
}
