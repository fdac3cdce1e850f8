package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// runClaimed runs the claimed tick and writes its outcome, or takes the claim back if
// a stop came first.
func (h *hold) runClaimed() {
	rec := &h.view.rec
	if plan.Several(rec) {
		runSeveral(h)
		return
	}
	told := h.notices()
	told.commit = func(ctx context.Context, f func(tx any) error) error { return h.finishIn(ctx, told, f) }
	a := h.attemptAt(rec.Run.Tick, rec.Run.Attempt, told, h.hasStarted)
	told.ended = func(o event.Outcome) { emitEnded(a, o, o.End.Sub(o.Start)) }
	if err := untilDue(h, rec.Run.Tick); err != nil {
		h.takeBack(err, a)
		return
	}
	// The stop came while the claim was written. Nothing may start after a stop.
	if h.stops(rec.Run.Tick) {
		if h.take.begins { // the entry has its first claim: the next one need not wait for a token
			h.finish(a, told, h.clock.Elapsed(), event.Abandoned, plan.Stopped+" before it began")
		} else {
			h.takeBack(supervise.ErrStopped, a)
		}
		return
	}
	done := h.obeying(a)
	if rec.Run.Armed {
		if err := h.awaitTick(); err != nil {
			done()
			h.takeBack(err, a)
			return
		}
	}
	a.Under.Grace = h.graceLeft()
	start := h.clock.Elapsed()
	h.source.setRunning(true)
	endLate := h.watchLate()
	status, reason := a.Run()
	endLate()
	h.hasStarted()
	h.slot.free()
	h.source.setRunning(false)
	done()
	switch {
	case status == supervise.Barred:
		h.takeBack(cmp.Or(h.barred(), errPaused), a)
		return
	case status == "": // nothing has run, but the record cannot be corrected without a lease
		h.undone = fmt.Errorf("its tick %s was claimed and not run: %w", rec.Run.Tick.Format(time.RFC3339), lease.ErrNotRenewed)
		return
	}
	h.finish(a, told, start, status, h.reasonOf(status, reason))
}

// untilDue waits, after a claim that was written with the acquisition, if the date in that answer shows that the tick is not
// due yet. The claim was decided by what was known of the service's clock before: the wait is short unless a clock is set back.
func untilDue(h *hold, tick time.Time) error {
	switch early := tick.Sub(h.clock.Best()); {
	case h.first == nil || early <= 0:
	case early > 2*h.job.Policy.Lead():
		return errSetBack
	default:
		lease.WaitFor(h.stop, h.held, early) // what ends it keeps the run from beginning
	}
	return nil
}

// reasonOf returns the reason for the end of a run. If a call has run out of time, the next call has no more. So
// the reason must not begin with plan.Stopped: this end counts as a death, or a job that is too long
// for its calls would be tried forever.
func (h *hold) reasonOf(status event.Status, reason string) string {
	if strings.HasPrefix(reason, plan.Stopped) && status == event.Abandoned && h.bounded && errors.Is(h.stop.Err(), context.DeadlineExceeded) {
		return "out of time, " + reason
	}
	return reason
}

// finish writes the outcome of a run that began at start and has returned, or was never called.
func (h *hold) finish(a *supervise.Attempt, told *notices, start time.Duration, status event.Status, reason string) {
	h.over = true
	s, rec := h.session, &h.view.rec
	returned := cmp.Or(a.Returned, h.clock.Elapsed())
	took := (returned - start).Round(time.Millisecond)
	var late plan.Lateness
	ending := h.ending(returned, status, reason, &late)
	if status != event.Stalled && !h.bounded { // the lease is about to expire, or the call to end
		h.replica.jobs.starts.wait(a.Under.Stop, h.held)
	}
	err := h.confirm(ending, h.leavesAfter)
	if errors.Is(err, lease.ErrCommitted) {
		status, reason, late, err = event.Succeeded, "", told.late, nil
	}
	h.emitLate(late, err)
	written := s.Record()
	outcome := plan.LastOutcome(&written, status, reason)
	if err != nil && told.stall.written { // by now another replica may have the lease
		outcome = told.stall.outcome
	}
	ended := sync.OnceFunc(func() {
		if !told.stall.told {
			emitEnded(a, outcome, took)
		}
	})
	report := func() {
		ended()
		told.tell(written.History)
	}
	switch {
	case err == nil:
		h.written(s)
		h.ran = append(h.ran, outcome)
		report()
		return
	case told.stall.written:
		h.ran = append(h.ran, outcome)
		ended()
	default:
		h.undone = fmt.Errorf("its tick %s has run, and %w", rec.Run.Tick.Format(time.RFC3339), h.untold(a, outcome, took, err))
		if status == event.Stalled { // the write of the stall has no end of the run
			h.reportOnceRead(told.stall.outcome, ended)
		}
	}
	if mayBeApplied(err) {
		h.reportOnceRead(plan.LastOutcome(&written, status, reason), report)
	}
}

