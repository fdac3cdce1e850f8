package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A special draw is what operators or a platform do to a settled cluster and no seed draws by itself, and that has shown a
// defect of the program.
type special struct {
	name     string
	replicas int // that are up; none: each is woken up for a call
	program  []trace.Definition
	does     func(c *Cluster, r *draw.Roll)
}

// work is a job of a draw, and how long it takes.
func work(every time.Duration, takes time.Duration) trace.Definition {
	return trace.Definition{Every: every, Job: soloist.Job{Name: "work", Schedule: "@every " + every.String(), Lease: draw.Fence, Interrupted: soloist.Rerun}, Lengthy: takes}
}

// drawOf returns the draw of that name, nil if there is none.
func drawOf(name string) *special {
	for _, d := range draws() {
		if d.name == name {
			return &d
		}
	}
	return nil
}

// Draws are the names of all draws.
func Draws() (all []string) {
	for _, d := range draws() {
		all = append(all, d.name)
	}
	return all
}

func draws() []special {
	ahead, grouped, before, after := work(time.Hour, 0), work(2*time.Hour, 0), work(4*time.Hour, 0), work(4*time.Hour, 0)
	ahead.ClaimAhead = true
	grouped.Group, grouped.Slots, grouped.Late.Missed = draw.AGroup, 1, soloist.SkipMissed
	after.Name, after.Follows, after.Job.After.Any = "after", "work", true
	slow := work(time.Hour, 20*time.Minute)
	slow.Lease = time.Minute // its claims may take long
	return []special{
		{"a backfill whose definition changes", 2, []trace.Definition{work(30*time.Minute, 5*time.Minute)}, (*Cluster).changesUnderBackfill},
		{historyDraw, 1, []trace.Definition{work(10*time.Minute, 0)}, (*Cluster).readsHistory},
		{"an order beside a claim", 2, []trace.Definition{slow}, (*Cluster).cancelsBesideClaim},
		{"ClaimAhead at a wake-up", 0, []trace.Definition{ahead}, (*Cluster).wakesJustBefore},
		{"short calls after an unlock", 0, []trace.Definition{work(time.Hour, 10*time.Hour)}, (*Cluster).callsBriefly},
		{"a name that is used again", 1, []trace.Definition{work(24*time.Hour, 0)}, (*Cluster).ordersAgain},
		{"a flood of orders", 2, []trace.Definition{work(2*time.Hour, 10*time.Minute)}, (*Cluster).ordersMany},
		{"an order for a paused job with an open tick", 2, []trace.Definition{work(time.Hour, 10*time.Minute)}, (*Cluster).ordersWhilePaused},
		{"a sweep beside a group", 2, []trace.Definition{grouped}, (*Cluster).sweepsBesideGroup},
		{"a pause of a predecessor at zero", 0, []trace.Definition{before, after}, (*Cluster).pausesPredecessor},
	}
}

// prepared is the configuration with what its draw needs.
func (cfg Config) prepared() Config {
	if d := drawOf(cfg.Draw); d != nil {
		cfg.Replicas, cfg.Program, cfg.Single, cfg.NoFaultPlan, cfg.NetworkFaults = max(1, d.replicas), d.program, true, true, []draw.NetworkFault{}
	}
	return cfg
}

// asleep reports whether no replica is up by itself.
func (c *Cluster) asleep() bool {
	d := drawOf(c.Draw)
	return d != nil && d.replicas == 0
}

// drawn does what the draw says, and lets the cluster settle after that.
func (c *Cluster) drawn() {
	drawOf(c.Draw).does(c, draw.New(c.Seed, 0, "draw", c.Draw))
	c.log.Add(trace.Event{What: trace.Single, Op: trace.Over})
}

// orderWork gives an order for the work.
func (c *Cluster) orderWork(o soloist.Order) {
	o.Job, o.By = "work", trace.Orderer
	_ = c.atDesk(o, draw.New(c.Seed, 0, "order", trace.TimeOfDay(time.Now())))
}

