package mutex

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/runner"
	"github.com/soloist-go/soloist/internal/supervise"
)

// A Once is work that is done once for the key of its entry, by whichever replica is first.
type Once struct {
	Slot   *runner.Runner
	Clock  *lease.Clock
	Jitter *lease.Jitter
	Length time.Duration // of the lease
	Beat   time.Duration // of a run; zero: it sends none
	Retry  Retry
}

// A Retry says what follows a failure.
type Retry struct {
	Most    int           // failures on all replicas after which the work is given up; zero: no limit
	Backoff time.Duration // after the first failure; it doubles with each further one, up to five minutes
}

// A Trouble is why work is not done yet.
type Trouble struct {
	Holder string        // the replica that is at it; empty: none is
	Err    error         // the last failure, or what this replica has failed with; nil: there was none
	Failed bool          // the record has the failure; false: the work was not begun, or its outcome is not known
	Wait   time.Duration // until it is tried again; zero: not known
}

// Why work is not begun.
var (
	errDone    = errors.New("it is done")
	errGivenUp = errors.New("is not tried again for this key")
)

// A tooEarly says how long it is until the work may be tried again.
type tooEarly struct {
	wait time.Duration
	last error
}

func (e *tooEarly) Error() string { return e.last.Error() }

// Run returns nil once the work has succeeded, here or on another replica. Until then it reports what
// prevents the work.
func (o *Once) Run(ctx context.Context, work func(context.Context, *supervise.Handle) error, tell func(Trouble)) error {
	waits := pace{clock: o.Clock, jitter: o.Jitter, longest: o.Length / 6}
	for {
		var w wish
		outcome, err := runner.Take(ctx, o.Slot, rand.Text(), w.hears(work), runner.Terms{Bar: o.bar, Ends: w.add})
		if errors.Is(err, errDone) || err == nil && done(outcome.Status) {
			return nil
		}
		if errors.Is(err, errGivenUp) || runner.Unusable(err) {
			return err
		}
		if ctx.Err() == nil { // else it is not tried again
			lease.Sleep(ctx, o.wait(err, &waits, tell))
		}
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// wait returns how long it is until the next try, after a try that did nothing or whose work
// has failed. A replica that cannot do the work, or does not know whether it is recorded, waits as for
// another holder: another replica may do it.
func (o *Once) wait(err error, waits *pace, tell func(Trouble)) time.Duration {
	if held, is := errors.AsType[*runner.HeldError](err); is {
		tell(Trouble{Holder: cmp.Or(held.Replica, "another replica")})
		return waits.next([]*runner.HeldError{held})
	}
	if early, is := errors.AsType[*tooEarly](err); is {
		tell(Trouble{Err: early.last, Failed: true, Wait: early.wait})
		return early.wait
	}
	if err == nil {
		return shortest
	}
	tell(Trouble{Err: err, Wait: waits.longest})
	return waits.longest
}

// bar returns why the work must not be begun under a record, nil if it may.
func (o *Once) bar(rec *record.Record) error {
	if !rec.Succeeded.IsZero() || len(rec.History) > 0 && done(rec.History[0].Status) {
		return errDone
	}
	failures, last := failuresOf(rec)
	if failures == 0 {
		return nil
	}
	err := fmt.Errorf("it has failed on %s: %s", last.Replica, last.Reason)
	if forGood(rec) {
		return fmt.Errorf("it has failed on %s for good, and %w: %s", last.Replica, errGivenUp, last.Reason)
	}
	if o.Retry.Most > 0 && failures >= o.Retry.Most {
		if rec.MayRun() { // its holder may go on, and succeed, until that is written
			return runner.ErrUnsettled
		}
		if failures == 1 {
			return fmt.Errorf("it has failed on %s, and %w: %s", last.Replica, errGivenUp, last.Reason)
		}
		return fmt.Errorf("it has failed %d times, the last time on %s, and %w: %s", failures, last.Replica, errGivenUp, last.Reason)
	}
	if last.End.IsZero() { // of a death: its lease has run out
		last.End = last.Start.Add(cmp.Or(o.Beat, o.Length))
	}
	wait := instant.Later(last.End.Add(o.Retry.pause(failures)), rec.Due).Sub(o.Clock.Best())
	if wait <= 0 {
		return nil
	}
	return &tooEarly{wait, err}
}

// done reports whether work with this outcome is not to be done again. Skipped is what becomes of work
// that found nothing to do.
func done(s event.Status) bool { return s == event.Succeeded || s == event.Skipped }

// failuresOf returns how often the work has failed, and the last failure as far as the record has it. A
// run whose lease is not live any more, as it is here, has failed.
func failuresOf(rec *record.Record) (n int, last event.Outcome) {
	n = int(rec.Failures)
	if rec.MayRun() {
		return n + 1, plan.LastOutcome(rec, event.Abandoned, "its runner died")
	}
	for _, o := range rec.History {
		if plan.IsFailure(&o) {
			return n, o
		}
	}
	return n, plan.LastOutcome(rec, rec.Run.Status, rec.Run.Error)
}

// longestPause is the longest pause between two tries.
const longestPause = 5 * time.Minute

// pause returns the pause after so many failures.
func (r Retry) pause(failures int) time.Duration {
	pause := r.Backoff
	for range failures - 1 {
		pause = min(2*pause, longestPause)
	}
	return min(pause, longestPause)
}

// A wish is what work that has failed says of its next try. All replicas keep to it, so it is in the
// record: as for a job that has paused itself, and is due later.
type wish struct {
	permanent bool          // there is to be none
	pause     time.Duration // until then, at least
}

// hears returns the work, which leaves its wish.
func (w *wish) hears(work func(context.Context, *supervise.Handle) error) func(context.Context, *supervise.Handle) error {
	return func(ctx context.Context, h *supervise.Handle) error {
		err := work(ctx, h)
		w.permanent = supervise.IsPermanent(err)
		w.pause, _ = supervise.AskedPause(err)
		return err
	}
}

// add puts the wish into the record of an outcome. A run that was stopped or has lost its lease has none.
// The next claim takes away the pause.
func (w *wish) add(rec *record.Record) {
	if rec.Run.Status != event.Failed {
		return
	}
	if w.permanent {
		rec.Orders.Paused = record.SelfPause{At: rec.Run.Claimed, Token: rec.Token}
	}
	if w.pause > 0 {
		rec.Due = rec.Run.Finished.Add(w.pause)
	}
}

// forGood reports whether work has said that there is to be no further try.
func forGood(rec *record.Record) bool { return !rec.Orders.Paused.At.IsZero() }
