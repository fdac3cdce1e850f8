package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// following is a job that follows others, which runs for d.
func following(name, after string, d time.Duration) soloist.Job {
	j := named(name, work("", d))
	j.After.Jobs = strings.Split(after, ", ")
	return j
}

// importing is the job that others follow, which runs for d.
func importing(schedule string, d time.Duration) soloist.Job {
	return named("import", work(schedule, d))
}

// inShards is a job of n shards.
func inShards(n int, job soloist.Job) soloist.Job {
	job.Shards = n
	return job
}

// runsOf returns the runs of a job, or of all its shards.
func (c *cluster) runsOf(job string) (runs []ran) {
	for _, r := range c.all() {
		if r.Job == job || r.Shards > 1 && strings.HasPrefix(r.Job, job+"-") {
			runs = append(runs, r)
		}
	}
	return runs
}

// wantRunsOf checks how many runs of a job, or of all its shards, there were.
func (c *cluster) wantRunsOf(job string, want int) {
	c.t.Helper()
	got := len(c.runsOf(job))
	c.wrong(got != want, "%d runs of %s, want %d", got, job, want)
}

// wantFollowed checks that each run of a job began after the end of the last run of another one, or of all its shards,
// for its tick, by at most late.
func (c *cluster) wantFollowed(job, before string, late time.Duration) {
	c.t.Helper()
	ends := map[time.Time]time.Time{}
	for _, r := range c.runsOf(before) {
		if r.end.IsZero() || r.end.After(ends[r.Tick]) {
			ends[r.Tick] = r.end
		}
	}
	for _, r := range c.runsOf(job) {
		end := ends[r.Tick]
		c.wrong(end.IsZero() || r.start.Before(end) || r.start.Sub(end) > late,
			"%s starts for %s at %s, and %s ended at %s", r.Job, r.Tick, r.start, before, end)
	}
}

var errImport = errors.New("no data")

// Of a diamond the last job waits for both sides, however long each takes. What fails is followed by none but After.Any.
func TestFollowers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := named("import", doing("*/10 * * * *", func(ctx context.Context, r *soloist.Run) error {
			if r.Tick.Minute() == 20 {
				return errImport
			}
			return pause(ctx, time.Minute)
		}))
		always := following("always", "import", time.Second)
		always.After.Any = true
		c.each([]soloist.Work{imports, always, following("left", "import", 3*time.Minute), following("right", "import", time.Minute),
			following("join", "left, right", time.Minute)}, "a", "b", "c")
		until(39 * time.Minute)
		c.wantOutcomes("import", "succeeded 00:10:00", "failed 00:20:00 no data", "succeeded 00:30:00")
		c.wantOutcomes("left", "succeeded 00:10:00", "skipped 00:20:00 import failed", "succeeded 00:30:00")
		c.wantOutcomes("join", "succeeded 00:10:00", "skipped 00:20:00 left skipped", "succeeded 00:30:00")
		c.wantOutcomes("always", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
		for job, before := range map[string]string{"always": "import", "left": "import", "right": "import", "join": "left"} {
			c.wantFollowed(job, before, 100*time.Millisecond)
		}
	})
}

