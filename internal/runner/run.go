package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// runClaimed runs the claimed tick and writes its outcome, or takes the claim back if
// a stop came first; before is the record without the claim. It returns false if the
// record may still say that the tick is running. Then the lease must not be released:
// it has to expire, so that the next holder knows that our trust has ended too.
func (r *Runner) runClaimed(ctx, stop context.Context, c *call, s *lease.Session, before *store.Record) bool {
	rec := &r.view.rec
	a := r.attempt(stop, rec.Run.Tick, rec.Run.Attempt, rec.Token, rec.Run.Request)
	a.Under.Lease, a.Under.Record = s, &notices{s, &r.job.Policy, r.client.Clock}
	if c.bounded {
		a.Under.Until, _ = stop.Deadline()
	}
	// The stop came while the claim was written. Nothing may start after a stop.
	if stop.Err() != nil {
		return r.takeBack(ctx, c, s, before, a)
	}
	start := r.client.Clock.Elapsed()
	r.source.setRunning(true)
	status, reason := a.Run()
	r.source.setRunning(false)
	// Nothing has run, but the record cannot be corrected without a lease.
	if status == "" {
		c.undone = fmt.Errorf("its tick %s was claimed and not run: %w", rec.Run.Tick.Format(time.RFC3339), lease.ErrNotRenewed)
		return false
	}
	// The call has run out of time, and the next call has no more. So the reason must
	// not begin with plan.Stopped: this end counts as a death, or a job that is too long
	// for its calls would be tried for ever.
	if status == store.Abandoned && c.bounded && errors.Is(stop.Err(), context.DeadlineExceeded) {
		reason = "out of time, " + reason
	}
	return r.finish(ctx, c, s, a, start, status, reason)
}

// finish writes the outcome of a run that has returned, and that began at start. It returns
// false if the outcome is not known to be in the record.
func (r *Runner) finish(ctx context.Context, c *call, s *lease.Session, a *supervise.Attempt, start time.Duration, status store.Status, reason string) bool {
	rec := &r.view.rec
	now := r.client.Clock.Elapsed()
	took := (now - start).Round(time.Millisecond)
	earliest, _, _ := r.client.Clock.Now()
	// The end is the service's time of the claim and the time that passed since,
	// which does not depend on the wall clock.
	end := rec.Run.Claimed.Add((now - c.claimedAt).Round(time.Millisecond))
	// Finish changes the record as it was last written, which a Save or a progress
	// note may have done since the claim.
	err := r.confirm(ctx, c, s, func(last *store.Record) {
		*last = r.job.Policy.Finish(last, status, reason, end, earliest)
	})
	if err != nil {
		c.undone = fmt.Errorf("its tick %s has run, and %w", rec.Run.Tick.Format(time.RFC3339), r.untold(a, status, err))
		return false
	}
	r.written(s)
	c.ran = append(c.ran, plan.LastOutcome(&r.view.rec, status, reason))
	logOutcome(a, status, reason, took)
	return true
}

// untold logs and returns that the outcome of a run is not known to be in the record,
// and says what happens then: a replica, perhaps this one, settles the run as one whose runner died,
// unless the write arrives after all.
func (r *Runner) untold(a *supervise.Attempt, status store.Status, err error) error {
	what, next := "was not confirmed", "if it was not written, a replica settles this run as one whose runner died"
	switch {
	case errors.Is(err, lease.ErrNotEncoded):
		what, next = "does not fit into the record", "shorten the record; a replica settles this run as one whose runner died"
		r.standBack(err)
	case lease.Definite(err) && !errors.Is(err, lease.ErrNotConfirmed):
		what, next = "was refused", "a replica settles this run"
	}
	a.Log.Error("the outcome "+what+": "+next, "outcome", status, "error", err)
	return fmt.Errorf("the outcome, %s, %s: %w", status, what, err)
}

// takeBack gives up a claim whose run has not started, because of a stop, so that
// another replica runs the tick at once and the attempt does not count. It returns false
// if the record may still say that the tick is running.
func (r *Runner) takeBack(ctx context.Context, c *call, s *lease.Session, before *store.Record, a *supervise.Attempt) bool {
	tick := a.Info.Tick.Format(time.RFC3339)
	err := r.confirm(ctx, c, s, func(claim *store.Record) { *claim = r.job.Policy.TakeBack(before, claim) })
	if err != nil {
		a.Log.Error("stopped before the run began, and the claim was not taken back: the tick counts as one whose runner died", "error", err)
		c.undone = fmt.Errorf("its tick %s was claimed and not run: %w", tick, err)
		return false
	}
	r.written(s)
	a.Log.Info("stopped before the run began: the claim was taken back")
	c.undone = fmt.Errorf("its tick %s was given back before it ran: %w", tick, supervise.ErrStopped)
	return true
}

