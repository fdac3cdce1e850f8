package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
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
		long := named("long", work("@hourly", 90*time.Minute))
		a := c.start("a", append(crowd(50, "*/10 * * * *"), long, here("*/30 * * * *", nil))...)
		time.Sleep(3*time.Hour + time.Minute)
		a.stop()
		c.wantInTime(0)
		for job, want := range map[string]int{"job-0": 18, "job-49": 18, "here": 6, "long": 2} {
			if got := len(c.runsOf(job)); got != want {
				t.Errorf("%s has run %d times, want %d", job, got, want)
			}
		}
	})
}

// A call of RunDue drives its job to the end; Run takes the job up after it, and the others at
// once.
func TestRunWaitsForCallOfOneJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", named("slow", work("@hourly", 10*time.Minute)), work("* * * * *", 0))
		a.wake() // makes the entries
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
		if got := len(c.runsOf("slow")); got != 2 {
			t.Errorf("slow has run %d times, want once by the call and once by Run", got)
		}
	})
}

// Jobs that are due together do not flood the store: the calls of some wait for those of others.
func TestManyDueJobsDoNotFloodTheStore(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		var mu sync.Mutex
		now, most := 0, 0
		acquires := func(more int) {
			mu.Lock()
			defer mu.Unlock()
			now += more
			most = max(most, now)
		}
		a, slow := c.replica("a", crowd(500, "* * * * *")...), &faultyStore{Store: c.store}
		slow.meets(func(op, _ string) error {
			if op == "acquire" {
				acquires(1)
				defer acquires(-1)
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		}, nil)
		a.Store = slow
		c.launch(a)
		time.Sleep(90 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got := len(c.all()); got != 500 || most != 64 {
			t.Errorf("%d runs, with up to %d acquisitions at once: want 500 and 64", got, most)
		}
		c.wantInTime(time.Second)
	})
}

// A stack does one write at a time, the one that came last, and notes the jobs in the order in which it did them.
type stack struct {
	mu      sync.Mutex
	busy    bool
	waiting []chan struct{}
	written []string
}

// enter waits for the turn of a write.
func (s *stack) enter(op, _ string) error {
	if op != "write" {
		return nil
	}
	s.mu.Lock()
	turn := make(chan struct{})
	if s.busy {
		s.waiting = append(s.waiting, turn)
	} else {
		s.busy = true
		close(turn)
	}
	s.mu.Unlock()
	<-turn
	time.Sleep(3 * time.Millisecond)
	return nil
}

// leave notes a write, and gives the turn to the one that came last.
func (s *stack) leave(op, name string) error {
	if op != "write" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = append(s.written, path.Base(name))
	last := len(s.waiting) - 1
	if last < 0 {
		s.busy = false
		return nil
	}
	close(s.waiting[last])
	s.waiting = s.waiting[:last]
	return nil
}

// Jobs that are due together are all claimed before the first outcome is written, even by a store
// that would do it first: an outcome can wait, and a start is late.
func TestOutcomesWaitForClaims(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a, s, first := c.replica("a", crowd(20, "* * * * *")...), &faultyStore{Store: c.store}, &stack{}
		s.meets(first.enter, first.leave)
		a.Store = s
		c.launch(a)
		until(150 * time.Second)
		first.mu.Lock()
		defer first.mu.Unlock()
		if len(first.written) != 2*40 {
			t.Fatalf("%d writes in two minutes, want a claim and an outcome of each of 20 jobs in each", len(first.written))
		}
		claimed, second := map[string]bool{}, first.written[40:]
		for _, job := range second[:20] {
			claimed[job] = true
		}
		if len(claimed) != 20 {
			t.Errorf("%d jobs were claimed before an outcome was written, want 20: %v", len(claimed), second)
		}
	})
}

// A counter is a store that lists, and counts calls.
type counter struct {
	lister
	creates atomic.Int64
	hangs   atomic.Bool // listings do
}

func (c *counter) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	c.creates.Add(1)
	return c.Memory.Create(ctx, name, record)
}