// ending drafts the record with the outcome of a run that has returned. Finish changes the record as it was last
// written, which a Save or a progress note may have done since the claim.
func (h *hold) ending(returned time.Duration, status event.Status, reason string, late *plan.Lateness) lease.Draft {
	end, earliest := h.endAt(returned), h.clock.Now().Earliest
	return func(last *record.Record) {
		*last = plan.Finish(&h.job.Policy, last, status, reason, end, earliest, h.orders())
		if h.take.terms != nil && h.take.terms.Ends != nil {
			h.take.terms.Ends(last)
		}
		*late = h.judge(last, false)
	}
}

// finishIn writes the outcome of a run that has not returned, in one transaction with what f does: it has succeeded.
// What is reported of it waits until it has returned.
func (h *hold) finishIn(ctx context.Context, told *notices, f func(tx any) error) error {
	if h.take.terms != nil || h.Singleton() {
		return errNoTick
	}
	return h.session.WriteIn(ctx, func(last *record.Record) {
		h.ending(h.clock.Elapsed(), event.Succeeded, "", &told.late)(last)
	}, nil, true, f)
}

// errNoTick is what a singleton and a lock get from a transaction with an outcome.
var errNoTick = errors.New("a singleton or a lock has no tick whose outcome could be written in a transaction: save a checkpoint in it")

// endAt returns when a run has ended: the service's time of the claim and the time that passed since, which does not depend
// on the wall clock.
func (h *hold) endAt(returned time.Duration) time.Time {
	return h.view.rec.Run.Claimed.Add((returned - h.claimedAt).Round(time.Millisecond))
}

// untold reports and returns that the outcome of a run is not known to be in the record,
// and says what happens then: a replica, perhaps this one, settles the run as one whose runner died,
// unless the write arrives after all.
func (h *hold) untold(a *supervise.Attempt, outcome event.Outcome, took time.Duration, err error) error {
	what, next := "was not confirmed", "if it was not written, a replica settles this run as one whose runner died"
	switch {
	case errors.Is(err, lease.ErrNotEncoded):
		what, next = "does not fit into the record", "shorten the record; a replica settles this run as one whose runner died"
		h.standBack(err)
	case lease.Definite(err) && !errors.Is(err, lease.ErrNotConfirmed):
		what, next = "was refused", "a replica settles this run"
	}
	a.Emit(event.Event{Kind: event.Unrecorded, Note: "the outcome " + what + ": " + next, Outcome: outcome, Took: took, Err: err})
	return fmt.Errorf("the outcome, %s, %s: %w", outcome.Status, what, err)
}

// mayBeApplied reports whether the outcome of a run may be in the record though its write has failed. If another replica has
// changed the record, it may have done so after that write.
func mayBeApplied(err error) bool {
	return errors.Is(err, lease.ErrNotConfirmed) || errors.Is(err, store.ErrChanged)
}

// surelyNotWritten reports whether a claim that failed cannot arrive any more.
func surelyNotWritten(err error) bool {
	return lease.Definite(err) || errors.Is(err, lease.ErrNotWritten) || errors.Is(err, lease.ErrNotEncoded)
}

// takeBack gives up a claim whose run has not started, so that another replica can run the tick and the attempt does not count.
// The note of the event has the reason: a stop, a pause, or what else hindered the run.
func (h *hold) takeBack(why error, all ...*supervise.Attempt) {
	h.hasStarted()
	tick, note := all[0].Info.Tick.Format(time.RFC3339), why.Error()
	switch why {
	case supervise.ErrStopped:
		note = "stopped"
	case errPaused:
		note = "paused"
	}
	err := h.confirm(func(claim *record.Record) { *claim = plan.TakeBack(&h.job.Policy, &h.before, claim) }, never)
	if h.over = err == nil; h.over {
		h.written(h.session)
	}
	for _, a := range all {
		a.Emit(event.Event{Kind: event.TakenBack, Note: note, Err: err})
	}
	if err != nil {
		h.undone = fmt.Errorf("its tick %s was claimed and not run: %w", tick, err)
	} else if why != errPaused { // a call does what operators have ordered
		h.undone = fmt.Errorf("its tick %s was given back before it ran: %w", tick, why)
	}
}

