package soloist_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"sync"
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
