package sim

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
)

// A replica is a scheduler on a machine.
type replica struct {
	*world.Machine
	*soloist.Scheduler
	c      *Cluster
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{} // Run has returned, and what was run by hand
	byHand sync.WaitGroup
	stays  bool // its process goes on after Overrun
	served bool // it has done what it was started for
}

// start brings a replica up with the program's version of now.
func (s *slot) start(name string) *replica {
	s.version.Lock()
	defs := s.version.now
	s.version.Unlock()
	return s.startWith(name, defs, "")
}

// startWith brings a replica up. A visitor has a reason why it does not stay.
func (s *slot) startWith(name string, defs []trace.Definition, visitor string) *replica {
	c := s.Cluster
	r := draw.New(c.Seed, 0, "replica", name)
	skew := r.Between(-2*time.Second, 2*time.Second)
	if r.Chance(0.3) {
		skew = r.Between(-2*time.Hour, 2*time.Hour)
	}
	m := world.NewMachine(name, s.index, world.NewClock(skew, int64(r.Below(19_001))-9500), c.log, &c.traps)
	grace := draw.Grace(r)
	one := c.newReplica(m, defs, grace)
	one.stays = r.Chance(0.3)
	up := trace.Event{What: trace.Up, Replica: name, Note: fmt.Sprintf("skew %s drift %d grace %s", skew, m.Drift, one.Grace), Cause: visitor}
	m.Quit = func() { s.order("restart") }
	onWakeUps := s.index == 0 && r.Chance(0.2) && !c.calm()
	if onWakeUps {
		up.Cause = "woken up"
	}
	c.log.Add(up)
	c.version.Lock()
	version := c.version.deploys
	c.version.Unlock()
	c.begin(one, func() {
		one.useLocks()
		one.doOnces(version)
		if onWakeUps {
			one.wakeUps(r)
		} else if err := one.Run(one.ctx); err != nil {
			panic(err)
		}
	})
	return one
}

// newReplica makes a replica that does not run yet.
func (c *Cluster) newReplica(m *world.Machine, defs []trace.Definition, grace time.Duration) *replica {
	one := &replica{Machine: m, c: c, done: make(chan struct{})}
	var handler slog.Handler = &logCapture{Machine: m, seed: c.Seed, calm: func() bool { return c.NoFaultPlan || c.calm() }, up: time.Now(), end: c.end}
	if m.Logs != nil {
		handler = slog.NewMultiHandler(handler, m.Logs)
	}
	one.Scheduler = &soloist.Scheduler{App: "sim", Store: c.store(m), Replica: m.Name, Logger: slog.New(handler),
		Grace: grace, Groups: draw.GroupsOf(defs), Now: m.Now, Elapsed: m.Elapsed, Overrun: one.overran, Events: m.Emitted}
	c.log.Edit(func() { c.log.Fleet[m.Name], c.log.Drift[m.Name] = defs, m.Drift })
	c.addTo(one.Scheduler, m, defs)
	one.ctx, one.cancel = context.WithCancel(context.Background())
	if c.Draw == historyDraw {
		one.keepHistory()
	}
	m.Mu.Lock()
	m.Halt = one.cancel
	m.Mu.Unlock()
	return one
}

// begin runs a replica until run returns.
func (c *Cluster) begin(one *replica, run func()) {
	c.wg.Go(func() {
		defer close(one.done)
		run()
		one.byHand.Wait()
		if !one.Gone() {
			c.log.Add(trace.Event{What: trace.Gone, Replica: one.Name})
		}
	})
}

// overran is the replica's Overrun: its process ends soon after, or not at all.
func (r *replica) overran(job string, cause error) {
	if r.Gone() {
		return
	}
	r.endAfterOverrun(job, r.Log.Add(trace.Event{What: trace.Overran, Replica: r.Machine.Name, Job: job, Note: why(cause)}))
}

// endAfterOverrun ends the process of a replica soon, unless it stays.
func (r *replica) endAfterOverrun(job string, e *trace.Event) {
	after := draw.New(r.c.Seed, 0, "overrun", r.Machine.Name, job, trace.TimeOfDay(e.Time)).Between(0, 3*time.Second)
	if !r.stays && (r.c.Single || time.Now().Add(after).Before(r.c.end)) {
		time.AfterFunc(after, func() { r.Crash("overrun") })
	}
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

// wakeUps is a replica that a platform wakes up now and then.
func (r *replica) wakeUps(roll *draw.Roll) {
	for r.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(r.ctx, 5*time.Minute)
		_, _ = r.RunDue(ctx, soloist.Wake{}) // what went wrong shows in the record
		cancel()
		r.Rest(r.ctx, roll.Between(0, time.Minute))
	}
}

// stop asks the replica to stop and waits until it has, or has crashed.
func (r *replica) stop() {
	r.c.log.Add(trace.Event{What: trace.Stop, Replica: r.Name, End: time.Now().Add(r.Grace)})
	r.cancel()
	select {
	case <-r.done:
	case <-r.Dead:
	}
}

func (r *replica) runNow(job, request string) {
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Minute)
	defer cancel()
	r.c.ring(ctx, job) // a replica that is asked to stop takes no more calls
	outcome, err := r.RunNow(ctx, job, request)
	if !r.Gone() {
		result := trace.Result(outcome.Status)
		if err != nil {
			result = trace.Refused
		}
		r.c.log.Add(trace.Event{What: trace.Answered, Replica: r.Name, Job: job, Request: request, Result: result})
	}
}

func (r *replica) stepDown(job string) {
	ctx, cancel := context.WithTimeout(r.ctx, 2*time.Minute)
	defer cancel()
	_ = r.StepDown(ctx, job) // most do not run it
}
