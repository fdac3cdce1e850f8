package soloist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"time"
)

// term does what is due under one hold of the lease: hold off if need be,
// settle and claim in one write, run, write the outcome, release.
func (w *worker) term(ctx context.Context, h *hold) time.Duration {
	w.setBusy(true)
	defer w.setBusy(false)
	stop, done := w.stoppable(ctx)
	defer done()
	h.trouble = w.tellTrouble
	h.keep(context.WithoutCancel(ctx))
	defer h.lost(nil)
	defer h.stop()
	d := w.unsure()
	if d > 0 && !w.holdOff(stop, h.held, d) {
		// One that has run out speaks for the last holder's, also to a replica
		// that has not looked on. But the next wake-up of this one has.
		if w.ran != nil {
			w.quit(h)
		}
		return max(w.again(0), w.pauseAfter(ctx, stop))
	}
	if !w.stillFits(ctx) {
		if d <= 0 {
			w.quit(h)
		} // else it expires, so that the next call need not hold off again
		return w.again(maxSleep)
	}
	w.broken = w.entry.State == Broken
	next, todo := w.decide(stop, h)
	if !todo || stop.Err() != nil {
		w.quit(h)
		return w.pauseAfter(ctx, stop)
	}
	before := w.rec
	if err := w.put(h, &next); err != nil {
		w.log.Warn("the claim was not confirmed, so nothing runs", append(tickArgs(next.record.Tick), "error", err)...)
		return w.unclaimed(ctx, h, err)
	}
	w.reached()
	if next.run && !w.runTick(ctx, stop, h, &before) {
		return w.again(0)
	}
	w.quit(h)
	return w.pauseAfter(ctx, stop)
}

// unclaimed ends a term whose claim was not confirmed. It releases the lease only
// if the claim cannot be applied any more: applied late, under a free lease, it
// would tell of a run that no replica has started.
func (w *worker) unclaimed(ctx context.Context, h *hold, err error) time.Duration {
	if errors.Is(err, errNotWritten) || errors.Is(err, errNotEncoded) {
		w.quit(h)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return w.standBack(err)
	case definite(err):
		w.soon = true
		return w.again(firstLook)
	case errors.Is(err, errNotReadBack): // the store answers neither
		return w.fault(ctx, fmt.Errorf("the claim was not confirmed: %w", err))
	}
	w.reached() // the store has answered the read after the claim
	return w.standBack(err)
}

// A deniedError says that this replica can lease an entry and not write it.
type deniedError struct{ err error }

func (e *deniedError) Unwrap() error { return e.err }

func (e *deniedError) Error() string {
	advice := "see why the store fails writes"
	switch {
	case errors.Is(e.err, errNotEncoded):
		advice = "shorten the record"
	case errors.Is(e.err, fs.ErrPermission):
		advice = "grant it write access"
	}
	return fmt.Sprintf("this replica can lease the entry and not write it: it leaves the job to other replicas and tries again within a minute of each failure: %s: %v", advice, e.err)
}

// standBack leaves the job to other replicas for a while, since this one cannot
// write the entry. Only a write that succeeds proves that it can again.
func (w *worker) standBack(err error) time.Duration {
	w.denied, w.deniedOn = &deniedError{err}, w.etag
	w.note(w.denied)
	return w.again(w.denials.next())
}

// forgive forgets a failed write once the record has been written since, unless
// a missing permission or a record that is too large has caused it: the store
// takes writes again, and this replica may have none to try for long.
func (w *worker) forgive() {
	lasting := errors.Is(w.denied, fs.ErrPermission) || errors.Is(w.denied, errNotEncoded)
	if w.denied != nil && !lasting && w.etag != w.deniedOn {
		w.denied = nil
	}
}

// mayWrite notes that a write of this replica has succeeded.
func (w *worker) mayWrite() {
	w.denied = nil
	w.denials.reset()
}

