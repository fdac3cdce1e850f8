package soloist_test

import (
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
	c.order(soloist.Order{Kind: store.OrderBackfill, Job: "import", Backfill: soloist.Backfill{From: from, To: from.Add(d), All: true}}, work...)
}

// One call for the first job runs a whole chain, whatever the order of the jobs in the program. It runs the ticks of the
// chain before the backfill, also a tick that comes due during the backfill.
func TestRunDueRunsChainBeforeBackfill(t *testing.T) {
	inCluster(t, func(c *cluster) {
		work := []soloist.Work{following("join", "report", time.Second), importing("*/10 * * * *", time.Minute), following("report", "import", time.Second)}
		r := c.replica("a", work...)
		r.wake()
		until(time.Hour)
		r.wake()
		c.backfills(140*time.Minute, work...)
		until(time.Hour + 10*time.Minute)
		got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"import"}})
		if err != nil {
			t.Error(err)
		}
		for job, want := range map[string]int{"import": 17, "report": 2, "join": 2} {
			if ran := len(reportOf(t, got, job).Ran); ran != want {
				t.Errorf("%d runs of %s, want %d", ran, job, want)
			}
		}
		if n := len(c.filled()); n != 15 {
			t.Errorf("%d runs of the backfill", n)
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
		c.backfills(2*time.Hour, first)
		until(time.Hour + 10*time.Minute)
		_, _ = c.replica("b", first).RunDue(c.within(70*time.Second), soloist.Wake{})
		r.wake()
		c.wantFollowed("report", "import", time.Second)
		if n := len(c.filled()); n != 13 {
			t.Errorf("%d runs of the backfill", n)
		}
	})
}

// A call that finds the job before a follower running elsewhere leaves the follower to a later call. Each call reads that
// job, however little time ago the last one did.
func TestRunDueBesidePredecessor(t *testing.T) {
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
			got, err := b.RunDue(c.t.Context(), soloist.Wake{})
			if err != nil || len(got.Jobs[1].Ran) != 0 || got.Jobs[0].Replica != "a" || !got.Jobs[1].Next.Equal(time.Now().Truncate(time.Hour)) {
				t.Errorf("got %+v, %v", got, err)
			}
			c.wantOutcomes("report")
		}
		<-over
		for range 2 {
			b.wake()
			c.wantOutcomes("report", "succeeded 01:00:00")
		}
	})
}

// countCalls counts the calls of an operation for an entry.
func countCalls(n *atomic.Int64, op, entry string) func(string, string) error {
	return func(got, name string) error {
		if got == op && name == entry {
			n.Add(1)
		}
		return nil
	}
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
			s, count := &faultyStore{Store: c.store}, countCalls(&reads, "read", "soloist/import")
			s.meets(func(op, name string) error {
				if op == "acquire" && name == "soloist/import" {
					return store.ErrHeld
				}
				return count(op, name)
			}, nil)
			c.start("a", importing("0 */2 * * *", took))
			r := c.replica("b", following("report", "import", time.Second), importing("0 */2 * * *", took))
			r.Store = s
			c.launch(r)
			until(2*time.Hour - time.Minute)
			if n := reads.Swap(0); n > 125 { // of its own job import, once a minute
				t.Errorf("%d reads while nothing is due", n)
			}
			until(2*time.Hour + took + time.Minute)
			c.wantOutcomes("report", "succeeded 02:00:00")
			own := 3 + int64(took.Minutes()) // before the tick and after it, and once a minute
			if got, want := float64(reads.Load()-own), number(t, row[3]); math.Abs(got-want) > 2+want/10 {
				t.Errorf("%.0f reads, and the page says %.0f", got, want)
			}
			c.wantFollowed("report", "import", max(400*time.Millisecond, min(took/7, 10*time.Second)))
		})
	}
}

// A follower acquires its lease once for each tick, when that is due: neither before the tick nor where another replica
// was first.
func TestFollowerAcquiresWhenItIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule string
		took     time.Duration
		ticks    int64
		replicas int
	}{
		"among three":    {"*/10 * * * *", 3 * time.Minute, 6, 3},
		"ticks are near": {"@every 2s", time.Second, 1800, 1},
	} {
		if !nightly.Runs() && tt.ticks > 100 {
			continue
		}
		inCase(t, name, func(t *testing.T, c *cluster) {
			var acquires atomic.Int64
			s := &faultyStore{Store: c.store}
			s.meets(countCalls(&acquires, "acquire", "soloist/report"), nil)
			for _, name := range letters(tt.replicas) {
				r := c.replica(name, importing(tt.schedule, tt.took), following("report", "import", 100*time.Millisecond))
				r.Store = s
				c.launch(r)
			}
			until(time.Hour + 5*time.Minute - 300*time.Millisecond)
			if e, err := c.store.Read(c.t.Context(), "soloist/report"); err != nil || e.State.Live() {
				t.Errorf("just before a tick the lease is %s, %v", e.State, err)
			}
			n := c.record("report").Counts[store.Succeeded]
			if most := n + n/10; n < tt.ticks || acquires.Load() > most {
				t.Errorf("%d acquisitions for %d ticks", acquires.Load(), n)
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
		if err != nil || at.IsZero() || at.After(time.Now().Add(2*time.Second)) {
			t.Errorf("wanted at %s, %v, want now: there is a tick to run", at, err)
		}
		c.replica("woken", first, between, last).wake()
		c.wantRuns(1)
	})
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

// A call that has run the job before a follower waits while another call runs an older tick of that. One call waits, and
// others return. A call whose time ends while it waits says so.
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
		until(45 * time.Minute)
		got, err := r.RunDue(c.within(2*time.Minute), soloist.Wake{})
		if j := reportOf(t, got, "report"); err == nil || j.Err == nil || j.Next.After(time.Now()) {
			t.Errorf("a call whose time ends says %+v, %v", j, err)
		}
		calls.Wait()
		if got, want := c.outcomes("report"), []string{"succeeded 00:10:00", "succeeded 00:20:00", "succeeded 00:30:00"}; !slices.Equal(got[:3], want) {
			t.Errorf("got %q, want %q", got, want)
		}
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
