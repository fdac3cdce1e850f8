package soloist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"
)

const (
	maxSleep  = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended
	lookEvery = time.Minute      // at a record that is not expected to change
	firstLook = 300 * time.Millisecond
	minIdle   = 10 * time.Millisecond  // whatever the clocks say
	nearEvery = 100 * time.Millisecond // at a run that is about to be handed over
)

// A duty is what there is to do, as the program says.
type duty struct {
	index      int
	job        string
	work       func(context.Context, *Run) error
	words      func() string // the schedule, for people
	timeout    time.Duration // of a try
	limits     limits
	largest    int // checkpoint, in bytes
	tries      int
	tryAfter   time.Duration // before the second try
	rest       time.Duration // of a singleton: the shortest pause between two terms here
	everywhere bool          // it has no entry at all
	policy     planner       // as the program says, for a worker that begins
	log        *slog.Logger  // through the queue
	runLog     *slog.Logger  // of what runs: not through it
}

// A worker does the ticks of one job on one replica, or the terms of one
// singleton. It lives in one goroutine.
type worker struct {
	*Scheduler
	cell
	planner
	duty
	state  *state
	one    chan struct{} // has room for whoever drives it: Run or RunDue
	pause  *backoff      // between calls to a store that does not answer
	losses *backoff      // between acquisitions that come too late

	denied   error    // why this replica cannot write the entry; nil: it can, as far as known
	deniedOn string   // ETag of the record then
	denials  *backoff // between claims that fail for that

	through time.Time // Everywhere: ticks up to here are over
	resting bool      // Everywhere: this replica takes nothing new

	known  bool      // an entry of this job, ever
	entry  *Entry    // last seen, nil: has to be read
	rec    Record    // of entry
	etag   string    // of rec, as last read or written here
	lookAt time.Time // an entry that has to be read is not read before
	freed  sighting  // the lease of an unfinished run that did not run out by itself
	closer sighting  // a run that is about to be handed over
	still  struct {  // since when each look at the entry has shown it unchanged
		etag string
		at   time.Time
		date time.Time // the service's, in the first of them
	}
	occupation occupation    // the lease without a run that was seen last
	looked     time.Time     // monotonic: when the entry was last read or written here
	marked     time.Time     // monotonic: when this replica's definition was last seen to ask whether a younger one is up
	claimedAt  time.Duration // elapsed time at the Claimed of the last claim here
	heir       time.Time     // when this replica took over from younger ones that are gone, by the service's clock

	wake   Wake    // what RunDue was called for
	unfit  error   // why the tick that is due was not started
	soon   bool    // RunDue goes on: the next step ends the business of this one, and is for no later tick
	ran    *[]Fate // since RunDue began; nil: nobody asks
	undone error   // why a run since then has no fate by us
	holder string  // the other replica that runs now, as far as known
}

// step does what there is to do now and returns how long there is nothing.
func (w *worker) step(ctx context.Context) time.Duration {
	if w.everywhere {
		return w.stepHere(ctx)
	}
	w.beat()
	if err := w.unwell(); err != nil {
		w.lookedAway()
		w.note(err)
		return unwellRest
	}
	fresh := w.entry == nil
	if fresh {
		if wait := time.Until(w.lookAt); wait > 0 {
			return wait
		}
		if err := w.look(ctx); err != nil {
			return w.fault(ctx, err)
		}
	}
	now := w.dueTime()
	w.unfit, w.settleOnly = nil, false
	w.forgive()
	if w.outdated(&w.rec) && !w.inherits(now) {
		return w.yield(ctx, now)
	}
	asked := w.rec.Mark.Spec != "" && !w.entry.State.Live() // before due, which may forget the entry
	if wait, todo := w.due(now, fresh); !todo {
		if fresh {
			w.reached()
			if asked {
				return w.answer(ctx)
			}
		}
		return wait
	}
	// A successful read does not clear the fault: the credentials may be read-only.
	if !w.hasTime(ctx, now) {
		return maxSleep
	}
	return w.attempt(ctx)
}

// due reports whether there is something to do that nobody else is at, else how
// long not.
func (w *worker) due(now time.Time, fresh bool) (wait time.Duration, todo bool) {
	switch _, todo := w.plan(&w.rec, now); {
	case w.rec.mayRun() && w.entry.State.Live():
		return w.follow(now), false
	case !todo:
		return w.idle(now), false
	case fresh && w.entry.State.Live():
		return w.awaitLease(), false
	}
	return 0, true
}

// unwellRest is how soon a replica that takes nothing new looks whether it can
// again.
const unwellRest = time.Second

// loop steps until ctx ends.
func (w *worker) loop(ctx context.Context) {
	select {
	case w.one <- struct{}{}:
		defer func() { <-w.one }()
	case <-ctx.Done():
		return
	}
	if w.everywhere {
		w.through = w.wall() // a replica that starts owes nothing, also for the second time
	}
	w.setLooping(true)
	defer w.setLooping(false)
	for ctx.Err() == nil {
		sleep(ctx, min(w.step(ctx), maxSleep))
	}
}

