package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// A hold is one time under a lease, from its acquisition until it is released or left to expire.
// It belongs to the goroutine of the runner.
type hold struct {
	*driver
	stop    context.Context // ends with that of the driver, and when StepDown is called
	hand    *handover       // what may end the run, or hurry it
	session *lease.Session
	held    context.Context // ends once the lease can no longer be trusted

	before    record.Record // without the claim of this pass; takeBack restores it
	claimedAt time.Duration // elapsed time when the claim was drafted
	known     int64         // the last order to end a run that was known then
	started   func()        // the run is about to start, and counts in the starts of the replica; nil: it does not

	first *plan.Claim   // written with the acquisition; nil: none was, or another claim has followed it
	late  plan.Lateness // that it reports
}

// acquired acquires the lease, and writes in the same call what is decided already. Do does what is due under it.
func acquired(d *driver, a plan.Action) (s *lease.Session, do func() time.Duration, err error) {
	h := &hold{driver: d}
	do = func() time.Duration { return underLease(h) }
	etag, rec := h.view.entry.ETag, &h.view.rec
	claim, late, ok := atOnce(h, a)
	if !ok {
		h.session, err = lease.Hold(h.ctx, h.client, etag, rec, a.Lease, h.trouble, h.emitOfRun)
		return h.session, do, err
	}
	var written bool
	h.session, written, err = lease.HoldWith(h.ctx, h.client, etag, rec, a.Lease, func(last *record.Record) { *last = claim.Record },
		h.trouble, h.emitOfRun)
	switch {
	case written:
		h.first, h.late = &claim, late
	case errors.Is(err, lease.ErrNotReadBack):
		_ = h.claimed(&claim, late, err)
		h.emitNotClaimed(&claim, err)
	}
	return h.session, do, err
}

// atOnce returns the claim that can be written with the acquisition, over a store that combines them. The ETag guards it as it
// guards a claim that is decided after the acquisition: what it was decided from is still so when it is written. That decision
// has two more sources. Orders are as old as they are at any claim, and are asked about again before the run begins. The
// service's clock was bounded by earlier answers; if the date of this one corrects it, see untilDue.
//
// It returns false if there is something to wait for under the lease: a hold-off, a tick, the token of an entry's first claim, the
// orders to cancel a run whose runner died, a slot of a group. And so it does for a manual run, whose caller takes a claim back.
func atOnce(h *hold, a plan.Action) (claim plan.Claim, late plan.Lateness, ok bool) {
	rec := &h.view.rec
	if !h.ahead.IsZero() || a.Break || h.request != "" || h.job.Group != nil || rec.Run.Claimed.IsZero() ||
		rec.MayRun() || plan.MayBeCancelled(rec) || h.ctx.Err() != nil || !h.client.Combines() {
		return claim, late, false
	}
	if now := h.clock.Now(); now.Latest.Sub(now.Best) > vague {
		return claim, late, false
	}
	v := h.decideBy()
	if h.view.seen.HoldOff(v) > 0 || !h.hasTime(&v) {
		return claim, late, false
	}
	h.known = v.Control.End.Seq
	if claim, ok = h.job.Policy.Claim(v); !ok {
		return claim, late, false
	}
	late, err := h.sign(&claim, a.Lease)
	return claim, late, err == nil
}

// vague is by how much a claim may say a later time than it was: without an answer for long the service's clock is less known.
const vague = 250 * time.Millisecond

// underLease does what is due under a lease that is being renewed. It returns
// how long this replica then leaves the job alone. The deferred calls come in this
// order: the renewals end, then the context of the session, then StepDown returns.
func underLease(h *hold) time.Duration {
	d, s := h.driver, h.session
	d.source.setBusy(true)
	defer d.source.setBusy(false)
	h.held = s.Context()
	defer func() {
		if s.MustExpire() {
			h.leaves(h.session)
		}
	}()
	defer h.stoppable()()
	defer d.run.Store(nil)
	defer s.Lose(nil)
	defer s.Stop()
	defer d.slot.bind(s)()
	v := h.decideBy()
	if !v.Now.Before(h.ahead) { // the others looked before the tick, and do not count on this replica
		h.ahead = time.Time{}
	}
	for {
		rest, keeps := h.pass(v)
		if !keeps {
			return rest
		}
		d.run.Store(nil)
		v = h.decideBy()
	}
}

