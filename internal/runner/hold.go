package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// runWithLease does what is due under one lease: hold off if need be, settle and
// claim in one write, run, write the outcome, release.
func (r *Runner) runWithLease(ctx context.Context, c *call, s *lease.Session) time.Duration {
	r.source.setBusy(true)
	defer r.source.setBusy(false)
	stop, done := r.stoppable(ctx)
	defer done()
	s.Trouble = r.tellTrouble
	s.Keep(context.WithoutCancel(ctx))
	defer s.Lose(nil)
	defer s.Stop()

	v := r.decideBy(c)
	wait := r.job.Policy.HoldOff(v, &r.view.seen)
	if wait > 0 && !r.holdOff(stop, s, wait) {
		// A lease that has run out tells also a replica that has not looked on that
		// the last holder's has. But the next wake-up of this one has looked on.
		if c.bounded {
			r.release(s)
		}
		return max(r.readAgain(0), r.restAfter(ctx, stop))
	}
	if !r.stillFits(ctx, c, &v) {
		if wait <= 0 {
			r.release(s)
		} // else it expires, so that the next call need not hold off again
		return r.readAgain(maxSleep)
	}
	claim, todo := r.decide(stop, c, s, v)
	if !todo || stop.Err() != nil {
		r.release(s)
		return r.restAfter(ctx, stop)
	}
	before := r.view.rec
	if err := r.claim(c, s, &claim); err != nil {
		r.log.Warn("the claim was not confirmed, so nothing runs", append(tickArgs(claim.Record.Tick), "error", err)...)
		return r.unclaimed(ctx, c, s, err)
	}
	r.reached()
	if claim.Run && !r.runClaimed(ctx, stop, c, s, &before) {
		return r.readAgain(0)
	}
	r.release(s)
	return r.restAfter(ctx, stop)
}

// holdOff waits for d, renewing, so that the last holder has given up by
// itself. It returns false if we were stopped or lost the lease meanwhile.
func (r *Runner) holdOff(stop context.Context, s *lease.Session, d time.Duration) bool {
	r.log.Warn("the last runner's lease did not run out by itself: waiting until it must have given up", "wait", d)
	return lease.WaitFor(stop, s.Context(), d)
}

// decide plans what to do under a lease. An entry that was never claimed may follow
// one that was claimed and deleted, so its first token must be larger than any of
// that one. The holder waits for a second in which no older entry was claimed, and
// takes the token from that.
func (r *Runner) decide(stop context.Context, c *call, s *lease.Session, v plan.View) (next plan.Claim, todo bool) {
	v.Now = r.now()
	next, todo = r.job.Policy.Claim(v)
	if !next.Run || !r.view.rec.Claimed.IsZero() || s.Dated.IsZero() {
		return next, todo
	}
	now, ok := s.WaitPast(stop, r.existed(s).Add(time.Second))
	if !ok {
		return plan.Claim{}, false
	}
	v.Now = r.now()
	next, todo = r.job.Policy.Claim(v)
	if next.Run {
		next.Record.Token = max(next.Record.Token, now.Truncate(time.Second).UnixMicro())
	}
	return next, todo
}

// existed is the date of an answer to this replica that proves that the entry
// existed, so that an older one was deleted before: the answer to the acquisition,
// or to the first look that showed the ETag which was acquired. The date of the
// creation would not do: that request may have been under way for long.
func (r *Runner) existed(s *lease.Session) time.Time {
	if date, ok := r.view.seen.SeenFirst(s.ETag()); ok {
		return instant.Earlier(date, s.Dated)
	}
	return s.Dated
}

// claim writes what was decided, and remembers what is written.
func (r *Runner) claim(c *call, s *lease.Session, next *plan.Claim) error {
	rec := &next.Record
	if next.Run {
		_, claimed, known := r.client.Clock.Now()
		if !known {
			claimed = r.replica.Wall().UTC()
		}
		rec.Claimed, c.claimedAt = claimed.Truncate(time.Millisecond), r.client.Clock.Elapsed()
		rec.Replica, rec.Lease = r.replica.Name, store.Seconds(s.Length)
		if err := plan.RoomForOutcome(rec); err != nil {
			return fmt.Errorf("%w: %w", lease.ErrNotEncoded, err)
		}
	}
	news := rec.History[:len(rec.History)-len(r.view.rec.History)]
	if err := s.WriteConfirmed(s.Context(), func(last *store.Record) { *last = *rec }); err != nil {
		return err
	}
	written := s.Record()
	s.Claimed(written.Claimed)
	r.mayWrite()
	r.tell(&written, news)
	r.written(s)
	r.source.state.set(func(n *snapshot) { n.entry = entryHistory{created: written.Created, lease: s.Length} })
	r.adopted = instant.Later(r.adopted, r.since) // what it has inherited is its own now
	return nil
}

