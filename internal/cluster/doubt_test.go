package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// awayFrom applies the first call of an operation, and answers nothing for d from then on.
func awayFrom(first string, d time.Duration) fault {
	var mu sync.Mutex
	var until time.Time
	return func(op string, apply func() error) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case op == first && until.IsZero():
			until = time.Now().Add(d)
			_ = apply()
		case until.IsZero() || time.Now().After(until):
			return apply()
		}
		return errNetwork
	}
}

// A claim that got no answer, and was not begun when its caller was stopped, is taken back: nothing has failed.
func TestOnceStoppedWithClaimInDoubt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a").meets(awayFrom("write", time.Second))
		ctx, cancel := context.WithCancel(c.t.Context())
		time.AfterFunc(2200*time.Millisecond, cancel)
		o := c.migration(a, "v1", nil)
		o.Retry = soloist.Retry{MaxTries: 1}
		wantError(t, o.Run(ctx), context.Canceled.Error())
		time.Sleep(5 * time.Second)
		c.ok(o.Run(c.t.Context()))
		c.wantRuns(1)
	})
}

// The machine sleeps between claim and begin, and has no network for a while after that.
func TestOnceSuspendedBeforeBegin(t *testing.T) {
	for _, d := range []time.Duration{2 * time.Second, 10 * time.Second} {
		inCase(t, fmt.Sprint(d), func(t *testing.T, c *cluster) {
			a := c.replica("a")
			var machine suspended
			a.on(&machine).meets(after("write", sync.OnceFunc(func() {
				machine.slept.Store(int64(2 * D))
				a.meets(fail(errNetwork))
				time.AfterFunc(d, func() { a.meets(nil) })
			})))
			c.migrated("v1", soloist.Retry{MaxTries: 1}, nil, a)
			c.wantRuns(1)
		})
	}
}

// A slot whose claim got no answer is free again, and the tick is run.
func TestGroupSlotInDoubt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := named("import", work("0 * * * *", time.Second))
		job.Group, job.Late.Missed = "imports", soloist.SkipMissed
		a := c.limited("a", 1, job)
		until(time.Hour + time.Minute)
		a.meets(awayFrom("write", time.Second))
		until(2*time.Hour + time.Minute)
		c.wantOutcomes("import", "succeeded 01:00:00", "succeeded 02:00:00")
	})
}

// Nor is it held for another replica.
func TestLockSlotInDoubt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		end := c.held(a, a.pool(2), 5*time.Second) // both slots have been used
		c.held(b, b.pool(2), 5*time.Second)
		<-end
		time.Sleep(time.Minute)
		a.meets(awayFrom("write", time.Second))
		end = c.held(a, a.pool(2), time.Minute)
		time.Sleep(2 * time.Second)
		if err := b.pool(2).TryDo(c.t.Context(), taking(0)); err != nil {
			t.Errorf("one slot is held, of two: %v", err)
		}
		c.ok(<-end)
	})
}

// What a call of this process has left in doubt is nobody's lock.
func TestTryDoAfterCallInDoubt(t *testing.T) {
	for _, op := range []string{"acquire", "write"} {
		inCase(t, op, func(t *testing.T, c *cluster) {
			a := c.replica("a")
			l := a.guard()
			c.ok(l.Do(c.t.Context(), taking(0)))
			a.meets(awayFrom(op, time.Second))
			wantError(t, l.TryDo(c.within(500*time.Millisecond), taking(0)), errNetwork.Error())
			time.Sleep(time.Second)
			if err := l.TryDo(c.within(time.Minute), taking(0)); err != nil {
				t.Errorf("nobody has it: %v", err)
			}
		})
	}
}

func TestTryDoAfterOutcomeInDoubt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		ctx, cancel := context.WithCancel(c.t.Context())
		c.ok(l.Do(ctx, func(context.Context, *soloist.Run) error {
			a.meets(awayFrom("write", 9*time.Second))
			time.AfterFunc(time.Second, cancel)
			return nil
		}))
		a.meets(nil)
		if err := l.TryDo(c.within(time.Minute), taking(0)); err != nil {
			t.Errorf("nobody has it: %v", err)
		}
	})
}

