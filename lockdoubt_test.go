package soloist_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// north is the lock of these tests, as one replica sees it through a tap.
func (c *cluster) north(replica string, slots int) (*soloist.Lock, *tap) {
	s := &tap{Store: c.store, t: c.t}
	return &soloist.Lock{Name: "north", Store: s, Slots: slots, Lease: D, Replica: replica, Logger: slog.New(slog.DiscardHandler)}, s
}

// northern is the entry of its first slot.
const northern = "soloist/0-lock-north"

// holdNorth has a replica hold the lock for d, in a goroutine.
func (c *cluster) holdNorth(replica string, slots int, d time.Duration) {
	l, _ := c.north(replica, slots)
	go l.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { time.Sleep(d); return nil })
	time.Sleep(5 * time.Second) // the first holder of a lock waits for its token
}

// away applies the first write, and answers nothing for d from then on.
func away(d time.Duration) fault {
	var mu sync.Mutex
	var until time.Time
	return func(op string, apply func() error) error {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case op == "write" && until.IsZero():
			until = time.Now().Add(d)
			_ = apply()
		case until.IsZero() || time.Now().After(until):
			return apply()
		}
		return errNetwork
	}
}

// A replica whose claim was not confirmed in time, and was settled by another one, takes the lock
// again: Do does not return before its function was called.
func TestLockClaimThatOthersHaveSettled(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, s := c.north("a", 1)
		b, _ := c.north("b", 1)
		s.meet(away(2 * D))
		go func() {
			time.Sleep(D + 5*time.Second)
			if err := b.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { return nil }); err != nil {
				t.Errorf("b: %v", err)
			}
		}()
		calls := 0
		err := a.Do(c.t.Context(), func(context.Context, *soloist.Run) error { calls++; return nil })
		if err != nil || calls != 1 {
			t.Errorf("Do returned %v, and its function was called %d times: want nil after one call", err, calls)
		}
		err = a.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { calls++; return nil })
		if err != nil || calls != 2 {
			t.Errorf("TryDo returned %v after %d calls of the function", err, calls-1)
		}
	})
}

// A panic is an error though nobody has taken down its outcome.
func TestLockPanicWithoutOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, _ := c.north("a", 1)
		err := a.Do(c.t.Context(), func(context.Context, *soloist.Run) error {
			if err := c.store.Delete(c.t.Context(), northern); err == nil {
				t.Error("the entry of a lock that is held was deleted")
			}
			if err := c.store.Break(c.t.Context(), northern, 0); err != nil {
				t.Error(err)
			}
			panic("out of order")
		})
		if err == nil {
			t.Error("Do returned nil after a panic")
		}
	})
}

// Who goes on to the end without the lock learns that it was lost.
func TestLockLostIsAnError(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, _ := c.north("a", 1)
		err := a.Do(c.t.Context(), func(ctx context.Context, _ *soloist.Run) error {
			if err := c.store.Break(c.t.Context(), northern, 0); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, soloist.ErrLost) {
			t.Errorf("Do returned %v, want ErrLost", err)
		}
	})
}

// Slots that are made in the same second have the same tokens, and their holders are told apart.
func TestLockIDOfEachHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]string{}
		for _, replica := range []string{"a", "b", "c", "d"} {
			l, _ := c.north(replica, 4)
			all.Go(func() {
				if err := l.Do(c.t.Context(), func(_ context.Context, run *soloist.Run) error {
					mu.Lock()
					defer mu.Unlock()
					if other := seen[run.ID()]; other != "" {
						t.Errorf("%s and %s have the ID %s", other, replica, run.ID())
					}
					seen[run.ID()] = replica
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// A call whose context ends while it looks says that the lock is held, if it has seen that.
func TestLockHeldWhileTheContextEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.holdNorth("b", 1, time.Hour)
		a, s := c.north("a", 1)
		slow := func(string, func() error) error { time.Sleep(10 * time.Second); return errNetwork }
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		defer cancel()
		time.AfterFunc(5*time.Second, func() { s.meet(slow) })
		err := a.Do(ctx, func(context.Context, *soloist.Run) error { t.Error("it was called"); return nil })
		if !errors.Is(err, store.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do returned %v, want ErrHeld with the cause", err)
		}
		time.Sleep(time.Hour)
	})
}

// A replica that may lease a slot and not write it does not take the slot again and again.
func TestLockSlotThatCannotBeWritten(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, s := c.north("a", 2)
		s.meet(func(op string, apply func() error) error {
			if op == "write" {
				return fs.ErrPermission
			}
			return apply()
		})
		c.holdNorth("b", 1, time.Hour)
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
		defer cancel()
		_ = a.Do(ctx, func(context.Context, *soloist.Run) error { t.Error("it was called"); return nil })
		if n := s.counts()["acquire"]; n > int(5*time.Minute/(D/6))+1 {
			t.Errorf("it acquired the free slot %d times in five minutes", n)
		}
		time.Sleep(time.Hour)
	})
}

