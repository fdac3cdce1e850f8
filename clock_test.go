package soloist_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

func TestLoneReplicaWithWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -4 * time.Second, 4 * time.Second, time.Hour} {
		inCluster(t, func(c *cluster) {
			c.launch(c.replica("a", work("@every 1s", 50*time.Millisecond)).skewed(skew))
			time.Sleep(62*time.Second + 500*time.Millisecond)
			if got := once(t, afterTheFirst(c.all())); got != 60 {
				t.Errorf("off by %s: %d ticks ran, want 60: %q", skew, got, c.outcomes("work"))
			}
		})
	}
}

// Hours after the store has told its time, a wrong clock is still put right.
func TestSlowWallClockMissesNoTick(t *testing.T) {
	for _, missed := range []soloist.MissedPolicy{soloist.RunLatest, soloist.SkipMissed} {
		inCase(t, string(missed), func(t *testing.T, c *cluster) {
			job := work("0 */6 * * *", time.Second)
			job.Missed = missed
			c.launch(c.replica("a", job).skewed(-10 * time.Minute))
			time.Sleep(25 * time.Hour)
			c.wantInTime(2 * time.Second)
			c.wantAllSucceeded()
		})
	}
}

func TestStoreWithoutDates(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 10s", time.Second))
		a.tap.date = noDate
		c.launch(a)
		time.Sleep(65 * time.Second)
		if got := len(c.all()); got != 6 {
			t.Errorf("%d runs, want 6: %q", got, a.log.lines("level=WARN"))
		}
	})
}

// While a gateway refuses all, the wrong date that it tells moves no tick: those that
// were not due yet come due at their time.
func TestDateOfErrorIsNotUsed(t *testing.T) {
	for _, off := range []time.Duration{-24 * time.Hour, -time.Hour, time.Hour, 10 * 365 * 24 * time.Hour} {
		inCase(t, off.String(), func(t *testing.T, c *cluster) {
			var closed atomic.Bool // the gateway, which has a clock of its own
			other := soloist.Job{Name: "other", Schedule: "@every 5s", Lease: D, Do: func(context.Context, *soloist.Run) error { return nil }}
			for _, name := range []string{"a", "b"} {
				r := c.replica(name, work("@every 1m", 40*time.Second), other)
				r.tap.date = func(date time.Time) time.Time {
					if closed.Load() {
						return time.Now().Add(off)
					}
					return date
				}
				c.launch(r.meets(func(_ string, apply func() error) error {
					if closed.Load() {
						return errors.New("503 of a gateway")
					}
					return apply()
				}))
			}
			time.Sleep(5*time.Minute + 34*time.Second)
			closed.Store(true)
			time.Sleep(10 * time.Second) // over the end of a run
			closed.Store(false)
			time.Sleep(14*time.Minute + 46*time.Second)
			c.wantAllSucceeded()
			if got := c.record("work").Watermark; time.Since(got) > 2*time.Minute || got.After(time.Now()) {
				t.Errorf("at %s the ticks are settled up to %s", time.Now(), got)
			}
		})
	}
}

// A renewal that hangs must not move the end of the trust: it lies before the
// end of the lease, counted from when the last good one was sent.
func TestTrustEndsBeforeLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 20*time.Minute))
		time.Sleep(time.Hour + 31*time.Second) // renewed at +30 s
		a.kill()
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 1 || !errors.Is(runs[0].cause, store.ErrLost) {
			t.Fatalf("got %+v", runs)
		}
		lapse := runs[0].start.Add(30*time.Second + D)
		if left := lapse.Sub(runs[0].end); left < D/6 || left > D/4 {
			t.Errorf("ended %s before the lease could lapse, want a little over %s", left, D/6)
		}
	})
}

// A step of the wall clock ends no run.
func TestWallClockStepEndsNoRun(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, 30 * time.Second, -30 * time.Second} {
		inCluster(t, func(c *cluster) {
			var off atomic.Int64
			for _, name := range []string{"a", "b"} {
				r := c.replica(name, leader(), work("@every 10s", 15*time.Second))
				r.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
				c.launch(r)
			}
			time.Sleep(time.Minute)
			off.Store(int64(step))
			time.Sleep(10 * time.Minute)
			leads := 0
			for _, r := range c.all() {
				if r.Job == "lead" {
					leads++
				} else if r.cause != nil {
					t.Errorf("%s: a run ended: %v", step, r.cause)
				}
			}
			if leads != 1 {
				t.Errorf("%s: %d terms", step, leads)
			}
		})
	}
}

