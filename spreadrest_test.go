package soloist_test

import (
	"context"
	"testing"
	"time"

	"github.com/soloist-go/soloist/store"
)

// A shard whose lease was lost has not failed: its Backoff does not count, as if it had been handed over.
func TestLostLeaseOfShardIsNoFailure(t *testing.T) {
	inCluster(t, func(c *cluster) { // a breaking lease is not renewed, and the outcome can still be written
		c.join(0, ailing(2, 10*time.Minute, nil), "a")
		until(2 * D)
		if err := c.store.Break(c.t.Context(), "soloist/feed-0", D); err != nil {
			c.t.Fatal(err)
		}
		until(8 * D)
		c.wantHeld(2, 3*D)
		c.wantEven(2, "a")
	})
}

// A replica whose lease is lost before it has run anything does not rest.
func TestLeaseLostInHoldOffIsNoRest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := lead("feed")
		work.Backoff = 10 * time.Minute
		remove := func() {
			_ = c.store.Break(context.Background(), "soloist/feed", 0)
			if err := c.store.Delete(context.Background(), "soloist/feed"); err != nil {
				c.t.Fatal(err)
			}
		}
		a := c.start("a", work)
		time.Sleep(D / 2)
		c.start("b", work)
		time.Sleep(D / 2)
		a.kill()
		remove()
		for e := (store.Entry{}); e.State != store.Leased; { // b holds off under the lease on a new entry
			time.Sleep(time.Second)
			e, _ = c.store.Read(context.Background(), "soloist/feed")
		}
		remove()
		time.Sleep(4 * D)
		if n := len(ranBy(c, "b", time.Time{})); n != 1 {
			c.t.Errorf("b has run %d times, want once: its first lease was lost before it ran", n)
		}
	})
}