// Work that has lost its lease is done again, here or elsewhere: Run does not end for that.
func TestOnceLost(t *testing.T) {
	inCluster(t, func(c *cluster) {
		calls := 0
		once := &soloist.Once{Name: "migrate", Key: "v1", Store: c.store, Lease: D, Replica: "a", Logger: slog.New(slog.DiscardHandler),
			Do: func(ctx context.Context, _ *soloist.Run) error {
				if calls++; calls == 1 {
					if err := c.store.Break(ctx, "soloist/0-once-migrate-"+keyV1, 0); err != nil {
						t.Error(err)
					}
					<-ctx.Done()
				}
				return ctx.Err()
			}}
		if err := once.Run(c.t.Context()); err != nil || calls != 2 {
			t.Errorf("Run returned %v after %d calls: want nil after two", err, calls)
		}
	})
}

// keyV1 is the digest of the key v1 in the name of an entry.
const keyV1 = "hp6cnfmu55sjekhju5f2"

// A log that blocks does not keep Run waiting.
func TestOnceLogBlocks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		release := make(chan struct{})
		log := blockedLog{Handler: slog.NewTextHandler(io.Discard, nil), release: release}
		calls, begin := 0, time.Now()
		once := &soloist.Once{Name: "migrate", Key: "v1", Store: c.store, Lease: D, Replica: "a", Logger: slog.New(log),
			Do: func(context.Context, *soloist.Run) error {
				if calls++; calls == 1 {
					return errors.New("not yet")
				}
				return nil
			}}
		time.AfterFunc(time.Hour, func() { close(release) })
		if err := once.Run(c.t.Context()); err != nil || time.Since(begin) > time.Minute {
			t.Errorf("Run returned %v after %s", err, time.Since(begin))
		}
		time.Sleep(2 * time.Hour)
	})
}

// The context of a holder that is cut off ends with ErrLost before the next holder begins, and that
// is no later than a lease and a little after the cut.
func TestKilledHolderOfLockIsReplaced(t *testing.T) {
	for name, held := range map[string]time.Duration{"soon": time.Second, "late": 17 * time.Minute} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			end := c.held(a, a.guard(), time.Hour)
			time.AfterFunc(held, a.kill)
			begin := time.Now()
			if err := c.hold(c.t.Context(), b, b.guard(), time.Second); err != nil {
				t.Error(err)
			}
			if err := <-end; !errors.Is(err, soloist.ErrLost) {
				t.Errorf("the old holder gets %v", err)
			}
			runs := c.succession(2)
			if !errors.Is(runs[0].cause, soloist.ErrLost) {
				t.Errorf("the context ended with %v", runs[0].cause)
			}
			if took := runs[1].start.Sub(begin.Add(held)); took > D+time.Second {
				t.Errorf("replaced after %s, want a lease, %s, and a little", took, D)
			} else {
				t.Logf("replaced after %s", took)
			}
		})
	}
}

// A function that goes on after the loss returns ErrLost, whatever it returns itself; what it
// returns is not lost.
func TestFunctionThatOutlivesItsLock(t *testing.T) {
	own := errors.New("out of paper")
	for name, returned := range map[string]error{"nil": nil, "an error": own, "the end of its context": context.Canceled} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			time.AfterFunc(5*time.Second, a.kill)
			overrun := make(chan string, 1)
			l := a.guard()
			l.Overrun = func(name string, cause error) {
				if errors.Is(cause, soloist.ErrLost) {
					overrun <- name
				}
			}
			err := l.Do(c.t.Context(), func(context.Context, *soloist.Run) error {
				time.Sleep(time.Minute)
				return returned
			})
			if !errors.Is(err, soloist.ErrLost) || returned != nil && !errors.Is(err, returned) {
				t.Errorf("got %v", err)
			}
			if len(overrun) != 1 || <-overrun != "guard" {
				t.Error("nothing told that it goes on")
			}
			if err := b.guard().Do(c.within(time.Minute), c.watch("b", nil)); err != nil {
				t.Error(err)
			}
		})
	}
}

// A call that is refused, since a function of the lock goes on without its lease, has lost nothing.
func TestLockTakesNothingBesideAnOverrun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := c.replica("a").guard()
		l.Slots = 2
		over := make(chan struct{})
		l.Overrun = func(string, error) { close(over) }
		done := make(chan error, 1)
		go func() {
			done <- l.Do(c.t.Context(), func(context.Context, *soloist.Run) error { time.Sleep(10 * time.Minute); return nil })
		}()
		time.Sleep(5 * time.Second)
		for _, slot := range []string{"soloist/0-lock-guard", "soloist/1-lock-guard"} {
			if err := c.store.Break(c.t.Context(), slot, 0); err != nil {
				t.Log(err) // that of the other slot
			}
		}
		<-over
		err := l.Do(c.within(time.Minute), c.watch("a", nil))
		if err == nil || errors.Is(err, soloist.ErrLost) || !strings.Contains(err.Error(), "takes nothing new") {
			t.Errorf("got %v", err)
		}
		if err := <-done; !errors.Is(err, soloist.ErrLost) {
			t.Errorf("the function that goes on: got %v", err)
		}
	})
}

