package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// breakGuard ends the lease of the lock at once.
func (c *cluster) breakGuard() {
	c.t.Helper()
	c.ok(c.store.Break(context.Background(), guardEntry, 0))
}

// The context of a holder that is cut off ends with ErrLost before the next holder begins, and that
// is no later than a lease and a little after the cut, also if an operator breaks its lease. The other slots work on.
// A lease that is shorter than the store's is had as soon, also by a caller that comes again and again.
func TestKilledHolderOfLockIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		slots        int
		lease, held  time.Duration
		broken, asks bool
		most         time.Duration
	}{
		{1, D, time.Second, false, false, D + time.Second},
		{1, D, 17 * time.Minute, false, false, D + time.Second},
		{2, D, time.Minute, false, false, D + time.Second},
		{1, D, time.Minute, true, false, D + D/6 + time.Second},
		{1, 3 * time.Second, time.Minute, false, false, 4500 * time.Millisecond},
		{1, 3 * time.Second, time.Minute, false, true, 4500 * time.Millisecond},
	} {
		inCase(t, fmt.Sprint(tt), func(t *testing.T, c *cluster) {
			a, b, other := c.replica("a"), c.replica("b"), c.replica("other")
			lock := func(r *replica) *soloist.Lock {
				r.tap.Store = coarse{c.store}
				l := r.pool(tt.slots)
				l.Lease = tt.lease
				return l
			}
			end := c.held(a, lock(a), time.Hour)
			if tt.slots > 1 {
				c.held(other, lock(other), time.Hour)
			}
			time.AfterFunc(tt.held, func() {
				a.kill()
				if tt.broken {
					c.breakGuard()
				}
			})
			killed, l := time.Now().Add(tt.held), lock(b)
			for tt.asks && errors.Is(l.TryDo(c.t.Context(), c.watch("b", nil)), soloist.ErrHeld) {
				time.Sleep(200 * time.Millisecond)
			}
			if !tt.asks {
				c.ok(l.Do(c.t.Context(), c.watch("b", nil)))
			}
			if err := <-end; !errors.Is(err, soloist.ErrLost) {
				t.Errorf("the old holder gets %v", err)
			}
			old, next := ranBy(c, "a", time.Time{})[0], ranBy(c, "b", time.Time{})[0]
			if !errors.Is(old.cause, soloist.ErrLost) || !old.end.Before(next.start) {
				t.Errorf("the context ended with %v at %s, and the next holder began at %s", old.cause, old.end, next.start)
			}
			if took := next.start.Sub(killed); took > tt.most {
				t.Errorf("replaced after %s, want at most %s", took, tt.most)
			}
		})
	}
}

// A function that goes on after the loss returns ErrLost, whatever it returns itself, and also after a stop;
// what it returns, or its panic, is not lost.
func TestFunctionThatOutlivesItsLock(t *testing.T) {
	own := errors.New("out of paper")
	for name, tt := range map[string]struct {
		broken, stopped, panics bool
		returned                error
	}{
		"cut off":                {},
		"broken":                 {broken: true},
		"stopped, then cut off":  {stopped: true},
		"an error":               {returned: own},
		"the end of its context": {returned: context.Canceled},
		"a panic":                {panics: true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			time.AfterFunc(5*time.Second, func() {
				if tt.broken {
					c.breakGuard()
				} else {
					a.kill()
				}
			})
			overrun := make(chan string, 2)
			l := a.guard()
			l.Overrun = func(name string, cause error) { overrun <- fmt.Sprint(name, " ", errors.Is(cause, soloist.ErrLost)) }
			ctx := c.t.Context()
			if tt.stopped {
				ctx = c.within(3 * time.Second)
			}
			err := l.Do(ctx, func(context.Context, *soloist.Run) error {
				time.Sleep(time.Minute)
				if tt.panics {
					panic("out of ink")
				}
				return tt.returned
			})
			if tt.panics {
				wantError(t, err, "out of ink")
			} else if !errors.Is(err, soloist.ErrLost) || tt.returned != nil && !errors.Is(err, tt.returned) {
				t.Errorf("got %v", err)
			}
			if len(overrun) != 1 || <-overrun != "guard true" {
				t.Error("Overrun was not called once, with its loss")
			}
			c.ok(b.guard().Do(c.within(time.Minute), c.watch("b", nil)))
		})
	}
}