func (c *counter) List(ctx context.Context, app string, f func(string, store.Entry) bool) error {
	if c.hangs.Load() {
		c.lists.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	return c.lister.List(ctx, app, f)
}

func (c *counter) calls() string {
	return fmt.Sprintf("%d listings, %d reads, %d creations", c.lists.Load(), c.reads.Load(), c.creates.Load())
}

// listing starts a replica over a store that lists.
func (c *cluster) listing(backend *counter, name string, work ...soloist.Work) *replica {
	backend.Memory = c.store
	r := c.replica(name, work...)
	r.Store = backend
	return c.launch(r)
}

// A start with many jobs is a listing, whether their entries exist or not. Entries that do not
// exist are created after it.
func TestStartWithManyJobsIsOneListing(t *testing.T) {
	crowded(t)
	inCluster(t, func(c *cluster) {
		first, again := &counter{}, &counter{}
		a := c.listing(first, "a", crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		a.stop()
		if got, want := first.calls(), "1 listings, 0 reads, 300 creations"; got != want {
			t.Errorf("the first start: %s, want %s", got, want)
		}
		c.listing(again, "a", crowd(300, "@hourly")...)
		time.Sleep(time.Second)
		if got, want := again.calls(), "1 listings, 0 reads, 0 creations"; got != want {
			t.Errorf("another start: %s, want %s", got, want)
		}
		time.Sleep(time.Hour)
		if got := len(c.all()); got != 300 {
			t.Errorf("%d runs in an hour, want 300", got)
		}
	})
}

// Jobs that are read once a minute are read together, though their ticks are not. Those that come to a tick within a minute
// are not read in between, so they are not listed. Two replicas look at the outcomes of the other by listings.
func TestReadsOfManyJobsAreListings(t *testing.T) {
	crowded(t)
	const others = 2 // listings for jobs of other programs
	for name, tt := range map[string]struct {
		jobs                 []soloist.Work
		replicas, minutes    int
		runs                 int
		mostLists, mostReads int64
	}{
		"one is due in each minute": {many(60), 1, 90, 90, 90 + others + 2, 60}, // one look before the first tick of each job
		"all are, on one replica":   {crowd(40, "* * * * *"), 1, 30, 1200, others + 2, 0},
		"all are, on two":           {crowd(100, "* * * * *"), 2, 10, 1000, 60, 200},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			all := map[string]*counter{}
			for _, name := range letters(tt.replicas) {
				all[name] = &counter{}
				c.listing(all[name], name, tt.jobs...)
			}
			time.Sleep(time.Duration(tt.minutes)*time.Minute + 30*time.Second)
			for name, b := range all {
				if b.lists.Load() > tt.mostLists || b.reads.Load() > tt.mostReads {
					t.Errorf("%s: %s in %d minutes", name, b.calls(), tt.minutes)
				}
			}
			if got := len(c.all()); got != tt.runs {
				t.Errorf("%d runs, want %d", got, tt.runs)
			}
		})
	}
}

// No job depends on a listing: if it is refused, breaks or hangs, each entry is read by itself.
// It is not tried again with each read.
func TestJobsRunWithoutListing(t *testing.T) {
	for what, backend := range map[string]*counter{
		"no right to list":      {lister: lister{err: fs.ErrPermission}},
		"a listing that breaks": {lister: lister{err: errors.New("the network"), after: 20}},
		"a listing that hangs":  {},
	} {
		backend.hangs.Store(backend.err == nil)
		inCase(t, what, func(t *testing.T, c *cluster) {
			a := c.listing(backend, "a", crowd(50, "* * * * *")...)
			time.Sleep(10*time.Minute + time.Second)
			a.stop()
			if got := len(c.all()); got != 500 {
				t.Errorf("%d runs in ten minutes, want 500", got)
			}
			c.wantInTime(time.Second)
			if lists := backend.lists.Load(); lists < 1 || lists > 3 {
				t.Errorf("%s in ten minutes", backend.calls())
			}
		})
	}
}

// A damaged entry is the trouble of its own job, though it was listed with the others.
func TestBadEntryAmongManyIsItsOwnTrouble(t *testing.T) {
	inCluster(t, func(c *cluster) {
		if _, err := c.store.Create(c.t.Context(), "soloist/job-7", []byte("rubbish")); err != nil {
			t.Fatal(err)
		}
		a := c.listing(&counter{}, "a", crowd(30, "* * * * *")...)
		time.Sleep(5*time.Minute + time.Second)
		if got, broken := len(c.all()), a.Health().Broken; got != 29*5 || len(broken) != 1 || broken["job-7"] == nil {
			t.Errorf("%d runs, broken %v: want 145, and job-7 alone", got, broken)
		}
	})
}

// Few reads among many jobs are no listing, and hardly wait for others.
func TestLoneReadIsNoListing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		backend := &counter{lister: lister{Memory: c.store}}
		a := c.replica("a", crowd(50, "@hourly")...)
		a.Store = backend
		begin := time.Now()
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"job-3"}}); err != nil {
			t.Fatal(err)
		}
		if got, want := backend.calls(), "0 listings, 1 reads, 1 creations"; got != want || time.Since(begin) > 20*time.Millisecond {
			t.Errorf("%s in %s, want %s", got, time.Since(begin), want)
		}
	})
}

// A listing without entries has no date. New jobs start by the clock of the store all the same,
// and not by that of a replica that is fast: they would rest until its time has come.
func TestNewJobsAmongManyStartByTheStoresClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", crowd(20, "* * * * *")...).skewed(time.Hour)
		a.Store = &counter{lister: lister{Memory: c.store}}
		c.launch(a)
		time.Sleep(time.Second)
		if got := c.record("job-3").Watermark; got.After(time.Now()) {
			t.Errorf("the watermark is %s at %s", got, time.Now())
		}
		time.Sleep(10 * time.Minute)
		if got := len(c.all()); got != 200 {
			t.Errorf("%d runs in ten minutes, want 200", got)
		}
	})
}