// What a follower does while replicas are up all the time.
func TestFollower(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"a run by hand of the predecessor moves no tick, and a run by hand of the follower waits for none": func(c *cluster) {
			r := c.start("a", importing("0 * * * *", time.Second), following("report", "import", time.Second))
			time.Sleep(time.Minute)
			r.byHand("import", "by-hand")
			time.Sleep(20 * time.Minute)
			c.wantRunsOf("report", 0)
			r.byHand("report", "too")
			until(61 * time.Minute)
			c.wantOutcomes("report", "succeeded 00:21:03", "succeeded 01:00:00")
		},
		"what has left the record of the predecessor is missed": func(c *cluster) {
			// The predecessor goes on while no replica knows the follower.
			imports, report := importing("* * * * *", time.Second), following("report", "import", time.Second)
			report.Late.Missed = soloist.RunAll
			both := c.start("a", imports, report)
			until(90 * time.Second)
			both.stop()
			one := c.start("b", imports)
			until(25*time.Minute + 30*time.Second)
			one.stop()
			c.start("c", imports, report)
			time.Sleep(3500 * time.Millisecond)
			c.wantOutcomes("report", "succeeded 00:01:00", "missed 00:01:00-00:05:00 the outcome of import is not known", "succeeded 00:06:00", "succeeded 00:07:00", "succeeded 00:08:00")
		},
		"who runs the next tick of the predecessor starts the follower for the one before": func(c *cluster) {
			// The next tick has waited for the one before, on a replica that is stopped then.
			imports, report := importing("*/10 * * * *", 12*time.Minute), following("report", "import", time.Minute)
			imports.Overlap = soloist.QueueOne
			a := c.replica("a", imports, report)
			a.Grace = time.Hour
			c.launch(a)
			until(11 * time.Minute)
			c.start("b", imports, report)
			until(20*time.Minute + 30*time.Second)
			a.stop()
			until(33 * time.Minute)
			c.wantOutcomes("report", "succeeded 00:10:00")
			c.wantFollowed("report", "import", 10*time.Second)
		},
		"a predecessor that cannot be read is reported once, and so is the end of that": func(c *cluster) {
			imports, s := importing("0 1 * * *", 10*time.Minute), &faultyStore{Store: c.store}
			c.start("a", imports)
			until(time.Minute)
			var bad atomic.Bool
			s.meets(func(op, name string) error {
				switch {
				case name == "soloist/import" && op == "acquire":
					return store.ErrHeld
				case name == "soloist/import" && bad.Load():
					return errNetwork
				}
				return nil
			}, nil)
			b := c.replica("b", imports, following("report", "import", time.Second), following("mail", "import", time.Second))
			b.Store = s
			book := b.tells()
			c.launch(b)
			until(time.Hour + 30*time.Second)
			bad.Store(true)
			until(time.Hour + 5*time.Minute)
			bad.Store(false)
			until(time.Hour + 12*time.Minute)
			c.wantOutcomes("report", "succeeded 01:00:00")
			begins, ends := book.of("", event.StoreTrouble), book.of("", event.StoreBack)
			c.wrong(len(begins) != 1 || len(ends) != 1, "the trouble was reported as %+v, and its end as %+v", begins, ends)
		},
		"a run of the predecessor has stalled and does not return: its outcome is known at once": func(c *cluster) {
			imports, always := named("import", deaf(20*time.Minute)), following("always", "import", time.Second)
			imports.HeartbeatTimeout, always.After.Any = time.Minute, true
			c.start("a", imports, always)
			until(3 * time.Minute)
			runs := c.runsOf("always")
			c.wrong(len(runs) != 1 || runs[0].start.Sub(runs[0].Tick) > 61*time.Second, "want one run after the stall: %+v", runs)
		},
		"the replica that runs the predecessor knows its end, and never reads it for the follower": func(c *cluster) {
			s := &lister{Memory: c.store}
			r := c.replica("a", importing("0 */2 * * *", time.Hour), following("report", "import", time.Second))
			r.tap.Store = s
			c.launch(r)
			until(2*time.Hour - 10*time.Second)
			s.reads.Store(0)
			until(3*time.Hour + time.Minute)
			c.wantOutcomes("report", "succeeded 02:00:00")
			c.wantFollowed("report", "import", 100*time.Millisecond)
			n := s.reads.Load() // of the own entry of report, once a minute
			c.wrong(n > 65, "%d reads", n)
		},
	})
}

