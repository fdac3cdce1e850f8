package runner

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
)

// A several is the runs of a claim of several ticks of a backfill, which go on in parallel under one
// lease; see backfill.go of internal/plan.
type several struct {
	*hold
	told  *notices
	start time.Duration // elapsed
	runs  []*oneOf

	mu       sync.Mutex // guards what follows, and end and told of the runs
	left     int        // runs that have not returned
	reported []event.Outcome
}

// A oneOf is the run of one of the ticks.
type oneOf struct {
	*supervise.Attempt
	apart  time.Duration // how much later than the others it begins and ends: the order is drawn, not left to goroutines
	status event.Status  // as it was returned
	end    plan.Ended
	took   time.Duration
	told   bool
	stall  *noticesOfOne
}

// newSeveral returns the runs of the last claim.
func newSeveral(h *hold) *several {
	g := &several{hold: h, told: h.notices()}
	started := sync.OnceFunc(h.hasStarted)
	for _, o := range plan.UnderWay(&h.view.rec) {
		one := &oneOf{apart: h.client.Jitter.UpTo(time.Millisecond), end: plan.Ended{Tick: o.Tick}}
		one.stall = &noticesOfOne{notices: g.told, tick: o.Tick, ended: func(e plan.Ended) {
			g.mu.Lock()
			one.end, one.took = e, (g.clock.Elapsed() - g.start).Round(time.Millisecond)
			g.mu.Unlock()
			g.tellEnded([]plan.Ended{e})
		}}
		a := h.attemptAt(o.Tick, o.Attempt, one.stall, started)
		own := h.base
		own.source = &source{origin: &origin{h.source.byHand}, state: h.source.state}
		a.Status = &overseer{&own, func() {
			lease.Sleep(context.WithoutCancel(h.stop), one.apart) // all have waited for one log
			started()
		}}
		a.Under.Beside = true
		one.Attempt = a
		g.runs = append(g.runs, one)
	}
	g.left = len(g.runs)
	return g
}

// runSeveral is runClaimed for a claim of several ticks.
func runSeveral(h *hold) {
	g := newSeveral(h)
	var all []*supervise.Attempt
	for _, one := range g.runs {
		all = append(all, one.Attempt)
	}
	if h.stops(h.view.rec.Run.Tick) {
		h.takeBack(supervise.ErrStopped, all...)
		return
	}
	first := all[0]
	done := h.obeying(first)
	var one sync.Mutex // barred looks at the view
	barred := func() error {
		one.Lock()
		defer one.Unlock()
		return h.barred()
	}
	cancelled := first.Under.Cancelled
	for _, a := range all { // as all of the claim
		a.Under.Barred, a.Under.Grace = barred, h.graceLeft()
		a.Under.Cancelled = cancelled //nolint:fatcontext // it is one for all
	}
	g.start = h.clock.Elapsed()
	endLate := h.watchLate()
	var wait sync.WaitGroup
	for _, one := range g.runs {
		wait.Go(func() { g.run(one) })
	}
	wait.Wait()
	endLate()
	h.hasStarted()
	h.slot.free()
	done()
	var began, lost bool
	for _, one := range g.runs {
		began, lost = began || one.end.Status != "", lost || one.status == ""
	}
	switch {
	case began:
		g.finish()
	case lost: // nothing has run, but the record cannot be corrected without a lease
		h.undone = fmt.Errorf("its tick %s and those beside it were claimed and not run: %w", first.Info.Tick.Format(time.RFC3339), lease.ErrNotRenewed)
	default:
		h.takeBack(cmp.Or(h.barred(), errPaused), all...)
	}
}

