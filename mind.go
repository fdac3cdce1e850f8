package soloist

import (
	"context"
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

	written time.Time // monotonic: when progress was written
	gaveUp  error     // why the run was given up as a stalled one
}

// mind starts a minder; done ends it once the context of the run has ended, waits
// for that, and returns why it gave the run up, if so.
func (w *worker) mind(stop context.Context, run *Run, fail context.CancelCauseFunc) (done func() error) {
	m := &minder{worker: w, live: run.live, run: run, stop: stop, fail: fail,
		verdicts: make(chan error), written: run.live.beat}
	ctx, cancel := context.WithCancel(context.Background())
	var watch, ask sync.WaitGroup
	watch.Go(func() { m.watch(ctx) })
	watch.Go(func() { m.watchReturn(ctx) })
	if m.hold != nil {
		watch.Go(func() { m.watchLoss(ctx) })
	}
	if w.limits.healthy != nil {
		ask.Go(m.askHealthy)
	}
	return func() error {
		ask.Wait()
		cancel()
		watch.Wait()
		m.setOverrun(nil)
		return m.gaveUp
	}
}

// watch returns when ctx ends: the run is over.
func (m *minder) watch(ctx context.Context) {
	stop := m.stop.Done()
	if m.hold == nil || m.grace() == 0 {
		stop = nil // there is nobody, or no time, to hand over to
	}
	m.announce(false) // a try before may have said so
	for ctx.Err() == nil {
		if m.judgeWaiting() {
			continue
		}
		t := time.NewTimer(m.wait())
		select {
		case <-ctx.Done():
		case <-t.C:
			m.look()
		case <-m.alarm:
			m.look()
		case err := <-m.verdicts:
			m.judge(err)
		case <-stop:
			stop = nil
			m.announce(true)
		}
		t.Stop()
	}
}

// judgeWaiting judges a verdict that has come while the minder was busy, as with a
// write that hung. It comes first: else chance would decide between it and what
// else is due by then.
func (m *minder) judgeWaiting() bool {
	select {
	case err := <-m.verdicts:
		m.judge(err)
		return true
	default:
		return false
	}
}

// lead is how long before the end of Silence the record announces it, so that
// followers are near when the run is given up. A Silence in which they cannot
// come near is not announced: each late heartbeat would cost two writes.
func (m *minder) lead() time.Duration {
	if m.limits.silence < m.comeCloser() {
		return 0
	}
	return min(m.comeCloser(), m.limits.silence/4)
}

// lastChance reports whether the next failure of Healthy ends the run, and
// followers have the time to come near. Calls that follow each other within a
// sixth of the lease are not announced: most followers would not look in time.
func (m *minder) lastChance() bool {
	return m.failures > 0 && m.failures == m.limits.failures-1 && m.limits.every >= m.length/6
}

// wait is how long there is nothing to look at.
func (m *minder) wait() time.Duration {
	wait := m.progressEvery() - time.Since(m.written)
	if m.limits.silence > 0 && !m.ended() {
		beat, _ := m.last()
		left := m.limits.silence - time.Since(beat)
		if m.hold != nil && !m.hold.announced.Load() {
			left -= m.lead()
		}
		wait = min(wait, left)
	}
	return max(wait, 0)
}

func (m *minder) progressEvery() time.Duration { return max(progressEvery, m.limits.silence/3) }

// look does what wait has waited for.
func (m *minder) look() {
	beat, note := m.last()
	if !m.ended() {
		quiet, silence := time.Since(beat), m.limits.silence
		if silence > 0 && quiet >= silence {
			m.stalled(fmt.Errorf("%w: no heartbeat for %s", ErrStalled, silence))
			return
		}
		m.announce(silence > 0 && quiet >= silence-m.lead() || m.lastChance())
	}
	if time.Since(m.written) >= m.progressEvery() {
		if beat.After(m.written) && m.hold != nil {
			m.write(m.hold.progress(beat, note))
		}
		m.written = time.Now()
	}
}

// announce has the record say that the run is about to be handed over, or that
// it is not after all.
func (m *minder) announce(stopping bool) {
	stopping = stopping || m.stop.Err() != nil
	if m.hold == nil || stopping == m.hold.announced.Swap(stopping) {
		return
	}
	m.write(func(r *Record) { r.Stopping = stopping })
}

// write tells others, which is a courtesy: a write that fails is not repeated.
func (m *minder) write(draft func(*Record)) {
	ctx, cancel := context.WithTimeout(m.hold.held, m.hold.try())
	defer cancel()
	if err := m.hold.write(ctx, draft, nil, m.hold.courtesy); err != nil {
		m.run.own.Debug("the record was not brought up to date", "error", err)
	}
}

// stalled ends the run. Others learn of it first, and then get the lease:
// released when the run returns, run out if it does not.
func (m *minder) stalled(cause error) {
	if m.hold != nil && m.leased(m.clock.elapsed()) != nil {
		return // it has lost its lease as well, which counts
	}
	m.gaveUp = cause
	dump := goroutines()
	if m.hold != nil {
		lo, _, _ := m.clock.now()
		m.write(func(r *Record) { *r = m.planner.stall(r, why(cause), lo) })
	}
	m.fail(cause)
	if m.hold != nil {
		m.hold.giveUp()
	}
	m.run.own.Error("the run has stalled", "error", cause, "goroutines", dump)
}

func goroutines() string {
	b := make([]byte, maxDump)
	return string(b[:runtime.Stack(b, true)])
}
