package soloist_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
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

// While a replica runs a job, another one is wanted when the lease would end if that replica died now, and at once when it
// has. So it is on the replica that runs the job itself.
func TestReplicaIsWantedToTakeOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 10*time.Minute)
		a := c.start("a", w)
		until(time.Hour + time.Minute)
		c.wanted("01:01:15", w)
		a.wanted("01:01:15")
		a.kill()
		a.stop()
		time.Sleep(D + 2*time.Second)
		c.wanted("now", w)
		c.replica("b", w).wake()
		c.wanted("02:00:00", w)
		c.wantOutcomes("work", "abandoned 01:00:00 its runner died")
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

// The lease of a replica that died may be over at the next tick, although one that looks now cannot know that.
func TestReplicaIsWantedAtTickUnderLeaseOfDeadReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 20s", 10*time.Second)
		a := c.start("a", w)
		until(time.Minute + 500*time.Millisecond)
		a.kill()
		a.stop()
		until(time.Minute + 10*time.Second)
		c.wanted("00:01:20", w)
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(7 * time.Second)}, w)
		c.wanted("00:01:20", w) // the pause is over by then, and so may be the lease
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(12 * time.Second)}, w)
		c.wanted("00:01:25", w) // the tick of 00:01:20 is one of the pause
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		c.wanted("00:01:25", w)
	})
}

func TestReplicaIsWantedForOpenAttempt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := rerun(work("@hourly", 10*time.Minute))
		a := c.start("a", w)
		until(time.Hour + time.Minute)
		a.stop()
		c.wanted("now", w)
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(20 * time.Minute)}, w)
		c.wanted("01:21:00", w)
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		c.wanted("never", w)
	})
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
		a.wanted("never")
		until(25 * time.Minute)
		a.wanted("never")
		a.wake()
		a.wanted("never")
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(20 * time.Minute)}, w)
		a.wanted("00:45:00")
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

// A tick from before a pause, which no replica has run, is run after it.
func TestReplicaIsWantedAfterPause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		w.Missed = soloist.RunAll
		c.replica("a", w).wake()
		until(time.Hour + time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause, Until: time.Now().Add(5 * time.Minute)}, w)
		c.wanted("01:06:00", w)
		until(time.Hour + 6*time.Minute)
		c.wanted("now", w)
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

// The entry of a job that cannot be read may be read in a minute; the record that cannot be used waits for a person.
func TestReplicaIsWantedAfterTrouble(t *testing.T) {
	for name, tt := range map[string]struct {
		trouble func(r *replica, c *cluster)
		want    string
	}{
		"entry":     {func(r *replica, _ *cluster) { r.tap.deny = "soloist/work" }, "00:02:00"},
		"no answer": {func(r *replica, _ *cluster) { r.kill() }, "00:02:"},
		"orders": {func(r *replica, _ *cluster) {
			r.tap.meet(func(op string, apply func() error) error {
				if op == "read document" {
					return errors.New("503")
				}
				return apply()
			})
		}, "00:02:01"}, // after a second try
		"garbage": {func(_ *replica, c *cluster) { c.createEntry("garbage") }, "00:30:00"},
		"newer":   {func(_ *replica, c *cluster) { c.createEntry(`{"schema":99}`) }, "00:30:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", work("0 30 0 * * *", 0))
			tt.trouble(r, c)
			until(time.Minute)
			at, err := r.NextDue(c.within(30 * time.Second))
			if got := at.Format(time.TimeOnly); err != nil || len(got) < len(tt.want) || got[:len(tt.want)] != tt.want {
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
		a.tap.meet(func(op string, apply func() error) error {
			if op == "read document" {
				return errors.New("503")
			}
			return apply()
		})
		time.Sleep(300 * time.Millisecond)
		c.order(soloist.Order{Kind: store.OrderRun}, w)
		at, err := a.NextDue(c.t.Context())
		if wait := time.Until(at); err != nil || wait <= 0 || wait > time.Minute {
			t.Errorf("a replica is wanted in %s, %v, though an order waits", wait, err)
		}
	})
}

// An entry that cannot be read has its next tick when its schedule says, also if that is before the time at which it may be read.
func TestReplicaIsWantedAtTickOfUnreadEntry(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@hourly", time.Second))
		r.wake()
		r.tap.deny = "soloist/work"
		until(59*time.Minute + 40*time.Second)
		r.wanted("01:00:00")
	})
}

// A client that holds the lease of a tick that is due may be about to claim, or may have died.
func TestReplicaIsWantedWhenLeaseEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		c.replica("a", w).wake()
		entry, _ := c.store.Read(t.Context(), "soloist/work")
		until(59*time.Minute + 30*time.Second)
		if _, err := c.store.Lease("soloist/work", "10000000-0000-4000-8000-000000000000").Acquire(t.Context(), 60*time.Second, entry.ETag); err != nil {
			t.Fatal(err)
		}
		c.wanted("01:00:00", w)
		until(time.Hour + 5*time.Second)
		c.wanted("01:00:20", w)
		until(time.Hour + 31*time.Second)
		c.wanted("now", w)
	})
}

