package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// timesByID returns how often each tick of each shard was run.
func timesByID(runs []ran) map[string]int {
	times := map[string]int{}
	for _, r := range runs {
		times[r.ID()]++
	}
	return times
}

// Each shard of each tick is run once, and the replicas share the shards.
func TestEachShardOfEachTickRunsOnce(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		inCase(t, fmt.Sprintf("claimed ahead: %t", ahead), func(t *testing.T, c *cluster) {
			job := inShards(8, work("@every 20s", 3*time.Second))
			job.ClaimAhead = ahead
			c.startAll(job, "a", "b", "c")
			time.Sleep(5*time.Minute + 10*time.Second)
			by := map[string]int{}
			for _, r := range c.all() {
				if r.Shards != 8 || r.Job != fmt.Sprintf("work-%d", r.Shard) || !strings.HasPrefix(r.ID(), r.Job+"@") {
					t.Fatalf("%s is shard %d of %d, with the id %s", r.Job, r.Shard, r.Shards, r.ID())
				}
				by[r.replica]++
			}
			if n := len(timesByID(c.all())); n != 15*8 || len(c.all()) != n {
				t.Errorf("%d runs of %d claims, want 8 of each of 15 ticks", len(c.all()), n)
			}
			if min(by["a"], by["b"], by["c"]) < 15*8/6 {
				t.Errorf("the replicas share the work so: %v", by)
			}
		})
	}
}

// A shard that fails has an outcome and a status of its own.
func TestShardsHaveOutcomesOfTheirOwn(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", inShards(3, doing("@every 10s", func(_ context.Context, run *soloist.Run) error {
			if run.Shard == 1 {
				return errors.New("no part")
			}
			return nil
		})))
		time.Sleep(15 * time.Second)
		all, err := a.Status(c.t.Context())
		if err != nil || len(all) != 3 {
			t.Fatalf("%d statuses, %v", len(all), err)
		}
		for i, want := range []store.Status{store.Succeeded, store.Failed, store.Succeeded} {
			name, st := fmt.Sprint("work-", i), all[i]
			if r := c.record(name); r.Run.Status != want || st.Name != name || st.Shard != i || st.Shards != 3 {
				t.Errorf("%s is %s, want %s; its status is that of %s, shard %d of %d", name, r.Run.Status, want, st.Name, st.Shard, st.Shards)
			}
		}
	})
}

// What names a job names a shard; the name of the whole is a clear error where one job is meant.
func TestShardIsOrderedByItsName(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", inShards(3, work("@every 10s", 0)))
		time.Sleep(5 * time.Second)
		if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work-1"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if _, err := a.RunNow(c.t.Context(), "work-1", "by-hand"); err != nil {
			t.Error(err)
		}
		var ids []string
		for _, r := range c.runsOf("work-1") {
			ids = append(ids, r.ID())
		}
		if !slices.Equal(ids, []string{"work-1@by-hand"}) {
			t.Errorf("of the paused shard these ran: %q", ids)
		}
		const want = "work is split into shards, work-0 to work-2: name one of them"
		_, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
		wantError(t, err, want)
		_, err = a.RunNow(c.t.Context(), "work", "x")
		wantError(t, err, want)
		wantError(t, a.StepDown(c.t.Context(), "work"), want)
		wantError(t, a.Unlock(c.t.Context(), "work", false), want)
		_, err = a.RunNow(c.t.Context(), "work-3", "x")
		wantError(t, err, `there is no job or singleton "work-3"`)
	})
}

// A timer of a platform names the job, and the call does what is due of all its shards.
func TestWakeOfJobDoesAllItsShards(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", inShards(4, work("@every 10s", 0)), named("other", work("@every 10s", 0)))
		a.wake()
		time.Sleep(10 * time.Second)
		report, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"work"}, Tick: time.Now()})
		if err != nil || len(report.Jobs) != 4 || len(c.all()) != 4 {
			t.Errorf("%d runs, %+v, %v", len(c.all()), report, err)
		}
		time.Sleep(10 * time.Second)
		report, err = a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"work-2"}})
		if err != nil || len(report.Jobs) != 1 || len(c.all()) != 5 {
			t.Errorf("%d runs, %+v, %v", len(c.all()), report, err)
		}
		a.wake()
		if r := c.runsOf("other"); len(r) != 1 || r[0].Shard != 0 || r[0].Shards != 1 {
			t.Errorf("a job without shards is run as %+v", r)
		}
	})
}