// An acquisition in doubt is not released over a dead run: the next holder would hold off, for a lease that expired long ago.
func TestAcquisitionInDoubtUnderDeadHolder(t *testing.T) {
	for _, answered := range []bool{true, false} { // true: passes
		cut := func(r *replica, cancel func()) {
			r.tap.after = func(_ context.Context, op string) error {
				if op != "acquire" {
					return nil
				}
				cancel()
				if answered {
					return nil
				}
				return context.Canceled
			}
		}
		inCase(t, fmt.Sprint("lock ", answered), func(t *testing.T, c *cluster) {
			c.deadHolder()
			time.Sleep(time.Minute)
			ctx, cancel := context.WithCancel(c.t.Context())
			b := c.replica("b")
			cut(b, cancel)
			wantError(t, b.guard().Do(ctx, taking(0)), context.Canceled.Error())
			time.Sleep(time.Hour)
			c.ok(c.replica("c").guard().Do(c.within(10*time.Second), taking(0)))
		})
		inCase(t, fmt.Sprint("calls ", answered), func(t *testing.T, c *cluster) {
			a := c.start("dead", rerun(work("0 * * * *", 40*time.Minute)))
			until(time.Hour + time.Minute)
			a.kill()
			until(time.Hour + 5*time.Minute)
			job := rerun(work("0 * * * *", time.Second))
			b := c.replica("b", job)
			ctx, cancel := context.WithCancel(c.t.Context())
			cut(b, cancel)
			_, _ = b.RunDue(ctx, soloist.Wake{})
			time.Sleep(5 * time.Minute)
			if _, err := c.replica("c", job).RunDue(c.within(10*time.Second), soloist.Wake{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A request whose claim is in doubt when its call ends is unknown afterwards, and may be made again.
func TestRequestInDoubtMayBeMadeAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.wake()
		until(time.Hour)
		a.wake()
		time.Sleep(time.Minute)
		a.meets(awayFrom("write", time.Second))
		_, err := a.RunNow(c.within(500*time.Millisecond), "work", "one")
		wantError(t, err, errNetwork.Error())
		time.Sleep(time.Minute)
		_, err = a.RunNow(c.within(time.Minute), "work", "one")
		c.ok(err)
		c.wantRuns(2)
	})
}

// What a claim has settled that was taken back is reported.
func TestClaimTakenBackKeepsWhatItSettled(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		job := work("@hourly", time.Minute)
		c.replica("first", job).wake()
		until(7*time.Hour + 10*time.Minute)
		c.replica("first", job).wake()
		c.order(soloist.Order{Kind: soloist.OrderBackfill,
			Backfill: soloist.Backfill{From: time.Now().Add(-7 * time.Hour), To: time.Now(), All: true, Parallel: parallel}}, job)
		dead := c.start("dead", job)
		time.Sleep(30 * time.Second)
		dead.kill()
		time.Sleep(2 * D)
		a := c.replica("a", job)
		book := a.tells()
		a.meets(awayFrom("write", 4*time.Second))
		_, _ = a.RunNow(c.within(3*time.Second), "work", "please")
		time.Sleep(2 * D)
		for range 9 {
			_, _ = a.RunDue(c.t.Context(), soloist.Wake{})
			time.Sleep(2 * D)
		}
		for status, n := range c.record("work").Backfill.Counts {
			if got := outcomesIn(book)[status]; int(n) != got {
				t.Errorf("%d are counted as %s, and %d are reported", n, status, got)
			}
		}
	})
}

// A try that was stopped before it began counts for nothing, however long the store does not answer.
func TestOnceStoppedBeforeSecondTry(t *testing.T) {
	for _, d := range []time.Duration{5 * time.Second, 40 * time.Second} {
		inCase(t, d.String(), func(t *testing.T, c *cluster) {
			a, tries := c.replica("a"), 0
			o := c.migration(a, "v1", func(context.Context, *soloist.Run) error {
				if tries++; tries == 1 {
					return errors.New("boom")
				}
				return nil
			})
			o.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
			ctx, cancel := context.WithCancel(c.t.Context())
			writes, until := 0, time.Time{}
			a.meets(func(op string, apply func() error) error {
				if op != "write" {
					return apply()
				}
				if time.Now().Before(until) {
					return errNetwork
				}
				err := apply()
				if writes++; writes == 3 { // claim, outcome, claim
					cancel()
					until = time.Now().Add(d)
				}
				return err
			})
			wantError(t, o.Run(ctx), context.Canceled.Error())
			time.Sleep(time.Minute)
			if err := o.Run(c.within(5 * time.Minute)); err != nil {
				t.Errorf("after %d tries: %v", tries, err)
			}
		})
	}
}

func TestTryDoAfterTakeBackInDoubt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		c.ok(l.Do(c.t.Context(), taking(0)))
		a.meets(awayFrom("write", 7*time.Second))
		wantError(t, l.TryDo(c.within(500*time.Millisecond), taking(0)), errNetwork.Error())
		time.Sleep(20 * time.Second) // its lease has expired
		writes := 0
		a.meets(func(op string, apply func() error) error {
			if op == "write" {
				if writes++; writes > 1 {
					return errNetwork
				}
			}
			return apply()
		})
		if err := l.TryDo(c.within(10*time.Second), taking(0)); errors.Is(err, store.ErrHeld) {
			t.Errorf("nobody has it: %v", err)
		}
	})
}

