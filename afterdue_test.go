package soloist_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/nightly"
	"github.com/soloist-go/soloist/store"
)

func TestStatusOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", importing("*/10 * * * *", 3*time.Minute), following("report", "import", time.Minute), following("join", "import,report", time.Minute))
		for _, tt := range []struct {
			at                            time.Duration
			next, awaits, nextJoin, joins string
		}{
			{9 * time.Minute, "00:10:00", "", "00:10:00", ""},
			{11 * time.Minute, "00:10:00", "import", "00:10:00", "import, report"},
			{13*time.Minute + 30*time.Second, "00:20:00", "", "00:10:00", "report"},
			{19 * time.Minute, "00:20:00", "", "00:20:00", ""},
		} {
			until(tt.at)
			all, err := r.Status(c.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			report, join := all[1], all[2]
			if report.After != "import" || report.Schedule != "after import" || report.Awaits != tt.awaits || report.Next.Format(time.TimeOnly) != tt.next {
				t.Errorf("at %s report is %+v", tt.at, report)
			}
			if join.After != "import, report" || join.Schedule != "after import and report" || join.Awaits != tt.joins || join.Next.Format(time.TimeOnly) != tt.nextJoin {
				t.Errorf("at %s join is %+v", tt.at, join)
			}
			if got, err := r.StatusOf(c.t.Context(), "join"); err != nil || !reflect.DeepEqual(got, join) {
				t.Errorf("at %s the status of join alone is %+v, %v", tt.at, got, err)
			}
		}
	})
}

// One call runs a whole chain, whatever the order of the jobs in the program.
func TestRunDueRunsChain(t *testing.T) {
	for name, wake := range map[string]soloist.Wake{"all": {}, "the first": {Jobs: []string{"import"}}} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", following("join", "left, right", time.Second), following("left", "import", time.Minute), following("right", "import", time.Second),
				named("other", work("@daily", 0)), importing("0 * * * *", time.Minute))
			r.wake()
			time.Sleep(time.Hour)
			got, err := r.RunDue(c.t.Context(), wake)
			if err != nil {
				t.Error(err)
			}
			ran := 0
			for _, j := range got.Jobs {
				ran += len(j.Ran)
			}
			if jobs := len(got.Jobs); ran != 4 || jobs != 5 && jobs != 4 {
				t.Errorf("%d runs of %d jobs: %+v", ran, jobs, got)
			}
			c.wantOutcomes("join", "succeeded 01:00:00")
			c.wantFollowed("join", "left", 100*time.Millisecond)
			c.wantFollowed("left", "import", 100*time.Millisecond)
		})
	}
}

// A call runs the ticks of a whole chain before those of a backfill, also one that comes due under it.
func TestRunDueRunsChainBeforeBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{importing("*/10 * * * *", time.Minute), following("report", "import", time.Second), following("join", "report", time.Second)}
		r := c.replica("a", work...)
		r.wake()
		until(time.Hour)
		r.wake()
		from := time.Now().Truncate(time.Hour).Add(-24 * time.Hour)
		b := soloist.Backfill{From: from, To: from.Add(140 * time.Minute), All: true}
		if _, err := c.replica("desk", work...).Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "import", By: "anna", Backfill: b}); err != nil {
			t.Fatal(err)
		}
		until(time.Hour + 10*time.Minute)
		got, err := r.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil {
			t.Error(err)
		}
		ran := [3]int{}
		for i, j := range got.Jobs {
			ran[i] = len(j.Ran)
		}
		if n := len(c.filled()); n != 15 || ran != [3]int{17, 2, 2} {
			t.Errorf("%d runs of the backfill, and %v of the jobs", n, ran)
		}
		for _, f := range append(c.runsOf("report"), c.runsOf("join")...) {
			if late := f.start.Sub(f.Tick); late > time.Minute+10*time.Second {
				t.Errorf("%s is late by %s", f.ID(), late)
			}
		}
		c.wantFollowed("join", "report", 100*time.Millisecond)
	})
}

