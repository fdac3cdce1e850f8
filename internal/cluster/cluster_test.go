// Package cluster_test has the tests of package soloist. Each is some replicas over one store, in virtual time, that
// do what the pages say. A [cluster] has the replicas, and what they ran.
package cluster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// D is the lease of all tests that name none.
const D = 15 * time.Second

// A cluster is some replicas over one store, in virtual time.
type cluster struct {
	t     *testing.T
	store *local.Memory
	whole bool // the replicas that are made from now on see its leases whole

	started []*replica

	mu   sync.Mutex
	runs []*ran
}

// ran is one call of a job's Do.
type ran struct {
	*soloist.Run
	replica    string
	start, end time.Time
	cause      error
}

// TestMain lets the heap grow: a cluster in virtual time makes little that lasts.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// inCluster runs f in a bubble of virtual time that starts at a whole hour.
func inCluster(t *testing.T, f func(c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{t: t, store: &local.Memory{}}
		defer c.stopAll()
		f(c)
	})
}

// inCase is inCluster in a subtest.
func inCase(t *testing.T, name string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		inCluster(t, func(c *cluster) { f(c.t, c) })
	})
}

// inCases is inCase for each of some stories. Their names say what they show.
func inCases(t *testing.T, stories map[string]func(c *cluster)) {
	t.Helper()
	for name, f := range stories {
		inCase(t, name, func(_ *testing.T, c *cluster) { f(c) })
	}
}

// inEach is inCase for each of some values, whose text is the name.
func inEach[T any](t *testing.T, values []T, f func(c *cluster, v T)) {
	t.Helper()
	for _, v := range values {
		inCase(t, fmt.Sprint(v), func(_ *testing.T, c *cluster) { f(c, v) })
	}
}

// inRows is inCase for each row of a table.
func inRows[T any](t *testing.T, rows map[string]T, f func(c *cluster, name string, row T)) {
	t.Helper()
	for name, row := range rows {
		inCase(t, name, func(_ *testing.T, c *cluster) { f(c, name, row) })
	}
}

// beside is inCase beside others of its kind: they take long.
func beside(t *testing.T, name string, f func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		inCluster(t, func(c *cluster) { f(c.t, c) })
	})
}

// A replica is one scheduler, its way to the store, and its log.
type replica struct {
	*soloist.Scheduler
	tap  *tap
	log  *logBook
	stop func() // as SIGTERM; waits
	kill func() // as kill -9, seen from the store: it is never heard of again
	done chan struct{}
}

// replica makes a replica that is not started.
func (c *cluster) replica(name string, work ...soloist.Work) *replica {
	r := &replica{tap: &tap{Store: c.store, t: c.t, whole: c.whole}, log: &logBook{}, done: make(chan struct{})}
	r.Scheduler = &soloist.Scheduler{Store: r.tap, Replica: name, Elapsed: sinceMidnight,
		Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, w := range work {
		switch w := w.(type) {
		case soloist.Job:
			w.Do = c.watch(name, w.Do)
			r.Jobs = append(r.Jobs, w)
		case soloist.Singleton:
			w.Do = c.watch(name, w.Do)
			r.Singletons = append(r.Singletons, w)
		}
	}
	r.kill = func() { r.tap.cut.Store(true) }
	return r
}

// meets sets what stands between a replica and its calls.
func (r *replica) meets(f fault) *replica {
	r.tap.meet(f)
	return r
}

// skewed sets the wall clock of a replica wrong by d.
func (r *replica) skewed(d time.Duration) *replica {
	r.Now = func() time.Time { return time.Now().Add(d) }
	return r
}

// on has a replica run on a machine that sleeps at times.
func (r *replica) on(m *suspended) *replica {
	r.Elapsed = m.elapsed
	return r
}

// start makes a replica and starts it; the test's end stops it.
func (c *cluster) start(name string, work ...soloist.Work) *replica {
	return c.launch(c.replica(name, work...))
}

// startAll starts replicas with the same work.
func (c *cluster) startAll(work soloist.Work, names ...string) map[string]*replica {
	return c.graceful(0, work, names...)
}

// graceful starts replicas that have a grace.
func (c *cluster) graceful(grace time.Duration, work soloist.Work, names ...string) map[string]*replica {
	all := map[string]*replica{}
	for _, name := range names {
		r := c.replica(name, work)
		r.Grace = grace
		all[name] = c.launch(r)
	}
	return all
}

// each starts replicas that have the same work, however much it is.
func (c *cluster) each(work []soloist.Work, names ...string) map[string]*replica {
	all := map[string]*replica{}
	for _, name := range names {
		all[name] = c.start(name, work...)
	}
	return all
}

func (c *cluster) launch(r *replica) *replica {
	ctx, cancel := context.WithCancel(c.t.Context())
	r.stop = func() { cancel(); <-r.done } // before Run: a tap may call it
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			c.t.Errorf("Run: %v", err)
		}
	}()
	c.started = append(c.started, r)
	return r
}