// A caller comes again while the store still takes no write: its claim before is taken back, and not settled as a death.
func TestOnceCalledAgainInOutage(t *testing.T) {
	for _, d := range []time.Duration{10 * time.Second, 18 * time.Second, 40 * time.Second} {
		inCase(t, d.String(), func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(awayFrom("write", d))
			o := c.migration(a, "v1", nil)
			o.Retry = soloist.Retry{MaxTries: 1}
			wantError(t, o.Run(c.within(4*time.Second)), "deadline")
			c.ok(o.Run(c.within(time.Hour)))
			c.wantRuns(1)
		})
	}
}

// The claim before is to be taken back: the lease is said to be lost, and the read after that is not answered.
func TestOnceWhoseReturnIsNotConfirmed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a").meets(awayFrom("write", 12*time.Second))
		o := c.migration(a, "v1", nil)
		o.Retry = soloist.Retry{MaxTries: 1}
		wantError(t, o.Run(c.within(3*time.Second)), "deadline")
		time.Sleep(3 * D)
		var wrote atomic.Bool
		ctx, cancel := context.WithCancel(c.t.Context())
		a.meets(func(op string, apply func() error) error {
			if wrote.Load() {
				return errNetwork
			}
			err := apply()
			if op == "write" {
				wrote.Store(true)
				time.AfterFunc(time.Millisecond, cancel)
				time.AfterFunc(2*time.Second, func() { a.meets(nil) })
			}
			return err
		})
		wantError(t, o.Run(ctx), "canceled")
		time.Sleep(10 * time.Second)
		c.ok(o.Run(c.within(time.Hour)))
		c.wantRuns(1)
	})
}

// unacquired applies two acquisitions without an answer, and for so long no release.
func unacquired(noRelease time.Duration) fault {
	var n atomic.Int64
	begin := time.Now()
	return func(op string, apply func() error) error {
		switch {
		case op == "acquire" && n.Add(1) <= 2:
			_ = apply()
			return errNetwork
		case op == "release" && time.Since(begin) < noRelease:
			return errNetwork
		}
		return apply()
	}
}

func TestTryDoAfterUnreleasedAcquisition(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		c.ok(l.Do(c.t.Context(), taking(0)))
		a.meets(unacquired(10 * time.Second))
		if err := l.TryDo(c.within(time.Minute), taking(0)); errors.Is(err, store.ErrHeld) {
			t.Errorf("nobody has it: %v", err)
		}
	})
}

// A lease over a record that says running is not released, whatever was not answered: the next holder would hold off.
func TestLeaseOverARunIsNotReleased(t *testing.T) {
	inCase(t, "an acquisition in doubt over a dead run", func(t *testing.T, c *cluster) {
		c.deadHolder()
		time.Sleep(time.Minute)
		b := c.replica("b").meets(unacquired(0))
		wantError(t, b.guard().Do(c.within(10*time.Second), taking(0)), "deadline")
		time.Sleep(time.Hour)
		c.ok(c.replica("c").guard().Do(c.within(10*time.Second), taking(0)))
	})
	inCase(t, "a claim ahead that could not be taken back", func(t *testing.T, c *cluster) {
		w := work("0 * * * *", time.Second)
		w.ClaimAhead = true
		all := []*replica{c.start("a", w), c.start("b", w)}
		until(2*time.Hour - time.Minute)
		for _, r := range all {
			var n, end atomic.Int64
			r.meets(func(op string, apply func() error) error {
				switch {
				case op == "write" && n.CompareAndSwap(0, 1):
					_ = apply()
					end.Store(int64(sinceMidnight() + 12*time.Second))
					return errNetwork
				case op == "read" && n.CompareAndSwap(1, 2), op == "write" && sinceMidnight() < time.Duration(end.Load()):
					return errNetwork
				case op == "release":
					if run := c.record("work").Run; run.Status == event.Running && run.Replica == r.Replica {
						t.Errorf("%s releases its lease while the record says that it runs", r.Replica)
					}
				}
				return apply()
			})
		}
		time.Sleep(10 * time.Minute)
	})
}