// run runs one of the ticks, and notes its outcome in the record unless it is the last to return. That is one write,
// which is not repeated: the next one has the outcome too, and at the latest the write of the end.
func (g *several) run(one *oneOf) {
	lease.Sleep(context.WithoutCancel(g.stop), one.apart)
	g.source.setRunning(true)
	status, reason := one.Run()
	g.source.setRunning(false)
	lease.Sleep(context.WithoutCancel(g.stop), one.apart)
	returned := cmp.Or(one.Returned, g.clock.Elapsed())
	g.mu.Lock()
	one.status, one.took = status, (returned - g.start).Round(time.Millisecond)
	if status != "" && status != supervise.Barred {
		one.end = plan.Ended{Tick: one.Info.Tick, Status: status, Reason: g.reasonOf(status, reason), End: g.endAt(returned)}
	}
	g.left--
	last, ended := g.left == 0, g.ended()
	g.mu.Unlock()
	if last || len(ended) == 0 {
		return
	}
	// Those that have not begun are left to the last write: until then they are of this claim.
	policy, report := &g.job.Policy, func() { g.tellEnded(ended) }
	if err := g.told.once(func(last *record.Record) { plan.End(policy, last, ended...) }); err == nil {
		report()
	} else if !surelyNotWritten(err) {
		g.reportOnceRead(event.Outcome{}, report)
	}
}

// ended returns how the runs have ended that have begun and returned. The caller holds mu.
func (g *several) ended() (all []plan.Ended) {
	for _, one := range g.runs {
		if one.end.Status != "" {
			all = append(all, one.end)
		}
	}
	return all
}

// tellEnded reports the outcomes that are in the record, each once.
func (g *several) tellEnded(written []plan.Ended) {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.session.Record()
	for _, e := range written {
		for _, one := range g.runs {
			if one.told || !one.end.Tick.Equal(e.Tick) {
				continue
			}
			one.told = true
			f := plan.OutcomeOfSeveral(&rec, one.end, one.Info.Attempt)
			g.reported = append(g.reported, f)
			emitEnded(one.Attempt, f, one.took)
		}
	}
}

// addToCall adds the outcomes that are reported to those of the call.
func (g *several) addToCall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran = append(g.ran, g.reported...)
}

// finish writes the end of the claim, with the outcomes that are not in the record yet.
func (g *several) finish() {
	stalled := false
	var all []plan.Ended
	for _, one := range g.runs {
		all, stalled = append(all, one.end), stalled || one.end.Status == event.Stalled
	}
	if !stalled && !g.bounded { // see hold.finish
		g.replica.jobs.starts.wait(g.stop, g.held)
	}
	end := g.endAt(g.clock.Elapsed())
	var late plan.Lateness
	err := g.confirm(func(last *record.Record) {
		*last = plan.FinishSeveral(&g.job.Policy, last, all, end)
		late = g.judge(last, false)
	}, g.leavesAfter)
	g.emitLate(late, err)
	if err != nil {
		g.untoldAll(err)
		g.addToCall()
		if written := g.session.Record(); mayBeApplied(err) {
			g.reportOnceRead(plan.LastOutcome(&written, written.Run.Status, ""), func() { g.tellEnded(g.ended()) })
		}
		return
	}
	g.written(g.session)
	g.tellEnded(g.ended())
	g.addToCall()
}

// untoldAll reports which outcomes are not known to be in the record, since the last write has failed. That a run
// has stalled may have been written before.
func (g *several) untoldAll(err error) {
	for _, one := range g.runs {
		if one.stall.written {
			g.tellEnded([]plan.Ended{one.end})
		}
	}
	why := fmt.Errorf("the end was not confirmed: %w", err)
	for _, one := range g.runs {
		if !one.told && one.end.Status != "" {
			why = g.untold(one.Attempt, plan.OutcomeOfSeveral(&g.view.rec, one.end, one.Info.Attempt), one.took, err)
		}
	}
	g.undone = fmt.Errorf("its tick %s and those beside it have run, and %w", g.runs[0].Info.Tick.Format(time.RFC3339), why)
}

// A noticesOfOne is the supervise.Record of one of several runs.
type noticesOfOne struct {
	*notices
	tick    time.Time
	ended   func(plan.Ended) // reports the outcome of the run
	written bool             // that the run has stalled
}

// Stalled implements [supervise.Record]; see notices.Stalled.
func (n *noticesOfOne) Stalled(reason string) error {
	at, _ := n.stalledAt()
	e, counted := plan.Ended{Tick: n.tick, Status: event.Stalled, Reason: reason, End: at}, false
	err := n.once(func(r *record.Record) {
		before := r.Backfill.Done()
		*r = plan.StallSeveral(&n.job.Policy, r, e)
		counted = r.Backfill.Done() > before
	})
	if n.written = err == nil; n.written && counted {
		n.ended(e)
	}
	return err
}