// pass holds off if need be, settles and claims in one write, runs, and writes the
// outcome. Then it leaves the lease, or keeps it for the tick that is to come: call.ahead.
func (h *hold) pass(v plan.View) (rest time.Duration, keeps bool) {
	defer h.hasStarted() // or will not start
	if first := h.first; first != nil {
		defer func() { h.first = nil }()
		h.before = h.view.rec
		return begin(h, first, func() error { return h.claimed(first, h.late, nil) })
	}
	if wait := h.view.seen.HoldOff(v); wait > 0 {
		// The lease is renewed meanwhile, so that the previous holder can no longer trust its own: an operator broke that one,
		// or deleted the entry, and the holder may not have noticed.
		h.emit(event.Event{Kind: event.HoldOff, Wait: wait})
		if !lease.WaitFor(h.stop, h.held, wait) { // a stop, or the loss of the lease
			h.endedBefore(h.stop, fmt.Sprintf("the last lease did not expire by itself, so its holder may still work: "+
				"a run begins %s later at the earliest", wait.Round(time.Second)))
			return h.leave(), false
		}
		v.Now, v.Control = h.clock.Best(), h.orders()
	}
	if h.ahead.IsZero() && !h.hasTime(&v) { // the hold-off may have taken most of what was left of the call
		h.release()
		return h.readAgain(maxSleep), false
	}
	h.before = h.view.rec
	claim, ok, err := h.prepare(v)
	if err != nil {
		h.lookAnew()
		h.release()
		return h.unusable(err), false
	}
	if !ok {
		return h.leave(), false
	}
	return begin(h, &claim, func() error { return h.claim(&claim) })
}

// begin writes the claim, runs what it claims, and writes the outcome. See pass.
func begin(h *hold, claim *plan.Claim, write func() error) (rest time.Duration, keeps bool) {
	if claim.Run {
		h.call.claim = &unbegun{session: h.session, before: h.before}
	}
	if claim.Run && !claim.Record.Run.Armed {
		h.willStart()
	}
	if err := write(); err != nil {
		h.hasStarted()
		h.emitNotClaimed(claim, err)
		if claim.Run && claim.Record.Run.Armed && !surelyNotWritten(err) && h.takeBackBriefly(context.WithoutCancel(h.ctx)) == nil {
			return h.leave(), false
		}
		return h.unclaimed(err), false
	}
	h.reached()
	if claim.Run {
		h.runClaimed()
	}
	if h.ahead, keeps = h.keeps(); keeps && claim.Run {
		return 0, true
	}
	return h.leave(), false
}

// prepare returns the claim that is to be written. If the lease was acquired before a tick, it
// waits for that tick, unless the claim may be written before it. It returns false if there is
// nothing to claim. The error says why it cannot know what operators have ordered.
func (h *hold) prepare(v plan.View) (claim plan.Claim, ok bool, err error) {
	unsure := plan.MayBeCancelled(&h.view.rec) // an operator may have cancelled the last run since its runner died
	if !h.ahead.IsZero() {
		// The service's clock was read under this lease, in the answer to its acquisition. But the first claim of an entry has to
		// wait for its token, see decide, and that of a tick which may have been cancelled for the orders at the tick.
		if !unsure && !h.view.rec.Run.Claimed.IsZero() && h.stop.Err() == nil {
			claim, ok = h.job.Policy.ClaimEarly(v, h.ahead)
			if ok && h.replica.Orders.Stale() == nil && h.hindrance(v.Now) == nil {
				return claim, true, nil
			}
		}
		// A manual run that was ordered is claimed instead of the tick. In the wait what is known of the orders may have become
		// too old.
		waited := h.awaitTick()
		came := waited == nil || errors.Is(waited, errOrdered)
		if !came || h.replica.Orders.Refresh(h.held) != nil {
			return claim, false, nil //nolint:nilerr // a stop is no error
		}
	}
	if unsure {
		reading := h.stop
		if h.stop.Err() != nil { // and the tick is run anyway; see stops
			reading = h.held
		}
		if err = h.ordersOfDead(reading); err != nil {
			return claim, false, err
		}
	}
	claim, ok = h.decide(v)
	return claim, ok && (h.take.begins || !h.stops(claim.Record.Run.Tick)), nil
}