// Callers come again while one of them tries to take the claim back, which the store does not answer: they wait no longer than
// they may, and the claim is taken back once.
func TestOnceCalledAgainByMany(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a").meets(awayFrom("write", time.Second))
		o := c.migration(a, "v1", nil)
		o.Retry = soloist.Retry{MaxTries: 1}
		ctx, cancel := context.WithCancel(c.t.Context())
		time.AfterFunc(2200*time.Millisecond, func() { a.meets(fail(errNetwork, "write")); cancel() })
		wantError(t, o.Run(ctx), context.Canceled.Error())
		time.AfterFunc(20*time.Second, func() { a.meets(nil) })
		var all sync.WaitGroup
		for n := range 4 {
			all.Go(func() {
				time.Sleep(time.Duration(n) * time.Second)
				wantError(t, o.Run(c.within(time.Second)), "deadline")
				c.ok(o.Run(c.within(time.Hour)))
			})
		}
		all.Wait()
		c.wantRuns(1)
	})
}

// A claim that is taken back without an answer is taken back once: the run before it stays as it was.
func TestBackfillBeforeClaimTakenBackTwice(t *testing.T) {
	bothWays(t, func(t *testing.T, c *cluster, parallel int) {
		w := work("@hourly", time.Second)
		a := c.replica("a", w)
		a.wake()
		o := c.fills(lastHours(4, parallel), w)
		time.Sleep(time.Minute)
		a.wake()
		c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 4})
		time.Sleep(time.Minute)
		a.meets(awayFrom("write", 12*time.Second))
		_, err := a.RunNow(c.within(3*time.Second), "work", "one")
		wantError(t, err, errNetwork.Error())
		time.Sleep(5 * time.Second)
		_, err = a.RunNow(c.within(time.Minute), "work", "two")
		c.ok(err)
		time.Sleep(time.Minute)
		a.wake()
		time.Sleep(time.Minute)
		a.wake()
		c.wantCounted(o, w, map[event.Status]int64{event.Succeeded: 4})
		seen := map[time.Time]int{}
		for _, r := range c.filled() {
			if seen[r.Tick]++; seen[r.Tick] > 1 {
				t.Errorf("the tick %s of the backfill has run %d times", r.Tick.Format(time.TimeOnly), seen[r.Tick])
			}
		}
	})
}

func TestOrderedRunBeforeClaimTakenBackTwice(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 10*time.Minute)
		a := c.start("a", w)
		time.Sleep(2 * time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "please"}, w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderCancel}, w)
		time.Sleep(time.Minute)
		a.stop()
		b := c.replica("b", w)
		b.meets(awayFrom("write", 12*time.Second))
		_, err := b.RunNow(c.within(3*time.Second), "work", "one")
		wantError(t, err, errNetwork.Error())
		time.Sleep(12 * time.Second)
		_, err = b.RunNow(c.within(15*time.Second), "work", "two")
		c.ok(err)
		time.Sleep(time.Minute)
		c.start("d", w)
		time.Sleep(2 * time.Minute)
		n := 0
		for _, o := range c.record("work").History {
			if o.Request == "please" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d outcomes", n)
		}
	})
}

// A call claims twice: the first claim is lost. What the second one has settled is told once.
func TestSettledByTwoClaimsIsToldOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := rerun(work("@hourly", 10*time.Minute))
		a := c.replica("a", job)
		book := a.tells()
		a.wake()
		until(time.Hour)
		_, _ = a.RunDue(c.within(30*time.Second), soloist.Wake{}) // its tick waits for another attempt
		c.order(soloist.Order{Kind: soloist.OrderCancel}, job)
		time.Sleep(10 * time.Second)
		var mu sync.Mutex
		writes, end := 0, time.Time{}
		a.meets(func(op string, apply func() error) error {
			mu.Lock()
			defer mu.Unlock()
			if time.Now().Before(end) {
				return errNetwork
			}
			if op != "write" {
				return apply()
			}
			switch writes++; writes {
			case 1:
				end = time.Now().Add(time.Millisecond) // it is lost, and so is the read after it
				return errNetwork
			case 2:
				end = time.Now().Add(time.Second)
				_ = apply()
				return errNetwork
			}
			return apply()
		})
		_, _ = a.RunNow(c.within(time.Minute), "work", "please")
		n := 0
		for _, e := range book.of("work", event.Settled, event.Ended) {
			if e.Outcome.Status == event.Cancelled {
				n++
			}
		}
		if n != 1 {
			t.Errorf("the outcome of the cancelled tick is reported %d times", n)
		}
	})
}