// takeBackBriefly takes back a claim that was not begun: one that was sent before its tick and got no clear answer, or one
// of Take. It must not arrive after the lease is released: the record would name a run that no replica starts.
// If that cannot be ruled out, the lease has to expire.
func (h *hold) takeBackBriefly(ctx context.Context) error {
	s := h.session
	// While the lease is renewed no other replica can run the job, so it is not tried for long.
	trying, cancel := context.WithTimeout(ctx, 2*s.Brief)
	defer cancel()
	err := s.WriteUntilKnown(trying, func(claim *record.Record) { *claim = plan.TakeBack(&h.job.Policy, &h.before, claim) }, nil)
	if err == nil {
		h.written(s)
		h.mayWrite()
		ours := func(u *unconfirmed) bool { return u.session == s }
		h.reportThose(ours, func(*unconfirmed) bool { return true }) // what the claim has settled stays settled
	}
	return err
}

// confirm writes the outcome and tries until it is known to be written, or WriteOutcome
// gives up. Two more things end the retries. After a stop it tries no longer than the lease lasts: other replicas
// settle the run from then on. And a call of RunDue or RunNow has to end some time: one
// length of the lease after WriteOutcome has given up the renewals.
func (h *hold) confirm(outcome lease.Draft, leaves func(*record.Record) bool) error {
	s := h.session
	// The outcome may be written after the trust has ended: the store refuses it if another
	// replica has the lease, and accepts it otherwise.
	writing, cancel := context.WithCancel(context.WithoutCancel(h.held))
	defer cancel()
	if h.bounded {
		defer time.AfterFunc((lease.OutcomePatience+1)*s.Length, cancel).Stop()
	}
	defer context.AfterFunc(h.ctx, func() {
		time.AfterFunc(max(h.client.CallTimeout(), s.Left()), cancel)
	})()
	return s.WriteOutcome(writing, outcome, leaves)
}

// never is for a write after which the lease may be kept.
func never(*record.Record) bool { return false }

// attemptAt returns the attempt at a tick of the claim. told is what the other replicas read about it. A call of RunDue
// ends it with its own end.
func (h *hold) attemptAt(tick time.Time, attempt int, told supervise.Record, started func()) *supervise.Attempt {
	rec := &h.view.rec
	a := h.attempt(h.stop, event.Run{Tick: tick, Request: rec.Run.Request, Attempt: attempt, Token: rec.Token}, h.approach(), started)
	previous := plan.LastSuccess(rec)
	if event.BackfillOf(rec.Run.Request) != 0 {
		// What has succeeded since this tick came due says nothing about what was done before it, so the run is for the time
		// since the tick before.
		previous = h.job.Policy.Ticks.Last(tick.Add(-1))
	}
	a.Under.Lease, a.Under.Record, a.Under.Around = h.session, told, h.around(tick, previous)
	if h.bounded {
		a.Under.Until, _ = h.stop.Deadline()
	}
	return a
}

// attempt returns an attempt without a lease, a record and its grace. It calls started just before each try.
// At a stop a singleton needs no grace if no other replica is up; a job goes on to its own end, and not until others are near.
func (r *reporter) attempt(stop context.Context, run event.Run, approach time.Duration, started func()) *supervise.Attempt {
	under := &supervise.Conditions{Stop: stop, Length: cmp.Or(r.job.Policy.Beat, r.client.Length),
		Approach: approach, Elapsed: r.clock.Elapsed, Now: r.clock.Best}
	if r.Singleton() {
		under.Alone = r.replica.Alone
	}
	return &supervise.Attempt{
		Task:   &r.job.Task,
		Info:   run,
		Under:  under,
		Jitter: r.client.Jitter,
		Status: &overseer{&r.base, started},
		Emit:   func(e event.Event) { r.emit(ofRun(e, run)) },
		Mask:   r.replica.jobs.mask,
	}
}

// grace returns how long a run may go on after a stop. A singleton's task has no end
// to wait for. It goes on until the others have read that it stops, so that one of them
// takes over at once, and no longer.
func (h *hold) grace() time.Duration {
	if h.Singleton() {
		return min(h.replica.Grace, h.approach())
	}
	return h.replica.Grace
}

// around returns what a run knows of the ticks around its own. A manual run has the tick of its time.
func (b *base) around(tick, previous time.Time) supervise.Around {
	a := supervise.Around{Previous: previous}
	if ticks := b.job.Policy.Ticks; ticks != nil {
		a.Next = ticks.Next(tick)
	}
	return a
}

// An overseer is the supervise.Status of a job: it keeps the state of its runs.
type overseer struct {
	*base
	started func()
}

