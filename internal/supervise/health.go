package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
)

var errNoAnswer = errors.New("no answer before the next check was due")

// checkHealth asks the user's function at each interval until the run is over,
// one call at a time.
func (w *watchdog) checkHealth() {
	over := w.handle.ctx
	for lease.WaitFor(over, over, w.task.HealthInterval) {
		for late := true; late && over.Err() == nil; {
			late = w.ask(over)
		}
	}
}

// ask makes one call. It returns true if the answer came when the next call was
// due: that is a failure, as is each further interval without one.
func (w *watchdog) ask(over context.Context) (late bool) {
	every := w.task.HealthInterval
	ctx, cancel := context.WithTimeout(over, every)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		answer <- call(w.log, func() error { return w.task.HealthCheck(ctx) })
	}()
	for {
		select {
		case err := <-answer:
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

func (w *watchdog) verdict(err error) {
	select {
	case w.verdicts <- err:
	case <-w.handle.ctx.Done():
	}
}

// judge counts failures. Others are told before the last one.
func (w *watchdog) judge(err error) {
	if w.handle.ended() {
		return
	}
	if err == nil {
		w.failures = 0
		w.look()
		return
	}
	w.failures++
	w.log.Warn("the run is not healthy", "failure", w.failures, "of", w.task.FailureThreshold, "error", err)
	if w.failures >= w.task.FailureThreshold {
		w.stalled(fmt.Errorf("%w: unhealthy %d times in a row: %w", ErrStalled, w.failures, err))
		return
	}
	w.look()
}
