package soloist_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A run that is cancelled before its tick, while it is armed, does not begin.
func TestCancelWhileArmed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := ahead(true, work("0 * * * * *", 100*time.Millisecond))
		// A job that does not look at its context.
		job.Do = func(context.Context, *soloist.Run) error { return nil }
		a := c.replica("a", job)
		var started atomic.Int64
		a.Events = func(e event.Event) {
			if e.Kind == event.Started {
				started.Add(1)
			}
		}
		c.launch(a)
		until(2*time.Minute + 59*time.Second)
		if r := c.record("work"); !r.Run.Armed {
			t.Fatalf("not armed: %+v", r.Run)
		}
		before, startedBefore := len(c.all()), started.Load()
		if _, err := a.Order(context.Background(), soloist.Order{Kind: store.OrderCancel, Job: "work"}); err != nil {
			t.Fatal(err)
		}
		until(3*time.Minute + 10*time.Second)
		if got := len(c.all()) - before; got != 0 || started.Load() != startedBefore {
			t.Errorf("Do was called %d times for a tick that was cancelled a second before it was due, and %d starts were told", got, started.Load()-startedBefore)
		}
	})
}

// A lease that was to be acquired before its tick, and was not until after it, is none that others
// count on: a stop while the claim is written keeps the run from beginning.
func TestStopAfterLateAcquisition(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * * *", 5*time.Second))
		a.Grace = 20 * time.Second
		c.launch(a)
		until(2*time.Minute + 30*time.Second)
		var late, stopped atomic.Bool
		a.tap.meet(func(what string, apply func() error) error {
			err := apply()
			switch {
			case what == "acquire" && late.CompareAndSwap(false, true):
				time.Sleep(2400 * time.Millisecond)
			case what == "write" && stopped.CompareAndSwap(false, true):
				go a.stop()
				time.Sleep(100 * time.Millisecond)
			}
			return err
		})
		until(3*time.Minute + 30*time.Second)
		if runs := len(c.all()); !late.Load() || !stopped.Load() || runs != 2 {
			t.Errorf("%d runs, want the two of the minutes before; acquired late: %t, stopped: %t", runs, late.Load(), stopped.Load())
		}
	})
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
		if want := []event.Kind{event.Claimed, event.Started, event.NotStarted, event.Ended}; called || !slices.Equal(kinds, want) {
			t.Errorf("Do was called: %t; events %s, want %s", called, kinds, want)
		}
		c.wantOutcomes("work", "cancelled 00:01:00 by a")
	})
}

// I20: no attempt starts after its starting deadline. The machine sleeps while the claim is armed.
func TestStartingDeadlineWhileArmed(t *testing.T) {
	for _, claims := range []bool{false, true} {
		inCase(t, fmt.Sprint(claims), func(t *testing.T, c *cluster) {
			m := &suspended{}
			now := func() time.Time { return time.Now().Add(time.Duration(m.slept.Load())) }
			c.store.Now = now
			job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
			job.StartingDeadline = 1 * time.Second
			r := c.replica("a", job).on(m)
			r.Now = now
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
}

// A stop a second before a tick of a job that takes longer than the grace: another replica is up.
func TestStopBeforeLongTick(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		job := ahead(claims, work("0 * * * * *", 20*time.Second))
		all := c.graceful(1100*time.Millisecond, job, "a", "b", "c")
		until(2*time.Minute + 59*time.Second)
		runs := c.all()
		go all[runs[len(runs)-1].replica].stop()
		until(3*time.Minute + 50*time.Second)
		for _, o := range c.record("work").History {
			if o.Status != store.Succeeded {
				t.Errorf("%s", outcomeText(o))
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

// An ordered run must not begin after a stop that came while its claim was written.
func TestOrderedRunAfterStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * * *", 5*time.Second)
		var stopped time.Time
		a := c.replica("a", job)
		a.Grace = 20 * time.Second
		c.launch(a)
		until(2*time.Minute + 58*time.Second + 800*time.Millisecond)
		a.tap.meet(func(what string, apply func() error) error {
			if stopped.IsZero() && what == "write" {
				stopped = time.Now()
				go a.stop()
				time.Sleep(100 * time.Millisecond)
			}
			return apply()
		})
		if _, err := a.Order(context.Background(), soloist.Order{Kind: store.OrderRun, Job: "work"}); err != nil {
			t.Fatal(err)
		}
		until(4 * time.Minute)
		<-a.done
		for _, r := range c.all() {
			if r.start.After(stopped) && r.Tick.Before(stopped.Add(time.Second)) {
				t.Errorf("%s begins %s after the stop", r.ID(), r.start.Sub(stopped))
			}
		}
	})
}

// A younger definition comes into force soon, although the lease is kept and each run takes most of
// its period.
func TestYoungerDefinitionOfKeptLease(t *testing.T) {
	for _, d := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond} {
		inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
			c.startAll(ahead(claims, work("@every 1s", d)), "a", "b")
			until(time.Minute + 300*time.Millisecond)
			begin := time.Now()
			c.start("young", ahead(claims, work("@every 2s", d)))
			for len(ranBy(c, "young", begin)) == 0 && time.Since(begin) < 20*time.Minute {
				time.Sleep(100 * time.Millisecond)
			}
			waited := time.Since(begin)
			if waited > 2*time.Minute {
				t.Errorf("runs of %s: the younger definition waits %s", d, waited)
			}
		})
	}
}

// An order to run by hand after a stop does not keep the holder from the tick that the others expect
// it to run.
func TestOrderAfterStop(t *testing.T) {
	inBothModes(t, func(t *testing.T, c *cluster, claims bool) {
		job := ahead(claims, work("0 * * * * *", 10*time.Millisecond))
		all := c.graceful(10*time.Second, job, "a", "b", "c")
		until(2*time.Minute + 59*time.Second)
		runs := c.all()
		holder := all[runs[len(runs)-1].replica]
		go holder.stop()
		time.Sleep(300 * time.Millisecond)
		if _, err := holder.Order(context.Background(), soloist.Order{Kind: store.OrderRun, Job: "work"}); err != nil {
			t.Fatal(err)
		}
		until(3*time.Minute + 30*time.Second)
		for _, r := range c.all() {
			if r.Request == "" && r.start.Sub(r.Tick) > 0 {
				t.Errorf("%s begins %s late", r.ID(), r.start.Sub(r.Tick))
			}
		}
	})
}
