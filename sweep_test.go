package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// Locks that are used once and never again must not pile up, and what is in use must stay.
func TestSweep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		once := &soloist.Once{Name: "migrate", Key: "v1", Lease: D, Do: func(context.Context, *soloist.Run) error { return nil }}
		a.Bind(once)
		if err := once.Run(c.t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"old", "Old/2", "held", "used"} {
			c.holds(a, name, 0)
		}
		var holding sync.WaitGroup
		defer holding.Wait()
		holding.Go(func() { c.holds(a, "held", 3*time.Hour) })
		time.Sleep(2 * time.Hour)
		c.holds(a, "used", 0)
		got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour)
		if want := []string{"0-lock---4fld--2f2", "0-lock-old"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("removed %q, %v, want %q", got, err, want)
		}
		for _, name := range []string{"0-lock-held", "0-lock-used", "work"} {
			c.record(name)
		}
		if err := once.Run(c.t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := c.store.Read(c.t.Context(), "soloist/0-lock-old"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the entry of a lock that was removed: %v", err)
		}
	})
}

// A token that came twice would let a stale holder through the fence.
func TestTokenGrowsOverSweeps(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		last := int64(0)
		for round := range 20 {
			for _, r := range []*replica{a, b} {
				token := c.holds(r, "old", 0)
				if token <= last {
					t.Errorf("round %d: the token is %d after %d", round, token, last)
				}
				last = token
			}
			time.Sleep(time.Hour)
			if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", 30*time.Minute); err != nil || len(got) != 1 {
				t.Errorf("round %d: removed %q, %v", round, got, err)
			}
		}
	})
}

// A sweep removes what nobody holds, so the next holder waits for nobody. A tick of a group that must not be late is run.
func TestNobodyWaitsAfterSweep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := inGroup(1, "0 */2 * * *", time.Minute)
		j := w[0].(soloist.Job)
		j.Missed, j.Lease = soloist.SkipMissed, D
		a := c.limited("a", 1, j)
		c.limited("b", 1, j)
		time.Sleep(2*time.Hour + 10*time.Minute)
		l := a.Lock("old")
		l.Lease = D
		c.holdsIt(a, l, time.Second)
		time.Sleep(100 * time.Minute)
		if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour); err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		begin := time.Now()
		c.holdsIt(a, l, 0)
		if took := time.Since(begin); took > 3*time.Second { // a new entry waits for a token
			t.Errorf("the lock is taken after %s", took)
		}
		time.Sleep(30 * time.Minute)
		if got := c.outcomes("import-0"); len(got) != 2 || !strings.HasPrefix(got[1], "succeeded") {
			t.Errorf("outcomes: %q", got)
		}
	})
}

// A lock that is used again while its sweep still removes others waits for nobody.
func TestNobodyWaitsDuringSweep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.Lock("old")
		l.Lease = D
		c.holdsIt(a, l, time.Second)
		c.holds(a, "old2", time.Second)
		time.Sleep(2 * time.Hour)
		slow := slowRemover{c.store, time.Minute}
		var sweeping sync.WaitGroup
		defer sweeping.Wait()
		sweeping.Go(func() {
			if got, err := soloist.Sweep(c.t.Context(), slow, "soloist", time.Hour); err != nil || len(got) != 2 {
				t.Errorf("removed %q, %v", got, err)
			}
		})
		time.Sleep(slow.each + slow.each/2)
		begin := time.Now()
		c.holdsIt(a, l, 0)
		if took := time.Since(begin); took > 3*time.Second { // a new entry waits for a token
			t.Errorf("the lock is taken after %s", took)
		}
	})
}

// A slowRemover takes so long for each removal.
type slowRemover struct {
	*local.Memory
	each time.Duration
}

func (s slowRemover) Remove(ctx context.Context, name, etag string) error {
	time.Sleep(s.each)
	return s.Memory.Remove(ctx, name, etag)
}

