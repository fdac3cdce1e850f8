package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// slotsFail fails all calls for the slots of groups.
func slotsFail(err error) func(op, name string) error {
	return func(_, name string) error {
		if strings.Contains(name, "-group-") {
			return err
		}
		return nil
	}
}

// busyGroup has one replica run a job of a group of one slot for hours, and another replica wait for
// the slot.
func (c *cluster) busyGroup() (waiting *replica) {
	long, short := named("long", work("0 1 * * *", 5*time.Hour)), named("short", work("30 1 * * *", time.Second))
	long.Group, short.Group = "imports", "imports"
	c.limited("a", 1, long)
	until(time.Hour + 10*time.Second)
	b := c.limited("b", 1, short)
	until(time.Hour + 31*time.Minute)
	return b
}

// A job that waits for a slot is not stuck while the store is out of reach.
func TestGroupWaitsInOutage(t *testing.T) {
	for name, d := range map[string]time.Duration{"fails": 0, "fails late": time.Second} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			b := c.busyGroup()
			if h := b.Health(); h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("while it waits: %+v", h)
			}
			b.meets(func(string, func() error) error { time.Sleep(d); return errNetwork })
			time.Sleep(10 * time.Minute)
			if h := b.Health(); !errors.Is(h.Storage, errNetwork) || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("in the outage: %+v", h)
			}
			b.meets(nil)
			time.Sleep(time.Minute)
			if h := b.Health(); h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 0 {
				t.Errorf("after the outage: %+v", h)
			}
		})
	}
}

// The entry of a slot alone fails: that is the trouble of the jobs that need it, which are not stuck.
func TestGroupWaitsForSlotThatFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		in, free := named("in", work("0 * * * *", time.Second)), named("free", work("@every 10s", time.Second))
		in.Group = "imports"
		s := &faultyStore{Store: c.store}
		s.meets(slotsFail(errors.New("500")), nil)
		r := c.replica("a", in, free)
		r.Groups, r.Store = map[string]int{"imports": 1}, s
		c.launch(r)
		until(time.Hour + 20*time.Minute)
		h := r.Health()
		if h.Storage != nil || len(h.Stuck) != 0 || len(h.Broken) != 1 || !strings.Contains(fmt.Sprint(h.Broken["in"]), "imports") {
			t.Errorf("while the slot fails: %+v", h)
		}
		r.wantLines(1, "call to the store failed", "group=imports")
		s.meets(nil, nil)
		time.Sleep(time.Minute)
		if h := r.Health(); len(h.Broken) != 0 || c.countOf("in") != 1 {
			t.Errorf("afterwards: %+v, after %d runs", h, c.countOf("in"))
		}
		r.wantLines(1, "answers again", "group=imports")
	})
}

// A call returns and tells of slots that fail, or do not answer, however many there are.
func TestRunDueTellsSlotsThatFail(t *testing.T) {
	for what, fails := range map[string]func(ctx context.Context) error{
		"fail": func(context.Context) error { return errors.New("500") },
		"hang": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for _, slots := range []int{1, 2, 100} {
			inCase(t, fmt.Sprint(slots, " ", what), func(t *testing.T, c *cluster) {
				r := c.replica("a", inGroup(2, "0 * * * *", time.Second)...)
				r.Groups = map[string]int{"imports": slots}
				r.wake() // makes the entries
				until(time.Hour)
				r.Store = &slotless{c.store, fails}
				again := c.replicaOf(r, "b")
				again.Store = r.Store
				begin := time.Now()
				_, err := again.RunDue(c.within(10*time.Hour), soloist.Wake{})
				if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "imports") || took > time.Minute {
					t.Errorf("RunDue returned %v after %s", err, took)
				}
				begin = time.Now()
				_, err = again.RunNow(c.within(10*time.Hour), "import-0", "by-hand")
				if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "imports") || took > time.Minute {
					t.Errorf("RunNow returned %v after %s", err, took)
				}
			})
		}
	}
}

// A slotless store fails the reads of the slots of groups.
type slotless struct {
	store.Store
	fails func(context.Context) error
}

func (s *slotless) Read(ctx context.Context, name string) (store.Entry, error) {
	if strings.Contains(name, "-group-") {
		return store.Entry{}, s.fails(ctx)
	}
	return s.Store.Read(ctx, name)
}

// One of two slots fails, and no job waits for it.
func TestGroupPassesOverSlotThatFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &faultyStore{Store: c.store}
		s.meets(of("1-group-imports", errors.New("500")), nil)
		r := c.replica("a", inGroup(1, "0 * * * *", time.Second)...)
		r.Groups, r.Store = map[string]int{"imports": 2}, s
		for hour := range 20 {
			until(time.Duration(hour) * time.Hour)
			r.wake()
		}
		c.wantRuns(19)
		for _, run := range c.all() {
			if late := run.start.Sub(run.Tick); late > 5*time.Second {
				t.Errorf("%s was run %s late", run.ID(), late)
			}
		}
	})
}

// Calls of a lock of several slots wait for the end of an outage, as those of a lock of one do.
func TestLockOfSlotsWaitsForStore(t *testing.T) {
	for _, slots := range []int{1, 2, 5} {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(fail(errNetwork))
			begin, ctx := time.Now(), c.within(time.Hour)
			time.AfterFunc(20*time.Minute, func() { a.meets(nil) })
			var all sync.WaitGroup
			for what, by := range map[string]func(*soloist.Lock) error{
				"Do":    func(l *soloist.Lock) error { return l.Do(ctx, c.watch("a", nil)) },
				"TryDo": func(l *soloist.Lock) error { return l.TryDo(ctx, c.watch("a", nil)) },
			} {
				l := a.pool(slots)
				l.Name = what
				all.Go(func() {
					if err := by(l); err != nil || time.Since(begin) < 20*time.Minute || time.Since(begin) > 21*time.Minute {
						t.Errorf("%s returned %v after %s", what, err, time.Since(begin))
					}
				})
			}
			all.Wait()
			c.wantRuns(2)
		})
	}
}

// The error of a call whose context ends in an outage says what the store has answered.
func TestLockOfSlotsTellsOutage(t *testing.T) {
	for _, slots := range []int{1, 3} {
		inCase(t, fmt.Sprint(slots), func(t *testing.T, c *cluster) {
			a := c.replica("a").meets(fail(errNetwork))
			for _, by := range []func(*soloist.Lock) error{
				func(l *soloist.Lock) error { return l.Do(c.within(20*time.Minute), c.watch("a", nil)) },
				func(l *soloist.Lock) error { return l.TryDo(c.within(20*time.Minute), c.watch("a", nil)) },
			} {
				err := by(a.pool(slots))
				if !errors.Is(err, errNetwork) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
