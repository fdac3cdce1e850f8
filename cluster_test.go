package soloist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// D is the lease of all tests that name none.
const D = 15 * time.Second

// A cluster is some replicas over one store, in virtual time.
type cluster struct {
	t     *testing.T
	store *local.Memory

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
	r := &replica{tap: &tap{Store: c.store, t: c.t}, log: &logBook{}, done: make(chan struct{})}
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

// record returns what the store tells of a job.
func (c *cluster) record(job string) store.Record {
	c.t.Helper()
	var r store.Record
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

// wantRuns checks how many calls of Do there were.
func (c *cluster) wantRuns(want int) {
	c.t.Helper()
	if got := c.all(); len(got) != want {
		c.t.Errorf("%d runs, want %d: %+v", len(got), want, got)
	}
}

// wantInTime checks that no run began later than late after its tick.
func (c *cluster) wantInTime(late time.Duration) {
	c.t.Helper()
	for _, r := range c.all() {
		if got := r.start.Sub(r.Tick); got > late {
			c.t.Errorf("tick %s started %s late", r.Tick.Format(time.TimeOnly), got)
		}
	}
}

// wantOutcomes checks the history of a job: these outcomes and no others, oldest first.
func (c *cluster) wantOutcomes(job string, want ...string) {
	c.t.Helper()
	if got := c.outcomes(job); !slices.Equal(got, want) {
		c.t.Errorf("outcomes of %s:\ngot  %q\nwant %q", job, got, want)
	}
}

// wantAllSucceeded checks that each outcome of the job "work" is a success.
func (c *cluster) wantAllSucceeded() {
	c.t.Helper()
	for _, outcome := range c.outcomes("work") {
		if !strings.HasPrefix(outcome, "succeeded") {
			c.t.Errorf("got %s", outcome)
		}
	}
}

// wantLines checks how many lines of a replica's log contain all of parts.
func (r *replica) wantLines(want int, parts ...string) {
	r.tap.t.Helper()
	if got := r.log.lines(parts...); len(got) != want {
		r.tap.t.Errorf("%s logs %q %d times, want %d: %q", r.Replica, parts, len(got), want, got)
	}
}

// wantError checks that there is an error that contains all of parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want %q", err, parts)
			return
		}
	}
}

// wantWell checks that a replica's health tells of no trouble.
func (r *replica) wantWell() {
	r.tap.t.Helper()
	if h := r.Health(); h.Storage != nil || len(h.Broken) > 0 {
		r.tap.t.Errorf("health of %s: %+v", r.Replica, h)
	}
}

// outcomes returns the history of a job as text, oldest first: "succeeded
// 00:00:10", "missed 00:00:20-00:00:50 (4) reason".
func (c *cluster) outcomes(job string) []string {
	c.t.Helper()
	var out []string
	for _, f := range c.record(job).History {
		out = append([]string{outcomeText(f)}, out...)
	}
	return out
}

func outcomeText(f store.Outcome) string {
	b := &bytes.Buffer{}
	b.WriteString(string(f.Status) + " ")
	if !f.From.IsZero() {
		b.WriteString(f.From.Format("15:04:05") + "-")
	}
	b.WriteString(f.Tick.Format("15:04:05"))
	if f.Reason != "" {
		b.WriteString(" " + f.Reason)
	}
	return b.String()
}

// A fault stands between a replica and a call of an operation, which apply passes on.
type fault = func(op string, apply func() error) error

// A tap is one replica's way to the store: it counts calls, and can fail them
// or be cut.
type tap struct {
	store.Store
	t     *testing.T
	cut   atomic.Bool // nothing gets through; calls hang
	mu    sync.Mutex
	count map[string]int
	ids   map[string]bool
	deny  string // an entry that may not be read
	// fault stands between the replica and one call; nil: nothing does.
	fault fault
	// date changes the date of each answer, also of an error; nil: nothing does.
	date func(time.Time) time.Time
	// write stands between the store and a record that is written; nil: nothing does.
	write func(record []byte, apply func() error) error
}