// A replica that has looked at a lock since the time of a sweep knows that the sweep has not removed it: whoever deletes it then,
// its holder may not know.
func TestSweepForgetsOnlyWhatWasSeenBefore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		l := a.Lock("held")
		l.Lease = D
		c.holds(a, "old", 0)
		go c.holds(b, "held", 3*time.Hour)
		for range 2 {
			time.Sleep(time.Hour + time.Minute)
			if err := l.TryDo(c.t.Context(), func(context.Context, *soloist.Run) error { return nil }); !errors.Is(err, soloist.ErrHeld) {
				t.Error(err)
			}
		}
		if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour); err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		b.kill()
		c.deleteLock("held")
		begin := time.Now()
		c.holdsIt(a, l, 0)
		if took := time.Since(begin); took < D {
			t.Errorf("the lock is taken after %s, while its holder may go on", took)
		}
		time.Sleep(time.Hour)
	})
}

// deleteLock ends the lease of a lock and deletes its entry.
func (c *cluster) deleteLock(name string) {
	c.t.Helper()
	for _, err := range []error{c.store.Break(c.t.Context(), "soloist/0-lock-"+name, 0), c.store.Delete(c.t.Context(), "soloist/0-lock-"+name)} {
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

// A replica that saw a lock free waits for a lease if the entry was deleted and not swept: another may have taken it since, and may
// not know. So it does if it has seen the lock since the sweep, or if the store keeps no note of that.
func TestSweepProvesNothingAboutDeletion(t *testing.T) {
	for name, tt := range map[string]struct {
		store       func(store.Store) store.Store
		swept, seen bool // before the deletion; the entry that was made after the sweep
	}{
		"deleted":                   {nil, false, false},
		"deleted after a sweep":     {nil, true, true},
		"swept, without a document": {func(s store.Store) store.Store { return struct{ store.Store }{s} }, true, false},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			if tt.store != nil {
				a.Store = tt.store(a.Store)
			}
			l := a.Lock("old")
			l.Lease = D
			c.holdsIt(a, l, time.Second)
			time.Sleep(2 * time.Hour)
			if tt.swept {
				if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour); err != nil || len(got) != 1 {
					t.Fatal(got, err)
				}
			}
			if tt.seen {
				c.holdsIt(a, l, time.Second)
			}
			if tt.store == nil {
				go c.holds(b, "old", time.Hour)
				time.Sleep(time.Minute)
				b.kill()
				c.deleteLock("old")
			}
			begin := time.Now()
			c.holdsIt(a, l, 0)
			if took := time.Since(begin); took < D {
				t.Errorf("the lock is taken after %s, while its holder may go on", took)
			}
			time.Sleep(2 * time.Hour)
		})
	}
}

// An operator has ended the lease of a holder that may not know: its entry says for how long to wait.
func TestSweepSparesBrokenLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		var holding sync.WaitGroup
		defer holding.Wait()
		holding.Go(func() { c.holds(a, "old", 2*time.Hour) })
		time.Sleep(time.Hour)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/0-lock-old", 0); err != nil {
			t.Fatal(err)
		}
		if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", 30*time.Minute); err != nil || len(got) != 0 {
			t.Errorf("removed %q, %v", got, err)
		}
	})
}

func TestSweepRefuses(t *testing.T) {
	for what, err := range map[string]error{
		"no store":   second(soloist.Sweep(t.Context(), nil, "soloist", time.Hour)),
		"an app":     second(soloist.Sweep(t.Context(), &local.Memory{}, "So", time.Hour)),
		"a time":     second(soloist.Sweep(t.Context(), &local.Memory{}, "soloist", time.Minute)),
		"no removal": second(soloist.Sweep(t.Context(), struct{ store.Store }{&local.Memory{}}, "soloist", time.Hour)),
	} {
		if err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

func second[A any](_ A, err error) error { return err }

// holds takes a lock for so long, and returns the token. A replica that is killed may lose it.
func (c *cluster) holds(r *replica, name string, d time.Duration) (token int64) {
	l := r.Lock(name)
	l.Lease = D
	return c.holdsIt(r, l, d)
}

// holdsIt is holds for a lock that its replica has used before.
func (c *cluster) holdsIt(r *replica, l *soloist.Lock, d time.Duration) (token int64) {
	err := l.Do(c.t.Context(), func(ctx context.Context, run *soloist.Run) error {
		token = run.Token
		_ = pause(ctx, d)
		return nil
	})
	if err != nil && c.t.Context().Err() == nil && !r.tap.cut.Load() {
		c.t.Errorf("the lock %s: %v", l.Name, err)
	}
	return token
}