// whileWorkRuns waits for the next tick and a run of it, and returns its replica.
func (c *Cluster) whileWorkRuns(r *draw.Roll) *replica {
	time.Sleep(time.Until(c.Program[0].After(time.Now())))
	one, _ := whileItRuns(c, "work", r)
	return one
}

func (c *Cluster) changesUnderBackfill(r *draw.Roll) {
	now := time.Now()
	c.orderWork(soloist.Order{Kind: soloist.OrderBackfill, Backfill: soloist.Backfill{From: now.Add(-4*time.Hour - 10*time.Minute), To: now.Add(-time.Hour), All: true, Parallel: draw.Pick(r, 1, 3)}})
	time.Sleep(r.Between(30*time.Second, 4*time.Minute))
	c.version.Lock()
	c.version.now = []trace.Definition{work(time.Hour, 5*time.Minute)}
	c.version.Unlock()
	for _, s := range c.slots {
		s.order("restart")
	}
	time.Sleep(90 * time.Minute)
}

func (c *Cluster) readsHistory(r *draw.Roll) {
	now := time.Now()
	c.orderWork(soloist.Order{Kind: soloist.OrderBackfill, Backfill: soloist.Backfill{From: now.Add(-time.Hour), To: now.Add(-r.Between(time.Minute, 20*time.Minute)), All: true}})
	time.Sleep(3 * time.Hour)
	lines, err := history.Read(context.Background(), &c.logs, "sim/work", time.Time{}, nil)
	if err != nil {
		panic(err)
	}
	for _, l := range lines {
		c.log.Add(trace.Event{What: trace.Kept, Job: "work", Tick: l.Tick, Request: l.Request, Token: l.Token})
	}
}

// cancelsBesideClaim has an operator cancel a tick whose runner has died, while the claim of the next attempt is under way.
func (c *Cluster) cancelsBesideClaim(r *draw.Roll) {
	for range 4 {
		one, begin := c.whileWorkRuns(r), time.Now()
		c.net.Add(draw.NetworkFault{From: begin, To: begin.Add(5 * time.Minute), Slot: -1, Op: "claim", Fault: trace.Slow, Share: 1})
		one.Crash("single")
		for c.claimUnderWay(begin) == nil && time.Since(begin) < 5*time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(r.Between(0, time.Second))
		c.orderWork(soloist.Order{Kind: soloist.OrderCancel})
		time.Sleep(30 * time.Minute)
	}
}

// claimUnderWay is a claim that was sent after a time and is not answered yet.
func (c *Cluster) claimUnderWay(since time.Time) (claim *trace.Event) {
	c.log.Edit(func() {
		for _, e := range c.log.Events {
			if e.What == trace.Request && e.Op == "claim" && e.Sent.After(since) && e.Done.IsZero() {
				claim = e
			}
		}
	})
	return claim
}

// call is one process that is woken up, perhaps for a tick, and has some time.
func (c *Cluster) call(name string, tick time.Time, within time.Duration) {
	one := c.newReplica(c.machine(name, 0), c.Program, 0)
	ctx, cancel := context.WithTimeout(one.ctx, within)
	defer cancel()
	e := c.log.Add(trace.Event{What: trace.Woken, Replica: name, Job: "work", Tick: tick, Sent: time.Now()})
	_, err := one.RunDue(ctx, soloist.Wake{Tick: tick})
	c.log.Edit(func() {
		if e.End = time.Now(); err != nil {
			e.Note = "refused"
		}
	})
}

func (c *Cluster) wakesJustBefore(r *draw.Roll) {
	for n := range 4 {
		tick := c.Program[0].After(time.Now().Add(time.Minute))
		time.Sleep(time.Until(tick) - r.Between(-time.Second, time.Second))
		c.call(fmt.Sprint("w", n), tick, 5*time.Minute)
		time.Sleep(time.Minute)
		c.operate(draw.PlannedFault{What: "delete", Job: "work"})
	}
}

