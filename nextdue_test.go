package soloist_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// wanted checks when a new replica of some work says that one is wanted next: a time of day, "now" or "never".
func (c *cluster) wanted(want string, w ...soloist.Work) {
	c.t.Helper()
	c.replica("asks", w...).wanted(want)
}

func (r *replica) wanted(want string) {
	r.tap.t.Helper()
	at, err := r.NextDue(r.tap.t.Context())
	if err != nil {
		r.tap.t.Errorf("NextDue: %v", err)
	}
	got := at.UTC().Format(time.TimeOnly)
	switch {
	case at.IsZero():
		got = "never"
	case !at.After(time.Now()):
		got = "now"
	}
	if got != want {
		r.tap.t.Errorf("at %s a replica is wanted at %s, want %s", time.Now().Format(time.TimeOnly), got, want)
	}
}

func TestReplicaIsWantedAtNextTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		hourly, daily := work("@hourly", time.Second), named("daily", work("0 30 0 * * *", 0))
		c.wanted("00:30:00", hourly, daily)
		a := c.replica("a", hourly, daily)
		a.wake()
		until(10 * time.Minute)
		a.tap.counts()
		a.wanted("00:30:00")
		calls, orders := a.tap.countsAndOrders()
		if orders != 1 || len(calls) > 1 || calls["read"] != 2 {
			t.Errorf("it made the calls %v and %d reads of orders, want 2 and 1 reads", calls, orders)
		}
		until(30 * time.Minute)
		a.wanted("now")
		a.wake()
		a.wanted("01:00:00")
	})
}

// Where the holder beats, a replica is wanted once it can replace one that has died: a pass at that time has seen the last
// beat for long enough.
func TestReplicaIsWantedAtEndOfShortLease(t *testing.T) {
	for _, length := range []time.Duration{3 * time.Second, 5 * time.Second, 8 * time.Second} {
		inCase(t, length.String(), func(t *testing.T, c *cluster) {
			job := leased(length, rerun(work("@every 1h", 10*time.Minute)))
			a := c.coarsely(job, "a")["a"]
			until(time.Hour + time.Minute)
			b := c.replica("b", job)
			b.tap.Store = coarse{c.store}
			b.meets(halves(10 * time.Millisecond))
			a.kill()
			b.wake()
			at, err := b.NextDue(t.Context())
			if err != nil || time.Until(at) > length*11/10 {
				t.Errorf("wanted in %s, %v", time.Until(at), err)
			}
			time.Sleep(time.Until(at))
			b.wake()
			if runs := c.all(); len(runs) != 2 {
				t.Errorf("%d runs, want 2", len(runs))
			}
		})
	}
}

func TestReplicaIsWantedForOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.replica("a", w)
		a.wake()
		until(5*time.Minute + time.Second)
		a.wake()
		a.wanted("00:06:00")
		from := time.Now().Truncate(time.Minute).Add(-3 * time.Minute)
		c.fills(soloist.Backfill{From: from, To: from.Add(time.Minute), All: true}, w)
		a.wanted("now")
		a.wake()
		a.wanted("00:06:00")
		c.order(soloist.Order{Kind: store.OrderRun}, w)
		a.wanted("now")
		a.wake()
		a.wanted("00:06:00")
		if n := len(c.all()); n != 4 {
			t.Errorf("%d runs, want a tick, two of a backfill and one by hand", n)
		}
	})
}

func TestPausedJobWantsNoReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		off := named("off", w)
		off.Paused = true
		a := c.replica("a", w, off)
		a.wake()
		until(time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		until(25 * time.Minute)
		for range 2 {
			a.wanted("never")
			a.wake()
		}
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(20 * time.Minute)}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Job: "off"}, off)
		a.wanted("now")
		a.wake()
		a.wanted("00:45:00")
		until(45*time.Minute + time.Second)
		a.wanted("now") // the ticks of the pause are to be recorded
		a.wake()
		a.wanted("00:50:00")
		c.wantOutcomes("work", "skipped 00:00:00-00:40:00 paused")
	})
}

func TestJobThatIsOverWantsNoReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		w.Until = time.Now().Add(15 * time.Minute)
		a := c.replica("a", w, here("@every 1m", nil), leader())
		a.wanted("00:10:00")
		a.wake()
		until(10 * time.Minute)
		a.wanted("now")
		a.wake()
		a.wanted("never")
	})
}

func TestFollowerWantsReplicaOnceItIsDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		before, report := importing("@hourly", time.Minute), following("report", "import", time.Second)
		a := c.replica("a", before, report)
		a.wake()
		a.wanted("01:00:00")
		until(time.Hour)
		c.replica("half", before).wake() // a replica that dies before it gets to the follower
		a.wanted("now")
		a.wake()
		a.wanted("02:00:00")
		until(2 * time.Hour)
		half := c.start("holds", before)
		until(2*time.Hour + 30*time.Second)
		c.wanted("02:00:45", before, report) // by the job that is running alone
		half.stop()
		c.wantOutcomes("report", "succeeded 01:00:00")
	})
}

