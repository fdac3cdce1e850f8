package soloist_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"log/slog"
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
	r.Scheduler = &soloist.Scheduler{Store: r.tap, Replica: name,
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

// start makes a replica and starts it; the test's end stops it.
func (c *cluster) start(name string, work ...soloist.Work) *replica {
	return c.launch(c.replica(name, work...))
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
	fault func(op string, apply func() error) error
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
func (s *tap) meet(fault func(op string, apply func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
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
	return e, err
}

func (s *tap) Read(ctx context.Context, name string) (e store.Entry, err error) {
	if name == s.deny {
		return e, fs.ErrPermission
	}
	err = s.through(ctx, "read", func() (err error) { e, err = s.Store.Read(ctx, name); return err })
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
	return st, err
}

func (l *tapLease) Renew(ctx context.Context) (st store.Revision, err error) {
	err = l.s.through(ctx, "renew", func() (err error) { st, err = l.Lease.Renew(ctx); return err })
	return st, err
}

func (l *tapLease) Write(ctx context.Context, etag string, record []byte) (st store.Revision, err error) {
	err = l.s.through(ctx, "write", func() (err error) { st, err = l.Lease.Write(ctx, etag, record); return err })
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