// decide asks plan for the claim, under the lease. The clock is read again, since a
// hold-off may have taken long.
//
// An entry that was never claimed may replace an entry that was claimed and then deleted.
// Its first token must be larger than any token of the deleted one, which came from
// the service's clock. So the holder waits until a second in which no older entry can
// have been claimed, and takes the token from that second.
func (h *hold) decide(v plan.View) (next plan.Claim, todo bool) {
	v.Now, v.Control = h.clock.Best(), h.orders()
	h.known = v.Control.End.Seq
	next, todo = h.job.Policy.Claim(v)
	if !next.Run || !h.view.rec.Run.Claimed.IsZero() || h.session.Dated.IsZero() {
		return next, todo
	}
	stop := h.stop
	if h.take.terms != nil {
		// This wait, of two seconds at most, goes on beyond the end of the call, and so does the claim: otherwise callers
		// with little time would all begin to wait, and none would have the lock.
		h.take.begins = true
		stop = context.WithoutCancel(stop)
	}
	// This entry existed for certain, so that an older one of that name was deleted before, at the date of the answer to the
	// acquisition, or the first that showed the ETag which was acquired. The date of the creation would not do: that request
	// may have been under way for long.
	existed := h.session.Dated
	if date, ok := h.view.seen.SeenFirst(h.session.Revision().ETag); ok {
		existed = instant.Earlier(date, existed)
	}
	now, ok := h.session.WaitPast(stop, existed.Add(time.Second))
	if !ok {
		h.endedBefore(stop, "the job has never run: its first run begins up to two seconds after a call has acquired the lease")
		return plan.Claim{}, false
	}
	v.Now = h.clock.Best()
	next, todo = h.job.Policy.Claim(v)
	if next.Run {
		plan.Retoken(&next.Record, max(next.Record.Token, now.Truncate(time.Second).UnixMicro()))
	}
	return next, todo
}

// claim writes what plan decided, in one write: what becomes of older ticks, and the
// claim of the tick that runs now. It must be confirmed before anything runs. Only then
// does the view take it over.
func (h *hold) claim(next *plan.Claim) error {
	late, err := h.sign(next, h.session.Length)
	if err != nil {
		return err
	}
	return h.claimed(next, late, h.session.WriteConfirmed(h.held, func(last *record.Record) { *last = next.Record }))
}

// sign adds to a claim who makes it, and when. It also returns the late ticks that the claim reports.
func (h *hold) sign(next *plan.Claim, length time.Duration) (late plan.Lateness, err error) {
	rec := &next.Record
	if next.Run {
		now := h.clock.Now()
		claimed := now.Latest
		if claimed.IsZero() {
			claimed = now.Best.UTC()
		}
		// Claimed is the latest time that the service's clock can show now. So each tick
		// later than Claimed certainly came due under this run. Followers count thirds of
		// the lease from Claimed, so they do not look too early.
		rec.Run.Claimed, h.claimedAt = claimed.Truncate(time.Millisecond), h.clock.Elapsed()
		rec.Run.Replica, rec.Run.Lease = h.replica.Name, record.Seconds(length)
	}
	late = h.judge(rec, false)
	if next.Run {
		// A run must not start if its outcome cannot be written: it would count as the
		// death of its runner.
		if err := plan.RoomForOutcome(rec); err != nil {
			return late, fmt.Errorf("%w: %w", lease.ErrNotEncoded, err)
		}
	}
	return late, nil
}

// claimed takes over a claim that was written. err is why that is not known.
func (h *hold) claimed(next *plan.Claim, late plan.Lateness, err error) error {
	rec, s := &next.Record, h.session
	// What this claim adds to the history, newest first, and to the counts of a backfill.
	news := append(slices.Clip(rec.History[:len(rec.History)-len(h.view.rec.History)]), next.Backfilled...)
	if err != nil {
		h.emitLate(late, err)
		if len(news) > 0 && !surelyNotWritten(err) {
			h.reportOnceRead(next.Claimed(), func() { h.emitNews(news, "") })
		}
		return err
	}
	written := s.Record()
	s.RenewFrom(written.Run.Claimed)
	h.denial.lift()
	h.source.state.set(func(n *snapshot) {
		n.writes++
		n.entry = entryHistory{created: written.Created, looked: h.clock.Best(), lease: s.Length}
	})
	h.note(nil)
	h.emitLate(late, nil)
	h.emitClaim(&h.view.rec, &written, news, next.Run)
	h.written(s)
	if h.view.before != nil {
		h.leaveTo()
	}
	// The definition that this replica has taken back is now in force.
	h.rank.adopted = instant.Later(h.rank.adopted, h.rank.since)
	return nil
}

