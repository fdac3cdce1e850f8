package soloist_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// pair starts two jobs of one group on one replica, over a store that meets faults.
func (c *cluster) pair(first, second soloist.Job) *faultyStore {
	s := &faultyStore{Store: c.store}
	first.Group, second.Group = "imports", "imports"
	r := c.replica("a", first, second)
	r.Groups, r.Store = map[string]int{"imports": 1}, s
	c.launch(r)
	return s
}

// countOf is how often a job was run.
func (c *cluster) countOf(job string) (n int) {
	for _, r := range c.all() {
		if r.Job == job {
			n++
		}
	}
	return n
}

// The lease of a slot is broken, and who takes it holds off for longer than a tick waits for a slot.
func TestGroupGoesOnAfterBreak(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		until(time.Hour + time.Minute)
		if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		until(6*time.Hour + 30*time.Minute)
		c.wantRuns(6)
	})
}

// The outcome of a run cannot be written. Its slot is free all the same.
func TestGroupDoesNotWaitForOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(named("x", work("0 1 * * *", time.Minute)), named("y", work("30 * * * *", time.Second)))
		until(time.Hour + 30*time.Second)
		s.meets(of("x", errors.New("500")), nil)
		until(6 * time.Hour)
		if n := c.countOf("y"); n != 6 {
			t.Errorf("y was run %d times, want 6", n)
		}
		s.meets(nil, nil)
		time.Sleep(time.Minute)
	})
}

// Calls take so long that a slot cannot be had within the time for which others are waited for.
func TestGroupOverSlowStore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(leased(30*time.Second, named("x", work("0 * * * *", time.Second))), leased(30*time.Second, named("y", work("30 * * * *", time.Second))))
		slow := func(op, _ string) error { time.Sleep(2 * time.Second); return nil }
		s.meets(slow, nil)
		until(6*time.Hour + 15*time.Minute)
		if x, y := c.countOf("x"), c.countOf("y"); x != 6 || y != 6 {
			t.Errorf("%d and %d runs, want 6 and 6", x, y)
		}
		s.meets(nil, nil)
	})
}

// A run by hand does not wait for a slot whose record a person has to correct.
func TestRunNowTellsUnusableSlot(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", inGroup(1, "0 1 * * *", time.Minute)...)
		r.Groups = map[string]int{"imports": 1}
		if _, err := c.store.Create(c.t.Context(), "soloist/0-group-imports", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := r.RunNow(c.within(time.Hour), "import-0", "by-hand")
		if err == nil || !strings.Contains(err.Error(), "imports") || time.Since(begin) > time.Minute {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// A slot is lost after the lease of the job is acquired, and before the tick is claimed: then nobody has
// to wait for the end of the lease.
func TestGroupSlotLostBeforeClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := c.pair(named("x", work("0 1 * * *", time.Second)), named("y", work("30 2 * * *", time.Second)))
		until(time.Hour - time.Second)
		s.meets(nil, func(op, name string) error {
			if op == "acquire" && strings.HasSuffix(name, "/x") {
				s.meets(nil, nil)
				if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
					t.Error(err)
				}
				time.Sleep(D / 2) // the slot is found broken by its renewal
			}
			return nil
		})
		until(time.Hour + 10*time.Minute)
		c.wantOutcomes("x", "succeeded 01:00:00")
		last := c.all()[len(c.all())-1]
		if late := last.start.Sub(last.Tick); late > D/2+D+3*time.Second { // who takes the slot holds off
			t.Errorf("x was run %s late", late)
		}
	})
}
