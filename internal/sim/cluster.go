// Package sim simulates a cluster.
//
// [Simulate] runs real schedulers over one service, [blobtest.Blob], in most seeds without the
// client library and HTTP, or a store that the caller gives: see package world for what they have
// below them, with clocks that are wrong, a network that loses, delays and refuses, and machines
// that crash and are suspended. Package
// draw has what is drawn from the seed. Here is what a replica does, and its operators and deploys.
// It leaves a [trace.Log], which package judge judges.
package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A Config says what to simulate. It is meant for a bubble of testing/synctest;
// elsewhere it takes as long as it says.
type Config struct {
	Seed          uint64              // of all that is decided by chance
	Replicas      int                 // zero: 3
	Length        time.Duration       // of the time with faults; zero: two hours. It begins at some time of an hour
	Program       []trace.Definition  // its first version; nil: the seed's
	NetworkFaults []draw.NetworkFault // nil: as the seed says
	NoFaultPlan   bool                // no crashes, operators, deploys, suspensions
	Zero          bool                // replicas are started by alarms, and end by themselves
	Single        bool                // once all is well, one thing at a time goes wrong
	Draw          string              // once all is well, what no seed draws: one of [Draws]
	Store         world.Store         // the service in place of blobs, empty; nil: blobs
}

// A Cluster is some replicas of a program over one simulated service.
type Cluster struct {
	Config
	log   *trace.Log
	net   *world.Network
	sink  sink
	traps world.Traps
	end   time.Time // of the faults

	healed     chan struct{} // closed at end
	over       chan struct{} // closed: all are to stop
	slots      []*slot
	locks      []draw.LockPlan
	onces      []draw.OncePlan
	platform   *platform      // of a cluster that scales to zero; nil: of any other
	corrupting sync.Map       // the jobs whose entries are, or were not mended yet
	acts       sync.Map       // by replica: what runs of a job do in a script, by job
	beside     sync.Map       // the numbers of backfills that run several ticks at a time
	turned     sync.Map       // the jobs of which a run is to behave in another way, and how
	logs       local.Memory   // of the histories of a draw
	ordered    bool           // operators give orders, and replicas read them
	piped      bool           // replicas have the client library and host/azure: in one seed of sixteen, since these take longer than all else
	wg         sync.WaitGroup // whatever was started
	version    struct {
		sync.Mutex
		now      []trace.Definition
		requests int
		visitors int
		deploys  int
		down     time.Time // until then all replicas are
	}
}

func newLog() *trace.Log {
	return &trace.Log{Fleet: map[string][]trace.Definition{}, Around: true, Locks: map[string]trace.Lock{}, Onces: map[string]trace.Once{}}
}

// calm reports whether nothing goes wrong any more.
func (c *Cluster) calm() bool { return !time.Now().Before(c.end) }

// program is the program's version of now, and how many deploys there were.
func (c *Cluster) program() ([]trace.Definition, int) {
	c.version.Lock()
	defer c.version.Unlock()
	return c.version.now, c.version.deploys
}

// machine is one without faults of its own, whose clock is right.
func (c *Cluster) machine(name string, slot int) *world.Machine {
	return world.NewMachine(name, slot, world.NewClock(0, 0), c.log, &world.Traps{})
}

// newRequest returns an ID for a manual run.
func (c *Cluster) newRequest(format string) string {
	c.version.Lock()
	defer c.version.Unlock()
	c.version.requests++
	return fmt.Sprintf(format, c.version.requests)
}

// A slot is the place of one replica after the other.
type slot struct {
	*Cluster
	index  int
	orders chan string

	mu      sync.Mutex
	current *replica
}

func (s *slot) now() *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// order sends an order to the slot, unless it is busy.
func (s *slot) order(what string) {
	select {
	case s.orders <- what:
	default:
	}
}

// idle waits for d; it returns false when the cluster is healed before.
func (c *Cluster) idle(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-c.healed:
		return false
	}
}

// A platform starts replicas when a message is visible in the queue of alarms, and ends those that are idle. It is what
// keeps a cluster up that scales to zero.
type platform struct {
	*Cluster
	*trace.Zero
	box      *world.Mailbox
	mailIlls []draw.NetworkFault
	others   []string // messages of another app

	mu     sync.Mutex
	taken  []bool    // by slot
	starts int       // so far
	wants  int       // replicas: what ends is started again; of an app
	seen   time.Time // when a message was visible last
	asleep time.Time // until then it does nothing
}

// A replica is a scheduler on a machine.
type replica struct {
	*world.Machine
	*soloist.Scheduler
	c      *Cluster
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // Run has returned, and so have the manual runs
	byHand sync.WaitGroup
	stays  bool // its process goes on after Overrun
	served bool // it has done what it was started for
}

// ended reports whether it has stopped.
func (r *replica) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// downUntil is when replicas may start again: no downtime outlasts the faults.
func (c *Cluster) downUntil() time.Time {
	c.version.Lock()
	defer c.version.Unlock()
	if c.version.down.After(c.end) {
		return c.end
	}
	return c.version.down
}

// A sink is a resource that fences: it refuses a token that is smaller than one
// that it has seen.
type sink struct {
	mu   sync.Mutex
	most map[string]int64
}

func (s *sink) take(job string, token int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most == nil {
		s.most = map[string]int64{}
	}
	if token < s.most[job] {
		return false
	}
	s.most[job] = token
	return true
}
