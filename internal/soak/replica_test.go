package soak_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A replica is one of the simulation, in a slot.
type replica struct {
	*sim.Replica
	*slot
	name    string
	away    time.Duration // after a crash, until the next one comes
	crashed bool          // guarded by the slot's mu
}

// start brings a replica up with the program of now.
func (s *slot) start(name string) *replica {
	dice := rand.New(rand.NewPCG(uint64(s.n), uint64(s.name[0])))
	skew := time.Duration(dice.Int64N(int64(4*time.Second))) - 2*time.Second
	if dice.IntN(5) == 0 {
		skew *= 3600
	}
	r := &replica{slot: s, name: name}
	part := sim.Part{Name: name, Skew: skew, Drift: dice.Int64N(400) - 200, Grace: 25 * time.Second, Logs: &warnings{s.cluster}}
	r.away = 5*time.Second + time.Duration(dice.Int64N(int64(3*time.Minute)))
	calendars := map[string]calendar{}
	s.cluster.mu.Lock()
	for _, t := range s.program {
		calendars[t.Name] = s.written[t.rule.text]
		part.Work = append(part.Work, r.work(t))
	}
	if s.led {
		part.Work = append(part.Work, sim.Work{Definition: trace.Definition{Name: leader, Lease: leaderLease}, Act: r.lead})
	}
	s.programs[name] = calendars
	s.cluster.mu.Unlock()
	r.Replica = s.script.Start(part)
	return r
}

// crash ends the replica as kill -9 does, seen from outside: nothing of it is
// heard again.
func (r *replica) crash(why string) {
	r.slot.mu.Lock()
	again := r.crashed
	r.crashed = true
	r.slot.mu.Unlock()
	if again {
		return
	}
	r.count(why)
	r.Kill()
	r.leaveAll()
	r.look()
	r.order(r.revive)
}

func (r *replica) gone() bool {
	r.slot.mu.Lock()
	defer r.slot.mu.Unlock()
	return r.crashed
}

// A warnings counts what replicas warn of.
type warnings struct{ *cluster }

// Enabled implements [slog.Handler].
func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

// Handle implements [slog.Handler].
func (w *warnings) Handle(_ context.Context, rec slog.Record) error {
	text, _, _ := strings.Cut(rec.Message, ":")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said[text]++
	return nil
}

// WithAttrs implements [slog.Handler].
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements [slog.Handler].
func (w *warnings) WithGroup(string) slog.Handler { return w }