// A tick that has not succeeded is told when its time is over.
func TestReplicaIsWantedToTellLateTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := doing("@hourly", func(context.Context, *soloist.Run) error { return errors.New("boom") })
		w.FinishBy = 20 * time.Minute
		told := 0
		a := c.replica("a", w)
		a.Events = func(e event.Event) {
			if e.Kind == event.Late {
				told++
			}
		}
		a.wake()
		a.wanted("01:00:00")
		until(time.Hour)
		a.wake()
		a.wanted("01:20:00")
		until(time.Hour + 20*time.Minute + time.Second)
		a.wanted("now")
		a.wake()
		a.wanted("02:00:00")
		if told != 1 {
			t.Errorf("told %d times", told)
		}
	})
}

// A replica whose definition is not in force comes at the tick of the one that is, and does not spin.
func TestReplicaOfOldDefinitionIsWanted(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.replica("old", work("@hourly", time.Second))
		old.wake()
		until(10 * time.Minute)
		fresh := c.replica("new", work("@every 20m", time.Second))
		fresh.wanted("now")
		fresh.wake()
		fresh.wanted("00:20:00")
		old.wanted("00:20:00")
		until(21 * time.Minute)
		old.wanted("00:21:30")
		fresh.wanted("now")
	})
}

func TestNextDueRefusesWhatIsWrong(t *testing.T) {
	if at, err := (&soloist.Scheduler{}).NextDue(t.Context()); err == nil || !at.IsZero() {
		t.Errorf("got %s, %v", at, err)
	}
}

// A claim that was written ahead of its tick, and whose lease has ended before it, is settled at the tick.
func TestReplicaIsWantedForClaimAhead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		w.ClaimAhead = true
		c.replica("first", w).wake()
		until(5 * time.Second) // an entry that is new claims nothing ahead
		a := c.start("a", w)
		until(2*time.Hour - 500*time.Millisecond)
		a.kill()
		c.breakLease()
		if !c.record("work").Run.Armed {
			t.Fatal("nothing was claimed ahead")
		}
		c.wanted("02:00:00", w)
		until(2 * time.Hour)
		c.wanted("now", w)
		a.stop()
	})
}

// A replica of an older definition looks for those of the one in force, less and less often. While the job is paused it does not.
func TestNextDueUnderAnotherDefinition(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.replica("old", work("@hourly", time.Second))
		old.wake()
		until(10 * time.Minute)
		c.replica("new", work("@every 20m", time.Second)).wake()
		old.wanted("00:20:00")
		until(20*time.Minute + 10*time.Second)
		old.wanted("00:20:40")
		until(30 * time.Minute)
		old.wanted("00:35:00")
		until(59 * time.Minute)
		old.wanted("01:00:00") // its own tick
		c.order(soloist.Order{Kind: store.OrderPause}, work("@every 20m", time.Second))
		old.wanted("never")
	})
}

// filledJobs are two jobs whose ticks are run again: of "work" one at a time, of "other" four at a time.
func filledJobs(interrupted soloist.InterruptedPolicy, d time.Duration) []soloist.Work {
	w, other := work("@hourly", d), named("other", work("@daily", d))
	w.Interrupted, other.Interrupted = interrupted, interrupted
	return []soloist.Work{w, other}
}

// fillBoth orders ten ticks of each.
func (c *cluster) fillBoth(jobs []soloist.Work) {
	c.t.Helper()
	hour, today := time.Now().Truncate(time.Hour), time.Now().Truncate(24*time.Hour)
	c.fills(soloist.Backfill{From: hour.Add(-10 * time.Hour), To: hour.Add(-time.Hour), All: true}, jobs...)
	c.order(soloist.Order{Kind: store.OrderBackfill, Job: "other",
		Backfill: soloist.Backfill{From: today.AddDate(0, 0, -10), To: today.AddDate(0, 0, -1), All: true, Parallel: 4}}, jobs...)
}

// toFill returns how many ticks of both backfills have no outcome yet.
func (c *cluster) toFill() int64 { return c.toFillOf("work") + c.toFillOf("other") }

func (c *cluster) toFillOf(job string) int64 {
	c.t.Helper()
	r := c.record(job)
	return 10 - r.Backfill.Done()
}

