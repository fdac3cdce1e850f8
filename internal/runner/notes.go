package runner

import (
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
)

const (
	maxSleep = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended

	// restDegraded is how soon a replica that takes nothing new looks whether it
	// can again.
	restDegraded = time.Second
)

// readAgain has the entry read anew after d.
func (r *Runner) readAgain(d time.Duration) time.Duration {
	r.view.entry, r.view.readAt = nil, time.Now().Add(d)
	return d
}

// lookedAway says that the entry may have been changed and changed again.
func (r *Runner) lookedAway() {
	r.view.entry = nil
	r.view.seen.At = time.Now()
	r.view.seen.LookedAway()
}

// frozen reports whether the monotonic clock has counted less time than the wall
// clock since the entry was last read or written here: a platform may freeze a
// process between two calls. A step of the wall clock costs one more read.
func (r *Runner) frozen() bool {
	return r.replica.Wall().Sub(r.view.seenAt)-time.Since(r.view.seen.LookedAt) > time.Second
}

// wait is how long an action has this replica wait.
func (r *Runner) wait(a plan.Action) time.Duration {
	d := a.After
	if a.Jitter > 0 {
		d += r.client.Jitter.UpTo(a.Jitter)
	}
	if a.Most > 0 {
		d = min(d, a.Most)
	}
	if a.Read {
		return r.readAgain(d)
	}
	return d
}

// note keeps why the job is left alone, nil for all is well, and logs a change.
// Without write access nothing is well, however much can be read.
func (r *Runner) note(err error) { r.notice(slog.LevelError, err) }

// notice is note with the level that trouble is logged at.
func (r *Runner) notice(level slog.Level, err error) {
	if err == nil {
		err = r.denial.err
	}
	var old error
	r.source.state.set(func(n *snapshot) { old, n.broken = n.broken, err })
	switch {
	case err == nil && old != nil:
		r.log.Info("the job is looked after again")
	case err != nil && (old == nil || old.Error() != err.Error()):
		logAt(r.log, level, "the job is left alone", "error", err)
	}
}

// reached says that the store answered, whatever it was.
func (r *Runner) reached() {
	r.pause.Reset()
	r.answered()
}

// tellTrouble is for the calls of a session, which go on beside the runner: why
// one failed again, nil once it did not.
func (r *Runner) tellTrouble(err error) {
	if err != nil {
		r.failed(err)
	} else {
		r.answered()
	}
}

func (r *Runner) failed(err error) {
	r.source.state.set(func(n *snapshot) { n.storage = err })
	r.replica.outage.begin(r.source, err, r.replicaLog())
}

func (r *Runner) answered() {
	r.source.state.set(func(n *snapshot) { n.storage = nil })
	r.replica.outage.end(r.source, r.replicaLog())
}

func (r *Runner) replicaLog() *slog.Logger { return r.replica.Lines.Logger(r.replica.Logger) }

// readable ends an outage between two wake-ups, when no loop asks the store. A
// successful read does not clear a refusal: the credentials may be read-only.
func (r *Runner) readable() {
	n := r.source.state.get()
	if n.looping || n.busy || n.byHand > 0 || n.storage == nil || errors.Is(n.storage, fs.ErrPermission) {
		return
	}
	r.answered()
}

// A recordError is a record that must be left alone.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() + "; it is left alone and nothing runs" }
func (e *recordError) Unwrap() error { return e.err }

// unusable notes why the entry could not be used, and returns when to try again.
// stopped reports that the call was ended: then the store is not to blame.
func (r *Runner) unusable(stopped bool, err error) time.Duration {
	if stopped {
		return r.readAgain(0)
	}
	if _, bad := errors.AsType[*recordError](err); bad {
		r.reached()
		r.note(err)
		return r.readAgain(maxSleep)
	}
	r.lookedAway()
	r.failed(err)
	return r.readAgain(r.pause.Next())
}

// written keeps what a session has written, and that it could.
func (r *Runner) written(s *lease.Session) {
	r.view.rec, r.view.etag = s.Record(), s.ETag()
}