// Overrun implements [supervise.Status].
func (o *overseer) Overrun(cause error) { o.source.setOverrun(cause) }

// Leaseless implements [supervise.Status].
func (o *overseer) Leaseless(cause error) {
	if o.replica.Overrun != nil {
		o.replica.Overrun(o.job.Name, cause)
	}
}

// Flush implements [supervise.Status]. It is the last that a run waits for before it starts.
func (o *overseer) Flush(d time.Duration) {
	o.replica.Flush(d)
	o.started()
}

// Notices is the supervise.Record of a run: what the other replicas read about it.
type notices struct {
	*reporter
	session *lease.Session
	history []event.Outcome     // of the record, as far as its outcomes are reported
	ended   func(event.Outcome) // reports the outcome of the run
	stall   stall

	commit func(context.Context, func(tx any) error) error // nil: the run is one of several
	late   plan.Lateness                                   // the outcome that commit writes reports it
}

// A stall is what the record says of a run that has stalled, from before its end.
type stall struct {
	outcome event.Outcome // as it was sent; zero: the run has not stalled
	written bool          // for certain
	told    bool          // it is reported
}

func (h *hold) notices() *notices {
	return &notices{reporter: &h.reporter, session: h.session, history: h.view.rec.History}
}

// Stopping implements [supervise.Record].
func (n *notices) Stopping(yes bool) error {
	return n.once(func(r *record.Record) { r.Run.Stopping = yes })
}

// Progress implements [supervise.Record].
func (n *notices) Progress(beat time.Time, note string) error {
	return n.once(n.progress(beat, note))
}

// Stalled implements [supervise.Record]. The outcome of the stall is written now, and
// not when the run returns, which it may never do.
func (n *notices) Stalled(reason string) error {
	at, earliest := n.stalledAt()
	var stalled record.Record
	var counted bool
	err := n.once(func(r *record.Record) {
		before := r.Backfill.Done()
		*r = plan.Stall(&n.job.Policy, r, reason, at, earliest, n.orders())
		stalled, counted = *r, r.Backfill.Done() > before
	})
	n.stall = stall{plan.LastOutcome(&stalled, event.Stalled, reason), err == nil, err == nil && counted}
	if err == nil {
		n.tell(stalled.History)
		n.precede(&stalled, true)
	}
	if n.stall.told { // of a backfill: the record does not show the outcome, and this process may end before the run returns
		o := n.stall.outcome
		o.End = at
		n.ended(o)
	}
	return err
}

// stalledAt returns when a run has stalled, and the earliest time that the service's clock can show.
func (n *notices) stalledAt() (at, earliest time.Time) {
	now := n.clock.Now()
	if earliest = now.Earliest; earliest.IsZero() {
		return now.Best, earliest
	}
	return earliest, earliest
}

// tell reports the ticks that came due under the run, once their outcomes are in the record: they were written together with
// its end, or with its stall. Ended reports the outcome of the run itself.
func (n *notices) tell(history []event.Outcome) {
	news := slices.DeleteFunc(slices.Clone(added(history, n.history)), func(o event.Outcome) bool { return o.Token != 0 })
	n.emitNews(news, "settled together with the end of a run")
	n.history = history
}

// Save implements [supervise.Record]. Unlike the notices it is repeated until its
// outcome is known: the user's function relies on it.
func (n *notices) Save(ctx context.Context, note string, checkpoint []byte) error {
	return n.session.WriteUntilKnown(ctx, n.progress(time.Now(), note), checkpoint)
}

// SaveIn implements [supervise.Record].
func (n *notices) SaveIn(ctx context.Context, note string, checkpoint []byte, f func(tx any) error) error {
	return n.session.WriteIn(ctx, n.progress(time.Now(), note), checkpoint, false, f)
}

// FinishIn implements [supervise.Record].
func (n *notices) FinishIn(ctx context.Context, f func(tx any) error) error { return n.commit(ctx, f) }

// once sends one write, and gives up after the time of one call: the watchdog, which
// calls it, has deadlines to watch.
func (n *notices) once(draft lease.Draft) error {
	ctx, cancel := context.WithTimeout(n.session.Context(), n.session.Brief)
	defer cancel()
	return n.session.WriteBestEffort(ctx, draft)
}

// progress drafts a note of the run and the time of its heartbeat by the service's clock.
func (n *notices) progress(beat time.Time, note string) lease.Draft {
	at := n.clock.Best().Add(-time.Since(beat))
	return func(r *record.Record) {
		r.Run.Progress = record.Progress{Note: note, At: at.Truncate(time.Millisecond).UTC()}
	}
}
