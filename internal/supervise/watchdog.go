package supervise

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/soloist-go/soloist/event"
)

const (
	progressEvery = time.Minute // how often progress is written at most: each write costs a storage operation
	maxDump       = 64 << 10    // bytes of goroutine stacks in one event
)

// A watchdog watches one try from its start until the user's function and its
// HealthCheck have returned. It writes the progress of the run, ends a run that has
// stalled, and reports a run that does not return when its context ends. Its fields
// below verdicts belong to the goroutine of watch.
type watchdog struct {
	*Attempt
	handle *Handle
	fail   context.CancelCauseFunc // ends the context of the run

	verdicts chan error // results of HealthCheck, from checkHealth
	failures int        // in a row

	written time.Time // when progress was last written or was due; by the monotonic clock
	gaveUp  error     // the cause, once the run has been given up as stalled
}

// watch starts the watchdog of a try. The caller must call done when the user's function has
// returned. done ends the context of the run, waits for all goroutines and returns why the
// watchdog gave the run up, nil if it did not.
func watch(a *Attempt, h *Handle, fail context.CancelCauseFunc) (done func() error) {
	w := &watchdog{Attempt: a, handle: h, fail: fail, verdicts: make(chan error), written: h.beat}
	ctx, cancel := context.WithCancel(context.Background())
	var watch, ask sync.WaitGroup
	watch.Go(func() { w.watch(ctx) })
	reported, undo := w.reportOverrun(ctx)
	if w.Task.HealthCheck != nil {
		ask.Go(w.checkHealth)
	}
	// First the health check, which ends with the run's context. Until it has
	// returned the run is not over, and the others still have to report that.
	return func() error {
		over := w.Task.HealthCheck == nil && undo() // nothing goes on, so there is nothing to report
		w.fail(errReturned)                         // a cause that came earlier is kept
		ask.Wait()
		cancel()
		watch.Wait()
		if !over {
			<-reported
		}
		w.Status.Overrun(nil)
		return w.gaveUp
	}
}

// watch is the loop of the watchdog. It ends with ctx, when the run is over.
func (w *watchdog) watch(ctx context.Context) {
	stop := w.Under.Stop.Done()
	if w.Under.Lease == nil || w.Under.Grace == 0 {
		stop = nil // no replica takes over, or there is no time for it
	}
	w.announce(false) // a try before this one may have announced its stall
	for ctx.Err() == nil {
		if w.judgeWaiting() {
			continue
		}
		t := time.NewTimer(w.untilLook())
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

// judgeWaiting judges a verdict that came while the watchdog was busy, for example
// with a write that hung. It does so before the select, which would choose at random
// between the verdict and a timer that is due by then.
func (w *watchdog) judgeWaiting() bool {
	select {
	case err := <-w.verdicts:
		w.judge(err)
		return true
	default:
		return false
	}
}

// lead is how long before the end of HeartbeatTimeout the record announces that the run is
// about to stall, so that followers poll often by the time it is given up. Without the
// announcement they would find out at the next third of the lease. A stall is not announced
// if HeartbeatTimeout is shorter than followers need to read the announcement. It would not
// help them, and a heartbeat that is late would cost two writes: the announcement, and its end.
func (w *watchdog) lead() time.Duration {
	timeout := w.Task.HeartbeatTimeout
	if timeout < w.Under.Approach {
		return 0
	}
	return min(w.Under.Approach, timeout/4)
}

// lastChance reports whether the next failure of HealthCheck ends the run, so that
// the end is to be announced. It is not announced if the calls follow each other
// within a sixth of the lease: most followers would not read it in time.
func (w *watchdog) lastChance() bool {
	return w.failures > 0 && w.failures == w.Task.FailureThreshold-1 && w.Task.HealthInterval >= w.Under.callTimeout()
}

// untilLook is how long until look has something to do: write progress, announce a stall,
// or end the run for it.
func (w *watchdog) untilLook() time.Duration {
	wait := w.progressEvery() - time.Since(w.written)
	if timeout := w.Task.HeartbeatTimeout; timeout > 0 && !w.handle.ended() {
		beat, _ := w.handle.last()
		left := timeout - time.Since(beat)
		if w.Under.Lease != nil && !w.Under.told.announced.Load() {
			left -= w.lead()
		}
		wait = min(wait, left)
	}
	return max(wait, 0)
}

// progressEvery is rarer for a run that may be silent for long: its heartbeats come
// at such intervals.
func (w *watchdog) progressEvery() time.Duration {
	return max(progressEvery, w.Task.HeartbeatTimeout/3)
}

// look does what is due. The end of a stalled run comes before the progress, which is
// a write that may hang: the process may have to end because of the stall.
func (w *watchdog) look() {
	beat, note := w.handle.last()
	if !w.handle.ended() {
		quiet, timeout := time.Since(beat), w.Task.HeartbeatTimeout
		if timeout > 0 && quiet >= timeout {
			w.stalled(fmt.Errorf("%w: no heartbeat for %s", ErrStalled, timeout))
			return
		}
		w.announce(timeout > 0 && quiet >= timeout-w.lead() || w.lastChance())
	}
	// Without a new heartbeat there is nothing to write; the next look is an
	// interval later anyway.
	if time.Since(w.written) >= w.progressEvery() {
		if beat.After(w.written) && w.Under.Lease != nil {
			w.tell(w.Under.Record.Progress(beat, note))
		}
		w.written = time.Now()
	}
}

// announce makes the record say that the run is about to be handed over, so that
// followers poll often; or that it is not, after a late heartbeat. After a stop it
// stays announced.
func (w *watchdog) announce(stopping bool) {
	stopping = stopping || w.Under.Stop.Err() != nil
	if w.Under.Lease == nil || stopping == w.Under.told.announced.Swap(stopping) {
		return
	}
	err := w.Under.Record.Stopping(stopping)
	w.tell(err)
	if stopping && err == nil {
		note := "the run is about to stall"
		if w.Under.Stop.Err() != nil {
			note = "the replica stops"
		}
		w.Emit(event.Event{Kind: event.HandingOver, Note: note})
	}
}

// tell reports a write that failed. It is not repeated: other replicas learn the same a
// little later, from the next write or from the lease.
func (w *watchdog) tell(err error) {
	if err != nil {
		w.Emit(event.Event{Kind: event.Detail, Note: "the record was not updated", Err: err})
	}
}

// stalled gives up the run. The order matters: the record says so first, while the
// lease still permits a write; then the run's context ends; then the renewals end.
// Other replicas get the lease when the runner releases it after the run has
// returned, or when it expires because the run has not.
func (w *watchdog) stalled(cause error) {
	if w.handle.Leased() != nil {
		return // the loss of the lease is the true cause, and the record must not be written
	}
	w.gaveUp = cause
	// The stacks are taken before the context ends: afterwards they would show the
	// clean-up and not what hung.
	dump := goroutines()
	if w.Under.Lease != nil {
		w.tell(w.Under.Record.Stalled(stallReason(cause)))
	}
	w.fail(cause)
	if w.Under.Lease != nil {
		w.Under.Lease.GiveUp()
	}
	w.Emit(event.Event{Kind: event.NoProgress, Err: cause, Stack: dump})
}

// goroutines returns the stacks of all goroutines, cut at maxDump.
func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}
