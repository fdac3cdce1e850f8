package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// swept sweeps, and checks which entries that removes.
func (c *cluster) swept(unused time.Duration, want ...string) {
	c.t.Helper()
	if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", unused); err != nil || !slices.Equal(got, want) {
		c.t.Fatalf("removed %q, %v, want %q", got, err, want)
	}
}

// holds takes a lock for so long, and returns the token. A replica that is killed may lose it.
func (c *cluster) holds(r *replica, l *soloist.Lock, d time.Duration) (token int64) {
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

// wantWait takes a lock, and checks for how long that waits.
func (c *cluster) wantWait(r *replica, l *soloist.Lock, least, most time.Duration) {
	c.t.Helper()
	begin := time.Now()
	c.holds(r, l, 0)
	if took := time.Since(begin); took < least || took > most {
		c.t.Errorf("the lock is taken after %s, want %s to %s", took, least, most)
	}
}

// diesAndIsDeleted has a replica that holds a lock die, and its entry deleted: it may go on.
func (c *cluster) diesAndIsDeleted(r *replica, lock string) {
	c.t.Helper()
	r.kill()
	c.ok(c.store.Break(c.t.Context(), "soloist/0-lock-"+lock, 0))
	c.ok(c.store.Delete(c.t.Context(), "soloist/0-lock-"+lock))
}

// Locks that are used once and never again must not pile up, and what is in use must stay.
func TestSweep(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Second))
		once := c.migration(a, "v1", nil)
		c.ok(once.Run(c.t.Context()))
		for _, name := range []string{"old", "Old/2", "held", "used"} {
			c.holds(a, a.locked(name), 0)
		}
		c.held(a, a.locked("held"), 3*time.Hour)
		time.Sleep(2 * time.Hour)
		c.holds(a, a.locked("used"), 0)
		c.swept(time.Hour, "0-lock---4fld--2f2", "0-lock-old")
		for _, name := range []string{"0-lock-held", "0-lock-used", "work"} {
			c.record(name)
		}
		c.ok(once.Run(c.t.Context()))
		if _, err := c.store.Read(c.t.Context(), "soloist/0-lock-old"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the entry of a lock that was removed: %v", err)
		}
	})
}

// A token that came twice would let a stale holder through the fence.
func TestTokenGrowsOverSweeps(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.replicas("a", "b")
		last := int64(0)
		for range 20 {
			for _, r := range all {
				token := c.holds(r, r.locked("old"), 0)
				if token <= last {
					t.Errorf("the token is %d after %d", token, last)
				}
				last = token
			}
			time.Sleep(time.Hour)
			c.swept(30*time.Minute, "0-lock-old")
		}
	})
}

// A sweep removes what no replica holds, so the next holder waits only for the token of a new entry. A tick of a group
// that must not be late is run.
func TestSweepDelaysNoHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		j := inGroup(1, "0 */2 * * *", time.Minute)[0].(soloist.Job)
		j.Missed, j.Lease = soloist.SkipMissed, D
		a := c.limited("a", 1, j)
		c.limited("b", 1, j)
		time.Sleep(2*time.Hour + 10*time.Minute)
		l := a.locked("old")
		c.holds(a, l, time.Second)
		time.Sleep(100 * time.Minute)
		if got, err := soloist.Sweep(c.t.Context(), c.store, "soloist", time.Hour); err != nil || len(got) != 2 {
			t.Fatal(got, err)
		}
		c.wantWait(a, l, 0, 3*time.Second)
		time.Sleep(30 * time.Minute)
		if got := c.outcomes("import-0"); len(got) != 2 || !strings.HasPrefix(got[1], "succeeded") {
			t.Errorf("outcomes: %q", got)
		}
	})
}

// A slowRemover takes a minute for each removal.
type slowRemover struct{ *local.Memory }

func (s slowRemover) Remove(ctx context.Context, name, etag string) error {
	time.Sleep(time.Minute)
	return s.Memory.Remove(ctx, name, etag)
}

// Nor does one wait that uses a lock again while its sweep still removes others.
func TestSweepUnderWayDelaysNoHolder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		l := a.locked("old")
		c.holds(a, l, time.Second)
		c.holds(a, a.locked("old2"), time.Second)
		time.Sleep(2 * time.Hour)
		done := make(chan error)
		go func() {
			got, err := soloist.Sweep(c.t.Context(), slowRemover{c.store}, "soloist", time.Hour)
			if len(got) != 2 {
				err = fmt.Errorf("removed %q, %w", got, err)
			}
			done <- err
		}()
		time.Sleep(90 * time.Second)
		c.wantWait(a, l, 0, 3*time.Second)
		c.ok(<-done)
	})
}

// A replica that has looked at a lock since the time of a sweep knows that the sweep has not removed it: if an operator
// deletes it then, its holder may not know.
func TestSweepForgetsOnlyWhatWasSeenBefore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, b := c.replica("a"), c.replica("b")
		l := a.locked("held")
		c.holds(a, a.locked("old"), 0)
		c.held(b, b.locked("held"), 3*time.Hour)
		for range 2 {
			time.Sleep(time.Hour + time.Minute)
			if err := l.TryDo(c.t.Context(), taking(0)); !errors.Is(err, soloist.ErrHeld) {
				t.Error(err)
			}
		}
		c.swept(time.Hour, "0-lock-old")
		c.diesAndIsDeleted(b, "held")
		c.wantWait(a, l, D, time.Minute)
	})
}

// A replica that saw a lock free waits for a lease if the entry was deleted and not swept: another may have taken it
// since, and may not know. So it does if it has seen the lock since the sweep, or if the store keeps no note of that.
func TestSweepProvesNothingAboutDeletion(t *testing.T) {
	for name, tt := range map[string]struct{ swept, seen, deleted bool }{ // seen: the entry that was made after the sweep
		"deleted":                   {deleted: true},
		"deleted after a sweep":     {swept: true, seen: true, deleted: true},
		"swept, without a document": {swept: true},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			a, b := c.replica("a"), c.replica("b")
			if !tt.deleted {
				a.Store = struct{ store.Store }{a.Store}
			}
			l := a.locked("old")
			c.holds(a, l, time.Second)
			time.Sleep(2 * time.Hour)
			if tt.swept {
				c.swept(time.Hour, "0-lock-old")
			}
			if tt.seen {
				c.holds(a, l, time.Second)
			}
			if tt.deleted {
				c.held(b, b.locked("old"), time.Hour)
				time.Sleep(time.Minute)
				c.diesAndIsDeleted(b, "old")
			}
			c.wantWait(a, l, D, time.Minute)
		})
	}
}

// An operator has ended the lease of a holder that may not know: its entry says for how long to wait.
func TestSweepSparesBrokenLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a")
		c.held(a, a.guard(), 2*time.Hour)
		time.Sleep(time.Hour)
		a.kill()
		c.breakGuard()
		c.swept(30 * time.Minute)
	})
}

func TestSweepRefuses(t *testing.T) {
	for what, tt := range map[string]struct {
		store  store.Store
		app    string
		unused time.Duration
	}{
		"a place for leases and records": {nil, "soloist", time.Hour},
		"App":                            {&local.Memory{}, "So", time.Hour},
		"was not used":                   {&local.Memory{}, "soloist", time.Minute},
		"store.Remover":                  {struct{ store.Store }{&local.Memory{}}, "soloist", time.Hour},
	} {
		_, err := soloist.Sweep(t.Context(), tt.store, tt.app, tt.unused)
		wantError(t, err, what)
	}
}
