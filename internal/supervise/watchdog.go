package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

const (
	progressEvery = time.Minute
	maxDump       = 64 << 10 // bytes of goroutines in a log
)

// A watchdog watches one try from its start until it has returned: it writes how
// far the run is, ends one that has stalled, and says so when one does not obey.
type watchdog struct {
	handle *Handle
	task   *Task
	under  *Conditions
	status Status
	log    *slog.Logger
	fail   context.CancelCauseFunc

	verdicts chan error // of HealthCheck
	failures int        // in a row

	written time.Time // monotonic: when progress was written
	gaveUp  error     // why the run was given up as a stalled one
}

// watch starts a watchdog; done ends it once the context of the run has ended,
// waits for that, and returns why it gave the run up, if so.
func watch(a *Attempt, h *Handle, fail context.CancelCauseFunc) (done func() error) {
	w := &watchdog{handle: h, task: a.Task, under: a.Under, status: a.Status, log: a.Log, fail: fail,
		verdicts: make(chan error), written: h.beat}
	ctx, cancel := context.WithCancel(context.Background())
	var watch, ask sync.WaitGroup
	watch.Go(func() { w.watch(ctx) })
	watch.Go(func() { w.watchReturn(ctx) })
	if w.under.Lease != nil {
		watch.Go(func() { w.watchLoss(ctx) })
	}
	if w.task.HealthCheck != nil {
		ask.Go(w.checkHealth)
	}
	return func() error {
		ask.Wait()
		cancel()
		watch.Wait()
		w.status.Overrun(nil)
		return w.gaveUp
	}
}

// watch returns when ctx ends: the run is over.
func (w *watchdog) watch(ctx context.Context) {
	stop := w.under.Stop.Done()
	if w.under.Lease == nil || w.under.Grace == 0 {
		stop = nil // there is nobody, or no time, to hand over to
	}
	w.announce(false) // a try before may have said so
	for ctx.Err() == nil {
		if w.judgeWaiting() {
			continue
		}
		t := time.NewTimer(w.wait())
		select {
		case <-ctx.Done():
		case <-t.C:
			w.look()
		case <-w.handle.alarm:
			w.look()
		case err := <-w.verdicts:
			w.judge(err)
		case <-stop:
			stop = nil
			w.announce(true)
		}
		t.Stop()
	}
}

// judgeWaiting judges a verdict that has come while the watchdog was busy, as with
// a write that hung. It comes first: else chance would decide between it and what
// else is due by then.
func (w *watchdog) judgeWaiting() bool {
	select {
	case err := <-w.verdicts:
		w.judge(err)
		return true
	default:
		return false
	}
}

// lead is how long before the end of HeartbeatTimeout the record announces it, so
// that followers are near when the run is given up. A time-out in which they
// cannot come near is not announced: each late heartbeat would cost two writes.
func (w *watchdog) lead() time.Duration {
	timeout := w.task.HeartbeatTimeout
	if timeout < w.under.Approach {
		return 0
	}
	return min(w.under.Approach, timeout/4)
}

// lastChance reports whether the next failure of HealthCheck ends the run, and
// followers have the time to come near. Calls that follow each other within a
// sixth of the lease are not announced: most followers would not look in time.
func (w *watchdog) lastChance() bool {
	return w.failures > 0 && w.failures == w.task.FailureThreshold-1 && w.task.HealthInterval >= w.under.callTimeout()
}

// wait is how long there is nothing to look at.
func (w *watchdog) wait() time.Duration {
	wait := w.progressEvery() - time.Since(w.written)
	if timeout := w.task.HeartbeatTimeout; timeout > 0 && !w.handle.ended() {
		beat, _ := w.handle.last()
		left := timeout - time.Since(beat)
		if w.under.Lease != nil && !w.under.announced.Load() {
			left -= w.lead()
		}
		wait = min(wait, left)
	}
	return max(wait, 0)
}

func (w *watchdog) progressEvery() time.Duration {
	return max(progressEvery, w.task.HeartbeatTimeout/3)
}

// look does what wait has waited for.
func (w *watchdog) look() {
	beat, note := w.handle.last()
	if !w.handle.ended() {
		quiet, timeout := time.Since(beat), w.task.HeartbeatTimeout
		if timeout > 0 && quiet >= timeout {
			w.stalled(fmt.Errorf("%w: no heartbeat for %s", ErrStalled, timeout))
			return
		}
		w.announce(timeout > 0 && quiet >= timeout-w.lead() || w.lastChance())
	}
	if time.Since(w.written) >= w.progressEvery() {
		if beat.After(w.written) && w.under.Lease != nil {
			w.tell(w.under.Record.Progress(beat, note))
		}
		w.written = time.Now()
	}
}

// announce has the record say that the run is about to be handed over, or that
// it is not after all.
func (w *watchdog) announce(stopping bool) {
	stopping = stopping || w.under.Stop.Err() != nil
	if w.under.Lease == nil || stopping == w.under.announced.Swap(stopping) {
		return
	}
	w.tell(w.under.Record.Stopping(stopping))
}

// tell logs a write that failed. Others would have liked to know, and it is not
// repeated.
func (w *watchdog) tell(err error) {
	if err != nil {
		w.log.Debug("the record was not brought up to date", "error", err)
	}
}

// stalled ends the run. Others learn of it first, and then get the lease:
// released when the run returns, run out if it does not.
func (w *watchdog) stalled(cause error) {
	if w.handle.leased() != nil {
		return // it has lost its lease as well, which counts
	}
	w.gaveUp = cause
	dump := goroutines()
	if w.under.Lease != nil {
		w.tell(w.under.Record.Stalled(stallReason(cause)))
	}
	w.fail(cause)
	if w.under.Lease != nil {
		w.under.Lease.GiveUp()
	}
	w.log.Error("the run has stalled", "error", cause, "goroutines", dump)
}

func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}