// A machine that was suspended knows so at once when it is asked, and within a
// second by itself.
func TestSuspensionEndsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		lead := leader()
		var ended, heart, check error
		var remaining time.Duration
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			within, cancel := context.WithTimeout(ctx, time.Hour) // as libraries make them
			defer cancel()
			until(time.Minute + time.Millisecond)
			if ended = ctx.Err(); within.Err() == nil {
				t.Error("a context that was made of the run's goes on")
			}
			heart, remaining = run.Heartbeat(""), run.Remaining()
			check = run.Check(context.Background())
			<-ctx.Done()
			return nil
		}
		a := c.launch(c.replica("a", lead).on(&machine))
		time.Sleep(time.Minute)
		machine.slept.Add(int64(D))
		slept := time.Now()
		time.Sleep(2 * time.Second)
		a.stop()
		got := c.all()[0]
		if got.end.IsZero() || got.end.Sub(slept) > time.Second || !errors.Is(got.cause, store.ErrLost) {
			t.Errorf("ended at %s for %v", got.end, got.cause)
		}
		if ended == nil {
			t.Error("the context of the run goes on")
		}
		if !errors.Is(heart, store.ErrLost) || !errors.Is(check, store.ErrLost) || remaining != 0 {
			t.Errorf("Heartbeat: %v, Check: %v, Remaining: %s", heart, check, remaining)
		}
	})
}

// A renewal that is sent after the end of the trust, here because another was
// under way while the machine slept, does not bring it back. The answer comes
// before the next look of the goroutine that watches the deadline.
func TestRenewalAfterSuspensionExtendsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		var check error
		lead := leader()
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			until(D/3 + 100*time.Millisecond) // a renewal is under way
			check = run.Check(context.Background())
			return nil
		}
		a := c.replica("a", lead).on(&machine)
		c.launch(a.meets(onNth("renew", 1, func(apply func() error) error {
			time.Sleep(300 * time.Millisecond)
			machine.slept.Add(int64(D))
			return apply()
		})))
		time.Sleep(D/3 + 2*time.Second)
		a.stop()
		if n := a.tap.counts()["renew"]; n != 2 || !errors.Is(check, store.ErrLost) {
			t.Errorf("%d renewals; Check: %v", n, check)
		}
	})
}

// A renewal that is sent in time and answered after the deadline does not bring
// the trust back, even before the goroutine that watches the deadline has looked.
func TestRenewalAnsweredLateExtendsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		var heart error
		lead := leader()
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			until(D/3 + 500*time.Millisecond)
			heart = run.Heartbeat("")
			return nil
		}
		a := c.launch(c.replica("a", lead).on(&machine).meets(before("renew", func() {
			time.Sleep(300 * time.Millisecond) // the goroutine has just looked, and looks again in a second
			machine.slept.Add(int64(D / 2))    // beyond the deadline, within the trust that the answer would give
		})))
		time.Sleep(D/3 + 2*time.Second)
		a.stop()
		if !errors.Is(heart, store.ErrLost) {
			t.Errorf("Heartbeat: %v", heart)
		}
	})
}

// A short one ends nothing. A machine that sleeps cannot beat, which is no silence.
func TestShortSuspensionEndsNoRun(t *testing.T) {
	beats := beating(500*time.Millisecond, time.Hour, true)
	beats.HeartbeatTimeout = 3 * time.Second
	for slept, lead := range map[time.Duration]soloist.Singleton{D / 3: leader(), 4 * time.Second: beats} {
		inCluster(t, func(c *cluster) {
			var machine suspended
			c.launch(c.replica("a", lead).on(&machine))
			for range 10 {
				time.Sleep(20*time.Second + 100*time.Millisecond)
				machine.slept.Add(int64(slept))
			}
			time.Sleep(10 * time.Second)
			c.wantRuns(1)
		})
	}
}

// The clock's skew is told as far as it is proved.
func TestSkewIsTold(t *testing.T) {
	for _, off := range []time.Duration{0, 7 * time.Second, -7 * time.Second, time.Hour} {
		inCluster(t, func(c *cluster) {
			r := c.launch(c.replica("a", work("@every 10s", 0)).skewed(off))
			time.Sleep(5 * time.Minute)
			if got := r.Health().Skew; (got - off).Abs() > 1100*time.Millisecond {
				t.Errorf("skew is %s, want about %s", got, off)
			}
		})
	}
}

// The record says how long a run took, whatever the wall clock shows.
func TestRecordedEndIgnoresSkew(t *testing.T) {
	for _, off := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		inCluster(t, func(c *cluster) {
			c.launch(c.replica("a", work("@every 1m", 4*time.Second)).skewed(off))
			time.Sleep(5*time.Minute + 30*time.Second)
			r := c.record("work")
			if took := r.Run.Finished.Sub(r.Run.Claimed); took < 4*time.Second || took > 5*time.Second {
				t.Errorf("off by %s: claimed at %s, finished at %s", off, r.Run.Claimed, r.Run.Finished)
			}
			if f := r.History[0]; !f.End.Equal(r.Run.Finished) || !f.Start.Equal(r.Run.Claimed) {
				t.Errorf("off by %s: the outcome is from %s to %s", off, f.Start, f.End)
			}
		})
	}
}