// It does so if another replica has run the tick of the job before.
func TestRunDueRunsFollowerBeforeBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		first := importing("*/10 * * * *", time.Minute)
		r := c.replica("a", first, following("report", "import", time.Second))
		r.wake()
		until(time.Hour)
		r.wake()
		b := soloist.Backfill{From: time.Now().Add(-24 * time.Hour), To: time.Now().Add(-22 * time.Hour), All: true}
		if _, err := c.replica("desk", first).Order(c.t.Context(), soloist.Order{Kind: store.OrderBackfill, Job: "import", By: "anna", Backfill: b}); err != nil {
			t.Fatal(err)
		}
		until(time.Hour + 10*time.Minute)
		_, _ = c.replica("b", first).RunDue(c.within(70*time.Second), soloist.Wake{})
		r.wake()
		c.wantFollowed("report", "import", time.Second)
		if n := len(c.filled()); n != 12 {
			t.Errorf("%d runs of the backfill", n)
		}
	})
}

// A wake-up that finds the predecessor running elsewhere leaves the follower to a later one.
func TestRunDueBesidePredecessor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{importing("0 * * * *", time.Minute), following("report", "import", time.Second)}
		a, b := c.replica("a", work...), c.replica("b", work...)
		a.wake()
		b.wake()
		time.Sleep(time.Hour)
		over := make(chan struct{})
		go func() { defer close(over); a.wake() }()
		time.Sleep(10 * time.Second)
		got, err := b.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(got.Jobs[1].Ran) != 0 || got.Jobs[0].Replica != "a" || !got.Jobs[1].Next.Equal(time.Now().Truncate(time.Hour)) {
			t.Errorf("got %+v, %v", got, err)
		}
		<-over
		c.wantOutcomes("report", "succeeded 01:00:00")
		b.wake()
		c.wantOutcomes("report", "succeeded 01:00:00")
	})
}

// A shy store counts the reads of an entry, whose lease it gives to no caller.
type shy struct {
	*local.Memory
	entry string

	mu    sync.Mutex
	reads int
}

func (s *shy) Read(ctx context.Context, name string) (store.Entry, error) {
	if name == s.entry {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reads++
	}
	return s.Memory.Read(ctx, name)
}

func (s *shy) Lease(name, id string) store.Lease {
	if name == s.entry {
		return heldLease{s.Memory.Lease(name, id)}
	}
	return s.Memory.Lease(name, id)
}

// A heldLease is one that another client has.
type heldLease struct{ store.Lease }

func (heldLease) Acquire(context.Context, time.Duration, string) (store.Revision, error) {
	return store.Revision{}, store.ErrHeld
}

// taken returns the number of reads since it was last asked.
func (s *shy) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.reads = 0 }()
	return s.reads
}

// A follower reads its predecessor only while a tick waits for it, ever more rarely, as docs/costs.md
// tells.
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
			s := &shy{Memory: c.store, entry: "soloist/import"}
			c.start("a", importing("0 */2 * * *", took))
			r := c.replica("b", following("report", "import", time.Second), importing("0 */2 * * *", took))
			r.tap.Store = s
			c.launch(r)
			until(2*time.Hour - time.Minute)
			if n := s.taken(); n > 125 { // of its own job import, once a minute
				t.Errorf("%d reads while nothing is due", n)
			}
			until(2*time.Hour + took + time.Minute)
			c.wantOutcomes("report", "succeeded 02:00:00")
			own := 3 + int(took.Minutes()) // before the tick and after it, and once a minute
			if got, want := float64(s.taken()-own), number(t, row[3]); math.Abs(got-want) > 2+want/10 {
				t.Errorf("%.0f reads, and the page says %.0f", got, want)
			}
			c.wantFollowed("report", "import", max(400*time.Millisecond, min(took/7, 10*time.Second)))
		})
	}
}

// A tally is a store that counts the acquisitions of an entry that were asked for.
type tally struct {
	*local.Memory
	entry    string
	acquires atomic.Int64
}

func (s *tally) Lease(name, id string) store.Lease {
	if name == s.entry {
		return tallyLease{s.Memory.Lease(name, id), &s.acquires}
	}
	return s.Memory.Lease(name, id)
}

type tallyLease struct {
	store.Lease
	acquires *atomic.Int64
}

func (l tallyLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	l.acquires.Add(1)
	return l.Lease.Acquire(ctx, d, etag)
}