// The entry of the predecessor is away, or holds what is no record of it: its follower waits, and says why.
func TestFollowerOfUnusableRecord(t *testing.T) {
	for name, tt := range map[string]struct {
		record func(c *cluster) []byte // in its place
		want   string
	}{
		"deleted": {nil, "it waits for import, which has no entry"},
		"damaged": {func(*cluster) []byte { return []byte("{}") },
			"it waits for import, whose record cannot be used: the record has schema 0"},
		"foreign": {func(c *cluster) []byte {
			other := c.replica("other", importing("* * * * *", 0))
			other.App = "other"
			other.wake()
			e, _ := c.store.Read(context.Background(), "other/import")
			return e.Record
		}, "two programs share a name"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			work := []soloist.Work{importing("*/10 * * * *", time.Second), following("report", "import", time.Second)}
			c.replica("first", work...).wake()
			time.Sleep(time.Minute)
			c.ok(c.store.Delete(t.Context(), "soloist/import"))
			if tt.record != nil {
				_, err := c.store.Create(t.Context(), "soloist/import", tt.record(c))
				c.ok(err)
			}
			until(10*time.Minute + time.Second)
			got, err := c.replica("a", work...).RunDue(t.Context(), soloist.Wake{Jobs: []string{"report"}})
			wantError(t, err, "job report", tt.want)
			c.wrong(len(got.Jobs) != 1 || len(got.Jobs[0].Ran) != 0, "got %+v", got)
			c.wantRuns(0)
		})
	}
}

// The entries of the jobs before a new follower are made before its own, whichever of them is looked at first, so it misses no
// tick. Nor does it miss one that a new job before it never had: with ClaimAhead a new job does not have a tick that comes within
// three seconds. So it is if the follower is older, and its changed After names the new job.
func TestFollowerOfNewJob(t *testing.T) {
	for _, changed := range []bool{false, true} {
		for _, ahead := range []bool{false, true} {
			inCase(t, fmt.Sprintf("changed %t, ahead %t", changed, ahead), func(t *testing.T, c *cluster) {
				told, imports := &lateLog{}, importing("@hourly", time.Second)
				loads, report := named("load", imports), finishBy(30*time.Minute, following("report", "import", time.Second))
				loads.ClaimAhead = ahead
				if changed {
					old := c.start("old", imports, report)
					until(time.Hour - 3*time.Second)
					old.stop()
				}
				report.After.Jobs = []string{"load"}
				work := []soloist.Work{imports, loads, report}
				until(time.Hour - 2*time.Second)
				c.replica("first", work...).wakeFor("report")
				until(time.Hour + time.Second)
				told.start(c, "new", work...)
				until(2*time.Hour + time.Minute)
				want := []string{"succeeded 01:00:00", "succeeded 02:00:00"}
				if ahead {
					want = want[1:]
				}
				c.wantOutcomes("load", want...)
				got := c.outcomes("report")
				if changed {
					got = got[1:]
				}
				c.wrong(!slices.Equal(got, want), "the outcomes of report are %q", got)
				told.want(c)
			})
		}
	}
}

// sharded is the job import in n shards, which take d, each of them longer than the one before.
func sharded(n int, schedule string, d, apart time.Duration) soloist.Job {
	return inShards(n, named("import", doing(schedule, func(ctx context.Context, r *soloist.Run) error {
		return pause(ctx, d+time.Duration(r.Shard)*apart)
	})))
}

