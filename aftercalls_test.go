package soloist_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

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

// A loop that drives a follower hears of the job before it, so no call waits for it.
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
