package soloist

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

const (
	progressEvery = time.Minute
	maxDump       = 64 << 10 // bytes of goroutines in a log
)

// A minder watches one try from its start until it has returned: it writes how
// far the run is, ends one that has stalled, and says so when one does not obey.
type minder struct {
	*worker
	*live
	run  *Run
	stop context.Context // ends when the run is to be handed over
	fail context.CancelCauseFunc

	verdicts chan error // of Healthy
	failures int        // in a row

	written   time.Duration // elapsed: when progress was written
	announced bool          // the record says that the run is stopping
}

// mind starts a minder; done ends it once the context of the run has ended, and
// waits for that.
func (w *worker) mind(stop context.Context, run *Run, fail context.CancelCauseFunc) (done func()) {
	m := &minder{worker: w, live: run.live, run: run, stop: stop, fail: fail,
		verdicts: make(chan error), written: run.live.start,
		announced: run.live.hold != nil && run.live.hold.stopping()}
	ctx, cancel := context.WithCancel(context.Background())
	var watch, ask sync.WaitGroup
	watch.Go(func() { m.watch(ctx) })
	if w.limits.healthy != nil {
		ask.Go(m.askHealthy)
	}
	return func() {
		ask.Wait()
		cancel()
		watch.Wait()
		m.setOverrun(nil)
	}
}

// watch returns when ctx ends: the run is over.
func (m *minder) watch(ctx context.Context) {
	stop, end := m.stop.Done(), m.ctx.Done()
	if m.hold == nil || m.grace() == 0 {
		stop = nil // there is nobody, or no time, to hand over to
	}
	for ctx.Err() == nil {
		t := time.NewTimer(m.wait())
		select {
		case <-ctx.Done():
		case <-t.C:
			m.look()
		case err := <-m.verdicts:
			m.judge(err)
		case <-stop:
			stop = nil
			m.announce(true)
		case <-end:
			end = nil
			m.overrun(ctx)
		}
		t.Stop()
	}
}

// lead is how long before the end of Silence others are told, so that they are
// near when the run is given up.
func (m *minder) lead() time.Duration {
	return min(m.comeCloser(), m.limits.silence/2)
}

// wait is how long there is nothing to look at.
func (m *minder) wait() time.Duration {
	now := m.clock.elapsed()
	wait := m.written + m.progressEvery() - now
	if m.limits.silence > 0 && m.ctx.Err() == nil {
		beat, _ := m.last()
		next := beat + m.limits.silence - now
		if !m.announced {
			next -= m.lead()
		}
		wait = min(wait, next)
	}
	return max(wait, 0)
}

func (m *minder) progressEvery() time.Duration { return max(progressEvery, m.limits.silence/3) }

// look does what wait has waited for.
func (m *minder) look() {
	now := m.clock.elapsed()
	beat, note := m.last()
	if m.ctx.Err() == nil {
		quiet, silence := now-beat, m.limits.silence
		if silence > 0 && quiet >= silence {
			m.stalled(fmt.Errorf("%w: no heartbeat for %s", ErrStalled, silence))
			return
		}
		m.announce(silence > 0 && quiet >= silence-m.lead() || m.failures > 0 && m.failures == m.limits.failures-1)
	}
	if now-m.written >= m.progressEvery() {
		if beat > m.written && m.hold != nil {
			m.write(m.hold.progress(beat, note))
		}
		m.written = now
	}
}

// announce has the record say that the run is about to be handed over, or that
// it is not after all.
func (m *minder) announce(stopping bool) {
	stopping = stopping || m.stop.Err() != nil
	if m.hold == nil || stopping == m.announced {
		return
	}
	m.announced = stopping
	m.write(func(r *Record) { r.Stopping = stopping })
}

// write tells others, which is a courtesy: a write that fails is not repeated.
func (m *minder) write(draft func(*Record)) {
	ctx, cancel := context.WithTimeout(m.hold.held, m.hold.try())
	defer cancel()
	if err := m.hold.write(ctx, draft, nil, m.hold.once); err != nil {
		m.run.Log.Debug("the record was not brought up to date", "error", err)
	}
}

// stalled ends the run. Others learn of it first, and then get the lease:
// released when the run returns, run out if it does not.
func (m *minder) stalled(cause error) {
	if m.hold != nil && m.leased(m.clock.elapsed()) != nil {
		return // it has lost its lease as well, which counts
	}
	m.run.Log.Error("the run has stalled", "error", cause, "goroutines", goroutines())
	if m.hold != nil {
		lo, _, _ := m.clock.now()
		m.write(func(r *Record) { *r = m.planner.stall(r, why(cause), lo) })
		defer m.hold.giveUp()
	}
	m.fail(cause)
}

func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}

// overrun waits for a run whose context has ended. If it does not return, this
// replica is not well: it takes nothing new. After the loss of the lease or a
// stall the process may have to go.
func (m *minder) overrun(ctx context.Context) {
	cause := context.Cause(m.ctx)
	if waitFor(ctx, ctx, m.cell.try()) {
		m.setOverrun(cause)
		m.run.Log.Error("the run ignores the end of its context", "cause", cause)
		if m.Overrun != nil && (errors.Is(cause, ErrLost) || errors.Is(cause, ErrStalled)) {
			m.Overrun(m.job, cause)
		}
	}
}