// Programs with two numbers of shards are up at once. The shards that both have are those of the
// younger program. Those that it does not have go on in the old one, until that is gone.
func TestChangedNumberOfShards(t *testing.T) {
	for name, n := range map[string]struct{ before, after int }{"more": {2, 4}, "fewer": {4, 2}} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			old := c.start("old", inShards(n.before, work("@every 10s", time.Second)))
			time.Sleep(25 * time.Second)
			c.start("young", inShards(n.after, work("@every 10s", time.Second)))
			time.Sleep(30 * time.Second)
			side := time.Now()
			wantRuns(t, c, side.Add(-20*time.Second), min(n.before, n.after), max(n.before, n.after), n.after)
			old.stop()
			stopped := time.Now()
			time.Sleep(30 * time.Second)
			wantRuns(t, c, stopped, n.after, n.after, n.after)
			for id, times := range timesByID(c.all()) {
				if times > 1 {
					t.Errorf("%s ran %d times", id, times)
				}
			}
		})
	}
}

// wantRuns checks that since a time the shards up to common are run as those of the program with
// young shards, and all up to last are run by some program.
func wantRuns(t *testing.T, c *cluster, since time.Time, common, last, young int) {
	t.Helper()
	ran := map[int]bool{}
	for _, r := range c.all() {
		if !r.start.After(since) {
			continue
		}
		ran[r.Shard] = true
		if r.Shard < common && r.Shards != young {
			t.Errorf("%s is run by %s as one of %d, want %d", r.ID(), r.replica, r.Shards, young)
		}
	}
	for i := range last {
		if !ran[i] {
			t.Errorf("shard %d is not run", i)
		}
	}
	if len(ran) != last {
		t.Errorf("%d shards are run, want %d", len(ran), last)
	}
}

// Each shard of a singleton goes on under the number that its holder
// knows, until that holder is gone.
func TestShardsOfTwoNumbersSideBySide(t *testing.T) {
	for name, n := range map[string]struct{ before, after int }{"more": {4, 8}, "fewer": {8, 4}} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			old := c.join(5*time.Second, feed(n.before), "a", "b")
			time.Sleep(3 * D)
			c.join(5*time.Second, feed(n.after), "x", "y")
			time.Sleep(3 * D)
			for _, r := range c.all() {
				if r.end.IsZero() && r.Shard < n.before && r.Shards != n.before {
					c.t.Errorf("%s is now one of %d, while its holder is up", r.Job, r.Shards)
				}
			}
			for _, r := range old {
				r.stop()
			}
			time.Sleep(2 * D)
			c.wantEven(n.after, "x", "y")
			c.wantOneHolder()
		})
	}
}

func TestShardsAreChecked(t *testing.T) {
	long := strings.Repeat("x", 62)
	for want, s := range map[string]*soloist.Scheduler{
		`job "work": Shards is -1: allowed is 0 to 256`:                                                        {Jobs: []soloist.Job{inShards(-1, work("@hourly", 0))}},
		`job "work": Shards is 257: allowed is 0 to 256`:                                                       {Jobs: []soloist.Job{inShards(257, work("@hourly", 0))}},
		`singleton "feed": Shards is 1000000: allowed is 0 to 256`:                                             {Singletons: []soloist.Singleton{feed(1000000)}},
		`the name of its last shard, "` + long + `-0", is 64 characters long: allowed are 63, so shorten Name`: {Jobs: []soloist.Job{{Name: long, Schedule: "@hourly", Do: nothing, Shards: 1}}},
		`the name "work-3" is used more than once: a shard of "work" has it, too`: {Jobs: []soloist.Job{inShards(4, work("@hourly", 0)),
			{Name: "work-3", Schedule: "@hourly", Do: nothing}, {Name: "work-4", Schedule: "@hourly", Do: nothing}}},
		`the name "feed-0" is used more than once: a shard of "feed" has it, too`: {Singletons: []soloist.Singleton{feed(1)},
			Jobs: []soloist.Job{{Name: "feed-0", Schedule: "@hourly", Do: nothing, Shards: 2}}},
		`the name "feed" is used more than once`:                                    {Singletons: []soloist.Singleton{feed(2)}, Jobs: []soloist.Job{{Name: "feed", Schedule: "@hourly", Do: nothing}}},
		`job "here": FinishBy is 1h0m0s: allowed is zero for a job of EveryReplica`: {Jobs: []soloist.Job{{Name: "here", Schedule: "@hourly", Do: nothing, EveryReplica: true, FinishBy: time.Hour}}},
		`job "here": Shards is 2: allowed is zero for a job of EveryReplica`:        {Jobs: []soloist.Job{{Name: "here", Schedule: "@hourly", Do: nothing, EveryReplica: true, Shards: 2}}},
		`job "work": Schedule is "never"`:                                           {Jobs: []soloist.Job{inShards(16, work("never", 0))}},
	} {
		s.Store = &local.Memory{}
		err := s.Validate()
		if wantError(t, err, want); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("one mistake is told more than once: %v", err)
		}
	}
	ok := &soloist.Scheduler{Store: &local.Memory{}, Jobs: []soloist.Job{inShards(256, work("@hourly", 0))}, Singletons: []soloist.Singleton{feed(256)}}
	if err := ok.Validate(); err != nil {
		t.Error(err)
	}
}
