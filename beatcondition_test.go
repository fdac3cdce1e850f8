package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A forgetful store is a coarse one behind a proxy that drops the condition from some calls: they name the ETag that
// the entry has.
type forgetful struct {
	coarse
	drops []string      // "break", "acquire", "write"
	broke *atomic.Int32 // leases of an entry that had changed since the caller has read it
}

// current returns what a call of op names instead of etag.
func (s *forgetful) current(ctx context.Context, op, name, etag string) string {
	if e, err := s.Read(ctx, name); err == nil && slices.Contains(s.drops, op) {
		return e.ETag
	}
	return etag
}

func (s *forgetful) BreakUnchanged(ctx context.Context, name, etag string) error {
	now := s.current(ctx, "break", name, etag)
	if now != etag {
		s.broke.Add(1)
	}
	return s.coarse.BreakUnchanged(ctx, name, now)
}

func (s *forgetful) Lease(name, id string) store.Lease {
	return &forgetfulLease{s.coarse.Lease(name, id), s, name}
}

type forgetfulLease struct {
	store.Lease
	s    *forgetful
	name string
}

func (l *forgetfulLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return l.Lease.Acquire(ctx, d, l.s.current(ctx, "acquire", l.name, etag))
}

func (l *forgetfulLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	return l.Lease.Write(ctx, l.s.current(ctx, "write", l.name, etag), record)
}

// The beats of a holder fail for a while, and its last one arrives just before another replica breaks its lease. Of the
// break, the acquisition and the claim one condition is enough to keep two runs apart.
func TestBreakWithoutCondition(t *testing.T) {
	for _, drops := range [][]string{{"break"}, {"break", "acquire"}, {"break", "write"}, {"break", "acquire", "write"}} {
		t.Run(strings.Join(drops, " "), func(t *testing.T) {
			var broke atomic.Int32
			overlaps := 0
			for cut := time.Duration(0); cut < 40*time.Second; cut += 1050 * time.Millisecond {
				inCase(t, cut.String(), func(t *testing.T, c *cluster) {
					if holderSeemsDead(c, &forgetful{coarse{c.store}, drops, &broke}, cut) {
						overlaps++
					}
				})
			}
			if broke.Load() == 0 {
				t.Error("no lease of a changed entry was broken")
			}
			if kept := len(drops) < 3; kept != (overlaps == 0) {
				t.Errorf("%d times two runs were under way at once", overlaps)
			}
		})
	}
}

// holderSeemsDead has a holder send a beat only after two that fail, and reports whether another run begins before its own has ended.
func holderSeemsDead(c *cluster, s *forgetful, cut time.Duration) (overlaps bool) {
	a, b := c.replica("a", brief(3*time.Second)), c.replica("b", brief(3*time.Second))
	a.tap.Store, b.tap.Store = coarse{c.store}, s
	c.launch(a)
	time.Sleep(time.Minute)
	c.launch(b)
	time.Sleep(time.Minute + cut)
	a.meets(fail(errors.New("503"), "write"))
	time.Sleep(2200 * time.Millisecond)
	a.meets(nil)
	time.Sleep(time.Minute)
	for i, run := range c.all()[1:] {
		before := c.all()[i]
		overlaps = overlaps || before.end.IsZero() || before.end.After(run.start)
	}
	return overlaps
}
