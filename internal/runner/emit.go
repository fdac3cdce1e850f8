package runner

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// A reporter makes events of what happens to a job on this replica.
type reporter struct {
	base
	run atomic.Pointer[event.Run] // which run is under way under a lease, for events of the lease; nil: none
}

// emit hands over an event of this job.
func (r *reporter) emit(e event.Event) {
	e.Job = r.job.Name
	switch {
	case e.Kind == event.Heartbeat && !r.source.mayTellBeat():
		return
	case e.Kind == event.Heartbeat || e.Kind == event.Saved:
		e.Note = shortNote(e.Note)
	}
	r.replica.Emit(e)
}

// emitOfRun hands over an event of the lease. Several goroutines call it.
func (r *reporter) emitOfRun(e event.Event) {
	if run := r.run.Load(); run != nil {
		e = ofRun(e, *run)
	}
	r.emit(e)
}

// ofRun returns e with what names a run. The try, if there is one, is in e.
func ofRun(e event.Event, run event.Run) event.Event {
	run.Try = e.Run.Try
	e.Run = run
	return e
}

// detail reports a step that matters only to who follows the protocol.
func (r *reporter) detail(what string, err error) {
	r.emit(event.Event{Kind: event.Detail, Note: what, Err: err})
}

// notReleased reports a lease that its holder could not release.
func (r *reporter) notReleased(err error) {
	r.detail("the lease was not released and will run out", err)
}

// emitClaim reports what a claim has written: the outcomes of ticks that did not run to their
// end, news, and the run that it claims, if it claims one. Each outcome is reported once, by the
// replica that wrote it. last is the record before the claim.
func (r *reporter) emitClaim(last, rec *store.Record, news []store.Outcome, runs bool) {
	if rec.Definition.Spec != last.Definition.Spec {
		r.emit(event.Event{Kind: event.ScheduleChanged})
	}
	r.emitNews(news)
	if !runs {
		return
	}
	run := event.Run{Tick: rec.Run.Tick, Request: rec.Run.Request, Attempt: rec.Run.Attempt, Token: rec.Token}
	r.emit(event.Event{Kind: event.Claimed, Run: run})
	if plan.Several(rec) {
		for _, o := range plan.UnderWay(rec)[1:] {
			beside := run
			beside.Tick, beside.Attempt = o.Tick, o.Attempt
			r.emit(event.Event{Kind: event.Claimed, Run: beside})
		}
	}
	if last.MayRun() && last.Run.Replica != r.replica.Name {
		r.emit(event.Event{Kind: event.TookOver, Run: run, Former: event.Former{Replica: last.Run.Replica, Since: last.Run.Claimed}, Note: fateOf(&last.Run)})
	}
	r.run.Store(&run)
}

// emitNews reports what a claim has settled, newest first.
func (r *reporter) emitNews(news []store.Outcome) {
	for _, o := range slices.Backward(news) {
		r.emitSettled(o, "")
	}
}

// fateOf is what is known of a run without an end, in one word.
func fateOf(run *store.Run) string {
	switch {
	case run.Unlocked.By != "":
		return "unlocked"
	case run.Status == store.Stalled:
		return "stalled"
	}
	return "died"
}

// emitNotClaimed reports that a write was not confirmed that may have claimed a run. If it
// claims none, the tick is the previous run's.
func (r *reporter) emitNotClaimed(c *plan.Claim, err error) {
	run := event.Run{Tick: c.Record.Run.Tick}
	if c.Run {
		run.Request, run.Attempt, run.Token = c.Record.Run.Request, c.Record.Run.Attempt, c.Record.Token
	}
	r.emit(event.Event{Kind: event.NotClaimed, Run: run, Err: err})
}

// emitSettled reports the outcome of a tick, or of a range of ticks.
func (r *reporter) emitSettled(o store.Outcome, note string) {
	r.emit(event.Event{Kind: event.Settled, Run: event.Run{Tick: o.Tick, Request: o.Request, Attempt: o.Attempt, Token: o.Token}, Outcome: o, Note: note})
}

// settled reports the outcomes that were written together with the end of a run, or with its
// stall. Ended reports the outcome of the run itself.
func (r *reporter) settled(news []store.Outcome) {
	for _, o := range slices.Backward(news) {
		if o.Token == 0 {
			r.emitSettled(o, "settled together with the end of a run")
		}
	}
}

// added returns the outcomes that history has before old's, both newest first. What a
// record has no room for is cut from the end of its history, so lengths cannot be compared.
func added(history, old []store.Outcome) []store.Outcome {
	n := slices.IndexFunc(history, func(o store.Outcome) bool {
		return slices.ContainsFunc(old, func(known store.Outcome) bool { return known.Token == o.Token && known.Tick.Equal(o.Tick) })
	})
	if n < 0 {
		return history
	}
	return history[:n]
}

// maxNote is how many characters of a note a record keeps.
const maxNote = 100

// shortNote returns as much of a note as the record keeps: events that wait must not take much
// memory.
func shortNote(note string) string {
	if all := []rune(note); len(all) > maxNote {
		return string(all[:maxNote])
	}
	return note
}

// beatsEvery is how often heartbeats of a job become events at most.
const beatsEvery = time.Second

// mayTellBeat reports whether a heartbeat of the job becomes an event now.
func (s *source) mayTellBeat() (yes bool) {
	now := time.Now()
	s.state.set(func(n *snapshot) {
		if yes = n.told.IsZero() || now.Sub(n.told) >= beatsEvery; yes {
			n.told = now
		}
	})
	return yes
}

// shownBy reports whether a record shows that the write was applied: the record is that write, or, if other
// replicas have written since, it still shows the run. A run that was claimed has no status.
func (u *unconfirmed) shownBy(rec *store.Record) bool {
	is := func(o store.Outcome) bool {
		return o.Token == u.run.Token && o.Replica == u.run.Replica && o.Start.Equal(u.run.Start) &&
			(u.run.Status == "" || o.Status == u.run.Status && o.End.Equal(u.run.End))
	}
	return rec.Writer == u.writer ||
		u.run.Token != 0 && (is(plan.LastOutcome(rec, rec.Run.Status, "")) || slices.ContainsFunc(rec.History, is))
}

// reportOnceRead keeps the last write under the lease until a read shows whether it was applied.
func (h *hold) reportOnceRead(run store.Outcome, report func()) {
	u := unconfirmed{h.session.Record().Writer, run, report}
	h.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, u) })
}

// reportApplied follows a read. It reports the outcomes of writes that were applied, and forgets the others
// unless there is a lease: until its end the store may still apply them.
func (r *Runner) reportApplied() {
	var all, left []unconfirmed
	r.source.state.set(func(n *snapshot) { all, n.unconfirmed = n.unconfirmed, nil })
	for _, u := range all {
		switch {
		case u.shownBy(&r.view.rec):
			u.report()
		case r.view.entry.State.Live():
			left = append(left, u)
		}
	}
	if len(left) > 0 {
		r.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, left...) })
	}
}
