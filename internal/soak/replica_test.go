package soak_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim"
)

// A replica is a scheduler on a machine with a clock of its own.
type replica struct {
	*soloist.Scheduler
	*slot
	line   *line
	clock  *sim.Clock
	away   time.Duration // after a crash, until the next one comes
	cancel context.CancelFunc
	dead   chan struct{} // closed: it has crashed
	done   chan struct{} // closed: Run has returned
	die    sync.Once
}

// start brings a replica up with the program of now.
func (s *slot) start(name string) *replica {
	seed := rand.NewPCG(uint64(s.n), uint64(s.name[0]))
	dice := rand.New(seed)
	skew := time.Duration(dice.Int64N(int64(4*time.Second))) - 2*time.Second
	if dice.IntN(5) == 0 {
		skew *= 3600
	}
	r := &replica{slot: s, clock: sim.NewClock(skew, dice.Int64N(400)-200),
		away: 5*time.Second + time.Duration(dice.Int64N(int64(3*time.Minute))), dead: make(chan struct{}), done: make(chan struct{})}
	r.line = &line{service: s.service, dead: r.dead, dice: dice, calendars: map[string]calendar{}}
	store, err := azure.Open(azure.Config{
		ConnectionString: "BlobEndpoint=https://sim.blob.core.windows.net;SharedAccessSignature=sv=2026&sig=none",
		Transport:        r.line})
	if err != nil {
		panic(err)
	}
	r.Scheduler = &soloist.Scheduler{Store: store, Replica: name, Logger: slog.New(&ear{r}), Grace: 25 * time.Second,
		Now: r.clock.Now, Elapsed: r.clock.Elapsed}
	s.cluster.mu.Lock()
	r.line.fault = s.outage
	for _, t := range s.program {
		r.line.calendars[t.Name] = s.written[t.rule.text]
		r.Jobs = append(r.Jobs, r.job(t))
	}
	if s.led {
		r.Singletons = []soloist.Singleton{{Name: leader, Lease: leaderLease, Do: r.lead}}
	}
	s.cluster.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	s.replicas.Go(func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			panic(err)
		}
	})
	return r
}

func (r *replica) gone() bool { return r.line.crashed() }

// stop waits until the replica has stopped, or has crashed meanwhile.
func (r *replica) stop() {
	r.cancel()
	select {
	case <-r.done:
	case <-r.dead:
	}
}

// crash ends the replica as kill -9 does, seen from outside: nothing of it is
// heard again.
func (r *replica) crash(why string) {
	r.die.Do(func() {
		r.count(why)
		close(r.dead)
		r.cancel()
		r.leaveAll()
		r.look()
		r.order(r.revive)
	})
}

// An ear counts what a replica warns of.
type ear struct{ *replica }

// Enabled implements [slog.Handler].
func (e *ear) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && !e.gone()
}

// Handle implements [slog.Handler].
func (e *ear) Handle(_ context.Context, rec slog.Record) error {
	text, _, _ := strings.Cut(rec.Message, ":")
	e.cluster.mu.Lock()
	defer e.cluster.mu.Unlock()
	e.said[text]++
	return nil
}

// WithAttrs implements [slog.Handler].
func (e *ear) WithAttrs([]slog.Attr) slog.Handler { return e }

// WithGroup implements [slog.Handler].
func (e *ear) WithGroup(string) slog.Handler { return e }