// A follower acquires its lease once for each tick, when that is due: neither before the tick nor
// where another replica was first.
func TestFollowerAcquiresWhenItIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule string
		took     time.Duration
		ticks    int64
		replicas []string
	}{
		"alone":          {"*/10 * * * *", 3 * time.Minute, 6, []string{"a"}},
		"among three":    {"*/10 * * * *", 3 * time.Minute, 6, []string{"a", "b", "c"}},
		"ticks are near": {"@every 2s", time.Second, 1800, []string{"a"}},
	} {
		if !nightly.Runs() && tt.ticks > 100 {
			continue
		}
		inCase(t, name, func(t *testing.T, c *cluster) {
			s := &tally{Memory: c.store, entry: "soloist/report"}
			for _, name := range tt.replicas {
				r := c.replica(name, importing(tt.schedule, tt.took), following("report", "import", 100*time.Millisecond))
				r.tap.Store = s
				c.launch(r)
			}
			until(time.Hour + 5*time.Minute - 300*time.Millisecond)
			if e, err := c.store.Read(c.t.Context(), s.entry); err != nil || e.State.Live() {
				t.Errorf("just before a tick the lease is %s, %v", e.State, err)
			}
			n := c.record("report").Counts[store.Succeeded]
			if most := n + n/10; n < tt.ticks || s.acquires.Load() > most {
				t.Errorf("%d acquisitions for %d ticks", s.acquires.Load(), n)
			}
		})
	}
}

// The replica that runs the predecessor knows its end, and never reads it for the follower.
func TestFollowerReadsNothingOfItsOwnReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		s := &lister{Memory: c.store}
		r := c.replica("a", importing("0 */2 * * *", time.Hour), following("report", "import", time.Second))
		r.tap.Store = s
		c.launch(r)
		until(2*time.Hour - 10*time.Second)
		s.reads.Store(0)
		until(3*time.Hour + time.Minute)
		c.wantOutcomes("report", "succeeded 02:00:00")
		c.wantFollowed("report", "import", 100*time.Millisecond)
		if n := s.reads.Load(); n > 65 { // of the own entry of report, once a minute
			t.Errorf("%d reads", n)
		}
	})
}

// The tick of a job that its settings pause is skipped for a follower with AfterAny, also if another job is between them.
func TestPausedJobIsAwaitedThroughAnother(t *testing.T) {
	inCluster(t, func(c *cluster) {
		first, between, last := importing("0 2 * * *", time.Minute), following("between", "import", time.Minute), following("last", "between", time.Minute)
		last.AfterAny = true
		c.replica("first", first, between, last).wake()
		until(2*time.Hour + 10*time.Minute) // no replica was up at the tick
		first.Paused = true
		at, err := c.replica("asks", first, between, last).NextDue(c.t.Context())
		if err != nil || at.After(time.Now().Add(2*time.Second)) {
			t.Errorf("wanted at %s, %v, want now: there is a tick to run", at, err)
		}
		c.replica("woken", first, between, last).wake()
		c.wantRuns(1)
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

// Two timers of one process run the two jobs before a follower. However near their ends are, one of
// the calls runs it, and none says that it is due later.
func TestFollowerOfTwoCalls(t *testing.T) {
	for apart := range 41 {
		inCase(t, fmt.Sprint(apart), func(t *testing.T, c *cluster) {
			b := time.Second + time.Duration(apart)*5*time.Millisecond
			r := c.replica("a", named("left", work("0 * * * *", time.Second)), named("right", work("0 * * * *", b)), following("join", "left, right", time.Minute))
			r.wake()
			until(time.Hour)
			r.tap.meet(func(op string, apply func() error) error {
				if op == "read" {
					time.Sleep(30 * time.Millisecond)
				}
				return apply()
			})
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

// A call that has run the job before a follower waits while another call runs an older tick of that. One
// call waits, and others return.
func TestCallWaitsForRunOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", importing("*/10 * * * *", time.Second), following("report", "import", 15*time.Minute))
		r.wake()
		var calls sync.WaitGroup
		for i := range 3 {
			until(time.Duration(i+1) * 10 * time.Minute)
			calls.Go(r.wake)
			time.Sleep(time.Minute)
			begin := time.Now()
			got, err := r.RunDue(c.t.Context(), soloist.Wake{})
			if j := reportOf(t, got, "report"); err != nil || time.Since(begin) > time.Second || j.Replica != "a" || len(j.Ran) > 0 {
				t.Errorf("another call takes %s, and says %+v, %v", time.Since(begin), j, err)
			}
		}
		calls.Wait()
		c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00")
	})
}

// So does one that finds the other call waiting for a slot of the group with an older tick, which it has
// looked at since. A call that brings nothing new returns.
func TestCallWaitsForFollowerThatWaitsForItsGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		report, other := following("report", "import", 3*time.Minute), named("other", work("9 * * * *", 25*time.Minute))
		report.Missed, report.Group, other.Group = soloist.RunAll, "g", "g"
		r := c.replica("a", importing("*/10 * * * *", 8*time.Minute), report, other)
		r.Groups = map[string]int{"g": 1}
		r.tap.meet(func(op string, apply func() error) error {
			if op == "release" && time.Now().Minute() == 28 { // the other call looks before this one gets to the follower
				time.Sleep(7 * time.Second)
			}
			return apply()
		})
		r.wake()
		var calls sync.WaitGroup
		for at, job := range map[int]string{9: "other", 10: "import", 20: "import"} {
			calls.Go(func() {
				until(time.Duration(at) * time.Minute)
				if _, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{job}, Tick: time.Now()}); err != nil {
					t.Error(err)
				}
			})
		}
		until(19*time.Minute + 30*time.Second)
		got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"report"}})
		if j := reportOf(t, got, "report"); err != nil || j.Replica != "a" || sinceMidnight() > 20*time.Minute {
			t.Errorf("a call without news says %+v, %v, at %s", j, err, sinceMidnight())
		}
		calls.Wait()
		c.wantOutcomes("report", "succeeded 00:10:00", "succeeded 00:20:00")
	})
}

