package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/azure"
	"github.com/soloist-go/soloist/internal/blobtest"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A Script is a cluster in which only what a test says happens: no chance, no faults,
// clocks that are right. It is for stories of one interleaving each, which is judged
// like a simulation. Like a simulation, it belongs in a bubble of testing/synctest.
type Script struct {
	// Direct takes a request to the service and its answer back. Nil: [RPC.Go].
	Direct func(ctx context.Context, p *RPC) (*http.Response, error)

	There, Back time.Duration // how long a request needs to the service, and its answer back

	c        *Cluster
	starting sync.Mutex // replicas may be started side by side
}

// A Work is a job or singleton in a story.
type Work struct {
	trace.Definition
	Act Act // nil: what the definition says
}

// A Part is a replica as a story begins it.
type Part struct {
	Name  string
	Work  []Work
	Skew  time.Duration // of its wall clock
	Drift int64         // of both its clocks, in millionths
	Grace time.Duration
	Azure azure.Config // how it opens the service, except the Transport; zero: by a signature
	Logs  slog.Handler // gets each line that it logs; nil: the log of the script alone has the lines
}

// A Replica is a replica of a script.
type Replica struct{ r *replica }

// NewScript makes a script without a replica.
func NewScript() *Script {
	s := &Script{There: Leg, Back: Leg}
	c := &Cluster{log: newLog(), piped: true,
		end: time.Now().Add(1e6 * time.Hour), healed: make(chan struct{})}
	c.net = &world.Network{Service: c.service(), Log: c.log, Calm: c.end}
	c.net.Direct = func(ctx context.Context, one *world.Call) (*http.Response, error) {
		if s.Direct == nil {
			return (&RPC{one, s}).Go(ctx)
		}
		return s.Direct(ctx, &RPC{one, s})
	}
	s.c = c
	return s
}

// Start has a replica begin.
func (s *Script) Start(p Part) *Replica {
	s.starting.Lock()
	defer s.starting.Unlock()
	m := world.NewMachine(p.Name, len(s.c.slots), world.NewClock(p.Skew, p.Drift), s.c.log, &world.Traps{End: s.c.end})
	m.Azure, m.Logs = p.Azure, p.Logs
	acts := map[string]Act{}
	var defs []trace.Definition
	for _, w := range p.Work {
		defs, acts[w.Name] = append(defs, w.Definition), w.Act
	}
	s.c.acts.Store(p.Name, acts)
	s.c.version.now = defs
	r := s.c.newReplica(m, defs, p.Grace)
	r.stays = true
	s.c.slots = append(s.c.slots, &slot{Cluster: s.c, index: m.Slot, current: r})
	s.c.log.Add(trace.Event{What: trace.Up, Replica: p.Name})
	s.c.begin(r, func() {
		if err := r.Run(r.ctx); err != nil {
			panic(err)
		}
	})
	return &Replica{r}
}

// Watch has w get each request as [trace.Log] says, before any replica starts. There
// is nothing to judge then.
func (s *Script) Watch(w func(*trace.Event)) { s.c.log.Watch = w }

// Operate has an operator do "break", "break now" or "delete" to a job's entry.
func (s *Script) Operate(what, job string) { s.c.operate(draw.PlannedFault{What: what, Job: job}) }

// TakeOrders has the replicas that are started from now on read the orders of operators.
func (s *Script) TakeOrders() { s.c.ordered = true }

// Events returns what happened so far, in the order of time.
func (s *Script) Events() (all []trace.Event) {
	s.c.log.Edit(func() {
		s.c.log.Sort()
		for _, e := range s.c.log.Events {
			all = append(all, *e)
		}
	})
	return all
}

// End gives the replicas that are up, if any, the time to settle what is due,
// stops all, and returns the log. Where the judge does not know when ticks are
// due, it cannot ask for that.
func (s *Script) End() *trace.Log {
	up := slices.DeleteFunc(slices.Clone(s.c.slots), func(s *slot) bool { return s.current.Gone() || s.current.ended() })
	if s.c.slots, up = up, s.c.slots; len(s.c.slots) > 0 && s.c.countable() {
		s.c.log.Add(trace.Event{What: trace.Healed})
		time.Sleep(trace.Settling)
		s.c.examine()
	}
	for _, s := range up {
		if !s.current.Gone() && !s.current.ended() {
			s.current.stop()
		}
	}
	s.c.wg.Wait()
	s.c.net.Late.Wait()
	s.c.log.Sort()
	return s.c.log
}