// The end of a run counts the time that the write of its claim has taken.
func TestRecordedEndCountsSlowClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.launch(c.replica("a", work("0 * * * *", 4*time.Second)).meets(slow(2*time.Second, "write")))
		time.Sleep(time.Hour + 30*time.Second)
		r, runs := c.record("work"), c.all()
		if late := r.Run.Finished.Sub(runs[0].end); len(runs) != 1 || late < -100*time.Millisecond || late > 1100*time.Millisecond {
			t.Errorf("the record says that %+v ended at %s", runs, r.Run.Finished)
		}
	})
}

// A leader's clock may be slower than the service's: its renewals must not
// drift behind the looks of the others.
func TestSlowLeaderIsReplacedInTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		slow := c.replica("slow", lead("work"))
		slow.Elapsed = func() time.Duration {
			gone := time.Since(begin)
			return gone - gone/5000 // 200 ppm
		}
		var renewed time.Time
		c.launch(slow.meets(before("renew", func() { renewed = time.Now() })))
		time.Sleep(10 * time.Second)
		c.start("other", lead("work"))
		time.Sleep(2 * time.Hour) // 1.44 s less by the leader's clock
		slow.tap.meet(fail(errNetwork, "renew", "write", "release"))
		time.Sleep(time.Minute)
		slow.tap.meet(nil)
		runs := ranBy(c, "other", begin)
		if len(runs) != 1 {
			t.Fatalf("the other one has %d terms", len(runs))
		}
		if took := runs[0].start.Sub(renewed); took > 17*time.Second {
			t.Errorf("replaced %s after the last renewal, want at most 17s", took)
		}
	})
}

// clockedStores are stores with the clock of their machine, each with what deletes an entry.
func clockedStores(t *testing.T, now func() time.Time) map[string]clockedStore {
	dir, memory := t.TempDir(), &local.Memory{Now: now}
	return map[string]clockedStore{
		"directory": {local.Dir{Path: dir, Now: now}, func(name string) error { return os.RemoveAll(filepath.Join(dir, name+".d")) }},
		"memory":    {memory, func(name string) error { return memory.Delete(t.Context(), name) }},
	}
}

type clockedStore struct {
	store  store.Store
	delete func(name string) error
}

// The machine of a store had its clock ahead for two minutes. Within a minute of its correction Health says what the
// record has from the future, and when that is over. Then the job runs again, and before that if its entry is deleted.
func TestClockThatWasAheadIsTold(t *testing.T) {
	for _, kind := range []string{"directory", "memory"} {
		for ahead, deleted := range map[time.Duration]bool{2 * time.Hour: false, 24 * time.Hour: true} {
			synctest.Test(t, func(t *testing.T) { testClockAhead(t, kind, ahead, deleted) })
		}
	}
}

func testClockAhead(t *testing.T, kind string, ahead time.Duration, deleted bool) {
	time.Sleep(15 * time.Hour)
	begin := time.Now()
	var off, runs atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
	on := clockedStores(t, now)[kind]
	s := &soloist.Scheduler{Store: on.store, Replica: "a", Now: now, Logger: slog.New(slog.DiscardHandler),
		Elapsed: func() time.Duration { return time.Since(begin) },
		Jobs:    []soloist.Job{{Name: "sync", Schedule: "*/5 * * * *", Do: func(context.Context, *soloist.Run) error { runs.Add(1); return nil }}}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	time.Sleep(2 * time.Hour)
	off.Store(int64(ahead))
	time.Sleep(2 * time.Minute)
	off.Store(0)
	time.Sleep(time.Minute)
	text := func() string {
		if err := s.Health().Broken["sync"]; err != nil {
			return err.Error()
		}
		return "ok"
	}
	_, rest, _ := strings.Cut(text(), "right again from ")
	over, err := time.Parse(time.RFC3339, strings.Split(rest, " on;")[0])
	if err != nil || !strings.Contains(text(), "is in the future") || !strings.Contains(text(), "delete its entry soloist/sync ") {
		t.Errorf("%s, %s ahead: a minute later health says %s", kind, ahead, text())
	}
	if deleted {
		if err := on.delete("soloist/sync"); err != nil {
			t.Error(err)
		}
	} else {
		time.Sleep(time.Until(over) - time.Minute)
		if text() == "ok" {
			t.Errorf("%s, %s ahead: right before its time", kind, ahead)
		}
		time.Sleep(2 * time.Minute)
	}
	before := runs.Load()
	time.Sleep(time.Hour)
	if got := runs.Load() - before; got < 11 || got > 13 || text() != "ok" {
		t.Errorf("%s, %s ahead, deleted %t: %d of 12 ticks ran in an hour, health says %s", kind, ahead, deleted, got, text())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
