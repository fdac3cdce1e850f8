package soloist_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// keepHistory has replicas that are not started yet write the log of outcomes until stop.
func (c *cluster) keepHistory(replicas ...*replica) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var done sync.WaitGroup
	for _, r := range replicas {
		h := &history.Writer{Store: c.store, App: "soloist", Failed: func(job string, err error) { c.t.Error(job, err) }}
		r.Events = h.Take
		done.Go(func() { h.Run(ctx) })
	}
	return func() { cancel(); done.Wait() }
}

// logged returns the outcomes of a job in its log and in its record.
func (c *cluster) logged(job string) []history.Line {
	rec := c.record(job)
	lines, err := history.Read(c.t.Context(), c.store, "soloist/"+job, time.Time{}, &rec)
	if err != nil {
		c.t.Error(err)
	}
	return lines
}

// The log of outcomes has those of a backfill, which the record only counts.
func TestBackfillIsInHistory(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		a := c.replica("a", w)
		defer c.keepHistory(a)()
		c.launch(a)
		time.Sleep(65 * time.Minute)
		c.fills(soloist.Backfill{From: time.Now().Add(-time.Hour), To: time.Now(), All: true}, w)
		time.Sleep(3 * time.Hour)
		filled, lines := 0, c.logged("work")
		for _, l := range lines {
			if store.BackfillOf(l.Request) != 0 {
				filled++
			}
		}
		if filled != 6 {
			t.Errorf("%d of %d outcomes are of the backfill, want 6", filled, len(lines))
		}
	})
}

// Each shard has a backfill of its own.
func TestBackfillOfShards(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		w.Shards = 2
		c.startAll(w, "a", "b")
		time.Sleep(90 * time.Second)
		for _, name := range []string{"work-0", "work-1"} {
			c.order(soloist.Order{Kind: store.OrderBackfill, Job: name, Backfill: lastHour(5)}, w)
		}
		time.Sleep(2 * time.Minute)
		for _, name := range []string{"work-0", "work-1"} {
			if got := c.record(name).Backfill; got.Counts[store.Succeeded] != 5 {
				t.Errorf("%s: got %+v", name, got)
			}
		}
	})
}

// A run of a backfill takes a slot of the group of its job, and a tick that waits for one is told so.
func TestBackfillInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		one, other := work("@every 1m", 5*time.Second), named("other", work("@every 1m", 20*time.Second))
		one.Group, other.Group = "imports", "imports"
		for _, name := range []string{"a", "b"} {
			c.limited(name, 1, one, other)
		}
		time.Sleep(90 * time.Second)
		r := c.replica("desk", one, other)
		r.Groups = map[string]int{"imports": 1}
		if _, err := r.Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "work", Backfill: lastHour(10)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 10 {
			t.Errorf("got %+v", got)
		}
		if most := atOnce(c.all()); most != 1 {
			t.Errorf("%d runs of the group at once", most)
		}
	})
}

// The ticks of a follower are run again whatever became of the jobs before it.
func TestBackfillOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		before, w := importing("@every 1m", 10*time.Second), following("work", "import", 5*time.Second)
		for _, name := range []string{"a", "b"} {
			c.start(name, before, w)
		}
		time.Sleep(90 * time.Second)
		c.order(soloist.Order{Kind: store.OrderBackfill, Backfill: lastHour(10)}, before, w)
		time.Sleep(10 * time.Minute)
		if got := c.record("work").Backfill; got.Counts[store.Succeeded] != 10 {
			t.Errorf("got %+v", got)
		}
		for _, f := range c.record("work").History {
			if f.Status != store.Succeeded {
				t.Errorf("got %+v", f)
			}
		}
	})
}
