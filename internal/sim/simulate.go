package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// Simulate runs a cluster to its end and returns what happened.
func Simulate(cfg Config) *trace.Log {
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
	return c.log
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
	c.net = &world.Network{Seed: cfg.Seed, Service: cfg.service(), Log: c.log}
	c.version.now = cfg.Program
	for i := range cfg.Replicas {
		c.slots = append(c.slots, &slot{Cluster: c, index: i, orders: make(chan string)})
	}
	c.piped = c.Store == nil && draw.New(cfg.Seed, 0, "client library").Below(16) == 0
	c.ordered = cfg.Single || draw.New(cfg.Seed, 0, "ordered").Chance(0.5)
	if !c.ordered { // a job that pauses itself needs the orders, to be resumed
		c.Program = slices.Clone(c.Program)
		for i := range c.Program {
			c.Program[i].Retry.PauseAfter = 0
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
		c.platform = newPlatform(c)
	}
	return c
}

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

// settling is how long the cluster gets after all faults: longer where the youngest
// definition is from an aborted deploy, which others respect for some minutes, and
// where shards are to be spread evenly.
func (c *Cluster) settling() time.Duration {
	youngest := ""
	c.log.Edit(func() {
		var at time.Time
		for _, e := range c.log.Events {
			if e.What == trace.Up && e.Time.After(at) && e.Time.Before(c.end) {
				at, youngest = e.Time, e.Cause
			}
		}
	})
	rest := trace.Settling
	if c.platform != nil {
		rest += draw.New(c.Seed, 0, "calm at zero").Between(2*time.Hour, 8*time.Hour)
	}
	if youngest == trace.Aborted {
		rest += trace.Patience
	}
	if slices.ContainsFunc(c.Program, func(d trace.Definition) bool { return d.Spread() }) {
		rest += trace.Spreading
	}
	return rest
}

// examine notes what the Health of each replica says.
func (c *Cluster) examine() {
	for _, s := range c.slots {
		if r := s.now(); r != nil {
			h := r.Health()
			for op, jobs := range map[string][]string{"broken": slices.Collect(maps.Keys(h.Broken)), "overrun": slices.Collect(maps.Keys(h.Overrun)), "stuck": h.Stuck} {
				for _, job := range jobs {
					c.log.Add(trace.Event{What: trace.Health, Replica: r.Name, Job: job, Op: op})
				}
			}
		}
	}
}