// Each shard of a follower waits for all shards of the job before it. The shards of the follower look together. None reads
// what this replica does itself; what another one does it learns by listings. However many shards there are, none is late for
// the others, and the store does not count as out of reach.
func TestShardsFollowShards(t *testing.T) {
	for name, tt := range map[string]struct {
		imports soloist.Job
		kept    string // another replica runs these
		shards  int    // of the follower; zero: it has none
		lists   int64
		late    time.Duration
	}{
		"of its own replica": {sharded(16, "0 1 * * *", time.Minute, 10*time.Second), "", 16, 15, time.Second},
		"of another replica": {sharded(16, "0 1 * * *", time.Minute, 0), "soloist/import-", 16, 60, 10 * time.Second},
		"many":               {sharded(256, "0 1 * * *", 10*time.Second, 50*time.Millisecond), "soloist/import-", 0, 60, 4 * time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			if tt.imports.Shards > 100 {
				crowded(t)
			}
			backend := &distant{kept: tt.kept}
			if tt.kept != "" {
				c.start("a", tt.imports)
				until(time.Minute)
			}
			b := c.launch(c.far(backend, "b", tt.imports, inShards(tt.shards, following("report", "import", time.Second))))
			until(time.Hour - 10*time.Second)
			backend.reads.Store(0)
			backend.lists.Store(0)
			for sinceMidnight() < time.Hour+5*time.Minute {
				time.Sleep(100 * time.Millisecond)
				c.ok(b.Health().Storage)
			}
			c.wantFollowed("report", "import", tt.late)
			c.wantRunsOf("report", max(1, tt.shards))
			c.wrong(backend.reads.Load() > 2*16 || backend.lists.Load() > tt.lists, "for one tick: %s", backend.calls())
		})
	}
}

// The replica that ends the last of the shards starts the follower at once, also if others have run the rest: it reads
// that once more when it has none left itself. Shards that end just before their next tick have it start as well.
func TestFollowerOfShardsOfTwoReplicas(t *testing.T) {
	for name, tt := range map[string]struct {
		imports soloist.Job
		late    time.Duration
	}{
		"long before the next tick": {sharded(4, "*/10 * * * *", 5*time.Minute, 700*time.Millisecond), 200 * time.Millisecond},
		"just before the next tick": {sharded(8, "*/10 * * * *", 9*time.Minute+58*time.Second, 200*time.Millisecond), 11 * time.Second},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			c.each([]soloist.Work{tt.imports, following("report", "import", time.Second)}, "a", "b")
			until(2*time.Hour + 5*time.Minute)
			c.wantFollowed("report", "import", tt.late)
			c.wantRunsOf("report", 11) // one for each tick but the last
		})
	}
}

// Other jobs in After.Jobs, or another number of their shards, are another definition: it counts from now. A shard that is new
// has no outcome of a tick that waits already: docs/after.md says so.
func TestFollowerOfOtherJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		shards int
		after  string
		want   string
	}{
		"more shards":  {6, "import", "missed 00:10:00 the outcome of import-4 is not known"},
		"fewer shards": {2, "import", "succeeded 00:10:00"},
		"another job":  {4, "clean", "succeeded 00:10:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			imports, clean, report := importing("*/10 * * * *", time.Minute), following("clean", "import", time.Second), following("report", "import", time.Second)
			old := c.launch(c.far(&distant{kept: "soloist/report"}, "old", inShards(4, imports), clean, report))
			until(15 * time.Minute)
			old.stop()
			report.After.Jobs = []string{tt.after}
			c.start("new", inShards(tt.shards, imports), clean, report)
			until(19 * time.Minute)
			c.wantOutcomes("report", "missed 00:00:00-00:09:59 the schedule changed", tt.want)
		})
	}
}

func TestStatusOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", importing("*/10 * * * *", 3*time.Minute), following("report", "import", time.Minute), following("join", "import, report", time.Minute))
		for _, tt := range []struct {
			at         time.Duration
			next, join string // when, after what and waiting for what
		}{
			{9 * time.Minute, "00:10:00 import ", "00:10:00 import, report "},
			{11 * time.Minute, "00:10:00 import import", "00:10:00 import, report import, report"},
			{13*time.Minute + 30*time.Second, "00:20:00 import ", "00:10:00 import, report report"},
			{19 * time.Minute, "00:20:00 import ", "00:20:00 import, report "},
		} {
			until(tt.at)
			all, err := r.Status(c.t.Context())
			c.ok(err)
			for i, want := range []string{tt.next, tt.join} {
				st := all[i+1]
				got := fmt.Sprint(st.Next.Format(time.TimeOnly), " ", st.After, " ", st.Awaits)
				c.wrong(got != want || st.Schedule != "after "+strings.Replace(st.After, ",", " and", 1),
					"at %s %s is %q: %+v", tt.at, st.Name, got, st)
				again, err := r.StatusOf(c.t.Context(), st.Name)
				c.wrong(err != nil || !reflect.DeepEqual(again, st),
					"at %s the status of %s alone is %+v, %v", tt.at, st.Name, again, err)
			}
		}
	})
}

