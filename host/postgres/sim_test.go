package postgres_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/store"
)

var seedsFlag = flag.Uint64("seeds", 2, "how many clusters to simulate")

// Replicas that are killed, over statements whose answers get lost or that arrive late, run no tick twice and never two at a
// time, on the real server, in virtual time.
func TestCluster(t *testing.T) {
	url := start(t)
	for seed := range *seedsFlag {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, url, seed) })
		})
	}
}

// A cluster is what is known of all its replicas.
type cluster struct {
	*testing.T
	dice                *rand.Rand
	mu                  sync.Mutex
	started             map[time.Time]int
	inside              atomic.Int32
	lost, late, refused atomic.Int32
	late1               sync.WaitGroup
}

const (
	simulated = 30 * time.Minute
	period    = 10 * time.Second
	length    = 5 * time.Second // of a lease
)

func simulate(t *testing.T, url string, seed uint64) {
	c := &cluster{T: t, dice: rand.New(rand.NewPCG(seed, 1)), started: map[time.Time]int{}}
	end, cancel := context.WithTimeout(t.Context(), simulated)
	defer cancel()
	var all sync.WaitGroup
	var kills atomic.Int32
	for i := range 3 {
		backend := virtual(t, url)
		all.Go(func() {
			for n := 0; end.Err() == nil; n++ {
				p := &replica{Store: backend, c: c, dead: make(chan struct{})}
				c.live(end, p, fmt.Sprintf("seed-%d", seed), fmt.Sprintf("r%d-%d", i, n))
				kills.Add(1)
			}
		})
	}
	all.Wait()
	c.late1.Wait()
	for tick, n := range c.started {
		if n != 1 {
			t.Errorf("tick %v started %d times", tick, n)
		}
	}
	t.Logf("%d of %d ticks started; %d replicas died; calls: %d answers lost, %d late, %d refused", len(c.started), simulated/period, kills.Load(), c.lost.Load(), c.late.Load(), c.refused.Load())
	if len(c.started) < int(simulated/period)*2/3 || kills.Load() < 10 || c.lost.Load() < 10 || c.late.Load() < 10 || c.refused.Load() < 10 {
		t.Error("too little happened")
	}
}

// live runs a replica until it is killed, or the simulation ends.
func (c *cluster) live(end context.Context, p *replica, app, name string) {
	begun := time.Now()
	s := &soloist.Scheduler{Store: p, App: app, Replica: name, Logger: slog.New(slog.DiscardHandler),
		Elapsed: func() time.Duration { return time.Since(begun) },
		Jobs:    []soloist.Job{{Name: "report", Schedule: "@every " + period.String(), Lease: length, Do: p.do}}}
	ctx, kill := context.WithTimeout(end, c.upTo(5*time.Minute))
	defer kill()
	context.AfterFunc(ctx, func() { close(p.dead) })
	if err := s.Run(ctx); err != nil && ctx.Err() == nil {
		c.Errorf("%s: %v", name, err)
	}
	<-p.dead
	time.Sleep(c.upTo(30 * time.Second))
}

func (c *cluster) upTo(d time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Duration(c.dice.Int64N(int64(d)))
}

// A replica is a process: what it asks of the store may go wrong.
type replica struct {
	*postgres.Store
	c    *cluster
	dead chan struct{}
}

// Watch would wait for the network, which virtual time does not pass.
func (p *replica) Watch(context.Context, string, func(string)) error { return errors.ErrUnsupported }

// do is the job. What a dead process does is over at once.
func (p *replica) do(ctx context.Context, run *soloist.Run) error {
	p.c.mu.Lock()
	p.c.started[run.Tick]++
	p.c.mu.Unlock()
	if n := p.c.inside.Add(1); n != 1 {
		p.c.Errorf("%d runs at once in %v", n, run.Tick)
	}
	defer p.c.inside.Add(-1)
	select {
	case <-time.After(p.c.upTo(period * 3 / 2)):
	case <-ctx.Done():
	case <-p.dead:
	}
	return ctx.Err()
}

var errTrouble = errors.New("trouble on the way")

// through makes a call, or what becomes of it.
func through[T any](p *replica, ctx context.Context, call func(context.Context) (T, error)) (v T, err error) {
	select {
	case <-p.dead:
		return v, errTrouble
	default:
	}
	switch dice := p.c.upTo(100); {
	case dice < 3:
		p.c.refused.Add(1)
		return v, errTrouble
	case dice < 6:
		p.c.lost.Add(1)
		_, _ = call(ctx)
		return v, errTrouble
	case dice < 8: // it arrives when the caller may have given up
		p.c.late.Add(1)
		p.c.late1.Go(func() {
			time.Sleep(p.c.upTo(3 * length))
			_, _ = call(context.WithoutCancel(ctx))
		})
		wait, cancel := context.WithTimeout(ctx, p.c.upTo(length))
		defer cancel()
		<-wait.Done()
		return v, errTrouble
	}
	return call(ctx)
}

func nothing(call func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) }
}

func (p *replica) Create(ctx context.Context, name string, record []byte) (store.Entry, error) {
	return through(p, ctx, func(ctx context.Context) (store.Entry, error) { return p.Store.Create(ctx, name, record) })
}

func (p *replica) Read(ctx context.Context, name string) (store.Entry, error) {
	return through(p, ctx, func(ctx context.Context) (store.Entry, error) { return p.Store.Read(ctx, name) })
}

func (p *replica) ReadDocument(ctx context.Context, name, etag string) (store.Document, error) {
	return through(p, ctx, func(ctx context.Context) (store.Document, error) { return p.Store.ReadDocument(ctx, name, etag) })
}

func (p *replica) BreakUnchanged(ctx context.Context, name, etag string) error {
	_, err := through(p, ctx, nothing(func(ctx context.Context) error { return p.Store.BreakUnchanged(ctx, name, etag) }))
	return err
}

func (p *replica) Lease(name, id string) store.Lease {
	return &replicaLease{p.Store.Lease(name, id), p}
}

type replicaLease struct {
	store.Lease
	p *replica
}

func (l *replicaLease) Acquire(ctx context.Context, d time.Duration, etag string) (store.Revision, error) {
	return through(l.p, ctx, func(ctx context.Context) (store.Revision, error) { return l.Lease.Acquire(ctx, d, etag) })
}

func (l *replicaLease) Renew(ctx context.Context) (store.Revision, error) {
	return through(l.p, ctx, l.Lease.Renew)
}

func (l *replicaLease) Write(ctx context.Context, etag string, record []byte) (store.Revision, error) {
	record = append([]byte(nil), record...) // a late call must not see what the caller does with it
	return through(l.p, ctx, func(ctx context.Context) (store.Revision, error) { return l.Lease.Write(ctx, etag, record) })
}

func (l *replicaLease) Release(ctx context.Context) error {
	_, err := through(l.p, ctx, nothing(l.Lease.Release))
	return err
}
