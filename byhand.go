package soloist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"time"
)

// requestRule keeps requests short and plain: they are in the record, in logs,
// and in [Run.ID].
var requestRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`)

// RunNow runs a job once by hand, beside its ticks, on this replica, and returns
// when that is over or ctx, after Grace, has ended it. It is claimed as a tick is,
// so only one replica runs the job at a time; it settles no tick but those that
// come due under it, which are skipped. If another tick was due before it, they
// are left too, and Missed says what becomes of all of them. Where the schedule in
// force is another one, it stays in force, and all its ticks are left to it.
//
// The request names the wish: up to 64 letters, digits, dots, colons, hyphens
// and underscores. One that reads as a tick in [Run.ID] is refused. One that the
// record still knows is not run again, and its fate returned. A job whose Timeout is longer than what the deadline of ctx
// leaves is not started. [ErrHeld]: another replica runs the job, or its tick
// has to be run again first. Where ctx ends before the run has begun, the request
// stays unknown, and may be made again. Where the run was over and its outcome
// was refused, as another replica had settled the run, or not confirmed, as the
// store did not answer, the error says so.
func (s *Scheduler) RunNow(ctx context.Context, job, request string) (Fate, error) {
	w, err := s.worker(job)
	switch {
	case err != nil:
		return Fate{}, err
	case w.ticks == nil:
		return Fate{}, fmt.Errorf("%s is a singleton: it is not run by hand", job)
	case !requestRule.MatchString(request):
		return Fate{}, wrong("request", quote(request), "a letter or digit, then up to 63 of them or . : - _")
	case readsAsTick(request):
		return Fate{}, wrong("request", quote(request), "none that reads as a tick: Run.ID would be the id of that tick")
	}
	defer s.lines.wait(lastLines)
	m := s.newWorker(w.cell, w.state)
	m.duty, m.planner, m.ran = w.duty, w.policy, &[]Fate{}
	m.request, m.rest = request, 0
	if m.everywhere {
		if err := errors.Join(context.Cause(ctx), m.unwell(), m.fits(ctx)); err != nil {
			return Fate{}, err
		}
		m.runHere(ctx, m.wall().UTC())
		return (*m.ran)[0], nil
	}
	defer m.outage.leave(m)
	return m.byHand(ctx)
}

// readsAsTick reports whether a request is written as a tick is in [Run.ID].
func readsAsTick(request string) bool {
	at, err := time.Parse(time.RFC3339, request)
	return err == nil && at.UTC().Format(time.RFC3339) == request
}

// byHand steps until the request has its fate, or cannot have one now.
func (w *worker) byHand(ctx context.Context) (Fate, error) {
	var err error
	for ctx.Err() == nil {
		var wait time.Duration
		if err = w.look(ctx); err != nil {
			if _, bad := errors.AsType[*recordError](err); bad {
				return Fate{}, err
			}
			wait = w.fault(ctx, err)
		} else {
			if fate, known := w.rec.request(w.request, w.entry.State); known {
				return fate, nil
			}
			if err = w.hinderedByHand(ctx); err != nil {
				return Fate{}, err
			}
			if w.entry.State.Live() { // another client is about to claim, or died before it could
				if err = w.occupied(); err != nil {
					return Fate{}, err
				}
				wait = w.dice.jitter(w.length / 6)
			} else {
				wait = w.attempt(ctx)
			}
		}
		if len(*w.ran) > 0 {
			return (*w.ran)[0], nil
		}
		if w.undone != nil { // this call had the run, and knows more than the record
			return Fate{}, errors.Join(w.undone, context.Cause(ctx))
		}
		if errors.Is(w.denied, fs.ErrPermission) || errors.Is(w.denied, errNotEncoded) { // another failure may pass
			return Fate{}, w.denied
		}
		sleep(ctx, wait)
	}
	return Fate{}, errors.Join(cmp.Or(w.trouble(), err), context.Cause(ctx))
}

// hinderedByHand is why the job cannot be run now.
func (w *worker) hinderedByHand(ctx context.Context) error {
	if err := w.unwell(); err != nil {
		return err
	}
	if err := w.fits(ctx); err != nil {
		return err
	}
	if w.outdated(&w.rec) {
		return errors.New("a replica that started later has another schedule for this job: ask that one")
	}
	if w.rec.mayRun() && w.entry.State.Live() {
		return fmt.Errorf("%w: %s runs it", ErrHeld, w.rec.Holder)
	}
	if w.undecided(&w.rec) {
		return fmt.Errorf("%w: the schedule in force is another one, and decides whether its last run is repeated: ask again once a replica with that schedule, or a tick of this one, has settled it", ErrHeld)
	}
	if _, todo := w.plan(&w.rec, w.dueTime()); !todo {
		return fmt.Errorf("%w: its tick %s has to be run again first", ErrHeld, w.rec.Tick.Format(time.RFC3339))
	}
	return nil
}

// request returns the fate of a run by hand, as far as the record knows it.
func (r *Record) request(name string, lease LeaseState) (Fate, bool) {
	i := slices.IndexFunc(r.History, func(f Fate) bool { return f.Request == name })
	switch {
	case i >= 0:
		f := r.History[i]
		if f.Token == r.Epoch && r.Error != "" { // the history keeps only the beginning of it
			f.Reason = r.Error
		}
		return f, true
	case r.Request != name:
		return Fate{}, false
	case r.Status == Running && !lease.Live():
		return lastFate(r, Abandoned, r.endReason(lease == Broken)), true
	}
	return lastFate(r, r.Status, r.Error), true
}