// reportOf returns what a call says of a job.
func reportOf(t *testing.T, all soloist.Report, job string) soloist.JobReport {
	t.Helper()
	i := slices.IndexFunc(all.Jobs, func(j soloist.JobReport) bool { return j.Job == job })
	if i < 0 {
		t.Fatalf("no report of %s: %+v", job, all)
	}
	return all.Jobs[i]
}

// backfills orders each tick of import again that was due in so long, from a day ago on.
func (c *cluster) backfills(d time.Duration, work ...soloist.Work) {
	c.t.Helper()
	from := time.Now().Truncate(time.Hour).Add(-24 * time.Hour)
	c.order(soloist.Order{Kind: soloist.OrderBackfill, Job: "import", Backfill: soloist.Backfill{From: from, To: from.Add(d), All: true}}, work...)
}

// What calls of RunDue do about followers.
func TestCallsAndFollowers(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"one call for the first job runs a whole chain before the backfill": func(c *cluster) {
			// It does, whatever the order of the jobs in the program. It also runs a tick of the chain that comes due meanwhile.
			work := []soloist.Work{following("join", "report", time.Second), importing("*/10 * * * *", time.Minute), following("report", "import", time.Second)}
			r := c.replica("a", work...)
			r.wake()
			until(time.Hour)
			r.wake()
			c.backfills(140*time.Minute, work...)
			until(time.Hour + 10*time.Minute)
			got := r.wakeFor("import")
			for job, want := range map[string]int{"import": 17, "report": 2, "join": 2} {
				ran := len(reportOf(c.t, got, job).Ran)
				c.wrong(ran != want, "%d runs of %s, want %d", ran, job, want)
			}
			c.wantFilledRuns(15)
			for _, f := range append(c.runsOf("report"), c.runsOf("join")...) {
				c.wrong(f.start.Sub(f.Tick) > time.Minute+10*time.Second, "%s begins at %s", f.ID(), f.start)
			}
			c.wantFollowed("join", "report", 100*time.Millisecond)
		},
		"it does so if another replica has run the tick of the job before": func(c *cluster) {
			first := importing("*/10 * * * *", time.Minute)
			r := c.replica("a", first, following("report", "import", time.Second))
			r.wake()
			until(time.Hour)
			r.wake()
			c.backfills(2*time.Hour, first)
			until(time.Hour + 10*time.Minute)
			_, _ = c.replica("b", first).RunDue(c.within(70*time.Second), soloist.Wake{})
			r.wake()
			c.wantFollowed("report", "import", time.Second)
			c.wantFilledRuns(13)
		},
		"one that finds the job before a follower running elsewhere leaves the follower": func(c *cluster) {
			// Each call reads that job, however little time ago the last one did.
			imports := importing("0 * * * *", time.Minute)
			a, b := c.replica("a", imports), c.replica("b", imports, following("report", "import", time.Second))
			a.wake()
			b.wake()
			until(time.Hour)
			over := make(chan struct{})
			go func() { defer close(over); a.wake() }()
			for range 2 {
				time.Sleep(29 * time.Second)
				got := b.wakeFor()
				imports, report := got.Jobs[0], got.Jobs[1]
				c.wrong(len(report.Ran) != 0 || imports.Replica != "a" || !report.Next.Equal(time.Now().Truncate(time.Hour)), "got %+v", got)
				c.wantOutcomes("report")
			}
			<-over
			for range 2 {
				b.wake()
				c.wantOutcomes("report", "succeeded 01:00:00")
			}
		},
		"a paused job is awaited through another one": func(c *cluster) {
			// Its tick is skipped for a follower with After.Any, also if another job is between them.
			first, between, last := importing("0 2 * * *", time.Minute), following("between", "import", time.Minute), following("last", "between", time.Minute)
			last.After.Any = true
			c.replica("first", first, between, last).wake()
			until(2*time.Hour + 10*time.Minute) // no replica was up at the tick
			first.Paused = true
			c.wanted("now", first, between, last)
			c.replica("woken", first, between, last).wake()
			c.wantRuns(1)
		},
		"one waits while another call runs an older tick of the follower": func(c *cluster) {
			// The one that waits has run the job before. Others return. A call whose time ends while it waits says so.
			r := c.replica("a", importing("*/10 * * * *", time.Second), following("report", "import", 15*time.Minute))
			r.wake()
			var calls sync.WaitGroup
			for i := range 3 {
				until(time.Duration(i+1) * 10 * time.Minute)
				calls.Go(r.wake)
				time.Sleep(time.Minute)
				begin := time.Now()
				j := reportOf(c.t, r.wakeFor(), "report")
				c.wrong(time.Since(begin) > time.Second || j.Replica != "a" || len(j.Ran) > 0,
					"another call, at %s, says %+v", time.Now(), j)
			}
			until(45 * time.Minute)
			got, err := r.RunDue(c.within(2*time.Minute), soloist.Wake{})
			late := reportOf(c.t, got, "report")
			c.wrong(err == nil || late.Err == nil || late.Next.After(time.Now()),
				"a call whose time ends says %+v, %v", late, err)
			calls.Wait()
			want := []string{"succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00"}
			c.wrong(!slices.Equal(c.outcomes("report")[:3], want), "got %q, want %q", c.outcomes("report"), want)
		},
		"one waits while another call waits for a slot of the group with an older tick": func(c *cluster) {
			// The other call has looked at the slot since. A call that brings nothing new returns.
			report, other := following("report", "import", 3*time.Minute), named("other", work("9 * * * *", 25*time.Minute))
			report.Late.Missed, report.Group, other.Group = soloist.RunAll, "g", "g"
			r := c.replica("a", importing("*/10 * * * *", 8*time.Minute), report, other)
			r.Groups = map[string]int{"g": 1}
			r.meets(before("release", func() {
				if time.Now().Minute() == 28 { // the other call looks before this one gets to the follower
					time.Sleep(7 * time.Second)
				}
			}))
			r.wake()
			var calls sync.WaitGroup
			for at, job := range map[int]string{9: "other", 10: "import", 20: "import"} {
				calls.Go(func() {
					until(time.Duration(at) * time.Minute)
					_, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{job}, Tick: time.Now()})
					c.ok(err)
				})
			}
			until(19*time.Minute + 30*time.Second)
			j := reportOf(c.t, r.wakeFor("report"), "report")
			c.wrong(j.Replica != "a" || sinceMidnight() > 20*time.Minute,
				"a call without news says %+v, at %s", j, sinceMidnight())
			calls.Wait()
			c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00")
		},
		"none waits for a loop that drives the follower": func(c *cluster) {
			// The loop learns of the outcomes of the job before.
			r := c.start("a", importing("*/10 * * * *", time.Second), following("report", "import", 15*time.Minute))
			until(20*time.Minute + 2*time.Second)
			begin := time.Now()
			_, err := r.RunDue(c.t.Context(), soloist.Wake{})
			c.wrong(err != nil || time.Since(begin) > time.Second, "it takes %s, %v", time.Since(begin), err)
		},
	})
}