// wakeUntilFilled wakes replicas up for a short time each, as long as NextDue says now. It has to say so as long as a tick
// is left, and no longer. It returns how often it did.
func (c *cluster) wakeUntilFilled(then string, jobs ...soloist.Work) (wakes int) {
	c.t.Helper()
	for ; wakes < 40; wakes++ {
		r := c.replica("woken", jobs...)
		at, err := r.NextDue(c.t.Context())
		if now, left := time.Now(), c.toFill(); err != nil || at.After(now) == (left > 0) {
			c.t.Fatalf("%d ticks are left at %s, and a replica is wanted at %s, %v", left, now.Format(time.TimeOnly), at.Format(time.TimeOnly), err)
		}
		if at.After(time.Now()) {
			r.wanted(then)
			break
		}
		r.wakeFor(50 * time.Second)
	}
	return wakes
}

// wakeFor has a replica run what is due, for so long.
func (r *replica) wakeFor(d time.Duration) {
	ctx, cancel := context.WithTimeout(r.tap.t.Context(), d)
	defer cancel()
	r.RunDue(ctx, soloist.Wake{}) // that its time is over is an error
}

// A replica is wanted at once as long as a backfill of any job has a tick without an outcome, also between two calls that
// had too little time for all of them.
func TestReplicaIsWantedUntilBackfillsAreOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Abandon, 10*time.Second)
		c.replica("first", jobs...).wake()
		until(5 * time.Minute)
		c.wanted("01:00:00", jobs...)
		c.fillBoth(jobs)
		if n := c.wakeUntilFilled("01:00:00", jobs...); n < 3 {
			t.Errorf("%d calls did it all", n)
		}
		for _, job := range []string{"work", "other"} {
			if got := c.record(job).Backfill.Counts[store.Succeeded]; got != 10 {
				t.Errorf("%d ticks of %s have succeeded", got, job)
			}
		}
	})
}

// The only replica dies in the runs of two backfills. Another one is wanted when the leases end, and until both are over.
func TestReplicaIsWantedToTakeBackfillsOver(t *testing.T) {
	for _, interrupted := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCase(t, string(interrupted), func(t *testing.T, c *cluster) {
			jobs := filledJobs(interrupted, 20*time.Second)
			a := c.start("a", jobs...)
			until(5 * time.Minute)
			c.fillBoth(jobs)
			for len(c.filled()) < 6 { // the second claim of one
				time.Sleep(time.Second)
			}
			a.wanted(time.Now().Add(D).Format(time.TimeOnly))
			a.kill()
			a.stop()
			dead := time.Now()
			for c.toFill() > 0 {
				at, err := c.replica("asks", jobs...).NextDue(c.t.Context())
				if err != nil || at.After(dead.Add(2*D)) && at.After(time.Now()) {
					t.Fatalf("at %s a replica is wanted at %s, %v", time.Now(), at, err)
				}
				if !at.After(time.Now()) {
					break
				}
				time.Sleep(time.Second)
			}
			if time.Since(dead) > D+2*time.Second {
				t.Errorf("a replica is wanted %s after the death", time.Since(dead))
			}
			c.wakeUntilFilled("01:00:00", jobs...)
		})
	}
}

// A backfill waits for the end of a pause, and that of another job does not.
func TestReplicaIsWantedForBackfillsBesidePause(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Rerun, 10*time.Second)
		c.replica("first", jobs...).wake()
		until(5 * time.Minute)
		c.fillBoth(jobs)
		c.replica("some", jobs...).wakeFor(30 * time.Second)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "other", Until: time.Now().Add(20 * time.Minute)}, jobs...)
		for range 20 {
			r := c.replica("woken", jobs...)
			if at, _ := r.NextDue(c.t.Context()); at.After(time.Now()) {
				break
			}
			r.wakeFor(50 * time.Second)
		}
		if left := c.toFillOf("work"); left != 0 || c.toFill() == 0 {
			t.Errorf("%d ticks of the job that is not paused are left, and %d of both", left, c.toFill())
		}
		doc, _ := c.replica("desk", jobs...).Control(c.t.Context())
		ends := doc.Jobs["other"].Pause.Until
		c.wanted(ends.UTC().Format(time.TimeOnly), jobs...)
		time.Sleep(time.Until(ends))
		c.wakeUntilFilled("01:00:00", jobs...)
	})
}

// Backfills are cancelled between two attempts: a replica is wanted to write that, and then no more.
func TestCancelledBackfillWantsReplicaOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		jobs := filledJobs(soloist.Rerun, 20*time.Second)
		a := c.start("a", jobs...)
		until(5 * time.Minute)
		c.fillBoth(jobs)
		for len(c.filled()) < 6 {
			time.Sleep(time.Second)
		}
		a.stop()
		for _, job := range []string{"work", "other"} {
			c.order(soloist.Order{Kind: store.OrderCancelBackfill, Job: job}, jobs...)
		}
		c.wanted("now", jobs...)
		if _, err := c.replica("b", jobs...).RunDue(context.Background(), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		c.wanted("01:00:00", jobs...)
		if n := len(c.record("other").Backfill.Open); n > 0 {
			t.Errorf("%d ticks are open", n)
		}
	})
}
