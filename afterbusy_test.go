package soloist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// leaveAtItsEnd starts a replica that runs a tick of import, and one that goes on. The first one is
// stopped while it runs, and ends within its grace.
func (c *cluster) leaveAtItsEnd(work []soloist.Work, started, stopped time.Duration) {
	a := c.replica("a", work...)
	a.Grace = time.Hour
	c.launch(a)
	until(started)
	c.start("b", work...)
	until(stopped)
	a.stop()
}

// A replica that runs the next tick of the predecessor, which has waited for the one before, starts
// the follower for that one.
func TestFollowerOfPredecessorThatRunsItsNextTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("*/10 * * * *", 12*time.Minute)
		imports.Overlap = soloist.QueueOne
		c.leaveAtItsEnd([]soloist.Work{imports, following("report", "import", time.Minute)}, 11*time.Minute, 20*time.Minute+30*time.Second)
		until(33 * time.Minute)
		c.wantOutcomes("report", "succeeded 00:10:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

// The follower comes before the ticks of a backfill, also on the replica that runs them.
func TestFollowerOfPredecessorThatRunsABackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{importing("0 * * * *", 20*time.Minute), following("report", "import", time.Minute)}
		go func() {
			until(time.Hour + 6*time.Minute)
			b := soloist.Backfill{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(-19 * time.Hour), All: true}
			if _, err := c.replica("desk", work...).Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "import", By: "anna", Backfill: b}); err != nil {
				t.Error(err)
			}
		}()
		c.leaveAtItsEnd(work, time.Hour+5*time.Minute, time.Hour+7*time.Minute)
		until(time.Hour + 30*time.Minute)
		if n := len(c.filled()); n != 1 {
			t.Errorf("%d runs of the backfill, want the first one under way", n)
		}
		c.wantOutcomes("report", "succeeded 01:00:00")
		c.wantFollowed("report", "import", 10*time.Second)
	})
}

// Shards that end just before their next tick have the follower start, and not one period later.
func TestFollowerOfShardsThatTakeAPeriod(t *testing.T) {
	inCluster(t, func(c *cluster) {
		const n = 8
		imports := inShards(n, named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
			return pause(ctx, 9*time.Minute+58*time.Second+time.Duration(r.Shard)*200*time.Millisecond)
		})))
		for _, name := range []string{"a", "b"} {
			c.start(name, imports, following("report", "import", time.Second))
		}
		until(2*time.Hour + 5*time.Minute)
		ends := map[time.Time]time.Time{}
		for i := range n {
			for _, r := range c.runsOf(fmt.Sprintf("import-%d", i)) {
				if r.end.After(ends[r.Tick]) {
					ends[r.Tick] = r.end
				}
			}
		}
		runs := c.runsOf("report")
		if len(runs) != 11 {
			t.Errorf("%d runs of report, want one for each tick but the last", len(runs))
		}
		for _, r := range runs {
			if late := r.start.Sub(ends[r.Tick]); late < 0 || late > 11*time.Second {
				t.Errorf("report starts for %s %s after the last shard has ended", r.Tick.Format(time.TimeOnly), late)
			}
		}
	})
}

// Each outcome that has no end counts from when it was seen, also if others have followed while the
// follower was busy.
func TestFollowerStartingDeadlineOfOutcomesWithoutEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("*/5 * * * *", time.Second)
		imports.Paused = true
		free := named("free", doing("", func(ctx context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 5 {
				return pause(ctx, 31*time.Minute)
			}
			return nil
		}))
		free.After, free.AfterAny, free.StartingDeadline, free.Missed = "import", true, 7*time.Minute, soloist.RunAll
		c.start("a", imports, free)
		until(39 * time.Minute)
		c.wantOutcomes("free", "succeeded 00:05:00", "missed 00:05:00-00:25:00 past the starting deadline", "succeeded 00:30:00", "succeeded 00:35:00")
	})
}