// A follower reads its predecessor only while a tick waits for it, ever more rarely, as docs/costs.md says.
func TestFollowerReadsAreFew(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^\| (\d+) (s|min|h) \| (\d+) \|$`).FindAllStringSubmatch(readPage(t, "docs/costs.md"), -1)
	if len(rows) < 5 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		took, err := time.ParseDuration(row[1] + row[2][:1])
		if err != nil {
			t.Fatal(err)
		}
		inCase(t, row[1]+row[2], func(t *testing.T, c *cluster) {
			var reads atomic.Int64
			s := &faultyStore{Store: c.store}
			s.meets(func(op, name string) error {
				switch {
				case name != "soloist/import":
				case op == "acquire":
					return store.ErrHeld
				case op == "read":
					reads.Add(1)
				}
				return nil
			}, nil)
			c.start("a", importing("0 */2 * * *", took))
			r := c.replica("b", following("report", "import", time.Second), importing("0 */2 * * *", took))
			r.Store = s
			c.launch(r)
			until(2*time.Hour - time.Minute)
			n := reads.Swap(0) // of its own job import, once a minute
			c.wrong(n > 125, "%d reads while nothing is due", n)
			until(2*time.Hour + took + time.Minute)
			c.wantOutcomes("report", "succeeded 02:00:00")
			own := 3 + int64(took.Minutes()) // before the tick and after it, and once a minute
			got, want := float64(reads.Load()-own), number(t, row[3])
			c.wrong(math.Abs(got-want) > 2+want/10, "%.0f reads, and the page says %.0f", got, want)
			c.wantFollowed("report", "import", max(400*time.Millisecond, min(took/7, 10*time.Second)))
		})
	}
}

// Two timers of one process run the two jobs before a follower. However near their ends are, one of
// the calls runs it, and none says that it is due later.
func TestFollowerOfTwoCalls(t *testing.T) {
	for apart := range 41 {
		inCase(t, fmt.Sprint(apart), func(t *testing.T, c *cluster) {
			b := time.Second + time.Duration(apart)*5*time.Millisecond
			r := c.replica("a", named("left", work("0 * * * *", time.Second)), named("right", work("0 * * * *", b)), following("join", "left, right", time.Minute))
			r.wake()
			until(time.Hour)
			r.meets(slow(30*time.Millisecond, "read"))
			var both sync.WaitGroup
			for _, job := range []string{"left", "right"} {
				both.Go(func() {
					got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{job}})
					if j := reportOf(t, got, "join"); err != nil || j.Replica == "" && len(c.runsOf("join")) == 0 && j.Next.After(time.Now()) {
						t.Errorf("%s: join is next due at %s, %v", job, j.Next.Format(time.TimeOnly), err)
					}
				})
			}
			both.Wait()
			c.wantOutcomes("join", "succeeded 01:00:00")
		})
	}
}

// A distant store lists, counts calls, and takes a moment for each reading. It gives no lease of the
// entries whose names begin with kept.
type distant struct {
	lister
	kept string
}

const distance = 10 * time.Millisecond

func (d *distant) Read(ctx context.Context, name string) (store.Entry, error) {
	if err := pause(ctx, distance); err != nil {
		return store.Entry{}, err
	}
	return d.lister.Read(ctx, name)
}

func (d *distant) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	if err := pause(ctx, distance); err != nil {
		return err
	}
	return d.lister.List(ctx, app, f)
}

func (d *distant) Lease(name, id string) store.Lease {
	if d.kept != "" && strings.HasPrefix(name, d.kept) {
		return heldLease{d.Memory.Lease(name, id)}
	}
	return d.Memory.Lease(name, id)
}

// A heldLease is a lease that another client has.
type heldLease struct{ store.Lease }

func (heldLease) Acquire(context.Context, time.Duration, string) (store.Revision, error) {
	return store.Revision{}, store.ErrHeld
}

// far makes a replica over a distant store that is not started.
func (c *cluster) far(backend *distant, name string, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica(name, work...)
	r.Store = backend
	return r
}
