package runner

import (
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
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
		if all := []rune(e.Note); len(all) > maxNote { // events that wait must not take much memory
			e.Note = string(all[:maxNote])
		}
	}
	r.replica.Emit(e)
}

// maxNote is how many characters of a note a record keeps.
const maxNote = 100

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

// emitOfRun hands over an event of the lease. Several goroutines call it.
func (r *reporter) emitOfRun(e event.Event) {
	if run := r.run.Load(); run != nil {
		e = ofRun(e, *run)
	}
	r.emit(e)
}

// emitEnded reports the outcome of an attempt.
func emitEnded(a *supervise.Attempt, o event.Outcome, took time.Duration) {
	a.Emit(event.Event{Kind: event.Ended, Outcome: o, Took: took, Detail: a.Detail(o.Status)})
}

// runOf names the last run of a record.
func runOf(rec *record.Record) event.Run {
	return event.Run{Tick: rec.Run.Tick, Request: rec.Run.Request, Attempt: rec.Run.Attempt, Token: rec.Token}
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
func (r *reporter) emitClaim(last, rec *record.Record, news []event.Outcome, runs bool) {
	if rec.Definition.Spec != last.Definition.Spec {
		r.emit(event.Event{Kind: event.ScheduleChanged})
	}
	r.emitNews(news, "")
	if !runs {
		return
	}
	run := runOf(rec)
	r.emit(event.Event{Kind: event.Claimed, Run: run})
	if plan.Several(rec) {
		for _, o := range plan.UnderWay(rec)[1:] {
			beside := run
			beside.Tick, beside.Attempt = o.Tick, o.Attempt
			r.emit(event.Event{Kind: event.Claimed, Run: beside})
		}
	}
	if last.MayRun() && last.Run.Replica != r.replica.Name {
		fate := "died"
		switch {
		case last.Run.Unlocked.By != "":
			fate = "unlocked"
		case last.Run.Status == event.Stalled:
			fate = "stalled"
		}
		r.emit(event.Event{Kind: event.TookOver, Run: run, Former: event.Former{Replica: last.Run.Replica, Since: last.Run.Claimed}, Note: fate})
	}
	r.run.Store(&run)
}

// emitNotClaimed reports that a write was not confirmed that may have claimed a run. If it
// claims none, the tick is the previous run's.
func (r *reporter) emitNotClaimed(c *plan.Claim, err error) {
	run := event.Run{Tick: c.Record.Run.Tick}
	if c.Run {
		run = runOf(&c.Record)
	}
	r.emit(event.Event{Kind: event.NotClaimed, Run: run, Err: err})
}

// emitNews reports what a write has settled, newest first.
func (r *reporter) emitNews(news []event.Outcome, note string) {
	for _, o := range slices.Backward(news) {
		r.emit(event.Event{Kind: event.Settled, Run: event.Run{Tick: o.Tick, Request: o.Request, Attempt: o.Attempt, Token: o.Token}, Outcome: o, Note: note})
	}
}

// A condition says whether this replica can do its part for a job, and what it has reported of that.
type condition struct {
	reporter
	pause  *lease.Backoff // between calls to a store that does not answer
	denial denial
}

// note keeps why the job is skipped, for Health, and reports a change. Nil means that
// all is well; but a replica that cannot write the entry stays in trouble, however much
// it can read.
func (r *condition) note(err error) { r.notice(false, err) }

// notice is note for trouble that may be passing. The same text is reported once and not at
// each step.
func (r *condition) notice(passing bool, err error) {
	if err == nil {
		err = r.denial.err
	}
	var old error
	r.source.state.set(func(n *snapshot) { old, n.broken = n.broken, err })
	switch {
	case err == nil && old != nil:
		r.emit(event.Event{Kind: event.TakenUp})
	case err != nil && (old == nil || old.Error() != err.Error()):
		e := event.Event{Kind: event.LeftAlone, Err: err}
		if passing {
			e.Note = "it may end by itself"
		}
		r.emit(e)
	}
}

// reached notes that the store has answered, whatever it said.
func (r *condition) reached() {
	r.pause.Reset()
	r.replica.trouble(r.source, nil)
}

// trouble notes why a call to the store has failed; nil: the store has answered one. Also a session reports it, whose renewals
// and writes go on in other goroutines: r.pause is left alone, which belongs to the goroutine of the runner.
func (b *base) trouble(err error) { b.replica.trouble(b.source, err) }

// readable notes, for Status, that the store can be read. It ends an outage that was
// seen by a call of RunDue, since no loop will ask the store before the next one. It
// does not end a refusal: the credentials may be read-only.
func (b *base) readable() {
	n := b.source.state.get()
	if n.looping || n.busy || n.byHand > 0 || n.storage == nil || errors.Is(n.storage, fs.ErrPermission) {
		return
	}
	b.trouble(nil)
}

// A recordError says that the record must not be touched: it is damaged, foreign, or
// from another time. The job is not run, and the record is not overwritten.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() + "; it is left alone and nothing runs" }
func (e *recordError) Unwrap() error { return e.err }

// Unusable reports whether an error says that the record cannot be used. It stays so until a person
// corrects it.
func Unusable(err error) bool {
	_, bad := errors.AsType[*recordError](err)
	return bad
}

// unusable notes why the entry could not be used and returns how long to wait. If the
// call was stopped, its error says nothing about the store. A record that must be left
// alone is the job's trouble, since the store has answered; any other error is the
// store's.
func (d *driver) unusable(err error) time.Duration {
	if d.ctx.Err() != nil {
		return d.readAgain(0)
	}
	if Unusable(err) {
		d.reached()
		d.note(err)
		return d.readAgain(maxSleep)
	}
	// While the store does not answer, the entry is not watched.
	d.lookedAway()
	d.trouble(err)
	return d.readAgain(d.pause.Next())
}

// added returns the outcomes that history has before old's, both newest first. What a
// record has no room for is cut from the end of its history, so lengths cannot be compared.
func added(history, old []event.Outcome) []event.Outcome {
	n := slices.IndexFunc(history, func(o event.Outcome) bool {
		return slices.ContainsFunc(old, func(known event.Outcome) bool { return known.Token == o.Token && known.Tick.Equal(o.Tick) })
	})
	if n < 0 {
		return history
	}
	return history[:n]
}

// shownBy reports whether a record shows that the write was applied: the record is that write, or, if other
// replicas have written since, it still shows the run. A run that was claimed has no status.
func (u *unconfirmed) shownBy(rec *record.Record) bool {
	is := func(o event.Outcome) bool {
		return o.Token == u.run.Token && o.Replica == u.run.Replica && o.Start.Equal(u.run.Start) &&
			(u.run.Status == "" || o.Status == u.run.Status && o.End.Equal(u.run.End))
	}
	return rec.Writer == u.writer ||
		u.run.Token != 0 && (is(plan.LastOutcome(rec, rec.Run.Status, "")) || slices.ContainsFunc(rec.History, is))
}

// reportOnceRead keeps the last write under the lease until a read shows whether it was applied.
func (h *hold) reportOnceRead(run event.Outcome, report func()) {
	u := unconfirmed{h.session, h.session.Record().Writer, run, report, ""}
	if h.held == nil { // the lease was not acquired before
		u.etag = h.session.Revision().ETag
	}
	h.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, u) })
}

// reportApplied follows a read. It reports the outcomes of writes that were applied, and forgets those that the store cannot
// apply any more.
func (r *Runner) reportApplied() {
	r.reportThose(func(u *unconfirmed) bool { return u.shownBy(&r.view.rec) }, func(u *unconfirmed) bool {
		return r.view.entry.State.Live() || u.etag != "" && u.etag == r.view.entry.ETag
	})
}

// reportThose reports the outcomes of writes that were applied. The others are kept or forgotten.
func (b *base) reportThose(applied, keep func(*unconfirmed) bool) {
	var all, left []unconfirmed
	b.source.state.set(func(n *snapshot) { all, n.unconfirmed = n.unconfirmed, nil })
	for _, u := range all {
		switch {
		case applied(&u):
			u.report()
		case keep(&u):
			left = append(left, u)
		}
	}
	if len(left) > 0 {
		b.source.state.set(func(n *snapshot) { n.unconfirmed = append(n.unconfirmed, left...) })
	}
}
