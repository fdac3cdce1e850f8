package soloist_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Hours after the store has told its time, a wrong clock is still put right.
func TestASlowWallClockMissesNoTick(t *testing.T) {
	for _, missed := range []soloist.MissedPolicy{soloist.RunLatest, soloist.SkipMissed} {
		t.Run(string(missed), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("0 */6 * * *", time.Second)
				job.Missed = missed
				a := c.replica("a", job)
				a.Now = skewed(-10 * time.Minute)
				c.launch(a)
				time.Sleep(25 * time.Hour)
				for _, r := range c.all() {
					if late := r.start.Sub(r.Tick); late > 2*time.Second {
						t.Errorf("tick %s started %s late", r.Tick.Format("15:04"), late)
					}
				}
				for _, f := range c.outcomes("work") {
					if !strings.HasPrefix(f, "succeeded") {
						t.Errorf("got %s", f)
					}
				}
			})
		})
	}
}

// Somebody puts back an old version of the entry: nothing runs on it.
func TestAnOlderVersionRestored(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", time.Second)
		job.Missed = soloist.RunAll
		c.start("a", job)
		time.Sleep(90 * time.Second)
		old := c.raw("work")
		time.Sleep(2 * time.Minute) // 00:03:30
		if err := c.store.Delete(c.t.Context(), "soloist/work"); err != nil {
			t.Fatal(err)
		}
		if _, err := c.store.Create(c.t.Context(), "soloist/work", old); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		once(t, c.all())
		tokens := map[int64]bool{}
		for _, r := range c.all() {
			if tokens[r.Token] {
				t.Errorf("token %d twice", r.Token)
			}
			tokens[r.Token] = true
		}
	})
}

type dateless struct{ store.Store }

func (s dateless) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	e, err := s.Store.Create(ctx, name, record)
	e.Date = time.Time{}
	return e, err
}
func (s dateless) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Store.Read(ctx, name)
	e.Date = time.Time{}
	return e, err
}
func (s dateless) Lease(name, id string) store.Lease { return datelessLease{s.Store.Lease(name, id)} }

type datelessLease struct{ store.Lease }

func (l datelessLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	s, err := l.Lease.Acquire(ctx, d, etag)
	s.Date = time.Time{}
	return s, err
}
func (l datelessLease) Renew(ctx context.Context) (store.Revision, error) {
	s, err := l.Lease.Renew(ctx)
	s.Date = time.Time{}
	return s, err
}
func (l datelessLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	s, err := l.Lease.Write(ctx, etag, record)
	s.Date = time.Time{}
	return s, err
}

func TestAStoreThatTellsNoDate(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 10s", time.Second))
		a.tap.Store = dateless{c.store}
		c.launch(a)
		time.Sleep(65 * time.Second)
		if got := len(c.all()); got != 6 {
			t.Errorf("%d runs, want 6: %q", got, a.log.lines("level=WARN"))
		}
	})
}

// The lease is broken while the claim is read back.
func TestNothingStartsAfterTheLeaseIsLost(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var atStart error
		job := soloist.Job{Name: "work", Schedule: "0 * * * *", Lease: D, Do: func(ctx context.Context, _ *soloist.Run) error {
			atStart = context.Cause(ctx)
			return nil
		}}
		a := c.replica("a", job)
		writes := 0
		a.tap.meet(func(op string, apply func() error) error {
			switch op {
			case "write":
				if writes++; writes == 1 {
					time.Sleep(D/6 - time.Millisecond)
					return errNetwork
				}
				err := apply()
				if writes == 2 {
					_ = c.store.Break(context.Background(), "soloist/work", 0)
					time.Sleep(D/6 - time.Millisecond)
				}
				return err
			case "read":
				if writes == 1 {
					time.Sleep(D/6 - time.Millisecond)
				}
			}
			return apply()
		})
		c.launch(a)
		time.Sleep(time.Hour + time.Minute)
		if atStart != nil {
			t.Errorf("Do began under a context that had ended: %v", atStart)
		}
	})
}

// A replica with a shorter lease holds off after a break, and dies: its lease,
// which has run out, does not speak for the longer one before it.
func TestHoldOffAfterABreakSurvivesASecondDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, short := work("@every 1h", 50*time.Minute), work("@every 1h", time.Second)
		long.Lease, long.Interrupted, short.Interrupted = time.Minute, soloist.Rerun, soloist.Rerun
		a := c.start("a", long)
		time.Sleep(time.Hour + time.Second)
		a.kill() // cut off: it trusts its lease until 01:00:49
		if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
			t.Fatal(err)
		}
		b := c.start("b", short) // acquires, holds off, and dies
		time.Sleep(time.Second)
		b.kill()
		c.start("c", short)
		time.Sleep(3 * time.Minute)
		runs := c.all()
		if len(runs) < 2 {
			t.Fatalf("got %+v", runs)
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("%s runs from %s to %s, %s from %s", runs[0].replica, runs[0].start.Format("15:04:05"), runs[0].end.Format("15:04:05"),
				runs[1].replica, runs[1].start.Format("15:04:05"))
		}
	})
}

// For the race detector.
func TestHealthBesideTheStart(t *testing.T) {
	s := &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{work("@every 1s", 0)}}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = s.Run(ctx) })
	for range 1000 {
		s.Health()
	}
	cancel()
	all.Wait()
}

// "A client may need to wait up to one minute before a new lease can be
// acquired": it does not ask all the time.
func TestALeaseThatCannotBeAcquiredYet(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.tap.meet(func(op string, apply func() error) error {
			if op == "acquire" {
				return store.ErrHeld // AZURE.md 4.3: "may need to wait up to one minute"
			}
			return apply()
		})
		c.launch(a)
		time.Sleep(time.Hour - time.Second)
		a.tap.counts()
		time.Sleep(time.Minute)
		n := a.tap.counts()
		if n["acquire"]+n["read"] > 60 {
			t.Errorf("calls in a minute: %v", n)
		}
	})
}

func TestASecondRunEndsWithItsContext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		done := make(chan struct{})
		go func() { _ = a.Run(ctx); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Error("Run with an ended context is at it for an hour")
		}
	})
}

func TestAStopIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancel(c.t.Context())
		a.tap.meet(func(op string, apply func() error) error {
			cancel()
			return context.Canceled
		})
		_ = a.Run(ctx)
		if got := a.log.lines("out of reach"); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	})
}

// A run that an outage has ended did not fail: its runner was cut off.
func TestALostRunIsGivenAgainUnderRerun(t *testing.T) {
	for _, helper := range []bool{false, true} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 40*time.Second)
			job.Interrupted = soloist.Rerun
			a := c.start("a", job)
			time.Sleep(time.Hour + time.Second)
			if helper {
				c.start("b", job)
			}
			time.Sleep(5 * time.Second)
			a.tap.meet(func(string, func() error) error { return errNetwork })
			time.Sleep(20 * time.Second)
			a.tap.meet(nil)
			time.Sleep(3 * time.Minute)
			if got := c.outcomes("work"); !slices.Equal(got, []string{"succeeded 01:00:00"}) {
				t.Errorf("with a second replica: %t: got %q", helper, got)
			}
		})
	}
}