// The entry of a job that cannot be read may be read in a minute, and has its next tick when its schedule says. The record
// that cannot be used waits for a person.
func TestReplicaIsWantedAfterTrouble(t *testing.T) {
	for name, tt := range map[string]struct {
		trouble  func(r *replica, c *cluster)
		schedule string
		want     string
	}{
		"entry":       {func(r *replica, _ *cluster) { r.tap.deny = "soloist/work" }, "0 30 0 * * *", "00:02:00"},
		"before that": {func(r *replica, _ *cluster) { r.tap.deny = "soloist/work" }, "30 1 0 * * *", "00:01:30"},
		"no answer":   {func(r *replica, _ *cluster) { r.kill() }, "0 30 0 * * *", "00:02:"},
		"orders":      {func(r *replica, _ *cluster) { r.meets(fail(errNetwork, "read document")) }, "0 30 0 * * *", "00:02:01"}, // after a second try
		"garbage":     {func(_ *replica, c *cluster) { c.createEntry("garbage") }, "0 30 0 * * *", "00:30:00"},
		"newer":       {func(_ *replica, c *cluster) { c.createEntry(`{"schema":99}`) }, "0 30 0 * * *", "00:30:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", work(tt.schedule, 0))
			tt.trouble(r, c)
			until(time.Minute)
			at, err := r.NextDue(c.within(30 * time.Second))
			if got := at.Format(time.TimeOnly); err != nil || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// What was read of the orders a moment ago says nothing of an order that has come since: if they cannot be read now, a
// replica is wanted in a minute, although a run could still begin by what is known.
func TestReplicaIsWantedWhileOrdersCannotBeRead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 0)
		a := c.start("a", w)
		until(30 * time.Minute)
		a.wanted("01:00:00") // which reads the orders
		a.meets(fail(errNetwork, "read document"))
		time.Sleep(300 * time.Millisecond)
		c.order(soloist.Order{Kind: store.OrderRun}, w)
		at, err := a.NextDue(c.t.Context())
		if wait := time.Until(at); err != nil || wait <= 0 || wait > time.Minute {
			t.Errorf("a replica is wanted in %s, %v, though an order waits", wait, err)
		}
	})
}

func TestNextDueRefusesWhatIsWrong(t *testing.T) {
	if at, err := (&soloist.Scheduler{}).NextDue(t.Context()); err == nil || !at.IsZero() {
		t.Errorf("got %s, %v", at, err)
	}
}

// toFill returns how many ticks of a backfill have no outcome yet.
func (c *cluster) toFill(job string) int64 {
	c.t.Helper()
	r := c.record(job)
	return 10 - r.Backfill.Done()
}

// wakeWhileWanted wakes replicas up for a short time each, as long as NextDue says now. It returns the time that it said
// then.
func (c *cluster) wakeWhileWanted(jobs ...soloist.Work) time.Time {
	c.t.Helper()
	for range 40 {
		r := c.replica("woken", jobs...)
		at, err := r.NextDue(c.t.Context())
		if err != nil || at.After(time.Now()) {
			return at
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), 50*time.Second)
		r.RunDue(ctx, soloist.Wake{}) // that its time is over is an error
		cancel()
	}
	c.t.Error("a replica is wanted at once, again and again")
	return time.Time{}
}

// A replica is wanted at once as long as a backfill of any job has a tick without an outcome, also between two calls that
// had too little time for all of them. A backfill waits for the end of a pause, and that of another job does not.
func TestReplicaIsWantedUntilBackfillsAreOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := []soloist.Work{rerun(work("@hourly", 10*time.Second)), rerun(named("other", work("@daily", 10*time.Second)))}
		c.replica("first", jobs...).wake()
		until(5 * time.Minute)
		c.wanted("01:00:00", jobs...)
		today := time.Now().Truncate(24 * time.Hour)
		c.fills(soloist.Backfill{From: today.Add(-10 * time.Hour), To: today.Add(-time.Hour), All: true}, jobs...)
		c.order(soloist.Order{Kind: store.OrderBackfill, Job: "other",
			Backfill: soloist.Backfill{From: today.AddDate(0, 0, -10), To: today.AddDate(0, 0, -1), All: true, Parallel: 4}}, jobs...)
		_, _ = c.replica("some", jobs...).RunDue(c.within(30*time.Second), soloist.Wake{})
		ends := time.Now().Add(20 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "other", Until: ends}, jobs...)
		if at := c.wakeWhileWanted(jobs...); !at.Equal(ends) || c.toFill("work") != 0 || c.toFill("other") == 0 {
			t.Errorf("a replica is wanted at %s, with %d ticks left of the job that is not paused, and %d of the other", at, c.toFill("work"), c.toFill("other"))
		}
		time.Sleep(time.Until(ends))
		if at := c.wakeWhileWanted(jobs...); at.Sub(today) != time.Hour {
			t.Errorf("in the end a replica is wanted at %s", at)
		}
		for _, job := range []string{"work", "other"} {
			if got := c.record(job).Backfill.Counts[store.Succeeded]; got != 10 {
				t.Errorf("%d ticks of %s have succeeded", got, job)
			}
		}
	})
}