// callsBriefly ends the lease of a run whose runner has died, and wakes processes up for less time than a lease.
func (c *Cluster) callsBriefly(r *draw.Roll) {
	c.call("first", time.Time{}, time.Minute)
	time.Sleep(time.Until(c.Program[0].After(time.Now())))
	hang := c.newReplica(c.machine("hang", 0), c.Program, 0)
	go func() { _, _ = hang.RunDue(hang.ctx, soloist.Wake{}) }()
	time.Sleep(2*time.Second + draw.Fence/2)
	e := c.log.Add(trace.Event{What: trace.Single, Op: trace.ShortCalls, Replica: "hang", Job: "work"})
	hang.Crash("single")
	c.operate(draw.PlannedFault{What: "break now", Job: "work"})
	for n := range 60 {
		c.call(fmt.Sprint("p", n), time.Time{}, draw.Fence-r.Between(time.Second, 4*time.Second))
		time.Sleep(time.Minute)
	}
	c.log.Edit(func() { e.End = time.Now() })
}

func (c *Cluster) ordersAgain(r *draw.Roll) {
	c.orderWork(soloist.Order{Kind: soloist.OrderRun, Request: "hook"})
	for n := range 100 + r.Below(10) {
		time.Sleep(6 * time.Minute)
		c.orderWork(soloist.Order{Kind: soloist.OrderRun, Request: fmt.Sprint("hook-", n)})
	}
	time.Sleep(time.Minute)
	c.orderWork(soloist.Order{Kind: soloist.OrderRun, Request: "hook"})
	time.Sleep(time.Minute)
}

func (c *Cluster) ordersMany(r *draw.Roll) {
	c.whileWorkRuns(r)
	for n := range 25 {
		c.orderWork(soloist.Order{Kind: soloist.OrderRun, Request: fmt.Sprint("many-", n)})
	}
	time.Sleep(30 * time.Minute)
}

func (c *Cluster) ordersWhilePaused(r *draw.Roll) {
	one := c.whileWorkRuns(r)
	c.orderWork(soloist.Order{Kind: soloist.OrderPause})
	one.Crash("single")
	time.Sleep(r.Between(0, 2*time.Minute))
	c.orderWork(soloist.Order{Kind: soloist.OrderRun, Request: "please"})
	time.Sleep(90 * time.Minute)
}

// sweepsBesideGroup removes the slots that no replica has used for an hour, soon before the next tick of the group.
func (c *Cluster) sweepsBesideGroup(r *draw.Roll) {
	tick := c.Program[0].After(time.Now())
	time.Sleep(time.Until(tick.Add(100 * time.Minute)))
	if _, err := soloist.Sweep(context.Background(), c.overHands(r, false), "sim", time.Hour); err != nil {
		panic(err)
	}
	c.log.Add(trace.Event{What: trace.Single, Op: trace.Sweep})
	time.Sleep(time.Until(tick.Add(2*time.Hour + 10*time.Minute)))
}

// pausesPredecessor asks when a replica is wanted, while a job that another one follows is paused for some hours, and wakes one
// up just before that, and then for it.
func (c *Cluster) pausesPredecessor(r *draw.Roll) {
	c.call("first", time.Time{}, 5*time.Minute)
	tick := c.Program[0].After(time.Now())
	time.Sleep(time.Until(tick) - r.Between(time.Minute, time.Hour))
	c.orderWork(soloist.Order{Kind: soloist.OrderPause, Until: tick.Add(r.Between(10*time.Minute, 2*time.Hour))})
	for n, end := 0, time.Now().Add(12*time.Hour); time.Now().Before(end); n++ {
		asker := c.newReplica(c.machine(fmt.Sprint("asker", n), 0), c.Program, 0)
		at, err := asker.NextDue(context.Background())
		if err != nil || at.IsZero() {
			panic(fmt.Sprint(at, err))
		}
		c.log.Add(trace.Event{What: trace.Wanted, End: at})
		time.Sleep(max(0, time.Until(at)-time.Minute))
		c.call(fmt.Sprint("early", n), time.Time{}, 5*time.Minute)
		time.Sleep(max(time.Second, time.Until(at)))
		c.call(fmt.Sprint("due", n), time.Time{}, 5*time.Minute)
	}
}
