package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
)

// errNoAnswer is the failure of a HealthCheck that has not returned in time. A
// check that hangs is the usual sign of a task that hangs.
var errNoAnswer = errors.New("no answer before the next check was due")

// checkHealth calls HealthCheck at each interval until the run's context ends. It
// makes one call at a time, in its own goroutine: a check that hangs must not delay
// the watchdog.
func (w *watchdog) checkHealth() {
	over := w.handle.ctx
	for lease.WaitFor(over, over, w.Task.HealthInterval) {
		for late := true; late && over.Err() == nil; {
			late = w.ask(over)
		}
	}
}

// ask makes one call of HealthCheck and sends its verdicts to the watchdog. A call
// that has not answered when the next one is due is a failure, and so is each further
// interval that it takes. Then ask returns true, so that the next call comes at once:
// the interval is over already. It returns only after HealthCheck has returned, since
// user code must not outlive its run.
func (w *watchdog) ask(over context.Context) (late bool) {
	every := w.Task.HealthInterval
	ctx, cancel := context.WithTimeout(over, every)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		answer <- w.call(w.emit, func() error { return w.Task.HealthCheck(ctx) })
	}()
	for {
		select {
		case err := <-answer:
			// An answer that arrives after its deadline does not count, not even a good
			// one. If it was late, its failure has been reported already.
			if !late && ctx.Err() == nil {
				w.verdict(err)
				return false
			}
			if !late {
				w.verdict(errNoAnswer)
			}
			return true
		case <-time.After(every):
			late = true
			w.verdict(errNoAnswer)
		case <-over.Done():
			<-answer
			return false
		}
	}
}

// verdict hands a verdict to the watchdog, which may be busy with a write. It waits,
// since verdicts are counted; but not beyond the end of the run.
func (w *watchdog) verdict(err error) {
	select {
	case w.verdicts <- err:
	case <-w.handle.ctx.Done():
	}
}

// judge counts failures in a row and ends the run at the threshold. Before the last
// failure that is left, look announces the end to the followers; see lastChance.
func (w *watchdog) judge(err error) {
	if w.handle.ended() {
		return
	}
	if err == nil {
		w.failures = 0
	} else {
		w.failures++
		w.Emit(event.Event{Kind: event.Unhealthy, Count: w.failures, Of: w.Task.FailureThreshold, Err: err})
	}
	if w.failures < w.Task.FailureThreshold {
		w.look()
		return
	}
	why := "unhealthy"
	if w.failures > 1 {
		why = fmt.Sprintf("unhealthy %d times in a row", w.failures)
	}
	w.stalled(fmt.Errorf("%w: %s: %w", ErrStalled, why, err))
}