func (s *tap) through(ctx context.Context, op string, apply func() error) error {
	s.mu.Lock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[op]++
	fault := s.fault
	s.mu.Unlock()
	if s.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if fault != nil {
		return fault(op, apply)
	}
	return apply()
}

// meet sets fault.
func (s *tap) meet(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// dated changes the date of an answer.
func (s *tap) dated(r *store.Revision) {
	if s.date != nil {
		r.Date = s.date(r.Date)
	}
}

// counts returns the calls so far by operation and starts anew.
func (s *tap) counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.count
	s.count = nil
	return n
}

func (s *tap) Create(ctx context.Context, name string, record []byte) (e store.Entry, err error) {
	err = s.through(ctx, "create", func() (err error) { e, err = s.Store.Create(ctx, name, record); return err })
	s.dated(&e.Revision)
	return e, err
}

func (s *tap) Read(ctx context.Context, name string) (e store.Entry, err error) {
	if name == s.deny {
		return e, fs.ErrPermission
	}
	err = s.through(ctx, "read", func() (err error) { e, err = s.Store.Read(ctx, name); return err })
	s.dated(&e.Revision)
	return e, err
}

func (s *tap) Break(ctx context.Context, name string, period time.Duration) error {
	return s.through(ctx, "break", func() error { return s.Store.(store.LeaseBreaker).Break(ctx, name, period) })
}

// Lease checks that an id serves one acquisition, ever.
func (s *tap) Lease(name, id string) store.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids[id] {
		s.t.Errorf("the lease id %s serves again", id)
	}
	if s.ids == nil {
		s.ids = map[string]bool{}
	}
	s.ids[id] = true
	return &tapLease{s.Store.Lease(name, id), s}
}

type tapLease struct {
	store.Lease
	s *tap
}

func (l *tapLease) Acquire(ctx context.Context, d time.Duration, etag string) (st store.Revision, err error) {
	err = l.s.through(ctx, "acquire", func() (err error) { st, err = l.Lease.Acquire(ctx, d, etag); return err })
	l.s.dated(&st)
	return st, err
}

func (l *tapLease) Renew(ctx context.Context) (st store.Revision, err error) {
	err = l.s.through(ctx, "renew", func() (err error) { st, err = l.Lease.Renew(ctx); return err })
	l.s.dated(&st)
	return st, err
}

func (l *tapLease) Write(ctx context.Context, etag string, record []byte) (st store.Revision, err error) {
	write := func() (err error) { st, err = l.Lease.Write(ctx, etag, record); return err }
	err = l.s.through(ctx, "write", func() error {
		if l.s.write != nil {
			return l.s.write(record, write)
		}
		return write()
	})
	l.s.dated(&st)
	return st, err
}

func (l *tapLease) Save(ctx context.Context, etag string, record, checkpoint []byte) (st store.Revision, err error) {
	err = l.s.through(ctx, "save", func() (err error) {
		st, err = l.Lease.(store.Checkpointer).Save(ctx, etag, record, checkpoint)
		return err
	})
	return st, err
}

func (l *tapLease) Load(ctx context.Context, etag string) (b []byte, err error) {
	err = l.s.through(ctx, "load", func() (err error) { b, err = l.Lease.(store.Checkpointer).Load(ctx, etag); return err })
	return b, err
}

func (l *tapLease) Release(ctx context.Context) error {
	return l.s.through(ctx, "release", func() error { return l.Lease.Release(ctx) })
}

// A logBook keeps what a replica logs.
type logBook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines returns the lines that contain all of parts.
func (l *logBook) lines(parts ...string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue next
			}
		}
		out = append(out, line)
	}
	return out
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

// once checks that each tick ran once, and returns how many ran.
func once(t *testing.T, runs []ran) int {
	t.Helper()
	seen := map[time.Time]int{}
	for _, r := range runs {
		if seen[r.Tick]++; seen[r.Tick] > 1 {
			t.Errorf("tick %s ran %d times", r.Tick, seen[r.Tick])
		}
	}
	return len(seen)
}