// A suspended machine notices the loss only afterwards: its timers stood still.
func TestFunctionThatReturnsAfterSuspension(t *testing.T) {
	inCluster(t, func(c *cluster) {
		m := &suspended{}
		err := c.replica("a").on(m).guard().Do(c.t.Context(), func(context.Context, *soloist.Run) error {
			time.Sleep(100 * time.Millisecond)
			m.slept.Add(int64(time.Hour))
			return nil
		})
		if !errors.Is(err, soloist.ErrLost) {
			t.Errorf("got %v", err)
		}
	})
}

// A call that is refused, since a function of the lock goes on without its lease, has lost nothing, and no replica holds the lock.
// A call that waits learns of it when its context ends.
func TestLockTakesNothingBesideAnOverrun(t *testing.T) {
	for slots := 1; slots <= 2; slots++ {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			l := c.replica("a").pool(slots)
			over, done := make(chan struct{}), make(chan error, 2)
			l.Overrun = func(string, error) { close(over) }
			wantRefused := func(err error) {
				t.Helper()
				if err == nil || errors.Is(err, soloist.ErrLost) || errors.Is(err, store.ErrHeld) || !strings.Contains(err.Error(), "takes nothing new") {
					t.Errorf("got %v", err)
				}
			}
			go func() {
				done <- l.Do(c.t.Context(), func(context.Context, *soloist.Run) error { time.Sleep(10 * time.Minute); return nil })
			}()
			time.Sleep(5 * time.Second)
			if slots == 1 {
				waits := c.within(5 * time.Minute)
				go func() { done <- l.Do(waits, c.watch("a", nil)) }()
			}
			for _, slot := range []string{guardEntry, "soloist/1-lock-guard"} {
				_ = c.store.Break(c.t.Context(), slot, 0) // which of them is held is not known
			}
			<-over
			for _, do := range doers {
				wantRefused(do(l, c.within(time.Minute), c.watch("a", nil)))
			}
			if slots == 1 {
				wantRefused(<-done)
			}
			if err := <-done; !errors.Is(err, soloist.ErrLost) {
				t.Errorf("the function that goes on: got %v", err)
			}
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
		c.ok(b.guard().TryDo(c.t.Context(), c.watch("b", nil)))
		c.wantRuns(2)
	})
}

// lostCalls runs f in a case for each of the first n calls of an operation: the call is lost, or its answer is,
// or all answers are for three seconds.
func lostCalls(t *testing.T, n int64, f func(t *testing.T, c *cluster, lost fault)) {
	losses := map[string]func(string, int64) fault{"the call": drop, "the answer": lose, "all answers for a while": loseFrom}
	for name, loss := range losses {
		for _, op := range []string{"create", "read", "acquire", "write", "renew", "release"} {
			for i := range n {
				inCase(t, op+" "+name, func(t *testing.T, c *cluster) { f(t, c, loss(op, i+1)) })
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

// No call that is lost keeps Do from its one call of the function, and nothing is left for which another caller
// would have to wait longer than a lease.
func TestLockSurvivesLostCalls(t *testing.T) {
	lostCalls(t, 3, func(t *testing.T, c *cluster, lost fault) {
		a, b := c.replica("a").meets(lost), c.replica("b")
		for range 2 {
			c.ok(c.hold(c.t.Context(), a, a.guard(), time.Second+2*D/3))
		}
		c.ok(c.hold(c.within(D+5*time.Second), b, b.guard(), 0))
		c.wantRuns(3)
		disjoint(t, c.all())
	})
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
		a, b := c.replica("a").meets(away(2*D)), c.replica("b")
		time.AfterFunc(D+5*time.Second, func() { c.ok(b.guard().TryDo(c.t.Context(), taking(0))) })
		l, calls := a.guard(), 0
		for _, do := range []doer{(*soloist.Lock).Do, (*soloist.Lock).TryDo} {
			before := calls
			err := do(l, c.t.Context(), func(context.Context, *soloist.Run) error { calls++; return nil })
			if err != nil || calls != before+1 {
				t.Errorf("got %v, and the function was called %d times: want nil after one call", err, calls-before)
			}
		}
	})
}
