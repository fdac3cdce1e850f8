package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// wholeSeconds is a store whose dates leave out fractions of a second.
type wholeSeconds struct{ store.Store }

func (s wholeSeconds) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	e, err := s.Store.Create(ctx, name, record)
	e.Date = e.Date.Truncate(time.Second)
	return e, err
}

func (s wholeSeconds) Read(ctx context.Context, name string) (store.Entry, error) {
	e, err := s.Store.Read(ctx, name)
	e.Date = e.Date.Truncate(time.Second)
	return e, err
}

func (s wholeSeconds) Lease(name, id string) store.Lease {
	return wholeSecondsLease{s.Store.Lease(name, id)}
}

type wholeSecondsLease struct{ store.Lease }

func (l wholeSecondsLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	s, err := l.Lease.Acquire(ctx, d, etag)
	s.Date = s.Date.Truncate(time.Second)
	return s, err
}

// An entry is claimed, deleted, made anew and claimed again, as fast as that
// goes: tokens grow.
func TestTokensGrowOverQuickDeletions(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(300 * time.Millisecond)
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name, work("0 * * * *", 0))
			r.tap.Store = wholeSeconds{c.store}
			for _, request := range []string{"one", "two"} {
				if _, err := r.RunNow(c.t.Context(), "work", request); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.store.Delete(c.t.Context(), "soloist/work"); err != nil {
				t.Fatal(err)
			}
		}
		var last int64
		for _, r := range c.all() {
			if r.Token <= last {
				t.Errorf("token %d after %d", r.Token, last)
			}
			last = r.Token
		}
		if took := c.all()[5].start.Sub(c.all()[0].start); took > 7*time.Second {
			t.Errorf("six runs took %s", took)
		}
	})
}

// A replica that has seen the entry for a second waits no more: the entry that was
// before it is gone for longer.
func TestTheFirstTickOfAnEntryThatWasSeenIsInTime(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("0 * * * *", 0))
		r.tap.Store = wholeSeconds{c.store}
		c.launch(r)
		time.Sleep(time.Hour + time.Minute)
		if runs := c.all(); len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 100*time.Millisecond {
			t.Errorf("got %+v", runs)
		}
	})
}

// A stop ends the wait for the first token: the lease is released, and nothing was
// claimed.
func TestAStopInTheWaitForTheFirstToken(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(500 * time.Millisecond)
		begin := time.Now()
		a.stop()
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the stop took %s", took)
		}
		if n := a.tap.counts(); n["write"] != 0 || n["release"] != 1 {
			t.Errorf("calls: %v", n)
		}
	})
}
