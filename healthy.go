package soloist

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	defaultHealthy  = 10 * time.Second
	defaultFailures = 3
)

// limits are when a run counts as stalled.
type limits struct {
	silence  time.Duration // zero: none
	healthy  func(context.Context) error
	every    time.Duration // between two calls of healthy
	failures int           // in a row
}

func newLimits(silence time.Duration, healthy func(context.Context) error, every time.Duration, failures int) limits {
	return limits{silence, healthy, orDefault(every, defaultHealthy), orDefault(failures, defaultFailures)}
}

// askHealthy asks the user's function at each interval until the run is over,
// one call at a time.
func (m *minder) askHealthy() {
	for waitFor(m.ctx, m.ctx, m.limits.every) {
		for late := true; late && m.ctx.Err() == nil; {
			late = m.ask()
		}
	}
}

// ask makes one call. It returns true if the answer came when the next call was
// due: that is a failure, as is each further interval without one.
func (m *minder) ask() (late bool) {
	ctx, cancel := context.WithTimeout(m.ctx, m.limits.every)
	defer cancel()
	answer := make(chan error, 1)
	go func() {
		answer <- call(ctx, func(ctx context.Context, _ *Run) error { return m.limits.healthy(ctx) }, m.run)
	}()
	for {
		select {
		case err := <-answer:
			if !late && ctx.Err() == nil {
				m.verdict(err)
				return false
			}
			if !late {
				m.verdict(errNoAnswer)
			}
			return true
		case <-time.After(m.limits.every):
			late = true
			m.verdict(errNoAnswer)
		case <-m.ctx.Done():
			<-answer
			return false
		}
	}
}

var errNoAnswer = errors.New("no answer before the next check was due")

func (m *minder) verdict(err error) {
	select {
	case m.verdicts <- err:
	case <-m.ctx.Done():
	}
}

// judge counts failures. Others are told before the last one.
func (m *minder) judge(err error) {
	if m.ended() {
		return
	}
	if err == nil {
		m.failures = 0
		m.look()
		return
	}
	m.failures++
	m.run.own.Warn("the run is not healthy", "failure", m.failures, "of", m.limits.failures, "error", err)
	if m.failures >= m.limits.failures {
		m.stalled(fmt.Errorf("%w: unhealthy %d times in a row: %w", ErrStalled, m.failures, err))
		return
	}
	m.look()
}