// The next tick of a follower awaits no job whose outcome for it is known, whatever a later tick awaits.
func TestNextOfFollowerThatIsBehind(t *testing.T) {
	inCluster(t, func(c *cluster) {
		report := following("report", "import", 25*time.Minute)
		report.Missed = soloist.RunAll
		r := c.replica("a", importing("*/10 * * * *", time.Second), report)
		r.wake()
		var other sync.WaitGroup
		other.Go(func() {
			until(20 * time.Minute)
			r.wake()
		})
		until(10 * time.Minute)
		got, err := r.RunDue(c.t.Context(), soloist.Wake{})
		if j := reportOf(t, got, "report"); err != nil || j.Awaits != "" || j.Next.Minute() != 20 {
			t.Errorf("got %+v, %v", j, err)
		}
		other.Wait()
	})
}

// A call whose time ends while it waits says so.
func TestCallThatWaitsInVainForRunOfFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", importing("*/10 * * * *", time.Second), following("report", "import", 15*time.Minute))
		r.wake()
		until(10 * time.Minute)
		over := make(chan struct{})
		go func() { defer close(over); r.wake() }()
		until(20 * time.Minute)
		got, err := r.RunDue(c.within(2*time.Minute), soloist.Wake{})
		if j := reportOf(t, got, "report"); err == nil || j.Err == nil || j.Next.After(time.Now()) {
			t.Errorf("got %+v, %v", j, err)
		}
		<-over
	})
}

// A loop that drives a follower learns of the outcomes of the job before it, so no call waits for it.
func TestCallWaitsForNoLoop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.start("a", importing("*/10 * * * *", time.Second), following("report", "import", 15*time.Minute))
		until(20*time.Minute + 2*time.Second)
		begin := time.Now()
		if _, err := r.RunDue(c.t.Context(), soloist.Wake{}); err != nil || time.Since(begin) > time.Second {
			t.Errorf("it takes %s, %v", time.Since(begin), err)
		}
	})
}

// A call reads a job that another replica runs, however little time ago the last call did.
func TestEachCallReadsThePredecessor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		imports := importing("0 * * * *", time.Minute)
		a, b := c.replica("a", imports), c.replica("b", imports, following("report", "import", time.Second))
		a.wake()
		b.wake()
		until(time.Hour)
		over := make(chan struct{})
		go func() { defer close(over); a.wake() }()
		for range 2 {
			time.Sleep(29 * time.Second)
			b.wake()
			c.wantOutcomes("report")
		}
		<-over
		b.wake()
		c.wantOutcomes("report", "succeeded 01:00:00")
	})
}