// unclaimed ends the time under a lease whose claim was not confirmed. It releases the
// lease if an answer has shown that the claim was not applied. A sending that is still
// under way is refused after that, since its lease id is no longer active. If no answer
// has shown it, the claim may name a run that no replica has started: then the next read
// that is answered decides; see freeUnanswered. A replica which may not write releases even
// the lease over the record of a dead run: a replica that may write waits for it.
func (h *hold) unclaimed(err error) time.Duration {
	h.lookAnew()
	unread := errors.Is(err, lease.ErrNotReadBack)
	switch {
	case unread:
		h.denial.left = unanswered{session: h.session, err: err}
	case errors.Is(err, fs.ErrPermission):
		h.session.Stop()
		h.giveBack()
	case !errors.Is(err, store.ErrLost) || errors.Is(err, errSlotLost):
		h.release()
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return h.standBack(err)
	case lease.Definite(err):
		h.again = true
		return h.readAgain(firstLook)
	// Neither the claim nor the read after it was answered: an outage.
	case unread:
		h.denial.doubt()
		return h.unusable(fmt.Errorf("the claim was not confirmed: %w", err))
	}
	h.reached() // the store answered the read after the claim
	return h.standBack(err)
}

// leave releases the lease, if it may, and returns how long this replica leaves the job alone.
func (h *hold) leave() time.Duration {
	if !h.release() {
		return h.readAgain(0)
	}
	return h.restAfter()
}

// release releases the lease, unless it must expire.
func (h *hold) release() bool {
	h.session.Stop()
	if h.session.MustExpire() {
		return false
	}
	h.giveBack()
	return true
}

// giveBack releases the lease. The view then holds what was last written, and the ETag
// of that write, so that the next tick needs no read. The caller has stopped the renewals: a
// renewal after the release would fail, and would look like a lost lease.
func (h *hold) giveBack() {
	s := h.session
	h.reached() // the trouble of a renewal ends with its session: no later renewal would take it back
	if err := s.Release(h.held); err != nil {
		h.notReleased(err)
		h.leaves(h.session)
		claim := h.call.claim
		if !lease.Definite(err) && claim != nil && claim.session == s && !h.over && s.Record().Run.Status == event.Running {
			h.denial.left = unanswered{session: s, err: err} // the claim may arrive yet
		}
	}
	h.view.entry = &store.Entry{Revision: store.Revision{ETag: s.Revision().ETag}, State: store.Available}
	h.looked()
}

// restAfter returns how long this replica leaves the job alone after it had the lease.
// A singleton that fails at once must not fail all the time. After a stall, and when
// this replica was asked to step down, the others get the first chance. A shard that
// is handed over, or whose lease was lost, has not failed, so that is all.
func (h *hold) restAfter() time.Duration {
	var pause, rest time.Duration
	if h.source.byHand == "" { // a manual run has no rest
		rest = h.job.Rest
	}
	switch {
	case h.ctx.Err() != nil:
		return 0
	case h.stop.Err() != nil && h.job.Seat != nil && !plan.HasFailed(&h.view.rec):
		pause = h.approach()
	case h.stop.Err() != nil:
		pause = max(rest, h.approach())
	case len(h.ran) == 0: // it was never called
	case h.view.rec.Run.Status == event.Stalled:
		pause = max(rest, headStart)
		if h.job.Seat != nil { // those that have their parts of the shards look at each third of a lease, however near an end is
			pause = max(rest, h.approach())
		}
	case h.view.rec.Run.Status == event.Abandoned && h.job.Seat != nil:
		pause = h.approach()
	case !h.view.rec.MayRun():
		pause = rest
	}
	if pause == 0 {
		return 0
	}
	return h.readAgain(pause)
}

// approach is how long it takes until the other replicas have read that a run is to
// be handed over. They read at each third of the lease, which may be the longer lease
// of an older program.
func (r *Runner) approach() time.Duration {
	if beat := r.view.rec.Beats(); beat > 0 {
		return beat/3 + time.Second
	}
	return max(r.client.Length, time.Duration(r.view.rec.Run.Lease))/3 + time.Second
}
