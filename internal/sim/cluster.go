// Package sim simulates a cluster.
//
// [Simulate] runs real schedulers, over the real store and client library, to one
// [blobtest.Blob]: with clocks that are wrong, a network that loses, delays and
// refuses, machines that crash and are suspended, operators and deploys. All of it
// follows from a seed. It leaves a [trace.Log], which package check judges.
// [Config.Store] puts any other store in the place of all that is below the
// schedulers; its answers are then held to the contract of stores, too.
package sim

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// A Config says what to simulate. It is meant for a bubble of testing/synctest;
// elsewhere it takes as long as it says.
type Config struct {
	Seed          uint64              // of all that is decided by chance
	Replicas      int                 // zero: 3
	Length        time.Duration       // of the time with faults; zero: two hours. It begins at some time of an hour
	Program       []trace.Definition  // its first version; nil: that of the seed
	NetworkFaults []draw.NetworkFault // nil: as the seed says
	NoFaultPlan   bool                // no crashes, operators, deploys, suspensions
	Zero          bool                // replicas are started by alarms, and end by themselves
	Single        bool                // once all is well, one thing at a time goes wrong
	Draw          string              // once all is well, what no seed draws: one of [Draws]

	// Store is what the replicas share. Its clock has to be time.Now. Nil: a
	// [blobtest.Blob]. One seed in sixteen has the client library and host/azure over that,
	// which take longer than all else.
	Store store.Store
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
	piped      bool           // replicas have the client library and host/azure
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

// A Tally is what a simulation was made of.
type Tally struct {
	Requests int
	Ticks    int
	Faults   map[string]int
	Crashes  map[string]int // by the point at which
}

// Simulate runs a cluster to its end and returns what happened.
func Simulate(cfg Config) (*trace.Log, Tally) {
	c := newCluster(cfg)
	if c.foreign() {
		c.plantForeign()
	}
	all := c.plan()
	if len(all) > 0 && all[0].What == "arm" {
		c.carryOut(all[0])
		all = all[1:]
	}
	c.bringUp()
	for _, d := range all {
		time.Sleep(time.Until(d.At))
		c.carryOut(d)
	}
	time.Sleep(time.Until(c.end))
	c.resumeAll()
	c.traps.Disarm()
	close(c.healed)
	rest := c.settling()
	c.log.Add(trace.Event{What: trace.Healed, End: time.Now().Add(rest)})
	time.Sleep(rest)
	c.examine()
	if c.Draw != "" {
		c.drawn()
	} else if c.Single {
		c.singles()
	}
	close(c.over)
	c.wg.Wait()
	c.net.Late.Wait()
	time.Sleep(time.Minute)
	c.log.Sort()
	return c.log, c.tally()
}

// bringUp has replicas up from now on: all the time, or when there is something to do.
func (c *Cluster) bringUp() {
	if c.platform != nil {
		c.wg.Go(c.platform.live)
		return
	}
	if c.asleep() {
		c.log.Zero = &trace.Zero{}
		return
	}
	for _, s := range c.slots {
		c.wg.Go(s.live)
	}
}

func newCluster(cfg Config) *Cluster {
	cfg = cfg.prepared()
	cfg.Replicas = cmp.Or(cfg.Replicas, 3)
	cfg.Length = cmp.Or(cfg.Length, 2*time.Hour)
	var locks []draw.LockPlan
	var onces []draw.OncePlan
	if cfg.Program == nil && cfg.Zero && cfg.Single {
		cfg.Program = soloistsAtZero(cfg.Seed)
	} else if cfg.Program == nil && cfg.Zero {
		cfg.Program = draw.ZeroProgram(cfg.Seed)
	} else if cfg.Program == nil && cfg.Single {
		cfg.Program = soloists(cfg.Seed)
	} else if cfg.Program == nil {
		cfg.Program, locks, onces = draw.Program(cfg.Seed), draw.Locks(cfg.Seed), draw.Onces(cfg.Seed)
	}
	if draw.Limited(cfg.Program) {
		time.Sleep(24 * time.Hour)
	}
	time.Sleep(draw.New(cfg.Seed, 0, "start").Between(0, time.Hour))
	c := &Cluster{Config: cfg, log: newLog(), locks: locks, onces: onces,
		healed: make(chan struct{}), over: make(chan struct{})}
	c.net = &world.Network{Seed: cfg.Seed, Service: serviceOf(cfg.Store), Log: c.log}
	c.version.now = cfg.Program
	for i := range cfg.Replicas {
		c.slots = append(c.slots, &slot{Cluster: c, index: i, orders: make(chan string)})
	}
	c.piped = cfg.Store == nil && draw.New(cfg.Seed, 0, "client library").Below(16) == 0
	c.ordered = keepsDocuments(cfg.Store) && (cfg.Single || draw.New(cfg.Seed, 0, "ordered").Chance(0.5))
	if !c.ordered { // a job that pauses itself needs the orders, to be resumed
		c.Program = slices.Clone(c.Program)
		for i := range c.Program {
			c.Program[i].PauseAfter = 0
		}
		c.version.now = c.Program
	}
	if !cfg.Zero {
		c.liveBefore()
	}
	start := time.Now()
	c.end = start.Add(cfg.Length)
	if cfg.NetworkFaults == nil {
		c.NetworkFaults = draw.NetworkFaults(cfg.Seed, start, c.end, cfg.Replicas)
	}
	c.net.Faults, c.net.Calm, c.traps.End = c.NetworkFaults, c.end, c.end
	if cfg.Zero {
		c.log.Zero = draw.Zero(cfg.Seed)
		c.log.Zero.Most = c.Replicas
		c.platform = newPlatform(c)
	}
	return c
}

func newLog() *trace.Log {
	return &trace.Log{Fleet: map[string][]trace.Definition{}, Drift: map[string]int64{}, Emits: true, Around: true, Locks: map[string]trace.Lock{}, Onces: map[string]trace.Once{}}
}

// calm reports whether nothing goes wrong any more.
func (c *Cluster) calm() bool { return !time.Now().Before(c.end) }

func (c *Cluster) plan() []draw.PlannedFault {
	if c.NoFaultPlan {
		return nil
	}
	start := time.Now()
	all := draw.FaultPlan(c.Seed, start, c.end, c.Replicas, c.Program)
	all = append(all, draw.DeedsInLead(c.Seed, start, c.end, c.Replicas, c.Program)...)
	all = append(all, draw.Upheavals(c.Seed, start, c.end, c.Replicas, c.Program)...)
	if c.ordered {
		all = append(all, draw.OrderPlan(c.Seed, start, c.end, c.Replicas, c.Program)...)
		all = append(all, draw.BackfillPlan(c.Seed, start, c.end, c.Replicas, c.Program)...)
	}
	all = append(all, draw.LockFaults(c.Seed, start, c.end, c.locks)...)
	all = append(all, draw.GroupFaults(c.Seed, start, c.end, c.Program)...)
	all = c.planAtZero(all, start)
	all = append(all, draw.MemberFaults(c.Seed, start, c.end, c.Program)...)
	slices.SortStableFunc(all, func(a, b draw.PlannedFault) int { return a.At.Compare(b.At) })
	return all
}

// askAgain has another replica asked for the same run by hand again and again, while
// the first one may still run it, and after that.
func (c *Cluster) askAgain(d draw.PlannedFault, request string) {
	roll := draw.New(c.Seed, 0, "again "+request)
	for range 6 {
		time.Sleep(roll.Between(0, 20*time.Second))
		r := c.slots[(d.Slot+1)%len(c.slots)].now()
		if c.calm() {
			return
		}
		if r == nil || r.Gone() {
			continue
		}
		asked := make(chan struct{})
		r.byHand.Go(func() {
			defer close(asked)
			r.runNow(d.Job, request)
		})
		<-asked // a replica that goes on after a suspension would have many calls at once
	}
}

// carryOut has a planned fault happen, or begin.
func (c *Cluster) carryOut(d draw.PlannedFault) {
	s := c.slots[d.Slot]
	r := s.now()
	switch {
	case d.What == "arm":
		c.traps.Arm(d.Job, d.For)
	case d.What == "break now" || d.What == "break" || d.What == "delete" || d.What == "delete container":
		c.operate(d)
	case d.What == "spoil":
		if c.Store == nil && d.Job != trace.Foreign {
			c.wg.Go(func() { c.corrupt(d) })
		}
	case d.What == draw.Sweeps:
		c.wg.Go(func() { c.sweep(d) })
	case d.What == "deploy":
		c.wg.Go(c.deploy)
	case d.What == "restart":
		s.order("restart")
	case c.upheaval(d):
	case d.What == draw.InLead:
		c.befallInLead(d)
	case d.What == draw.Backfills:
		c.wg.Go(func() { c.backfill(d) })
	case d.What == draw.Orders:
		c.wg.Go(func() { c.giveOrder(d) })
	case r == nil || r.Gone():
	case d.What == "crash":
		r.Crash("any time")
	case d.What == "step":
		r.Step(d.For)
		c.log.Add(trace.Event{What: trace.Stepped, Replica: r.Machine.Name})
	case d.What == "freeze":
		r.Suspend(min(d.For, time.Until(c.end)), "any time")
	case d.What == "run now":
		request := c.newRequest("wish-%d")
		r.byHand.Go(func() { r.runNow(d.Job, request) })
		c.wg.Go(func() { c.askAgain(d, request) })
	case d.What == "step down":
		c.log.Add(trace.Event{What: trace.Yield, Job: d.Job})
		for _, s := range c.slots {
			if r := s.now(); r != nil && !r.Gone() {
				c.wg.Go(func() { r.stepDown(d.Job) })
			}
		}
	}
}

// newRequest names a run by hand.
func (c *Cluster) newRequest(format string) string {
	c.version.Lock()
	defer c.version.Unlock()
	c.version.requests++
	return fmt.Sprintf(format, c.version.requests)
}

// edit makes the next version of the program, which replicas start with from now
// on.
func (c *Cluster) edit() *draw.Roll {
	c.version.Lock()
	defer c.version.Unlock()
	var n int // of replicas so far
	c.log.Edit(func() { n = len(c.log.Fleet) })
	r := draw.New(c.Seed, n, "deploy", trace.TimeOfDay(time.Now()))
	before := c.version.now
	c.version.now = draw.Next(before, r)
	if c.platform != nil {
		c.version.now = draw.Anew(before, c.version.now, draw.New(c.Seed, n, "anew", trace.TimeOfDay(time.Now())))
	}
	draw.Redate(c.version.now, draw.New(c.Seed, n, "closed", trace.TimeOfDay(time.Now())))
	c.version.deploys++
	return r
}

// deploy restarts one replica after the other with the next version.
func (c *Cluster) deploy() {
	r := c.edit()
	if c.platform != nil {
		c.platform.deployed()
		return
	}
	for _, s := range c.slots {
		s.order("restart")
		select {
		case <-time.After(r.Between(time.Second, 40*time.Second)):
		case <-c.healed:
			time.Sleep(time.Second) // those that come back up at that instant have to be there
		}
	}
}

// examine asks all replicas how they fare.
func (c *Cluster) examine() {
	for _, s := range c.slots {
		r := s.now()
		if r == nil {
			continue
		}
		h := r.Health()
		for job := range h.Broken {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "broken"})
		}
		for job := range h.Overrun {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "overrun"})
		}
		for _, job := range h.Stuck {
			c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: "stuck"})
		}
	}
}