// A stop does not hide the loss that follows it.
func TestFunctionThatOutlivesStopAndLock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		time.AfterFunc(8*time.Second, a.kill)
		err := a.guard().Do(c.within(5*time.Second), func(context.Context, *soloist.Run) error {
			time.Sleep(time.Minute)
			return nil
		})
		if !errors.Is(err, soloist.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

// A suspended machine notices the loss only afterwards: its timers stood still.
func TestFunctionThatReturnsAfterSuspension(t *testing.T) {
	inCluster(t, func(c *cluster) {
		m := &suspended{}
		a := c.replica("a").on(m)
		err := a.guard().Do(c.t.Context(), func(context.Context, *soloist.Run) error {
			time.Sleep(100 * time.Millisecond)
			m.slept.Add(int64(time.Hour))
			return nil
		})
		if !errors.Is(err, soloist.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

// A panic is an error also if its outcome does not reach the record.
func TestPanicWithoutLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		err := a.guard().Do(c.t.Context(), func(context.Context, *soloist.Run) error {
			a.kill()
			panic("out of ink")
		})
		wantError(t, err, "out of ink")
		a.tap.cut.Store(false)
	})
}

// While a caller waits, the end of its context is ErrHeld with the cause; a call that is under way
// at that instant makes no difference.
func TestContextEndsWhileWaiting(t *testing.T) {
	for name, answer := range map[string]time.Duration{"between two looks": 0, "in a look": 2 * time.Second} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			end := c.held(a, a.guard(), 10*time.Minute)
			b.meets(slow(answer, "read"))
			shared := b.guard()
			for i := range 3 { // one looks, the others wait for their turn, and end in their first look
				why := errors.New("closing time")
				ctx, cancel := context.WithTimeoutCause(c.t.Context(), time.Minute+time.Duration(i)*time.Second, why)
				defer cancel()
				go func() {
					if err := shared.Do(ctx, c.watch("b", nil)); !errors.Is(err, soloist.ErrHeld) || !errors.Is(err, why) {
						t.Errorf("got %v", err)
					}
				}()
			}
			if err := <-end; err != nil {
				t.Error(err)
			}
			c.wantRuns(1)
		})
	}
}

// Inside the function the end of the caller's context is ErrStopped. The lock is free at once
// when the function has returned.
func TestContextEndsInsideFunction(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		begin := time.Now()
		err := c.hold(c.within(time.Minute), a, a.guard(), time.Hour)
		if took := time.Since(begin); !errors.Is(err, soloist.ErrStopped) || took > time.Minute {
			t.Errorf("got %v after %s", err, took)
		}
		if err := b.guard().TryDo(c.t.Context(), c.watch("b", nil)); err != nil {
			t.Error(err)
		}
		c.wantRuns(2)
	})
}

// No call that is lost, or whose answer is, keeps Do from its one call of the function, and nothing
// is left for which another caller would have to wait longer than a lease.
func TestLockSurvivesLostCalls(t *testing.T) {
	for name, loss := range map[string]func(string, int64) fault{"the call": drop, "the answer": lose, "all answers for a while": loseFrom} {
		for _, op := range []string{"create", "read", "acquire", "write", "renew", "release"} {
			for n := range int64(3) {
				inCase(t, op+" "+name, func(t *testing.T, c *cluster) {
					a, b := c.replica("a"), c.replica("b")
					a.meets(loss(op, n+1))
					for range 2 {
						if err := c.hold(c.t.Context(), a, a.guard(), time.Second+2*D/3); err != nil {
							t.Error(err)
						}
					}
					if err := c.hold(c.within(D+5*time.Second), b, b.guard(), 0); err != nil {
						t.Error("another replica:", err)
					}
					c.wantRuns(3)
					disjoint(t, c.all())
				})
			}
		}
	}
}

// loseFrom loses all answers for three seconds from the n-th call of op on. The calls are applied.
func loseFrom(op string, n int64) fault {
	var seen, end atomic.Int64
	return func(got string, apply func() error) error {
		if got == op && seen.Add(1) == n {
			end.Store(int64(sinceMidnight() + 3*time.Second))
		}
		err := apply()
		if sinceMidnight() < time.Duration(end.Load()) {
			return errNetwork
		}
		return err
	}
}

// An outage is waited out: before the function begins, and after it has returned.
func TestLockInOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		a.meets(fail(errNetwork))
		time.AfterFunc(10*time.Minute, func() { a.meets(nil) })
		if err := c.hold(c.t.Context(), a, a.guard(), time.Second); err != nil {
			t.Error(err)
		}
		a.wantLines(1, "store", "guard", errNetwork.Error())
		a.meets(fail(errNetwork))
		if err := a.guard().Do(c.within(time.Minute), c.watch("a", nil)); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errNetwork) {
			t.Errorf("got %v", err)
		}
		c.wantRuns(1)
	})
}
