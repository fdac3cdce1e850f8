package runner

import (
	"errors"
	"io/fs"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

const (
	maxSleep = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended

	// restDegraded is how soon a replica that starts nothing new checks whether it
	// can start again.
	restDegraded = time.Second
)

// readAgain forgets the entry, so that it is read after d and not before. It returns d,
// which is usually how long the step waits. Where there are many jobs, d becomes a little longer,
// so that their reads come together.
func (r *Runner) readAgain(d time.Duration) time.Duration {
	d = r.replica.reads.Round(d)
	r.view.entry, r.view.readAt = nil, time.Now().Add(d)
	return d
}

// lookedAway notes a time in which this replica did not watch the entry: it may have
// changed and changed back, so nothing seen before counts as seen without a break.
func (r *Runner) lookedAway() {
	r.view.entry = nil
	r.view.seen.At = time.Now()
	r.view.seen.LookedAway()
}

// frozen reports whether the wall clock has counted more time than the monotonic clock
// since the entry was last read or written here. A platform may freeze a process between
// two calls, and the monotonic clock then stands still. A wall clock that was set looks
// the same, and costs one more read.
func (r *Runner) frozen() bool {
	return r.replica.Wall().Sub(r.view.seenAt)-time.Since(r.view.seen.LookedAt) > time.Second
}

// wait returns how long an action makes this replica wait, with its jitter.
func (r *Runner) wait(a plan.Action) time.Duration {
	d := a.After
	if a.Jitter > 0 && !(a.Read && r.replica.reads.Many()) { // readAgain has instants that differ between replicas
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

// A condition says whether this replica can do its part for a job, and what it has reported of that.
type condition struct {
	reporter
	pause  *lease.Backoff // between calls to a store that does not answer
	denial denial
}

// note keeps why the job is skipped, for Health, and reports a change. Nil means that
// all is well; but a replica that cannot write the entry stays in trouble, however much
// it can read.
func (r *condition) note(err error) { r.notice(false, err) }

// notice is note for trouble that may be passing. The same text is reported once and not at
// each step.
func (r *condition) notice(passing bool, err error) {
	if err == nil {
		err = r.denial.err
	}
	var old error
	r.source.state.set(func(n *snapshot) { old, n.broken = n.broken, err })
	switch {
	case err == nil && old != nil:
		r.emit(event.Event{Kind: event.TakenUp})
	case err != nil && (old == nil || old.Error() != err.Error()):
		e := event.Event{Kind: event.LeftAlone, Err: err}
		if passing {
			e.Note = "it may end by itself"
		}
		r.emit(e)
	}
}

// reached notes that the store has answered, whatever it said.
func (r *condition) reached() {
	r.pause.Reset()
	r.answered()
}

// tellTrouble receives trouble from a session, whose renewals and writes go on in other
// goroutines: why a call has failed again, nil once one succeeds. It must not touch
// r.pause, which belongs to the goroutine of the runner.
func (r *condition) tellTrouble(err error) {
	if err != nil {
		r.failed(err)
	} else {
		r.answered()
	}
}

// failed notes a call that the store did not answer.
func (r *condition) failed(err error) {
	r.source.state.set(func(n *snapshot) { n.storage = err })
	r.replica.vitals.outage.begin(r.source, err, r.replica.Emit)
}

// answered notes a call that the store answered.
func (r *condition) answered() {
	r.source.state.set(func(n *snapshot) { n.storage = nil })
	r.replica.vitals.outage.end(r.source, r.replica.Emit)
}

// readable notes, for Status, that the store can be read. It ends an outage that was
// seen by a call of RunDue, since no loop will ask the store before the next one. It
// does not end a refusal: the credentials may be read-only.
func (r *condition) readable() {
	n := r.source.state.get()
	if n.looping || n.busy || n.byHand > 0 || n.storage == nil || errors.Is(n.storage, fs.ErrPermission) {
		return
	}
	r.answered()
}

// A recordError says that the record must not be touched: it is damaged, foreign, or
// from another time. The job is not run, and the record is not overwritten.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() + "; it is left alone and nothing runs" }
func (e *recordError) Unwrap() error { return e.err }

// Unusable reports whether an error says that the record cannot be used. It stays so until a person
// corrects it.
func Unusable(err error) bool {
	_, bad := errors.AsType[*recordError](err)
	return bad
}

// unusable notes why the entry could not be used and returns how long to wait. If the
// call was stopped, its error says nothing about the store. A record that must be left
// alone is the job's trouble, since the store has answered; any other error is the
// store's.
func (r *Runner) unusable(stopped bool, err error) time.Duration {
	if stopped {
		return r.readAgain(0)
	}
	if _, bad := errors.AsType[*recordError](err); bad {
		r.reached()
		r.note(err)
		return r.readAgain(maxSleep)
	}
	// While the store does not answer, the entry is not watched.
	r.lookedAway()
	r.failed(err)
	return r.readAgain(r.pause.Next())
}

// written takes over what a session has written as what this replica has seen. The followers of
// the job may wait for what it has settled, or for what another replica had settled before: they do
// not read the entry while this replica is busy with the job.
func (r *Runner) written(s *lease.Session) {
	through := r.view.rec.Watermark
	r.view.rec, r.view.etag = s.Record(), s.ETag()
	r.precede(&r.view.rec, r.view.rec.Watermark.After(through))
	r.weigh()
	r.view.seen.Dated(s.ETag(), s.WrittenAt())
}

// precede notifies the followers of the job of what a record says that this replica has written. settles
// says that this write has settled ticks.
func (r *Runner) precede(rec *store.Record, settles bool) {
	for _, tell := range r.source.state.followed {
		tell(rec, settles, r.now())
	}
}