// pauseAfter is how long this replica leaves the job alone after a term: a
// singleton's task that fails at once is not to fail all the time, and after a
// stall, or when it was asked to step down, others have the first go.
func (w *worker) pauseAfter(ctx, stop context.Context) time.Duration {
	var pause time.Duration
	switch {
	case ctx.Err() != nil:
		return 0
	case stop.Err() != nil:
		pause = max(w.rest, w.comeCloser())
	case w.rec.Status == Stalled:
		pause = max(w.rest, headStart)
	case !w.rec.mayRun():
		pause = w.rest
	}
	if pause == 0 {
		return 0
	}
	return w.again(pause)
}

// headStart is the time that others have to take over what has stalled here.
// They are near, since they were told.
const headStart = 1500 * time.Millisecond

// unsure returns how long the last holder may still believe that it holds the
// lease: it was not seen to run out, or the entry is not the one it leased.
func (w *worker) unsure() time.Duration {
	st := w.state.get()
	length := max(st.before, time.Duration(w.rec.Lease))
	if w.rec.mayRun() && w.entry.State != Expired && w.freed.token == w.rec.Epoch {
		return length - time.Since(w.freed.at)
	}
	if st.anew.IsZero() {
		return 0
	}
	return length - time.Since(st.anew)
}

// holdOff waits for d, renewing, so that the last holder has given up by
// itself. It returns false if we were stopped or lost the lease meanwhile.
func (w *worker) holdOff(ctx, held context.Context, d time.Duration) bool {
	w.log.Warn("the last runner's lease did not run out by itself: waiting until it must have given up", "wait", d)
	return waitFor(ctx, held, d)
}

// put writes a plan, and remembers what is written.
func (w *worker) put(h *hold, next *plan) error {
	r := &next.record
	if next.run {
		_, claimed, known := w.clock.now()
		if !known {
			claimed = w.wall().UTC()
		}
		r.Claimed, w.claimedAt = claimed.Truncate(time.Millisecond), w.clock.elapsed()
		r.Holder, r.Lease = w.Replica, Seconds(h.length)
		if err := r.roomForOutcome(); err != nil {
			return err
		}
	}
	news := r.History[:len(r.History)-len(w.rec.History)]
	if err := h.write(h.held, func(last *Record) { *last = *r }, nil, h.twice); err != nil {
		return err
	}
	h.mu.Lock()
	h.claimed = h.rec.Claimed
	h.mu.Unlock()
	w.mayWrite()
	w.tell(&h.rec, news)
	w.rec, w.etag = h.rec, h.etag
	w.set(func(s *seen) { s.created, s.anew, s.before = h.rec.Created, time.Time{}, h.length })
	w.heir = later(w.heir, w.since) // what it has inherited is its own now
	return nil
}

// tell logs what was settled for ticks that nobody ran to their end.
func (w *worker) tell(r *Record, news []Fate) {
	if r.Spec != w.rec.Spec {
		w.log.Info("the schedule has changed")
	}
	for _, f := range slices.Backward(news) {
		args := append(tickArgs(f.Tick), "fate", f.Status, "reason", f.Reason)
		if f.Count > 0 {
			args = append(args, "after", f.From.Format(time.RFC3339), "ticks", f.counted())
		}
		if f.Token != 0 {
			args = append(args, "runner", f.Replica, "token", f.Token, "attempt", f.Attempt)
		}
		level := slog.LevelWarn
		if f.Status == Skipped && f.Reason == paused {
			level = slog.LevelInfo // on purpose
		}
		w.log.Log(context.Background(), level, "not run to its end", args...)
	}
}

// tickArgs names a tick in the log. A singleton has none.
func tickArgs(tick time.Time) []any {
	if tick.IsZero() {
		return nil
	}
	return []any{"tick", tick.Format(time.RFC3339)}
}

// quit releases the lease; what was last written is what the entry holds.
func (w *worker) quit(h *hold) {
	h.stop()
	w.reached() // whatever a call of this hold has met
	if err := h.release(h.held); err != nil {
		w.log.Debug("the lease was not released and will run out", "error", err)
	}
	w.entry = &Entry{Stamp: Stamp{ETag: h.etag}, State: Available}
	w.looked = time.Now()
}

