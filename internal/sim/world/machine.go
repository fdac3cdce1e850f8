// Package world is what replicas have below them in a simulation: machines that are suspended and crash, clocks that are wrong,
// a network that loses, delays and refuses, and behind it the service and the queue of alarms.
package world

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Emitted keeps the events of a replica that report what became of a tick.
func (m *Machine) Emitted(e event.Event) {
	switch e.Kind {
	case event.Ended, event.Settled, event.NoProgress, event.Unrecorded, event.NotClaimed, event.Late:
		if !m.Gone() {
			m.Log.Add(trace.Event{What: trace.Emitted, Replica: m.Name, Job: e.Job, Op: string(e.Kind), Token: e.Run.Token, Tick: e.Run.Tick, Request: e.Run.Request,
				Attempt: e.Run.Attempt, Note: string(e.Outcome.Status)})
		}
	}
}

// A Machine is what one replica lives on: it can be suspended, and it can end.
type Machine struct {
	*Clock
	Name string
	Slot int
	Log  *trace.Log
	Trap *Traps

	Mu    sync.Mutex
	Dead  chan struct{} // closed: it is gone
	Halt  func()        // lets what is left of it unwind
	Quit  func()        // asks it to stop; nil: it cannot be asked
	Azure azure.Config  // how it opens the service, except the transport
	Logs  slog.Handler  // gets each line that it logs, too; nil: nothing does
}

func NewMachine(name string, slot int, c *Clock, l *trace.Log, t *Traps) *Machine {
	return &Machine{Clock: c, Name: name, Slot: slot, Log: l, Trap: t, Dead: make(chan struct{}), Halt: func() {}}
}

// Crash ends it, as kill -9 does.
func (m *Machine) Crash(at string) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	if m.Gone() {
		return
	}
	m.Log.Add(trace.Event{What: trace.Crash, Replica: m.Name, Note: at})
	close(m.Dead)
	m.Halt()
}

func (m *Machine) Gone() bool {
	select {
	case <-m.Dead:
		return true
	default:
		return false
	}
}

var ErrGone = errors.New("the machine is gone")

// awake waits until the machine is not suspended. What is left of a machine
// that is gone waits for the end of ctx.
func (m *Machine) awake(ctx context.Context) error {
	for d := m.Frozen(); d > 0 && ctx.Err() == nil && !m.Gone(); d = m.Frozen() {
		m.Rest(ctx, d)
	}
	if m.Gone() {
		<-ctx.Done()
		return ErrGone
	}
	return ended(ctx)
}

// Rest waits for d, the end of ctx or of the machine.
func (m *Machine) Rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-m.Dead:
	}
}

// Sleep is rest on a machine that may be suspended; it returns false if that is
// gone. What goes on when it does, does so one after the other, as r says.
func (m *Machine) Sleep(ctx context.Context, d time.Duration, r *draw.Roll) bool {
	if d > 0 {
		m.Rest(ctx, d)
	}
	for d := m.Frozen(); d > 0 && !m.Gone(); d = m.Frozen() {
		m.Rest(context.Background(), d+r.Between(0, time.Millisecond))
	}
	return !m.Gone()
}

// At says that the machine has come to a point at which it could crash, or be
// suspended or stopped.
func (m *Machine) At(point string) {
	switch d, sprung := m.Trap.spring(point); {
	case sprung && d == draw.Stopping && m.Quit != nil:
		m.Quit()
	case sprung && d == draw.Stopping:
	case sprung && d == 0:
		m.Crash(point)
	case sprung:
		m.Suspend(d, point)
	}
}

// Suspend freezes the machine for d.
func (m *Machine) Suspend(d time.Duration, at string) {
	if !m.Gone() && m.Freeze(d) {
		m.Log.Add(trace.Event{What: trace.Freeze, Replica: m.Name, End: time.Now().Add(d), Note: at})
	}
}

// Traps are points at which the next machine that comes by crashes, or is
// suspended or stopped.
type Traps struct {
	mu    sync.Mutex
	armed []trap
	End   time.Time // of all suspensions
}

type trap struct {
	point string
	d     time.Duration // of a suspension; zero: a crash; stopping: a stop
}

func (t *Traps) Arm(point string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = append(t.armed, trap{point, d})
}

func (t *Traps) spring(point string) (d time.Duration, sprung bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.armed, func(a trap) bool { return a.point == point })
	if i < 0 {
		return 0, false
	}
	if d = t.armed[i].d; d > 0 {
		d = min(d, time.Until(t.End))
	}
	t.armed = slices.Delete(t.armed, i, i+1)
	return d, true
}

func (t *Traps) Disarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = nil
}

var errIll = errors.New("ill")

// Answer is one answer of HealthCheck. After all faults it is always a good one.
func (m *Machine) Answer(ctx context.Context, p trace.Pulse, r *draw.Roll, calm bool) error {
	ill := map[trace.Pulse]float64{trace.Flaps: 0.4, trace.Weak: 0.8, trace.Frozen: 0.3, trace.Erratic: 0.3}[p]
	if m.Gone() || calm || !r.Chance(ill) {
		return nil
	}
	switch p {
	case trace.Frozen:
		<-ctx.Done()
		m.Sleep(context.Background(), r.Between(time.Millisecond, 3*time.Second), r)
	case trace.Erratic:
		panic("out of order")
	}
	return errIll
}

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ended(ctx)
}

// ended is why ctx has ended. If it was cancelled at the instant of its deadline, that is the reason: the order is unknown.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() != nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ended(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