func (c *cluster) stopAll() {
	for _, r := range c.started {
		r.stop()
	}
}

func (c *cluster) watch(name string, do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		one := &ran{Run: run, replica: name, start: time.Now()}
		c.mu.Lock()
		c.runs = append(c.runs, one)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			one.end, one.cause = time.Now(), context.Cause(ctx)
		}()
		if do == nil {
			return nil
		}
		return do(ctx, run)
	}
}

// all returns the runs so far.
func (c *cluster) all() []ran {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ran
	for _, r := range c.runs {
		out = append(out, *r)
	}
	return out
}

// last returns the run that began last.
func (c *cluster) last() ran {
	c.t.Helper()
	runs := c.all()
	if len(runs) == 0 {
		c.t.Fatal("nothing has run")
	}
	return runs[len(runs)-1]
}

// record returns what the store tells of a job.
func (c *cluster) record(job string) record.Record {
	c.t.Helper()
	var r record.Record
	if err := json.Unmarshal(c.raw(job), &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *cluster) raw(job string) []byte {
	c.t.Helper()
	e, err := c.store.Read(context.Background(), "soloist/"+job)
	if err != nil {
		c.t.Fatal(err)
	}
	return e.Record
}

// wantLease checks in which state the lease of the job "work" is.
func (c *cluster) wantLease(want store.LeaseState) {
	c.t.Helper()
	e, err := c.store.Read(context.Background(), "soloist/work")
	c.wrong(err != nil || e.State != want, "the lease is %s, %v, want %s", e.State, err, want)
}

// createEntry makes the entry of the job "work" with this record.
func (c *cluster) createEntry(record string) {
	c.t.Helper()
	if _, err := c.store.Create(context.Background(), "soloist/work", []byte(record)); err != nil {
		c.t.Fatal(err)
	}
}

// breakLease ends the lease of the job "work" at once.
func (c *cluster) breakLease() {
	c.t.Helper()
	if err := c.store.Break(context.Background(), "soloist/work", 0); err != nil {
		c.t.Fatal(err)
	}
}

// deleteEntry deletes the entry of the job "work", whose lease is free.
func (c *cluster) deleteEntry() {
	c.t.Helper()
	if err := c.store.Delete(context.Background(), "soloist/work"); err != nil {
		c.t.Fatal(err)
	}
}

// wrong fails the test if something is so.
func (c *cluster) wrong(so bool, format string, args ...any) {
	c.t.Helper()
	if so {
		c.t.Errorf(format, args...)
	}
}

// wantIs checks what an error is.
func (c *cluster) wantIs(err, want error) {
	c.t.Helper()
	c.wrong(!errors.Is(err, want), "the error is %v, want %v", err, want)
}

// within is the context of a call that ends after d.
func (c *cluster) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), d)
	c.t.Cleanup(cancel)
	return ctx
}

// wake has a replica run what is due, without an error.
func (r *replica) wake() {
	r.tap.t.Helper()
	if _, err := r.RunDue(r.tap.t.Context(), soloist.Wake{}); err != nil {
		r.tap.t.Errorf("RunDue: %v", err)
	}
}

// wakeFor has a replica run what is due of some jobs, without an error.
func (r *replica) wakeFor(jobs ...string) soloist.Report {
	r.tap.t.Helper()
	got, err := r.RunDue(r.tap.t.Context(), soloist.Wake{Jobs: jobs})
	if err != nil {
		r.tap.t.Errorf("RunDue: %v", err)
	}
	return got
}

// byHand has a replica run a job, which succeeds.
func (r *replica) byHand(job, request string) {
	r.tap.t.Helper()
	if o, err := r.RunNow(r.tap.t.Context(), job, request); err != nil || o.Status != event.Succeeded {
		r.tap.t.Errorf("the run by hand of %s: %+v, %v", job, o, err)
	}
}

