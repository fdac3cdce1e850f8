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
	"github.com/soloist-go/soloist/store"
)

// runWithLease does what is due under a lease that is being renewed. It returns
// how long this replica then leaves the job alone. The deferred calls come in this
// order: the renewals end, then the context of the session, then StepDown returns.
func (r *Runner) runWithLease(ctx context.Context, c *call, s *lease.Session) time.Duration {
	r.source.setBusy(true)
	defer r.source.setBusy(false)
	stop, done := r.stoppable(ctx, c)
	defer done()
	defer r.run.Store(nil)
	defer s.Lose(nil)
	defer s.Stop()
	defer c.slot.bind(s)()
	for {
		rest, keeps := r.underLease(ctx, stop, c, s)
		if !keeps {
			return rest
		}
		r.run.Store(nil)
	}
}

// underLease holds off if need be, settles and claims in one write, runs, and writes the
// outcome. Then it leaves the lease, or keeps it for the tick that is to come: c.ahead.
func (r *Runner) underLease(ctx, stop context.Context, c *call, s *lease.Session) (rest time.Duration, keeps bool) {
	defer c.hasStarted() // or will not start
	v := r.decideBy(c)
	if wait := r.job.Policy.HoldOff(v, &r.view.seen); wait > 0 && !r.holdOff(stop, s, wait) {
		c.endedBefore(stop, fmt.Sprintf("the last lease did not expire by itself, so its holder may still work: "+
			"a run begins %s later at the earliest", wait.Round(time.Second)))
		return r.leave(ctx, stop, c, s), false
	}
	if c.ahead.IsZero() && !r.stillFits(ctx, c, &v) {
		r.release(s)
		return r.readAgain(maxSleep), false
	}
	claim, ok, err := r.prepare(stop, c, s, v)
	if err != nil {
		r.lookAnew()
		r.release(s)
		return r.unusable(ctx.Err() != nil, err), false
	}
	if !ok {
		return r.leave(ctx, stop, c, s), false
	}
	before := r.view.rec // takeBack restores it
	if claim.Run {
		c.take.claims(s, &before)
	}
	if claim.Run && !claim.Record.Run.Armed {
		r.willStart(c)
	}
	if err := r.claim(c, s, &claim); err != nil {
		c.hasStarted()
		r.emitNotClaimed(&claim, err)
		if claim.Run && claim.Record.Run.Armed && !surelyNotWritten(err) && r.takeBackBriefly(ctx, s, &before) {
			return r.leave(ctx, stop, c, s), false
		}
		return r.unclaimed(ctx, c, s, err), false
	}
	r.reached()
	if claim.Run {
		r.runClaimed(ctx, stop, c, s, &before)
	}
	if c.ahead, keeps = r.keeps(stop, c, s); keeps && claim.Run {
		return 0, true
	}
	return r.leave(ctx, stop, c, s), false
}

// prepare returns the claim that is to be written. If the lease was acquired before a tick, it
// waits for that tick, unless the claim may be written before it. It returns false if there is
// nothing to claim. The error says why it cannot know what operators have ordered.
func (r *Runner) prepare(stop context.Context, c *call, s *lease.Session, v plan.View) (claim plan.Claim, ok bool, err error) {
	if claim, ok = r.claimAhead(stop, c, s); ok {
		return claim, true, nil
	}
	if !r.due(stop, c, s) {
		return claim, false, nil
	}
	reading := stop
	if stop.Err() != nil { // and the tick is run anyway; see stops
		reading = s.Context()
	}
	if err = r.ordersOfDead(reading, s); err != nil {
		return claim, false, err
	}
	claim, ok = r.decide(stop, c, s, v)
	return claim, ok && (c.take.isFirst() || !r.stops(stop, c, claim.Record.Run.Tick)), nil
}

// leave releases the lease, if it may, and returns how long this replica leaves the job alone.
func (r *Runner) leave(ctx, stop context.Context, c *call, s *lease.Session) time.Duration {
	if !r.release(s) {
		return r.readAgain(0)
	}
	return r.restAfter(ctx, stop, c)
}