// newRun makes what the user's function is told.
func (w *worker) newRun(tick time.Time, attempt int, token int64) *Run {
	run := &Run{Job: w.job, Tick: tick, Attempt: attempt, Token: token, Log: w.runLog}
	if !tick.IsZero() {
		run.Log = run.Log.With("tick", tick.Format(time.RFC3339), "attempt", attempt)
	}
	if token != 0 {
		run.Log = run.Log.With("token", token)
	}
	run.own = w.lines.logger(run.Log)
	return run
}

// by says what asked for the run; empty: its tick.
func (r *Run) by(request string) *Run {
	if r.Request = request; request != "" {
		r.Log, r.own = r.Log.With("request", request), r.own.With("request", request)
	}
	return r
}

// runTick runs what was claimed and writes the outcome, or takes the claim back
// if a stop came first; before is the record as it was. It returns false if the
// record is not known to say either: then the lease has to expire.
func (w *worker) runTick(ctx, stop context.Context, h *hold, before *Record) bool {
	run := w.newRun(w.rec.Tick, w.rec.Attempt, w.rec.Epoch).by(w.rec.Request)
	if stop.Err() != nil {
		return w.takeBack(ctx, h, before, run)
	}
	start := w.clock.elapsed()
	w.setRunning(true)
	status, reason := w.do(stop, h.held, h, run)
	w.setRunning(false)
	if status == "" {
		w.undone = fmt.Errorf("its tick %s was claimed and not run: %w", run.Tick.Format(time.RFC3339), errNotRenewed)
		return false
	}
	if status == Abandoned && w.ran != nil && errors.Is(stop.Err(), context.DeadlineExceeded) {
		reason = "out of time, " + reason
	}
	took := (w.clock.elapsed() - start).Round(time.Millisecond)
	lo, _, _ := w.clock.now()
	end := w.rec.Claimed.Add((w.clock.elapsed() - w.claimedAt).Round(time.Millisecond))
	err := w.confirm(ctx, h, func(r *Record) { *r = w.planner.finish(r, status, reason, end, lo) })
	if err != nil {
		w.untold(run, status, err)
		return false
	}
	w.rec, w.etag = h.rec, h.etag
	w.report(lastFate(&w.rec, status, reason))
	logOutcome(run, status, reason, took)
	return true
}

// untold says that the outcome of a run is not known to be in the record.
func (w *worker) untold(run *Run, status Status, err error) {
	what, next := "was not confirmed", "another replica settles this run unless it was written"
	switch {
	case errors.Is(err, errNotEncoded):
		what, next = "does not fit into the record", "shorten the record; another replica settles this run as one whose runner died"
		w.standBack(err)
	case definite(err) && !errors.Is(err, errNotConfirmed):
		what, next = "was refused", "another replica settles this run"
	}
	run.own.Error("the outcome "+what+": "+next, "outcome", status, "error", err)
	w.undone = fmt.Errorf("its tick %s has run, and the outcome, %s, %s: %w", run.Tick.Format(time.RFC3339), status, what, err)
}

// confirm writes the outcome. Once we are asked to stop it tries no longer
// than the lease lasts: after that others settle the run anyway. The same holds for
// a call of RunDue or RunNow, which has to end, once it has given up renewing.
func (w *worker) confirm(ctx context.Context, h *hold, outcome func(*Record)) error {
	c, cancel := context.WithCancel(context.WithoutCancel(h.held))
	defer cancel()
	if w.ran != nil {
		defer time.AfterFunc((outcomePatience+1)*h.length, cancel).Stop()
	}
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(max(h.try(), h.left()), cancel)
	})()
	return h.write(c, outcome, nil, h.conclude)
}

// report keeps what ran for RunDue.
func (w *worker) report(f Fate) {
	if w.ran != nil {
		*w.ran = append(*w.ran, f)
	}
}
