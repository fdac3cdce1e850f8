package soloist_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A replica that cannot read the orders starts nothing: one of them may be a pause.
func TestUnreadableOrdersStopAll(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		a.tap.meet(fail(errNetwork, "read document"))
		time.Sleep(3 * time.Minute)
		c.wantRuns(1)
		if a.Health().Storage == nil {
			t.Error("Health is silent")
		}
		a.tap.meet(nil)
		time.Sleep(2 * time.Minute)
		if n := len(c.all()); n < 3 {
			t.Errorf("%d runs", n)
		}
	})
}

// Orders that cannot be read for some seconds before a tick cost neither the tick nor its claim,
// if they can again half a second before it, whenever they are read otherwise.
func TestOrdersAreReadAgainBeforeTick(t *testing.T) {
	for after := time.Duration(0); after < 5*time.Second; after += 250 * time.Millisecond {
		inCase(t, after.String(), func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			w.ClaimAhead = true
			time.Sleep(after)
			a := c.start("a", w)
			tick := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
			time.Sleep(time.Until(tick) - 9*time.Second)
			a.tap.meet(fail(errNetwork, "read document"))
			time.Sleep(8400 * time.Millisecond)
			a.tap.meet(nil)
			time.Sleep(time.Until(tick) + 10*time.Second)
			all := c.all()
			if last := all[len(all)-1]; len(all) != 2 || !last.Tick.Equal(tick) || last.Token != all[0].Token+1 {
				t.Errorf("got %+v, want the tick %s, and no claim that was given up", all, tick)
			}
		})
	}
}

// A wake-up for a job of EveryReplica reads the orders first. If that takes long, the tick is
// run all the same: one that was due when the call began, or has come due since.
func TestSlowOrdersCostNoTick(t *testing.T) {
	for _, at := range []time.Duration{59 * time.Second, 60 * time.Second, 119 * time.Second} {
		inCase(t, at.String(), func(t *testing.T, c *cluster) {
			w := here("@every 1m", nil)
			time.Sleep(at)
			tick := time.Now().Round(time.Minute)
			if at == 119*time.Second {
				tick = time.Now().Truncate(time.Minute)
			}
			a := c.replica("a", w).meets(slow(2*time.Second, "read document"))
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick}); err != nil {
				t.Error(err)
			}
			if all := c.all(); len(all) != 1 || !all[0].Tick.Equal(tick) {
				t.Errorf("got %+v, want tick %s", all, tick)
			}
		})
	}
}

// hangDocs lets each read of the document take the whole time of its call, and fail.
func hangDocs() fault {
	return func(op string, apply func() error) error {
		if op == "read document" {
			time.Sleep(3 * time.Second)
			return errNetwork
		}
		return apply()
	}
}

func manyJobs(n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, named(fmt.Sprintf("job%d", i), work("@every 1h", time.Second)))
	}
	return all
}

// Loops do not wait for each other's failed reads of the orders, so none counts as stuck.
func TestOutageOfOrdersSticksNoJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", manyJobs(80)...)
		c.launch(a)
		time.Sleep(time.Minute)
		a.tap.meet(hangDocs())
		worst := 0
		for range 600 {
			time.Sleep(time.Second)
			worst = max(worst, len(a.Health().Stuck))
		}
		if worst > 0 {
			t.Errorf("%d loops are stuck by Health", worst)
		}
	})
}

// Calls in an outage of the document that fails at once.
func TestOutageOfOrdersIsCheap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", manyJobs(100)...)
		c.launch(a)
		time.Sleep(time.Minute)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "read document" {
				time.Sleep(20 * time.Millisecond)
				return errNetwork
			}
			return apply()
		})
		a.tap.countsAndOrders()
		time.Sleep(time.Minute)
		_, n := a.tap.countsAndOrders()
		if n > 70 {
			t.Errorf("%d reads of the document in a minute", n)
		}
	})
}

// A call of RunDue: the jobs of EveryReplica, which need no store, wait for the failed reads of the others.
func TestOutageOfOrdersKeepsEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := manyJobs(40)
		for i := range 3 {
			all = append(all, named(fmt.Sprintf("here%d", i), here("@every 1h", nil)))
		}
		until(30 * time.Minute)
		a := c.replica("a", all...)
		a.wake()
		until(time.Hour)
		a.tap.meet(hangDocs())
		begin := time.Now()
		_, _ = a.RunDue(c.within(time.Minute), soloist.Wake{})
		t.Log("the call took", time.Since(begin))
		for _, r := range c.all() {
			t.Log(r.Job, "started after", r.start.Sub(begin))
			if r.start.Sub(begin) > 5*time.Second {
				t.Error("late")
			}
		}
		c.wantRuns(3)
	})
}

// A call of a woken replica reads the orders once more if the first read fails.
func TestFailedReadOfOrdersIsRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		a := c.replica("a", w)
		a.wake()
		until(time.Hour)
		a.tap.meet(drop("read document", 1))
		r, err := a.RunDue(c.within(10*time.Minute), soloist.Wake{})
		t.Log(r, err)
		c.wantRuns(1)
	})
}