// confirm writes the outcome and tries until it is known to be written, or WriteOutcome
// gives up. Two more things end its patience. After a stop it tries no longer than the lease lasts: other replicas
// settle the run from then on. And a call of RunDue or RunNow has to end some time: one
// length of the lease after WriteOutcome has given up the renewals.
func (r *Runner) confirm(ctx context.Context, c *call, s *lease.Session, outcome lease.Draft) error {
	// The outcome may be written after the trust has ended: the store refuses it if another
	// replica has the lease, and accepts it otherwise.
	writing, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	defer cancel()
	if c.bounded {
		defer time.AfterFunc((lease.OutcomePatience+1)*s.Length, cancel).Stop()
	}
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(max(r.client.CallTimeout(), s.Left()), cancel)
	})()
	return s.WriteOutcome(writing, outcome)
}

// attempt returns an attempt without a lease; runClaimed adds lease and record. The
// user's log line and the scheduler's carry the same attributes, but only the
// scheduler's lines go through the queue.
func (r *Runner) attempt(stop context.Context, tick time.Time, attempt int, token int64, request string) *supervise.Attempt {
	log := r.runLog
	if !tick.IsZero() {
		log = log.With("tick", tick.Format(time.RFC3339), "attempt", attempt)
	}
	if token != 0 {
		log = log.With("token", token)
	}
	if request != "" {
		log = log.With("request", request)
	}
	return &supervise.Attempt{
		Task: &r.job.Task,
		Info: supervise.Info{Tick: tick, Request: request, Attempt: attempt, Token: token, Log: log},
		Under: &supervise.Conditions{Stop: stop, Grace: r.grace(), Length: r.client.Length, Approach: r.approach(),
			Elapsed: r.client.Clock.Elapsed},
		Jitter: r.client.Jitter,
		Status: &overseer{r.job.Name, r.source, r.replica},
		Log:    r.replica.Lines.Logger(log),
	}
}

// grace returns how long a run may go on after a stop. A singleton's task has no end
// to wait for. It goes on until the others have read that it stops, so that one of them
// takes over at once, and no longer.
func (r *Runner) grace() time.Duration {
	if r.Singleton() {
		return min(r.replica.Grace, r.approach())
	}
	return r.replica.Grace
}

// An overseer is the supervise.Status of a job: it keeps the state of its runs.
type overseer struct {
	job     string
	source  *source
	replica *Replica
}

// Overrun implements [supervise.Status].
func (o *overseer) Overrun(cause error) { o.source.setOverrun(cause) }

// Leaseless implements [supervise.Status].
func (o *overseer) Leaseless(cause error) {
	if o.replica.Overrun != nil {
		o.replica.Overrun(o.job, cause)
	}
}

// Flush implements [supervise.Status].
func (o *overseer) Flush(d time.Duration) { o.replica.Lines.Wait(d) }

// Notices is the supervise.Record of a run: what the other replicas read about it.
type notices struct {
	session *lease.Session
	policy  *plan.Policy
	clock   *lease.Clock
}

// Stopping implements [supervise.Record].
func (n *notices) Stopping(yes bool) error {
	return n.once(func(r *store.Record) { r.Run.Stopping = yes })
}

// Progress implements [supervise.Record].
func (n *notices) Progress(beat time.Time, note string) error {
	return n.once(n.progress(beat, note))
}

// Stalled implements [supervise.Record]. The outcome of the stall is written now, and
// not when the run returns, which it may never do.
func (n *notices) Stalled(reason string) error {
	earliest, _, _ := n.clock.Now()
	return n.once(func(r *store.Record) { *r = n.policy.Stall(r, reason, earliest) })
}

// Save implements [supervise.Record]. Unlike the notices it is repeated until its
// outcome is known: the user's function relies on it.
func (n *notices) Save(ctx context.Context, note string, checkpoint []byte) error {
	return n.session.WriteUntilKnown(ctx, n.progress(time.Now(), note), checkpoint)
}

// once sends one write, and gives up after the time of one call: the watchdog, which
// calls it, has deadlines to watch.
func (n *notices) once(draft lease.Draft) error {
	ctx, cancel := context.WithTimeout(n.session.Context(), n.session.CallTimeout())
	defer cancel()
	return n.session.WriteBestEffort(ctx, draft)
}

// progress drafts a note of the run and the time of its heartbeat by the service's clock.
func (n *notices) progress(beat time.Time, note string) lease.Draft {
	at := n.clock.Best().Add(-time.Since(beat))
	return func(r *store.Record) {
		r.Run.Progress = store.Progress{Note: note, At: at.Truncate(time.Millisecond).UTC()}
	}
}

// logOutcome logs the end of a run, once the outcome is in the record. An abandoned
// singleton is no warning: a stop always ends one so.
func logOutcome(a *supervise.Attempt, status store.Status, reason string, took time.Duration) {
	level := slog.LevelInfo
	if status == store.Failed || status == store.Stalled || status == store.Abandoned && !a.Info.Tick.IsZero() {
		level = slog.LevelWarn
	}
	args := []any{"outcome", status, "took", took}
	if reason != "" {
		args = append(args, "reason", reason)
	}
	logAt(a.Log, level, "run ended", args...)
}