// afterTheFirst leaves out what came due in the first two seconds: the first claim
// of an entry waits for its token meanwhile.
func afterTheFirst(runs []ran) []ran {
	begin := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)
	return slices.DeleteFunc(runs, func(r ran) bool { return !r.Tick.After(begin) })
}

// succession returns the runs, which have to be n, one after the other.
func (c *cluster) succession(n int) []ran {
	c.t.Helper()
	runs := c.all()
	if len(runs) != n {
		c.t.Fatalf("%d runs, want %d: %+v", len(runs), n, runs)
	}
	disjoint(c.t, runs)
	for i := 1; i < n; i++ {
		if runs[i-1].end.Equal(runs[i].start) {
			c.t.Errorf("run %d begins at the instant at which the one before ends: %s", i+1, runs[i].start)
		}
	}
	return runs
}

// disjoint checks that no two terms overlap and that tokens grow.
func disjoint(t *testing.T, runs []ran) {
	t.Helper()
	for i := 1; i < len(runs); i++ {
		if runs[i-1].end.IsZero() || runs[i-1].end.After(runs[i].start) {
			t.Errorf("term %d ends at %s, the next begins at %s", i, runs[i-1].end, runs[i].start)
		}
		if runs[i].Token <= runs[i-1].Token {
			t.Errorf("token %d after %d", runs[i].Token, runs[i-1].Token)
		}
	}
}

// onNth has the n-th call of op go to f.
func onNth(op string, n int64, f func(apply func() error) error) fault {
	var seen atomic.Int64
	return func(got string, apply func() error) error {
		if got == op && seen.Add(1) == n {
			return f(apply)
		}
		return apply()
	}
}

// lose loses the answer to the n-th call of op, which is applied.
func lose(op string, n int64) fault {
	return onNth(op, n, func(apply func() error) error { _ = apply(); return errNetwork })
}

// drop loses the n-th call of op before it is applied.
func drop(op string, n int64) fault {
	return onNth(op, n, func(func() error) error { return errNetwork })
}

var errNetwork = errors.New("connection reset")

// fail fails the calls of ops, or all calls if none is named, before they are applied.
// Without an error they look as if they had been: a success that has no ETag.
func fail(err error, ops ...string) fault {
	return func(op string, apply func() error) error {
		if len(ops) == 0 || slices.Contains(ops, op) {
			return err
		}
		return apply()
	}
}

// failWrites fails writes alone, as for a role that allows to read and to lease.
func failWrites(err error) fault { return fail(err, "write", "save") }

var errWrite = errors.New("502 from a proxy: header too large")

// slow delays the calls of op.
func slow(d time.Duration, op string) fault {
	return before(op, func() { time.Sleep(d) })
}

// before calls f before each call of op.
func before(op string, f func()) fault {
	return func(got string, apply func() error) error {
		if got == op {
			f()
		}
		return apply()
	}
}

// after calls f after each call of op, before it is answered.
func after(op string, f func()) fault {
	return func(got string, apply func() error) error {
		err := apply()
		if got == op {
			f()
		}
		return err
	}
}

// inTurn fails the calls of op before they are applied, each with the next of errs, and
// those that follow with the last one. A call whose error is nil is applied.
func inTurn(op string, errs ...error) fault {
	var seen atomic.Int64
	return func(got string, apply func() error) error {
		if got != op {
			return apply()
		}
		if err := errs[min(int(seen.Add(1)), len(errs))-1]; err != nil {
			return err
		}
		return apply()
	}
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

// pause waits for d; the end of ctx cuts it short and is its error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wholeSeconds leaves out fractions of a second, as HTTP does.
func wholeSeconds(t time.Time) time.Time { return t.Truncate(time.Second) }

// noDate is the date of a store that tells none.
func noDate(time.Time) time.Time { return time.Time{} }