// countable reports whether the ticks of all jobs are multiples of Every.
func (c *Cluster) countable() bool {
	for _, defs := range c.log.Fleet {
		if slices.ContainsFunc(defs, func(d trace.Definition) bool { return d.Every == 0 && d.Schedule != "" }) {
			return false
		}
	}
	return true
}

// Stop asks the replica to stop, as SIGTERM does, and waits until it has.
func (p *Replica) Stop() { p.r.stop() }

// Kill ends it, as kill -9 does.
func (p *Replica) Kill() { p.r.Crash("any time") }

// Freeze suspends its machine for d.
func (p *Replica) Freeze(d time.Duration) { p.r.Suspend(d, "any time") }

// Order gives an order on the replica, as its page does.
func (p *Replica) Order(o soloist.Order) error {
	return p.r.c.note(p.r.ctx, p.r.Scheduler, o, p.r.Gone)
}

// Step moves its wall clock.
func (p *Replica) Step(d time.Duration) { p.r.Step(d) }

// KillAt and FreezeAt do so the next time that the replica comes to one of
// [Points].
func (p *Replica) KillAt(point string) { p.FreezeAt(point, 0) }

// FreezeAt is KillAt with a suspension.
func (p *Replica) FreezeAt(point string, d time.Duration) {
	if !slices.Contains(draw.Points(), point) {
		panic(fmt.Sprintf("there is no point %q", point))
	}
	p.r.Trap.Arm(point, d)
}

// Health is what the replica says of itself.
func (p *Replica) Health() soloist.Health { return p.r.Health() }

// Leg is how long a request needs to the service, and its answer back, unless the
// script says otherwise.
const Leg = 10 * time.Millisecond

// An RPC is one request under way, and then its answer.
type RPC struct {
	c *world.Call
	s *Script
}

// Replica is who sent it.
func (p *RPC) Replica() string { return p.c.Replica }

// Op is its part in a tick: "claim".
func (p *RPC) Op() string { return p.c.Op }

// HTTP is the request itself.
func (p *RPC) HTTP() *http.Request { return p.c.Request.HTTP }

// Meets notes the fault that the request meets.
func (p *RPC) Meets(fault string) { p.c.Log.Edit(func() { p.c.Cause = fault }) }

// Go is the way there and back, undisturbed.
func (p *RPC) Go(ctx context.Context) (*http.Response, error) {
	resp, err := p.There(ctx)
	if err != nil {
		return nil, err
	}
	return p.Back(ctx, resp)
}

// There brings the request to the service, also if its caller gives up
// meanwhile.
func (p *RPC) There(ctx context.Context) (*http.Response, error) {
	a, err := p.c.Reach(ctx, p.s.There)
	if err != nil {
		return nil, err
	}
	return a.Response(p.HTTP()), nil
}

// Back brings the answer back.
func (p *RPC) Back(ctx context.Context, resp *http.Response) (*http.Response, error) {
	return resp, p.c.Wait(ctx, p.s.Back)
}

// Apply has the service do what the request asks for at this instant, whether
// anybody waits or not.
func (p *RPC) Apply() *http.Response { return p.c.Apply(p.c.Event, p.c.Request).Response(p.HTTP()) }

// ApplyAfter is Apply after d.
func (p *RPC) ApplyAfter(d time.Duration) { p.c.Deliver(d) }

// Garble gives the answer another body. The request goes on while that is read.
func (p *RPC) Garble(resp *http.Response, length int64, body io.Reader) *http.Response {
	p.Meets(string(trace.CutOff))
	resp.Body.Close()
	resp.Body, resp.ContentLength = &garbled{body, p.c}, length
	resp.Header.Set("Content-Length", strconv.FormatInt(length, 10))
	return resp
}

type garbled struct {
	io.Reader
	c *world.Call
}

func (g *garbled) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.c.Log.Edit(func() { g.c.Done = time.Now() })
	return n, err
}

func (g *garbled) Close() error { return nil }

// Refuse answers in the service's stead.
func (p *RPC) Refuse(ctx context.Context, status int, code string) (*http.Response, error) {
	if err := world.Pause(ctx, p.s.There); err != nil {
		return nil, err
	}
	return p.Back(ctx, blobtest.Refusal(p.c.Request.HTTP, time.Now(), status, code))
}