// Add adds another simulation.
func (t *Tally) Add(o Tally) {
	t.Requests += o.Requests
	t.Ticks += o.Ticks
	for k, n := range o.Faults {
		t.Faults[k] += n
	}
	for k, n := range o.Crashes {
		t.Crashes[k] += n
	}
}

func (c *Cluster) tally() Tally {
	t := Tally{Faults: map[string]int{}, Crashes: c.traps.Hit}
	for f, n := range c.net.Met {
		t.Faults[string(f)] += n
	}
	for _, e := range c.log.Events {
		switch e.What {
		case trace.Request:
			t.Requests++
			if e.Op == "claim" && e.OK() {
				t.Ticks++
			}
			if e.Replica == trace.Operator && e.Job != "" {
				t.Faults["operator's "+e.Op]++
			}
		case trace.Deleted:
			if e.Job == "" {
				t.Faults["container deleted"]++
			}
		case trace.Corrupted:
			t.Faults["entry spoilt: "+e.Note]++
		case trace.Swept:
			t.Faults["unused lock removed"]++
		case trace.Again:
			t.Faults["by hand: an order that has left the record"]++
		case trace.Ordered:
			t.Faults["ordered: "+e.Op]++
		case trace.Unlocked:
			t.Faults["unlocked, and then "+e.Note]++
		case trace.Fared:
			t.Faults["health of a spoilt entry: "+e.Note]++
		case trace.Freeze, trace.Crash, trace.Overran, trace.Leased, trace.Down, trace.Blocked, trace.Woken:
			t.Faults[string(e.What)]++
		}
	}
	return t
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

// order tells the slot something if it listens.
func (s *slot) order(what string) {
	select {
	case s.orders <- what:
	default:
	}
}

// live has one replica up after the other, until the cluster is over.
func (s *slot) live() {
	time.Sleep(draw.New(s.Seed, s.index, "first start").Between(0, 10*time.Second))
	for n := 1; ; n++ {
		r := s.start(fmt.Sprintf("r%d.%d", s.index, n))
		s.mu.Lock()
		s.current = r
		s.mu.Unlock()
		roll := draw.New(s.Seed, n, "pause", r.Name)
		var wait time.Duration
		select {
		case <-r.Dead:
			wait = roll.Between(time.Second, 3*time.Minute)
		case <-s.orders:
			r.stop()
			wait = roll.Between(0, 20*time.Second)
		case <-s.over:
			r.stop()
			return
		}
		s.idle(max(wait, time.Until(s.downUntil())))
	}
}