// look reads the entry, and makes it if there is none.
func (w *worker) look(ctx context.Context) error {
	entry, err := w.read(ctx)
	if err == nil || errors.Is(err, fs.ErrNotExist) { // an answer, which tells the service's time
		w.since = later(w.started(), w.heir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		entry, err = w.make(ctx, entry.Date)
	}
	if err != nil {
		return err
	}
	if w.known && entry.ETag == w.etag {
		w.entry = &entry
		w.sight()
		return nil
	}
	rec, err := decodeRecord(entry.Record, w.App, w.job)
	if err != nil {
		return &recordError{err}
	}
	if w.known && w.rec.newer(&rec) {
		return &recordError{fmt.Errorf("it is older than what it was at %s: somebody has put back an old version", w.rec.Through.Format(time.RFC3339))}
	}
	if err := w.unusable(&rec); err != nil {
		return &recordError{err}
	}
	w.set(func(s *seen) { s.recall(&rec) })
	w.known, w.entry, w.rec, w.etag = true, &entry, rec, entry.ETag
	w.sight()
	return nil
}

// unusable is what is wrong with a record that can be read: its job would rest
// for long, or fail where nothing tells why.
func (w *worker) unusable(r *Record) error {
	return cmp.Or(w.ahead(r), r.exhausted(), w.leaseOutOfBounds(r))
}

// ahead is what is wrong with a record that tells of the future: its job would
// rest until then. The minute is for clocks that differ.
func (w *worker) ahead(r *Record) error {
	_, hi, ok := w.clock.now()
	if !ok {
		return nil
	}
	name, at := r.latest()
	if at.After(hi.Add(time.Minute)) {
		return fmt.Errorf("the record's %s %s is in the future: correct the record", name, at.Format(time.RFC3339))
	}
	return nil
}

// leaseOutOfBounds is what is wrong with the lease in a record. Followers acquire
// the lease of a dead runner for its old length, and hold off that long. So a
// length that the store refuses would look like an outage, and one that is too
// short would let a follower start beside a runner that still trusts its lease.
// A short lease of a run that has ended does neither.
func (w *worker) leaseOutOfBounds(r *Record) error {
	shortest, longest := w.store.Limits()
	d := time.Duration(r.Lease)
	if d > longest || r.mayRun() && (d < shortest || d%time.Second != 0) {
		return fmt.Errorf("the record has a lease of %s and the store takes whole seconds from %s to %s: another program wrote it, or the limits of the store have changed: correct it in the record", d, shortest, longest)
	}
	return nil
}

// make creates the entry of a new job, which owes nothing. Its token is the
// service's time, which the first claim replaces by a later one; see decide.
func (w *worker) make(ctx context.Context, date time.Time) (Entry, error) {
	if date.IsZero() {
		date = w.wall()
	}
	rec := Record{App: w.App, Job: w.job, Created: date, Through: w.firstThrough(date), Epoch: date.UnixMicro(),
		Spec: w.spec, Since: w.since, Status: Idle, Lease: Seconds(w.length)}
	b, err := rec.encode()
	if err != nil {
		return Entry{}, err
	}
	entry, err := w.create(ctx, b)
	if errors.Is(err, fs.ErrExist) {
		return w.read(ctx)
	}
	return entry, err
}

// dueTime is the instant up to which ticks are due. A fast clock of this
// replica would start ticks early; a slow one, alone, would find at the end of
// each run that newer ticks had come due under it. Hence the service's.
func (w *worker) dueTime() time.Time { return w.clock.best() }

// idle returns the time to the next tick.
func (w *worker) idle(now time.Time) time.Duration {
	w.note(nil)
	w.losses.reset()
	stale := lookEvery - time.Since(w.looked) // a replica with an older definition may have left a mark
	if stale <= 0 {
		w.soon = true // a call of RunDue looks too: there may be no other for long
		return w.again(0)
	}
	next := w.next(&w.rec)
	if next.IsZero() {
		return min(stale, maxSleep)
	}
	return min(stale, max(next.Sub(now), minIdle))
}

// attempt acquires the lease of an entry that was seen free.
func (w *worker) attempt(ctx context.Context) time.Duration {
	if err := w.rec.exhausted(); err != nil {
		return w.fault(ctx, &recordError{err})
	}
	w.note(nil)
	h, err := w.acquireSeen(ctx)
	if err != nil && !definite(err) {
		return w.fault(ctx, err)
	}
	if err != nil {
		w.reached()
		// Another replica is at it. By the time of the first look a short run
		// is over, and the next tick costs no look. If nobody was, because a
		// lease that ran out is not free at once, the looks become rarer.
		w.log.Debug("another replica was first", "error", err)
		w.soon = true
		return w.again(firstLook + w.losses.next())
	}
	w.losses.reset()
	return w.term(ctx, h)
}

// fault notes why the entry could not be used, and returns when to try again.
func (w *worker) fault(ctx context.Context, err error) time.Duration {
	if ctx.Err() != nil {
		return w.again(0) // we were stopped, and the store is not to blame
	}
	if _, bad := errors.AsType[*recordError](err); bad {
		w.reached()
		w.note(err)
		return w.again(maxSleep)
	}
	w.lookedAway()
	w.unreachable(err)
	return w.again(w.pause.next())
}

// A recordError is a record that must be left alone.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() + "; it is left alone and nothing runs" }
func (e *recordError) Unwrap() error { return e.err }
