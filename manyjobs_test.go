package soloist_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// crowd is n jobs with one schedule, named job-0 and so on.
func crowd(n int, schedule string) (jobs []soloist.Work) {
	for i := range n {
		job := work(schedule, 0)
		job.Name = fmt.Sprintf("job-%d", i)
		jobs = append(jobs, job)
	}
	return jobs
}

// A job that waits for its tick has no goroutine: a replica with ten thousand of them would need
// as many stacks.
func TestIdleJobsHaveNoGoroutine(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of jobs at once: the race detector itself dies of them at times")
	}
	inCluster(t, func(c *cluster) {
		before := runtime.NumGoroutine()
		c.start("a", crowd(200, "@daily")...)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := runtime.NumGoroutine() - before; got > 10 {
			t.Errorf("%d goroutines beside 200 jobs that wait, want at most 10", got)
		}
	})
}

// Each job has its ticks at their instants, whatever another one does: one that runs for hours,
// and one that overruns its next ticks.
func TestManyJobsStartAtTheirInstants(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of jobs at once: the race detector itself dies of them at times")
	}
	inCluster(t, func(c *cluster) {
		long, every := work("@hourly", 90*time.Minute), here("*/30 * * * *", func(context.Context, *soloist.Run) error { return nil })
		long.Name = "long"
		a := c.start("a", append(crowd(50, "*/10 * * * *"), long, every)...)
		time.Sleep(3*time.Hour + time.Minute)
		a.stop()
		runs := map[string]int{}
		for _, r := range c.all() {
			if runs[r.Job]++; !r.start.Equal(r.Tick) {
				t.Errorf("%s started %s late", r.ID(), r.start.Sub(r.Tick))
			}
		}
		for job, want := range map[string]int{"job-0": 18, "job-49": 18, "here": 6, "long": 2} {
			if runs[job] != want {
				t.Errorf("%s has run %d times, want %d", job, runs[job], want)
			}
		}
	})
}

// A call of RunDue drives its job to the end; Run takes the job up after it, and the others at
// once.
func TestRunWaitsForCallOfOneJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		slow, quick := work("@hourly", 10*time.Minute), work("* * * * *", 0)
		slow.Name = "slow"
		a := c.replica("a", slow, quick)
		_, _ = a.RunDue(c.t.Context(), soloist.Wake{}) // makes the entries
		time.Sleep(time.Hour)
		called := make(chan struct{})
		go func() {
			defer close(called)
			_, _ = a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"slow"}})
		}()
		time.Sleep(time.Second)
		c.launch(a)
		time.Sleep(5 * time.Minute)
		if got := len(c.all()); got != 1+6 {
			t.Errorf("%d runs began beside the call, want its own, the tick that was due, and five ticks of the other job", got)
		}
		<-called
		time.Sleep(time.Hour)
		slowRuns := 0
		for _, r := range c.all() {
			if r.Job == "slow" {
				slowRuns++
			}
		}
		if slowRuns != 2 {
			t.Errorf("slow has run %d times, want once by the call and once by Run", slowRuns)
		}
	})
}

// A slowStore answers acquisitions late, and counts how many are under way.
type slowStore struct {
	*local.Memory
	now, most atomic.Int64
}

func (s *slowStore) Lease(name, id string) store.Lease { return slowLease{s.Memory.Lease(name, id), s} }

type slowLease struct {
	store.Lease
	of *slowStore
}

func (l slowLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	n := l.of.now.Add(1)
	defer l.of.now.Add(-1)
	for most := l.of.most.Load(); n > most && !l.of.most.CompareAndSwap(most, n); most = l.of.most.Load() {
	}
	if err := pause(ctx, 100*time.Millisecond); err != nil {
		return store.Revision{}, err
	}
	return l.Lease.Acquire(ctx, d, etag)
}

// Jobs that are due together do not flood the store: the calls of some wait for those of others.
func TestManyDueJobsDoNotFloodTheStore(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of jobs at once: the race detector itself dies of them at times")
	}
	inCluster(t, func(c *cluster) {
		a, slow := c.replica("a", crowd(500, "* * * * *")...), &slowStore{Memory: c.store}
		a.Store = slow
		c.launch(a)
		time.Sleep(90 * time.Second)
		if got, most := len(c.all()), slow.most.Load(); got != 500 || most != 64 {
			t.Errorf("%d runs, with up to %d acquisitions at once: want 500 and 64", got, most)
		}
		for _, r := range c.all() {
			if late := r.start.Sub(r.Tick); late > time.Second {
				t.Errorf("%s started %s late", r.ID(), late)
			}
		}
	})
}