// A lease that RunNow has left over a dead run is over soon: it waits.
func TestRunNowAfterClaimInDoubtOverDeadRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 10*time.Minute)
		dead := c.start("dead", job)
		until(time.Hour + time.Minute)
		dead.kill()
		time.Sleep(2 * D)
		a := c.replica("a", job)
		var end time.Time
		a.meets(func(op string, apply func() error) error {
			if op == "write" && end.IsZero() {
				end = time.Now().Add(time.Second)
			}
			if time.Now().Before(end) {
				return errNetwork
			}
			return apply()
		})
		if o, err := a.RunNow(c.within(time.Hour), "work", "please"); err != nil || o.Status != event.Succeeded {
			t.Errorf("got %s %s, %v", o.Status, o.Reason, err)
		}
	})
}

// lateClaim has the first write arrive after d and get no answer. Until then other writes, releases and, for a while, all else are
// lost.
func lateClaim(d, all time.Duration) fault {
	var mu sync.Mutex
	var at time.Time
	return func(op string, apply func() error) error {
		mu.Lock()
		first := op == "write" && at.IsZero()
		if first {
			at = time.Now()
		}
		since := time.Since(at)
		lost := !at.IsZero() && (since < all || since <= d && (op == "write" || op == "release"))
		mu.Unlock()
		switch {
		case first:
			go func() { time.Sleep(d); _ = apply() }()
			return errNetwork
		case lost:
			return errNetwork
		}
		return apply()
	}
}

// A claim arrives after it was read back in vain, or after the release of its lease was lost: nothing was begun, so nothing has
// failed.
func TestClaimThatArrivesLate(t *testing.T) {
	for _, all := range []time.Duration{0, 500 * time.Millisecond} {
		inCase(t, fmt.Sprint("once ", all), func(t *testing.T, c *cluster) {
			o := c.migration(c.replica("a").meets(lateClaim(3*time.Second, all)), "v1", nil)
			o.Retry = soloist.Retry{MaxTries: 1}
			c.ok(o.Run(c.within(5 * time.Minute)))
			c.wantRuns(1)
		})
	}
	inCase(t, "a request", func(t *testing.T, c *cluster) {
		a := c.replica("a", work("@hourly", time.Second))
		a.wake()
		time.Sleep(time.Minute)
		a.meets(lateClaim(time.Second, 0))
		if o, err := a.RunNow(c.within(5*time.Minute), "work", "one"); err == nil && (o.Status != event.Succeeded || len(c.all()) != 1) {
			t.Errorf("RunNow returned %s without an error, after %d runs", o.Status, len(c.all()))
		}
	})
}

// The lease of a claim that never arrived is renewed to take the claim back, which gets no answer: nobody has the lock.
func TestTryDoAfterTakeBackOfLostClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.guard()
		c.ok(l.Do(c.t.Context(), taking(0)))
		var mu sync.Mutex
		var away time.Time // everything is lost until then
		renewed := false
		a.meets(func(op string, apply func() error) error {
			mu.Lock()
			defer mu.Unlock()
			if op == "write" && away.IsZero() {
				away = time.Now().Add(16 * time.Second)
			}
			if time.Now().Before(away) || renewed && op == "write" {
				return errNetwork
			}
			renewed = renewed || op == "renew"
			return apply()
		})
		wantError(t, l.TryDo(c.within(16500*time.Millisecond), taking(0)), "deadline")
		a.meets(nil)
		c.ok(l.TryDo(c.within(30*time.Second), taking(0)))
	})
}

// If ctx ends before the run has begun, the request stays unknown and may be made again, whichever call of the process reads first.
func TestRequestInDoubtBesideOtherCalls(t *testing.T) {
	for _, how := range []string{"loop", "RunDue"} {
		inCase(t, how, func(t *testing.T, c *cluster) {
			a := c.replica("a", work("@hourly", time.Second))
			if how == "loop" {
				c.launch(a)
			} else {
				a.wake()
			}
			time.Sleep(time.Minute)
			a.meets(awayFrom("write", 12*time.Second))
			_, err := a.RunNow(c.within(3*time.Second), "work", "one")
			wantError(t, err, errNetwork.Error())
			for range 2 {
				time.Sleep(15 * time.Second)
				if how == "RunDue" {
					a.wake()
				}
			}
			time.Sleep(time.Minute)
			if o, err := a.RunNow(c.within(time.Minute), "work", "one"); err != nil || o.Status != event.Succeeded || len(c.all()) != 1 {
				t.Errorf("got %s %q, %v; %d runs", o.Status, o.Reason, err, len(c.all()))
			}
		})
	}
}
