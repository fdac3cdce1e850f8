package soloist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Wake is what a platform wakes a program up for. The zero value is enough:
// a call does what is due, whoever called.
type Wake struct {
	// Jobs are the names of those to look after. Empty: all.
	Jobs []string

	// Tick is the tick that a timer has fired for. The timer may be a moment
	// early, which is waited out; and a job that has no entry yet starts with
	// this tick. One that is not within a minute of the store's time, of this
	// process's for an Everywhere job, is not believed. Zero: not known.
	Tick time.Time
}

// RunDue does, once, what is due now for each job, then says when to look
// again. It is for platforms that wake a program up: nothing goes on in the
// background, and singletons are left out. Another replica's run is not waited
// for: a later call settles it if that replica dies. The error joins what kept
// jobs from being looked after, ticks whose lease was lost before they ran, and
// outcomes that were refused or not confirmed; a run that failed is in the report alone.
// A call tries for five lengths of the lease to write an outcome, then it ends.
//
// An Everywhere job has no record that says what is due: this process runs the
// tick that the wake-up names, else the newest of the last minute, and none
// twice.
//
// A job whose Timeout is longer than what the deadline of ctx leaves is not
// started: the report says so, and the tick stays due. Ticks that are not to be
// run are settled all the same.
func (s *Scheduler) RunDue(ctx context.Context) (Report, error) {
	return s.RunWake(ctx, Wake{})
}

// RunWake is [Scheduler.RunDue] for a wake-up of which more is known.
func (s *Scheduler) RunWake(ctx context.Context, wake Wake) (Report, error) {
	if err := s.Validate(); err != nil {
		return Report{}, err
	}
	for _, name := range wake.Jobs {
		if w, err := s.worker(name); err != nil {
			return Report{}, err
		} else if w.ticks == nil {
			return Report{}, fmt.Errorf("%s is a singleton: it has no ticks", name)
		}
	}
	defer s.lines.wait(lastLines)
	var jobs []*worker
	for _, w := range s.workers[:len(s.Jobs)] {
		if len(wake.Jobs) == 0 || slices.Contains(wake.Jobs, w.job) {
			jobs = append(jobs, w)
		}
	}
	reports := make([]JobReport, len(s.Jobs))
	each(jobs, func(w *worker) { reports[w.index] = w.runDue(ctx, wake) })
	return newReport(slices.DeleteFunc(reports, func(r JobReport) bool { return r.Job == "" }))
}

// runDue steps until nothing is left to do now.
func (w *worker) runDue(ctx context.Context, wake Wake) JobReport {
	select {
	case w.one <- struct{}{}:
		defer func() { <-w.one }()
	default: // this process is at it already
		return w.busyReport()
	}
	begin, more := time.Now(), true
	w.ran, w.undone, w.holder, w.lookAt, w.wake = &[]Fate{}, nil, "", time.Time{}, wake
	defer func() { w.ran, w.wake = nil, Wake{} }()
	for more && ctx.Err() == nil {
		w.soon = false
		wait := w.step(ctx)
		if early := w.early(); !w.soon && early > 0 {
			more, wait = true, early
			begin = time.Now().Add(early)
		} else {
			more = w.soon || wait == 0 && w.dueBefore(begin)
		}
		if more {
			sleep(ctx, wait)
		}
	}
	report := JobReport{Job: w.job, Ran: *w.ran, Holder: w.holder, Err: errors.Join(w.trouble(), w.unfit, w.undone)}
	if more {
		report.Err = errors.Join(report.Err, context.Cause(ctx))
	}
	report.Next = w.nextDue()
	return report
}

// nextDue is when the next tick is due, as far as this replica knows: by the
// record, whose definition may be another one, else by the schedule.
func (w *worker) nextDue() time.Time {
	switch {
	case w.everywhere:
		return w.ticks.Next(w.wall())
	case !w.known:
		return w.ticks.Next(w.dueTime())
	case w.outdated(&w.rec):
		return w.rec.nextDue()
	}
	return w.next(&w.rec)
}

// busyReport is the report of a call while this process runs the job.
func (w *worker) busyReport() JobReport {
	report := JobReport{Job: w.job, Holder: w.Replica, Next: w.ticks.Next(w.dueTime())}
	if w.everywhere {
		report.Err = w.trouble() // of a run that goes on though its context has ended
	}
	return report
}

// dueBefore reports whether there may be ticks left that were due at begin. One
// that came due since then waits for the next call: where each run makes the
// next tick due, the call would never end.
func (w *worker) dueBefore(begin time.Time) bool {
	if w.everywhere {
		return false
	}
	next := w.next(&w.rec)
	return !next.IsZero() && !next.After(w.dueTime().Add(-time.Since(begin)))
}

// wakeSpan is how far from the store's time the tick of a wake-up may be.
const wakeSpan = time.Minute

// early is how long it takes until the tick of the wake-up is due, zero if it
// is, or is over.
func (w *worker) early() time.Duration {
	if w.everywhere {
		return w.earlyHere()
	}
	if w.wake.Tick.IsZero() || !w.known {
		return 0
	}
	if w.rec.mayRun() && (w.entry == nil || w.entry.State.Live()) {
		return 0
	}
	next, now := w.next(&w.rec), w.dueTime()
	if next.IsZero() || next.After(w.wake.Tick) || w.wake.Tick.Sub(now) > wakeSpan {
		return 0
	}
	return next.Sub(now)
}

// firstThrough is the watermark of a new job, which was made at date: it owes
// nothing but the tick of the wake-up that it is made in.
func (w *worker) firstThrough(date time.Time) time.Time {
	tick := w.wake.Tick
	if d := date.Sub(tick); d < 0 || d > wakeSpan || !w.ticks.Last(tick).Equal(tick) {
		return date
	}
	return tick.Add(-time.Nanosecond).UTC()
}

// hasTime reports whether this call has time for what is due. If it is too short
// for a run, only the ticks that are to be settled without one are left to it.
func (w *worker) hasTime(ctx context.Context, now time.Time) bool {
	err := w.fits(ctx)
	if err == nil {
		return true
	}
	if next, _ := w.plan(&w.rec, now); next.run {
		w.unfit = err
	}
	w.settleOnly = true
	_, todo := w.plan(&w.rec, now)
	return todo
}

// stillFits is hasTime after a hold-off, which may take most of what was left of
// the call.
func (w *worker) stillFits(ctx context.Context) bool {
	if w.request != "" {
		return w.fits(ctx) == nil
	}
	return w.hasTime(ctx, w.dueTime())
}

// fits returns why nothing is to be started in this call of RunDue or RunNow.
func (w *worker) fits(ctx context.Context) error {
	deadline, bounded := ctx.Deadline()
	if w.ran == nil || !bounded || w.timeout == 0 {
		return nil
	}
	if left := time.Until(deadline); left < w.timeout {
		return fmt.Errorf("not started: it may take %s, and this call ends in %s", w.timeout, left.Round(time.Second))
	}
	return nil
}