// holdOff waits for d while the lease is renewed, so that the previous holder can no
// longer trust its own lease: an operator broke that one, or deleted the entry, and
// the holder may not have noticed. It returns false if a stop or the loss of our lease comes
// first.
func (r *Runner) holdOff(stop context.Context, s *lease.Session, d time.Duration) bool {
	r.emit(event.Event{Kind: event.HoldOff, Wait: d})
	return lease.WaitFor(stop, s.Context(), d)
}

// decide asks plan for the claim, under the lease. The clock is read again, since a
// hold-off may have taken long.
//
// An entry that was never claimed may replace an entry that was claimed and then deleted.
// Its first token must be larger than any token of the deleted one, which came from
// the service's clock. So the holder waits until a second in which no older entry can
// have been claimed, and takes the token from that second.
func (r *Runner) decide(stop context.Context, c *call, s *lease.Session, v plan.View) (next plan.Claim, todo bool) {
	v.Now, v.Control = r.now(), r.orders()
	next, todo = r.job.Policy.Claim(v)
	if !next.Run || !r.view.rec.Run.Claimed.IsZero() || s.Dated.IsZero() {
		return next, todo
	}
	if c.take.begins() {
		stop = context.WithoutCancel(stop)
	}
	now, ok := s.WaitPast(stop, r.existed(s).Add(time.Second))
	if !ok {
		c.endedBefore(stop, "the job has never run: its first run begins up to two seconds after a call has acquired the lease")
		return plan.Claim{}, false
	}
	v.Now = r.now()
	next, todo = r.job.Policy.Claim(v)
	if next.Run {
		plan.Retoken(&next.Record, max(next.Record.Token, now.Truncate(time.Second).UnixMicro()))
	}
	return next, todo
}

// existed returns a date of the service at which this entry existed for certain, so
// that an older entry of that name was deleted before: the date of the answer to the
// acquisition, or the first that showed the ETag which was acquired. The date
// of the creation would not do: that request may have been under way for long.
func (r *Runner) existed(s *lease.Session) time.Time {
	if date, ok := r.view.seen.SeenFirst(s.ETag()); ok {
		return instant.Earlier(date, s.Dated)
	}
	return s.Dated
}

// claim writes what plan decided, in one write: what becomes of older ticks, and the
// claim of the tick that runs now. It must be confirmed before anything runs. Only then
// does the view take it over.
func (r *Runner) claim(c *call, s *lease.Session, next *plan.Claim) error {
	rec := &next.Record
	if next.Run {
		_, claimed, known := r.client.Clock.Now()
		if !known {
			claimed = r.replica.Wall().UTC()
		}
		// Claimed is the latest time that the service's clock can show now. So each tick
		// later than Claimed certainly came due under this run. Followers count thirds of
		// the lease from Claimed, so they do not look too early.
		rec.Run.Claimed, c.claimedAt = claimed.Truncate(time.Millisecond), r.client.Clock.Elapsed()
		rec.Run.Replica, rec.Run.Lease = r.replica.Name, store.Seconds(s.Length)
	}
	late := r.judge(rec)
	if next.Run {
		// A run must not start if its outcome cannot be written: it would count as the
		// death of its runner.
		if err := plan.RoomForOutcome(rec); err != nil {
			return fmt.Errorf("%w: %w", lease.ErrNotEncoded, err)
		}
	}
	// What this claim adds to the history, newest first, and to the counts of a backfill.
	news := append(slices.Clip(rec.History[:len(rec.History)-len(r.view.rec.History)]), next.Backfilled...)
	if err := s.WriteConfirmed(s.Context(), func(last *store.Record) { *last = *rec }); err != nil {
		r.emitLate(late, err)
		if len(news) > 0 && !surelyNotWritten(err) {
			r.reportOnceRead(s, next.Claimed(), func() { r.emitNews(news) })
		}
		return err
	}
	written := s.Record()
	s.RenewFrom(written.Run.Claimed)
	r.mayWrite()
	r.note(nil)
	r.emitLate(late, nil)
	r.emitClaim(&written, news, next.Run)
	r.written(s)
	r.leaveTo(c)
	r.source.state.set(func(n *snapshot) { n.entry = entryHistory{created: written.Created, lease: s.Length} })
	// The definition that this replica has taken back is now in force.
	r.rank.adopted = instant.Later(r.rank.adopted, r.rank.since)
	return nil
}

