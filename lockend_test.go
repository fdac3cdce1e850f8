package soloist_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

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
