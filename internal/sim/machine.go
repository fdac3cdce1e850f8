package sim

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A machine is what one replica lives on: it can be suspended, and it can end.
type machine struct {
	*Clock
	name string
	slot int
	log  *trace.Log
	trap *traps

	mu    sync.Mutex
	dead  chan struct{}  // closed: it is gone
	halt  func()         // lets what is left of it unwind
	quit  func()         // asks it to stop; nil: nobody can
	azure azure.Config   // how it opens the service, but for the transport
	logs  slog.Handler   // gets each line that it logs, too; nil: nothing does
	acts  map[string]Act // by job: what a run does instead of what its definition says
}

func newMachine(name string, slot int, c *Clock, l *trace.Log, t *traps) *machine {
	return &machine{Clock: c, name: name, slot: slot, log: l, trap: t, dead: make(chan struct{}), halt: func() {}}
}

// crash ends it, as kill -9 does.
func (m *machine) crash(at string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone() {
		return
	}
	m.log.Add(trace.Event{What: trace.Crash, Replica: m.name, Note: at})
	close(m.dead)
	m.halt()
}

func (m *machine) gone() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

var errGone = errors.New("the machine is gone")

// awake waits until the machine is not suspended. What is left of a machine
// that is gone waits for the end of ctx.
func (m *machine) awake(ctx context.Context) error {
	for d := m.Frozen(); d > 0 && ctx.Err() == nil && !m.gone(); d = m.Frozen() {
		m.rest(ctx, d)
	}
	if m.gone() {
		<-ctx.Done()
		return errGone
	}
	return ended(ctx)
}

// rest waits for d, the end of ctx or of the machine.
func (m *machine) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-m.dead:
	}
}

// sleep is rest on a machine that may be suspended; it returns false if that is
// gone. What goes on when it does, does so one after the other, as r says.
func (m *machine) sleep(ctx context.Context, d time.Duration, r *draw.Roll) bool {
	if d > 0 {
		m.rest(ctx, d)
	}
	for d := m.Frozen(); d > 0 && !m.gone(); d = m.Frozen() {
		m.rest(context.Background(), d+r.Between(0, time.Millisecond))
	}
	return !m.gone()
}

// at says that the machine has come to a point at which it could crash, or be
// suspended or stopped.
func (m *machine) at(point string) {
	switch d, sprung := m.trap.spring(point); {
	case sprung && d == draw.Stopping && m.quit != nil:
		m.quit()
	case sprung && d == draw.Stopping:
	case sprung && d == 0:
		m.crash(point)
	case sprung:
		m.suspend(d, point)
	}
}

// suspend freezes the machine for d.
func (m *machine) suspend(d time.Duration, at string) {
	if !m.gone() && m.Freeze(d) {
		m.log.Add(trace.Event{What: trace.Freeze, Replica: m.name, End: time.Now().Add(d), Note: at})
	}
}

// traps are points at which the next machine that comes by crashes, or is
// suspended or stopped.
type traps struct {
	mu    sync.Mutex
	armed []trap
	hit   map[string]int // crashes
	end   time.Time      // of all suspensions
}

type trap struct {
	point string
	d     time.Duration // of a suspension; zero: a crash; stopping: a stop
}

func (t *traps) arm(point string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, trap{point, d})
}

func (t *traps) spring(point string) (d time.Duration, sprung bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.armed, func(a trap) bool { return a.point == point })
	if i < 0 {
		return 0, false
	}
	d = t.armed[i].d
	t.armed = slices.Delete(t.armed, i, i+1)
	if d > 0 {
		return min(d, time.Until(t.end)), true
	} else if d == draw.Stopping {
		return d, true
	}
	if t.hit == nil {
		t.hit = map[string]int{}
	}
	t.hit[point]++
	return 0, true
}

func (t *traps) disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = nil
}
