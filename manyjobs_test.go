package soloist_test

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"sync"
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

// crowded leaves out a test of many jobs with -short, as the race detector runs: the detector
// itself dies of them at times.
func crowded(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("many jobs at once")
	}
}

// A job that waits for its tick has no goroutine: a replica with ten thousand of them would need
// as many stacks.
func TestIdleJobsHaveNoGoroutine(t *testing.T) {
	crowded(t)
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
	crowded(t)
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
	crowded(t)
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

// A stackedStore does one write at a time, the one that came last, and notes in which order they
// came to an end.
type stackedStore struct {
	*local.Memory
	hangs   string // the job whose writes get no answer
	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
	written []written
}

// A written is a write that was answered.
type written struct {
	job string
	at  time.Time
}

func (s *stackedStore) Lease(name, id string) store.Lease {
	return stackedLease{s.Memory.Lease(name, id), s, path.Base(name)}
}

// enter waits for the turn of a write.
func (s *stackedStore) enter() {
	s.mu.Lock()
	if !s.busy {
		s.busy = true
		s.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	s.mu.Unlock()
	<-turn
}

// leave notes a write, and gives the turn to the one that came last.
func (s *stackedStore) leave(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, written{job, time.Now()})
	last := len(s.waiting) - 1
	if last < 0 {
		s.busy = false
		return
	}
	close(s.waiting[last])
	s.waiting = s.waiting[:last]
}

// hang forgets what was written, and answers no write of a job from now on.
func (s *stackedStore) hang(job string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangs, s.written = job, nil
}

func (s *stackedStore) isHanging(job string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hangs == job
}

type stackedLease struct {
	store.Lease
	of  *stackedStore
	job string
}

func (l stackedLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	if l.of.isHanging(l.job) {
		<-ctx.Done()
		return store.Revision{}, ctx.Err()
	}
	l.of.enter()
	defer l.of.leave(l.job)
	if err := pause(ctx, 3*time.Millisecond); err != nil {
		return store.Revision{}, err
	}
	return l.Lease.Write(ctx, etag, record)
}

// stacked has a replica do twenty jobs each minute over a stackedStore, and returns what is
// written in the third minute, in which the writes of one job may hang.
func (c *cluster) stacked(hangs string) []written {
	a, slow := c.replica("a", crowd(20, "* * * * *")...), &stackedStore{Memory: c.store}
	a.Store = slow
	c.launch(a)
	until(90 * time.Second)
	slow.hang(hangs)
	until(150 * time.Second)
	slow.mu.Lock()
	defer slow.mu.Unlock()
	return slices.Clone(slow.written)
}

// Jobs that are due together are all claimed before the first outcome is written, even by a store
// that would do it first: an outcome can wait, and a start is late.
func TestOutcomesWaitForClaims(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.stacked("none")
		if len(all) != 40 {
			t.Fatalf("%d writes, want a claim and an outcome of each of 20 jobs", len(all))
		}
		claimed := map[string]bool{}
		for _, w := range all[:20] {
			claimed[w.job] = true
		}
		if len(claimed) != 20 {
			t.Errorf("%d jobs were claimed before an outcome was written, want 20: %v", len(claimed), all)
		}
	})
}

// A job whose claim gets no answer keeps the outcomes of the others for a moment.
func TestOutcomesDoNotWaitForClaimThatHangs(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.stacked("job-7")
		if len(all) != 38 {
			t.Fatalf("%d writes, want a claim and an outcome of each of 19 jobs", len(all))
		}
		for _, w := range all {
			if late := w.at.Sub(w.at.Truncate(time.Minute)); late > 300*time.Millisecond {
				t.Errorf("a write of %s ended %s after the tick", w.job, late)
			}
		}
	})
}
