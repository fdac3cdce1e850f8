package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// A several is the runs of a claim of several ticks of a backfill, which go on in parallel under one
// lease; see backfill.go of internal/plan.
type several struct {
	*hold
	told  *notices
	start time.Duration // elapsed
	runs  []*oneOf

	mu   sync.Mutex      // guards what follows, and end and told of the runs
	left int             // runs that have not returned
	ran  []store.Outcome // reported
}

// A oneOf is the run of one of the ticks.
type oneOf struct {
	*supervise.Attempt
	apart  time.Duration // how much later than the others it begins and ends: the order is drawn, not left to goroutines
	status store.Status  // as it was returned
	end    plan.Ended
	took   time.Duration
	told   bool
	stall  *noticesOfOne
}

// newSeveral returns the runs of the last claim. A call of RunDue ends them with its own end.
func newSeveral(h *hold) *several {
	rec := &h.view.rec
	g := &several{hold: h, told: h.notices()}
	started := sync.OnceFunc(h.hasStarted)
	for _, o := range plan.UnderWay(rec) {
		run := event.Run{Tick: o.Tick, Request: rec.Run.Request, Attempt: o.Attempt, Token: rec.Token}
		a := h.attempt(h.stop, run, h.approach(), started)
		apart := h.client.Jitter.UpTo(time.Millisecond)
		own := h.base
		own.source = &source{origin: &origin{h.source.byHand}, state: h.source.state}
		a.Status = &overseer{&own, func() {
			lease.Sleep(context.WithoutCancel(h.stop), apart) // all have waited for one log
			started()
		}}
		one := &oneOf{Attempt: a, apart: apart, end: plan.Ended{Tick: o.Tick}}
		one.stall = &noticesOfOne{notices: g.told, tick: o.Tick, ended: func(e plan.Ended) {
			g.mu.Lock()
			one.end, one.took = e, (g.clock.Elapsed() - g.start).Round(time.Millisecond)
			g.mu.Unlock()
			g.tellEnded([]plan.Ended{e})
		}}
		a.Under.Lease, a.Under.Record = h.session, one.stall
		a.Under.Beside = true
		a.Under.Around = h.aroundOf(rec, o.Tick)
		if h.bounded {
			a.Under.Until, _ = h.stop.Deadline()
		}
		g.runs = append(g.runs, one)
	}
	g.left = len(g.runs)
	return g
}

// attempts returns the attempts of all ticks, in their order.
func (g *several) attempts() (all []*supervise.Attempt) {
	for _, one := range g.runs {
		all = append(all, one.Attempt)
	}
	return all
}

// runSeveral is runClaimed for a claim of several ticks.
func runSeveral(h *hold) {
	g := newSeveral(h)
	all := g.attempts()
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
	for _, a := range all {
		obey(first.Under.Cancelled, a.Under, barred, h.graceLeft())
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

// obey has a run end and begin as all of the claim do.
func obey(cancelled context.Context, c *supervise.Conditions, barred func() error, grace time.Duration) {
	c.Cancelled, c.Barred, c.Grace = cancelled, barred, grace
}

// run runs one of the ticks, and notes its outcome in the record unless it is the last to return. That is one write,
// which is not repeated: the next one has the outcome too, and at the latest the write of the end.
func (g *several) run(one *oneOf) {
	lease.Sleep(context.WithoutCancel(g.stop), one.apart)
	g.source.setRunning(true)
	status, reason := one.Run()
	g.source.setRunning(false)
	lease.Sleep(context.WithoutCancel(g.stop), one.apart)
	if strings.HasPrefix(reason, plan.Stopped) && status == store.Abandoned && g.bounded && errors.Is(g.stop.Err(), context.DeadlineExceeded) {
		reason = "out of time, " + reason // this end counts as a death; see runClaimed
	}
	returned := cmp.Or(one.Returned, g.clock.Elapsed())
	g.mu.Lock()
	one.status, one.took = status, (returned - g.start).Round(time.Millisecond)
	if status != "" && status != supervise.Barred {
		one.end = plan.Ended{Tick: one.Info.Tick, Status: status, Reason: reason, End: g.endAt(returned)}
	}
	g.left--
	last, ended := g.left == 0, g.ended()
	g.mu.Unlock()
	if last || len(ended) == 0 {
		return
	}
	// Those that have not begun are left to the last write: until then they are of this claim.
	policy, report := &g.job.Policy, func() { g.tellEnded(ended) }
	if err := g.told.once(func(last *store.Record) { policy.End(last, ended...) }); err == nil {
		report()
	} else if !surelyNotWritten(err) {
		g.reportOnceRead(store.Outcome{}, report)
	}
}

// endAt returns when a run has ended: the service's time of the claim and the time that passed since, which does not depend
// on the wall clock.
func (h *hold) endAt(returned time.Duration) time.Time {
	return h.view.rec.Run.Claimed.Add((returned - h.claimedAt).Round(time.Millisecond))
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
			g.ran = append(g.ran, f)
			one.Emit(event.Event{Kind: event.Ended, Outcome: f, Took: one.took})
		}
	}
}

// addToCall adds the outcomes that are reported to those of the call.
func (g *several) addToCall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ran = append(g.ran, g.ran...)
}

// finish writes the end of the claim, with the outcomes that are not in the record yet.
func (g *several) finish() {
	stalled := false
	var all []plan.Ended
	for _, one := range g.runs {
		all, stalled = append(all, one.end), stalled || one.end.Status == store.Stalled
	}
	if !stalled && !g.bounded { // see hold.finish
		g.replica.jobs.starts.wait(g.stop, g.held)
	}
	end := g.endAt(g.clock.Elapsed())
	var late plan.Lateness
	err := g.confirm(func(last *store.Record) {
		*last = g.job.Policy.FinishSeveral(last, all, end)
		late = g.judge(last, false)
	})
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
	at, _, _ := n.clock.Now()
	e, counted := plan.Ended{Tick: n.tick, Status: store.Stalled, Reason: reason, End: at}, false
	err := n.once(func(r *store.Record) {
		before := r.Backfill.Done()
		*r = n.policy.StallSeveral(r, e)
		counted = r.Backfill.Done() > before
	})
	if n.written = err == nil; n.written && counted {
		n.ended(e)
	}
	return err
}
