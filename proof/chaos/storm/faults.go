//go:build unix

package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/proof/chaos/line"
)

// What a fault happens to: to each of them one at a time.
const (
	ofProcess = "process"
	ofLine    = "line"
	ofService = "service"
	ofProgram = "program" // its version
)

// How a process is asked to end.
const (
	sigkill = "kill -9"
	sigterm = "SIGTERM"
	tooLong = "kill -9, since SIGTERM took too long"
)

// A kind is one of the faults that are injected, and lasts from least to most.
type kind struct {
	name        string
	of          string
	weight      int
	least, most time.Duration
	spoil       line.Fault // of a line
}

// kindsUnder are the faults that are drawn. A database can be killed at any moment, so it is killed more often.
func kindsUnder(o options) []kind {
	lease := o.lease
	ofLines := func(name string, weight int, spoil line.Fault) kind {
		return kind{name, ofLine, weight, time.Second, 3 * lease, spoil}
	}
	all := []kind{
		{sigkill, ofProcess, 12, 0, 20 * time.Second, nil},
		{"SIGSTOP", ofProcess, 12, lease / 2, 5 * lease, nil},
		{sigterm, ofProcess, 8, 0, 5 * time.Second, nil},
		{"rolling deploy", ofProgram, 2, 0, 3 * time.Second, nil},

		ofLines("partition", 4, line.Partition),
		ofLines("one-way: requests lost", 2, line.Toxic("upstream", "timeout", "timeout", 0, 0)),
		ofLines("one-way: answers lost", 2, line.Toxic("downstream", "timeout", "timeout", 0, 0)),
		ofLines("half-open", 2, line.HalfOpen),
		ofLines("requests late", 2, line.Toxic("upstream", "bandwidth", "rate", 0, 0)), // when it is over they come
		ofLines("answers late", 2, line.Toxic("downstream", "bandwidth", "rate", 0, 0)),
		ofLines("latency 0.1 to 10 s", 4, line.Toxic("upstream", "latency", "latency", 100, 10_000)),
		ofLines("slow bodies", 2, line.Toxic("upstream", "bandwidth", "rate", 1, 10)),
		ofLines("truncated bodies", 2, line.Toxic("downstream", "limit_data", "bytes", 10, 2000)),
		ofLines("reset", 1, line.Toxic("upstream", "reset_peer", "timeout", 0, 0)),
	}
	if o.store == overPostgres {
		killed := kind{"service killed", ofService, 4, 0, 20 * time.Second, nil}
		if mistakes[o.mistake].loses { // nothing is lost else
			killed.weight, killed.most = 40, time.Second
		}
		return append(all, killed)
	}
	return append(all,
		kind{"service killed", ofService, 1, 0, 20 * time.Second, nil},
		ofLines("some answers lost", 2, func(l *line.Line, x float64) error { l.Lose(x); return nil }),
		ofLines("503, Retry-After", 2, line.Throttle(503, 50*time.Second)),
		ofLines("429, Retry-After", 2, line.Throttle(429, 50*time.Second)),
		ofLines("500", 2, line.Throttle(500, 0)),
	)
}

// inject has random faults come, several at once, until ctx ends. It returns
// when all of them are over.
func (s *storm) inject(ctx context.Context, seed uint64, kinds []kind) error {
	dice := rand.New(rand.NewPCG(seed, 0))
	for s.broken() == nil && proctest.Pause(ctx, time.Second+time.Duration(dice.Float64()*float64(6*time.Second))) == nil {
		for try := 0; try < 20 && !s.begin(ctx, dice, kinds); try++ { // what it would happen to suffers already
		}
	}
	s.faults.Wait()
	return s.broken()
}

// draw draws a kind by weight, and how long it lasts: the short as likely as the
// long.
func draw(dice *rand.Rand, kinds []kind) (kind, time.Duration) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := dice.IntN(total)
	for _, k := range kinds {
		if n -= k.weight; n < 0 {
			least := max(k.least, 100*time.Millisecond)
			return k, time.Duration(float64(least) * math.Pow(float64(k.most)/float64(least), dice.Float64()))
		}
	}
	panic("not reached")
}

// begin has one fault come, and returns whether it could.
func (s *storm) begin(ctx context.Context, dice *rand.Rand, kinds []kind) bool {
	k, d := draw(dice, kinds)
	i, all, x := dice.IntN(len(s.replicas)), dice.IntN(5) == 0, dice.Float64()
	if dice.IntN(3) == 0 { // who leads has the most to lose
		if l := slices.IndexFunc(s.replicas, func(n *node) bool { return n.name == s.heard(leader).Replica }); l >= 0 {
			i = l
		}
	}
	who, f := s.replicas[i:i+1], Fault{Kind: k.name}
	var taken []*sync.Mutex
	switch k.of {
	case ofService:
		taken = append(taken, &s.ofService)
	case ofProgram:
		taken = append(taken, &s.ofProgram)
	case ofProcess:
		if s.ofProcesses.Load() >= int64(len(s.replicas)+1)/2 {
			return false // some are to do the work
		}
		f.Replica, taken = who[0].name, append(taken, &who[0].ofProcess)
	case ofLine:
		if f.Replica = who[0].name; all {
			f.Kind, f.Replica, who = k.name+", all", "", s.replicas
		}
		for _, n := range who {
			taken = append(taken, &n.ofLine)
		}
	}
	if !take(taken) {
		return false
	}
	if k.of == ofProcess {
		s.ofProcesses.Add(1)
	}
	s.faults.Go(func() {
		defer func() {
			if leave(taken); k.of == ofProcess {
				s.ofProcesses.Add(-1)
			}
		}()
		f.Begin = time.Now()
		happened, err := s.suffer(ctx, k, d, who, x)
		if s.fail(err); happened {
			s.fault(f)
		}
	})
	return true
}

// suffer returns when a fault is over, and whether there was one.
func (s *storm) suffer(ctx context.Context, k kind, d time.Duration, who []*node, x float64) (happened bool, err error) {
	switch n := who[0]; {
	case k.of == ofService:
		return true, s.crash(ctx, d, s.compare)
	case k.of == ofProgram:
		return true, s.deploy(ctx, d)
	case k.of == ofLine:
		return true, s.spoil(ctx, k, d, who, x)
	case k.name == sigterm:
		return n.stop(), nil
	case k.name == sigkill:
		n.down.Store(true)
		defer n.down.Store(false)
		happened = n.signal(syscall.SIGKILL, sigkill)
		proctest.Pause(ctx, d)
	default:
		happened = n.signal(syscall.SIGSTOP, "")
		proctest.Pause(ctx, d)
		n.signal(syscall.SIGCONT, "")
	}
	return happened, nil
}

func (s *storm) spoil(ctx context.Context, k kind, d time.Duration, who []*node, x float64) error {
	for _, n := range who {
		if err := k.spoil(n.Line, x); err != nil {
			return err
		}
	}
	proctest.Pause(ctx, d)
	for _, n := range who {
		if err := n.Heal(); err != nil {
			return err
		}
	}
	return nil
}

// deploy brings the other version of the program to one replica after the other.
func (s *storm) deploy(ctx context.Context, between time.Duration) error {
	version := s.next()
	for _, n := range s.replicas {
		n.ofProcess.Lock()
		s.ofProcesses.Add(1)
		if ctx.Err() == nil && !n.has(version) {
			n.stop()
		}
		s.ofProcesses.Add(-1)
		n.ofProcess.Unlock()
		proctest.Pause(ctx, between)
	}
	return nil
}
