package soloist_test

import (
	"testing"
	"time"
)

// The runner of a group has died, and an operator has broken the lease of its slot: who takes the slot
// holds off, which takes longer than a tick waits for a slot. The slot is used again all the same.
func TestGroupSlotIsBrokenAfterDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.limited("a", 1, inGroup(1, "0 * * * *", 30*time.Minute)...)
		time.Sleep(time.Hour + time.Minute)
		other := named("other", work("2 * * * *", time.Second))
		other.Group = "imports"
		c.limited("b", 1, other)
		a.kill()
		if err := c.store.Break(c.t.Context(), "soloist/0-group-imports", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		runs := c.all()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2", len(runs))
		}
		if late := runs[1].start.Sub(runs[1].Tick); late > 90*time.Second {
			t.Errorf("the next run began %s late", late)
		}
	})
}