// tell logs what was settled for ticks that nobody ran to their end.
func (r *Runner) tell(rec *store.Record, news []store.Outcome) {
	if rec.Spec != r.view.rec.Spec {
		r.log.Info("the schedule has changed")
	}
	for _, f := range slices.Backward(news) {
		args := append(tickArgs(f.Tick), "outcome", f.Status, "reason", f.Reason)
		if f.Count > 0 {
			args = append(args, "after", f.From.Format(time.RFC3339), "ticks", counted(&f))
		}
		if f.Token != 0 {
			args = append(args, "runner", f.Replica, "token", f.Token, "attempt", f.Attempt)
		}
		level := slog.LevelWarn
		if f.Status == store.Skipped && f.Reason == plan.Paused {
			level = slog.LevelInfo // on purpose
		}
		logAt(r.log, level, "not run to its end", args...)
	}
}

// counted is the number of ticks of a range, for people.
func counted(f *store.Outcome) string {
	if f.AtLeast {
		return fmt.Sprintf("at least %d", f.Count)
	}
	return strconv.Itoa(f.Count)
}

// tickArgs names a tick in the log. A singleton has none.
func tickArgs(tick time.Time) []any {
	if tick.IsZero() {
		return nil
	}
	return []any{"tick", tick.Format(time.RFC3339)}
}

// unclaimed ends the time under a lease whose claim was not confirmed. It releases
// the lease only if the claim cannot be applied any more: applied late, under a
// free lease, it would tell of a run that no replica has started.
func (r *Runner) unclaimed(ctx context.Context, c *call, s *lease.Session, err error) time.Duration {
	if errors.Is(err, lease.ErrNotWritten) || errors.Is(err, lease.ErrNotEncoded) {
		r.release(s)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return r.standBack(err)
	case lease.Definite(err):
		c.again = true
		return r.readAgain(firstLook)
	case errors.Is(err, lease.ErrNotReadBack): // the store answers neither
		return r.unusable(ctx.Err() != nil, fmt.Errorf("the claim was not confirmed: %w", err))
	}
	r.reached() // the store has answered the read after the claim
	return r.standBack(err)
}

// release releases the lease; what was last written is what the entry holds.
func (r *Runner) release(s *lease.Session) {
	s.Stop()
	r.reached() // whatever a call of this session has met
	if err := s.Release(s.Context()); err != nil {
		r.log.Debug("the lease was not released and will run out", "error", err)
	}
	r.view.entry = &store.Entry{Revision: store.Revision{ETag: s.ETag()}, State: store.Available}
	r.view.seen.LookedAt, r.view.seenAt = time.Now(), r.replica.Wall()
}

// headStart is the time that others have to take over what has stalled here.
// They are near, since they were told.
const headStart = 1500 * time.Millisecond

// restAfter is how long this replica leaves the job alone after it had the lease:
// a singleton's task that fails at once is not to fail all the time, and after a
// stall, or when it was asked to step down, others have the first go.
func (r *Runner) restAfter(ctx, stop context.Context) time.Duration {
	var pause time.Duration
	switch {
	case ctx.Err() != nil:
		return 0
	case stop.Err() != nil:
		pause = max(r.rest(), r.approach())
	case r.view.rec.Status == store.Stalled:
		pause = max(r.rest(), headStart)
	case !r.view.rec.MayRun():
		pause = r.rest()
	}
	if pause == 0 {
		return 0
	}
	return r.readAgain(pause)
}

// rest is the pause of a singleton. A run by hand has none.
func (r *Runner) rest() time.Duration {
	if r.source.byHand != "" {
		return 0
	}
	return r.job.Rest
}