// unclaimed ends the time under a lease whose claim was not confirmed. It releases the
// lease if an answer has shown that the claim was not applied. A sending that is still
// under way is refused after that, since its lease id is no longer active. If no answer
// has shown it, the claim may name a run that no replica has started: then the next read
// that is answered decides; see freeUnanswered. A replica which may not write releases even
// the lease over the record of a dead run: a replica that may write waits for it.
func (r *Runner) unclaimed(ctx context.Context, c *call, s *lease.Session, err error) time.Duration {
	r.lookAnew()
	unread := errors.Is(err, lease.ErrNotReadBack)
	switch {
	case unread:
		r.denial.left = unanswered{session: s, err: err}
	case errors.Is(err, fs.ErrPermission):
		r.giveBack(s)
	case !errors.Is(err, store.ErrLost) || errors.Is(err, errSlotLost):
		r.release(s)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return r.standBack(err)
	case lease.Definite(err):
		c.again = true
		return r.readAgain(firstLook)
	// Neither the claim nor the read after it was answered: an outage.
	case unread:
		r.denial.doubt()
		return r.unusable(ctx.Err() != nil, fmt.Errorf("the claim was not confirmed: %w", err))
	}
	r.reached() // the store answered the read after the claim
	return r.standBack(err)
}

// release releases the lease, unless it must expire.
func (r *Runner) release(s *lease.Session) bool {
	s.Stop()
	if s.MustExpire() {
		return false
	}
	r.giveBack(s)
	return true
}

// giveBack releases the lease. The view then holds what was last written, and the ETag
// of that write, so that the next tick needs no read. The renewals must end first: a
// renewal after the release would fail, and would look like a lost lease.
func (r *Runner) giveBack(s *lease.Session) {
	s.Stop()
	r.reached() // the trouble of a renewal ends with its session: no later renewal would take it back
	if err := s.Release(s.Context()); err != nil {
		r.notReleased(err)
	}
	r.view.entry = &store.Entry{Revision: store.Revision{ETag: s.ETag()}, State: store.Available}
	r.looked()
}

// restAfter returns how long this replica leaves the job alone after it had the lease.
// A singleton that fails at once must not fail all the time. After a stall, and when
// this replica was asked to step down, the others get the first chance. A shard that
// is handed over, or whose lease was lost, has not failed, so that is all.
func (r *Runner) restAfter(ctx, stop context.Context, c *call) time.Duration {
	var pause time.Duration
	switch {
	case ctx.Err() != nil:
		return 0
	case stop.Err() != nil && r.job.Seat != nil && !plan.HasFailed(&r.view.rec):
		pause = r.approach()
	case stop.Err() != nil:
		pause = max(r.rest(), r.approach())
	case len(c.ran) == 0: // it was never called
	case r.view.rec.Run.Status == store.Stalled:
		pause = max(r.rest(), r.leftToOthers())
	case r.view.rec.Run.Status == store.Abandoned && r.job.Seat != nil:
		pause = r.approach()
	case !r.view.rec.MayRun():
		pause = r.rest()
	}
	if pause == 0 {
		return 0
	}
	return r.readAgain(pause)
}

// rest returns the pause of a singleton. A manual run has none.
func (r *Runner) rest() time.Duration {
	if r.source.byHand != "" {
		return 0
	}
	return r.job.Rest
}
