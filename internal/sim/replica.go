package sim

import (
	"context"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
	"github.com/soloist-go/soloist/internal/sim/world"
	"github.com/soloist-go/soloist/store"
)

// newReplica makes a replica that does not run yet.
func (c *Cluster) newReplica(m *world.Machine, defs []trace.Definition, grace time.Duration) *replica {
	one := &replica{Machine: m, c: c, done: make(chan struct{})}
	var handler slog.Handler = &logCapture{Machine: m, seed: c.Seed, calm: func() bool { return c.NoFaultPlan || c.calm() }, up: time.Now(), end: c.end}
	if m.Logs != nil {
		handler = slog.NewMultiHandler(handler, m.Logs)
	}
	one.Scheduler = &soloist.Scheduler{App: "sim", Store: c.store(m), Replica: m.Name, Logger: slog.New(handler),
		Grace: grace, Groups: draw.GroupsOf(defs), Now: m.Now, Elapsed: m.Elapsed, Overrun: one.overran, Events: m.Emitted}
	c.log.Edit(func() { c.log.Fleet[m.Name] = defs })
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
func (r *replica) overran(job string, _ error) {
	if r.Gone() {
		return
	}
	r.endAfterOverrun(job, r.Log.Add(trace.Event{What: trace.Overran, Replica: r.Machine.Name, Job: job}))
}

// endAfterOverrun ends the process of a replica soon, unless it stays.
func (r *replica) endAfterOverrun(job string, e *trace.Event) {
	after := draw.New(r.c.Seed, 0, "overrun", r.Machine.Name, job, trace.TimeOfDay(e.Time)).Between(0, 3*time.Second)
	if !r.stays && (r.c.Single || time.Now().Add(after).Before(r.c.end)) {
		time.AfterFunc(after, func() { r.Crash("overrun") })
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

const historyDraw = "the history of a backfill"

// keepHistory has a replica keep the outcomes in the store.
func (r *replica) keepHistory() {
	h := &history.Writer{Store: r.c.withLogs(draw.New(r.c.Seed, 0, "history")), App: "sim"}
	emitted := r.Events
	r.Events = func(e event.Event) { emitted(e); h.Take(e) }
	r.c.wg.Go(func() { h.Run(r.ctx) })
}

// withLogs is the store together with logs, on which nothing goes wrong.
func (c *Cluster) withLogs(r *draw.Roll) logging { return logging{c.overHands(r, false), &c.logs} }

type logging struct {
	store.Store
	store.Appender
}
