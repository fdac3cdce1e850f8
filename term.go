package soloist

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// term does what is due under one hold of the lease: hold off if need be,
// settle and claim in one write, run, write the outcome, release.
func (w *worker) term(ctx context.Context, h *hold) time.Duration {
	w.setBusy(true)
	defer w.setBusy(false)
	held, lost := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lost(nil)
	h.stop = h.keep(held, lost)
	defer h.stop()
	if d := w.unsure(); d > 0 && !w.holdOff(ctx, held, d) {
		w.quit(held, h)
		return w.again(0)
	}
	next, todo := w.plan(&w.rec, w.dueTime())
	if !todo || ctx.Err() != nil {
		return w.quit(held, h)
	}
	if err := w.put(held, h, &next); err != nil {
		w.log.Warn("the claim was not confirmed, so nothing runs", "tick", next.record.Tick, "error", err)
		return w.again(jitter(w.length / 6))
	}
	if next.run && !w.runTick(ctx, held, h) {
		return w.again(0)
	}
	w.quit(held, h)
	if w.ticks == nil {
		sleep(ctx, w.rest)
	}
	return 0
}

// unsure returns how long the last holder may still believe that it holds the
// lease: it was not seen to run out, or the entry is not the one it leased.
func (w *worker) unsure() time.Duration {
	length := max(w.before, time.Duration(w.rec.Lease))
	if w.rec.Status == Running && w.entry.State != Expired {
		return length
	}
	if w.anew.IsZero() {
		return 0
	}
	return length - time.Since(w.anew)
}

// holdOff waits for d, renewing, so that the last holder has given up by
// itself. It returns false if we were stopped or lost the lease meanwhile.
func (w *worker) holdOff(ctx, held context.Context, d time.Duration) bool {
	w.log.Warn("the last runner's lease did not run out by itself: waiting until it must have given up", "wait", d)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return held.Err() == nil
	case <-ctx.Done():
	case <-held.Done():
	}
	return false
}

// put writes a plan, and remembers what is written.
func (w *worker) put(ctx context.Context, h *hold, next *plan) error {
	r := &next.record
	if next.run {
		_, claimed, _ := w.clock.now()
		r.Claimed = claimed.Truncate(time.Millisecond)
		r.Holder, r.Lease = w.Replica, Seconds(w.length)
	}
	if err := h.write(ctx, r); err != nil {
		return err
	}
	w.rec, w.anew, w.before = *r, time.Time{}, w.length
	return nil
}

// quit releases the lease; what was last written is what the entry holds.
func (w *worker) quit(ctx context.Context, h *hold) time.Duration {
	h.stop()
	if err := h.release(ctx); err != nil {
		w.log.Debug("the lease was not released and will run out", "error", err)
	}
	w.entry = &Entry{Stamp: Stamp{ETag: h.etag}, State: Available}
	return 0
}

// runTick runs what was claimed and writes the outcome. It returns false if
// another replica has settled it, or nobody knows.
func (w *worker) runTick(ctx, held context.Context, h *hold) bool {
	run := &Run{Job: w.job, Tick: w.rec.Tick, Attempt: w.rec.Attempt, Token: w.rec.Epoch}
	run.Log = w.log.With("token", run.Token)
	if w.ticks != nil {
		run.Log = w.log.With("tick", run.Tick.Format(time.RFC3339), "attempt", run.Attempt, "token", run.Token)
	}
	if !time.Now().Before(h.trusted()) {
		run.Log.Warn("the claim took so long that the lease may have run out: not run")
		return false
	}
	start := time.Now()
	status, reason := w.do(ctx, held, run)
	took := time.Since(start).Round(time.Millisecond)
	lo, _, _ := w.clock.now()
	rec := w.planner.finish(&w.rec, status, reason, w.rec.Claimed.Add(took), lo)
	if err := w.confirm(ctx, held, h, &rec); err != nil {
		run.Log.Error("the outcome was refused: another replica settles this run", "outcome", status, "error", err)
		return false
	}
	w.rec = rec
	w.ran = append(w.ran, lastFate(&rec, status, reason))
	w.logOutcome(run, status, reason, took)
	return true
}

// confirm writes the outcome. Once we are asked to stop it tries no longer
// than the lease lasts: after that others settle the run anyway.
func (w *worker) confirm(ctx, held context.Context, h *hold, rec *Record) error {
	c, cancel := context.WithCancel(context.WithoutCancel(held))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(max(h.try(), time.Until(h.trusted())), cancel)
	})()
	return h.finish(c, rec)
}

// do calls the user's function under a context that ends with the trust in
// the lease, the timeout, or the grace after a stop, whichever comes first.
func (w *worker) do(ctx, held context.Context, run *Run) (Status, string) {
	c, end := context.WithCancelCause(held)
	defer end(nil)
	if w.timeout > 0 {
		t := time.AfterFunc(w.timeout, func() { end(fmt.Errorf("%w after %s", ErrTimeout, w.timeout)) })
		defer t.Stop()
	}
	defer w.stopAfterGrace(ctx, end)()
	run.Log.Info("run started")
	w.setRunning(true)
	err := call(c, w.work, run)
	w.setRunning(false)
	return outcome(err, context.Cause(c))
}

// stopAfterGrace ends a run once the scheduler is to stop and the grace is over.
func (w *worker) stopAfterGrace(ctx context.Context, end context.CancelCauseFunc) (cancel func()) {
	returned := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-returned:
			return
		case <-ctx.Done():
		}
		t := time.NewTimer(w.grace())
		defer t.Stop()
		select {
		case <-returned:
		case <-t.C:
			end(ErrStopped)
		}
	}()
	return func() { close(returned); <-done }
}

// grace is what a run has after a stop. A singleton has none: its task has no
// end to wait for.
func (w *worker) grace() time.Duration {
	if w.ticks == nil {
		return 0
	}
	return w.Grace
}

var errGoexit = errors.New("the job ended its goroutine (runtime.Goexit)")

// call runs f in a goroutine of its own, so that neither a panic nor a Goexit
// of one job reaches another.
func call(ctx context.Context, f func(context.Context, *Run) error, run *Run) error {
	err := errGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				run.Log.Error("the job panicked", "panic", p, "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		err = f(ctx, run)
	}()
	<-done
	return err
}

// outcome is the fate that a run's error and the end of its context make.
func outcome(err, cause error) (Status, string) {
	skip, skipped := errors.AsType[*skipError](err)
	switch {
	case err == nil:
		return Succeeded, ""
	case skipped:
		return Skipped, skip.reason
	case errors.Is(cause, ErrStopped):
		return Abandoned, "stopped"
	case cause != nil && errors.Is(err, context.Canceled):
		return Failed, cause.Error()
	case cause != nil && !errors.Is(err, cause):
		return Failed, fmt.Sprintf("%v: %v", cause, err)
	}
	return Failed, err.Error()
}

func (w *worker) logOutcome(run *Run, status Status, reason string, took time.Duration) {
	log := run.Log.Info
	if status == Failed || status == Abandoned && w.ticks != nil {
		log = run.Log.Warn
	}
	args := []any{"outcome", status, "took", took}
	if reason != "" {
		args = append(args, "reason", reason)
	}
	log("run ended", args...)
}