// work returns a job that takes d, or ends with its context.
func work(schedule string, d time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: schedule, Lease: D, Do: func(ctx context.Context, _ *soloist.Run) error {
		return pause(ctx, d)
	}}
}

// here is a job that runs on each replica.
func here(schedule string, do func(context.Context, *soloist.Run) error) soloist.Job {
	return soloist.Job{Name: "here", Schedule: schedule, EveryReplica: true, Do: do}
}

// leader returns a singleton that leads until its context ends, and then takes
// a moment to stop.
func leader() soloist.Singleton {
	return soloist.Singleton{Name: "lead", Lease: D, Do: func(ctx context.Context, _ *soloist.Run) error {
		<-ctx.Done()
		time.Sleep(200 * time.Millisecond)
		return ctx.Err()
	}}
}

// beating leads and beats each interval until its context ends, or for so long
// as it goes well; then it hangs, and obeys its context if obeys is set.
func beating(every, well time.Duration, obeys bool) soloist.Singleton {
	return soloist.Singleton{Name: "lead", Lease: D, HeartbeatTimeout: silence, Do: func(ctx context.Context, run *soloist.Run) error {
		for begin := time.Now(); time.Since(begin) < well; {
			if err := run.Heartbeat("all well"); err != nil {
				return err
			}
			if err := pause(ctx, every); err != nil {
				return err
			}
		}
		if obeys {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(time.Hour)
		return nil
	}}
}

const silence = 20 * time.Second

// deaf is a job of one tick that ignores the end of its context for d.
func deaf(d time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D,
		Do: func(context.Context, *soloist.Run) error { time.Sleep(d); return nil }}
}

// doing returns a job that calls do.
func doing(schedule string, do func(context.Context, *soloist.Run) error) soloist.Job {
	return soloist.Job{Name: "work", Schedule: schedule, Lease: D, Do: do}
}

// leased is a job with a lease of d.
func leased(d time.Duration, job soloist.Job) soloist.Job {
	job.Lease = d
	return job
}

// named is a job with a name.
func named(name string, job soloist.Job) soloist.Job {
	job.Name = name
	return job
}

// rerun gives a tick of a job whose runner died to another.
func rerun(job soloist.Job) soloist.Job {
	job.Interrupted = soloist.Rerun
	return job
}

// grouped is a job of the group of these tests.
func grouped(job soloist.Job) soloist.Job {
	job.Group = "imports"
	return job
}

// lead is a leader with a name.
func lead(name string) soloist.Singleton {
	s := leader()
	s.Name = name
	return s
}

// ranBy returns the runs of a replica that started after a time.
func ranBy(c *cluster, replica string, after time.Time) (runs []ran) {
	for _, r := range c.all() {
		if r.replica == replica && r.start.After(after) {
			runs = append(runs, r)
		}
	}
	return runs
}

// wantRan checks whether a replica has begun a run after a time.
func (c *cluster) wantRan(replica string, after time.Time, ran bool) {
	c.t.Helper()
	runs := ranBy(c, replica, after)
	c.wrong(len(runs) > 0 != ran, "%s has begun %d runs since %s, want some: %t", replica, len(runs), after, ran)
}

// wantTicks checks which ticks were run, in this format and in the order of their starts.
func (c *cluster) wantTicks(runs []ran, format string, want ...string) {
	c.t.Helper()
	var got []string
	for _, r := range runs {
		got = append(got, r.Tick.Format(format))
	}
	c.wrong(!slices.Equal(got, want), "the ticks %q were run, want %q", got, want)
}

// until sleeps until d after the beginning of the bubble.
func until(d time.Duration) {
	time.Sleep(d - sinceMidnight())
}

// sinceMidnight is the time since the beginning of the bubble. The default of
// Scheduler.Elapsed also reads clocks of the machine, a few microseconds of which
// may decide which of two things at one virtual instant comes first.
func sinceMidnight() time.Duration {
	return time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}

// suspended is a machine that sleeps at times: its timers stand still while
// elapsed time goes on.
type suspended struct{ slept atomic.Int64 }

func (s *suspended) elapsed() time.Duration { return sinceMidnight() + time.Duration(s.slept.Load()) }

// pause waits for d; the end of ctx cuts it short and is its error. It makes no timer of zero
// length: on one the race detector crashes in a bubble at times.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
