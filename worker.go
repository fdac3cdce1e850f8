package soloist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	maxSleep  = 30 * time.Second // a look at the clock, since timers stop while a machine is suspended
	lookEvery = time.Minute      // at a run that nobody waits for
	firstLook = 300 * time.Millisecond
)

// A worker does the ticks of one job on one replica, or the terms of one
// singleton. It lives in one goroutine.
type worker struct {
	*Scheduler
	cell
	planner
	index   int
	one     sync.Mutex // held by whoever drives it: Run or RunDue
	job     string
	work    func(context.Context, *Run) error
	words   func() string // the schedule, for people
	timeout time.Duration // of a try
	tries   int
	backoff time.Duration // before the second try
	rest    time.Duration // of a singleton: the shortest pause between two terms here
	log     *slog.Logger
	pause   *backoff

	everywhere bool      // it has no entry at all
	through    time.Time // then: its ticks up to here are over

	seen   bool          // an entry of this job, ever
	entry  *Entry        // last seen, nil: has to be read
	rec    Record        // of entry
	etag   string        // of rec, if it was read
	lookAt time.Time     // an entry that has to be read is not read before
	anew   time.Time     // when the entry was seen made again after a deletion, of which its last holder may not know
	before time.Duration // the lease of the last holder seen

	soon   bool   // the next step is not for a tick, but to end this one's business
	ran    []Fate // since RunDue began
	holder string // the other replica that runs now, as far as known

	mu    sync.Mutex
	state state
}

// step does what there is to do now and returns how long there is nothing.
func (w *worker) step(ctx context.Context) time.Duration {
	if w.everywhere {
		return w.stepHere(ctx)
	}
	w.beat()
	fresh := w.entry == nil
	if fresh {
		if wait := time.Until(w.lookAt); wait > 0 {
			return wait
		}
		if err := w.look(ctx); err != nil {
			return w.fault(err)
		}
		w.reached()
	}
	now := w.dueTime()
	switch _, todo := w.plan(&w.rec, now); {
	case w.outdated(&w.rec):
		return w.yield()
	case w.rec.Status == Running && w.entry.State.Live():
		return w.follow(now)
	case !todo:
		return w.idle(now)
	case fresh && w.entry.State.Live():
		// Somebody is about to claim, or died before it could.
		return w.again(jitter(w.length / 6))
	}
	w.holder = ""
	return w.attempt(ctx)
}

// runDue steps until nothing is left to do now.
func (w *worker) runDue(ctx context.Context) JobReport {
	report := JobReport{Job: w.job, Holder: w.Replica}
	if !w.one.TryLock() {
		return report // this process is at it already
	}
	defer w.one.Unlock()
	w.ran, w.holder, w.lookAt = nil, "", time.Time{}
	for ctx.Err() == nil {
		w.soon = false
		wait := w.step(ctx)
		if !w.soon && wait > 0 {
			break
		}
		sleep(ctx, wait)
	}
	report.Ran, report.Holder, report.Err = w.ran, w.holder, w.trouble()
	switch {
	case w.everywhere:
		report.Next = w.ticks.Next(w.through)
	case w.seen:
		report.Next = w.next(&w.rec)
	}
	return report
}

// look reads the entry, and makes it if there is none.
func (w *worker) look(ctx context.Context) error {
	entry, err := w.read(ctx)
	w.since = w.started()
	if errors.Is(err, fs.ErrNotExist) {
		entry, err = w.make(ctx, entry.Date)
	}
	if err != nil {
		return err
	}
	if w.seen && entry.ETag == w.etag {
		w.entry = &entry
		return nil
	}
	rec, err := decodeRecord(entry.Record, w.App, w.job)
	if err != nil {
		return &recordError{err}
	}
	if _, hi, ok := w.clock.now(); ok && rec.Through.After(hi.Add(time.Minute)) {
		return &recordError{fmt.Errorf("its watermark %s is in the future", rec.Through.Format(time.RFC3339))}
	}
	if w.seen && !rec.Created.Equal(w.rec.Created) {
		w.anew = time.Now()
	}
	w.before = max(w.before, time.Duration(rec.Lease))
	w.seen, w.entry, w.rec, w.etag = true, &entry, rec, entry.ETag
	return nil
}

// make creates the entry of a new job, which owes nothing. Its first token
// comes from the service's clock, so that no token of an entry that was
// deleted comes back.
func (w *worker) make(ctx context.Context, date time.Time) (Entry, error) {
	if date.IsZero() {
		date = w.wall()
	}
	rec := Record{App: w.App, Job: w.job, Created: date, Through: date, Epoch: date.UnixMicro(),
		Spec: w.spec, Since: w.since, Status: Idle, Lease: Seconds(w.length)}
	b, err := rec.encode()
	if err != nil {
		return Entry{}, err
	}
	entry, err := w.create(ctx, b)
	if errors.Is(err, fs.ErrExist) {
		return w.read(ctx)
	}
	entry.Record = b
	return entry, err
}

// dueTime is the instant up to which ticks are due: this replica's clock, as
// far as the service's clock cannot prove it wrong. A fast one would start
// ticks early; a slow one, alone, would find at the end of each run that newer
// ticks had come due under it.
func (w *worker) dueTime() time.Time {
	now := w.wall()
	if lo, hi, ok := w.clock.now(); ok {
		now = earlier(later(now, lo), hi)
	}
	return now
}

// idle returns the time to the next tick.
func (w *worker) idle(now time.Time) time.Duration {
	w.note(nil)
	next := w.next(&w.rec)
	if next.IsZero() {
		return maxSleep
	}
	return next.Sub(now)
}

// yield leaves the job to replicas that started later, with another definition.
func (w *worker) yield() time.Duration {
	w.note(fmt.Errorf("a replica that started at %s has another schedule for this job, so this one leaves it alone",
		w.rec.Since.Format(time.RFC3339)))
	return w.again(maxSleep)
}

// follow waits beside a run of another replica: for the moment when its lease
// could lapse if somebody waits for that, else a minute.
func (w *worker) follow(now time.Time) time.Duration {
	w.note(nil)
	w.holder = w.rec.Holder
	wait := lookEvery
	if w.urgent(&w.rec, now) {
		wait = w.untilLapse()
	} else if next := w.ticks.Next(later(now, w.rec.Tick)); !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	return w.again(wait)
}

// untilLapse aims just behind the next instant at which the lease of another
// replica's run could lapse: renewals come at thirds of it after the claim, and
// so do lapses.
func (w *worker) untilLapse() time.Duration {
	lo, _, ok := w.clock.now()
	third := time.Duration(w.rec.Lease) / 3
	if !ok || third <= 0 {
		return w.length / 3
	}
	wait := third - lo.Sub(w.rec.Claimed)%third
	return min(wait, 2*third) + 50*time.Millisecond + rand.N(200*time.Millisecond)
}

// again has the entry read anew after d.
func (w *worker) again(d time.Duration) time.Duration {
	w.entry, w.lookAt = nil, time.Now().Add(d)
	return d
}

// attempt acquires the lease of an entry that was seen free.
func (w *worker) attempt(ctx context.Context) time.Duration {
	w.note(nil)
	h, err := w.acquire(ctx, w.entry.ETag)
	if err != nil && !definite(err) {
		return w.fault(err)
	}
	w.reached()
	if err != nil {
		// Another replica is at it. By the time of the first look a short run
		// is over, and the next tick costs no look.
		w.log.Debug("another replica was first", "error", err)
		w.soon = true
		return w.again(firstLook + rand.N(firstLook))
	}
	return w.term(ctx, h)
}

// fault notes why the entry could not be used, and returns when to try again.
func (w *worker) fault(err error) time.Duration {
	if _, bad := errors.AsType[*recordError](err); bad {
		w.reached()
		w.note(err)
		return w.again(maxSleep)
	}
	w.unreachable(err)
	return w.again(w.pause.next())
}

// A recordError is a record that must be left alone.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() + "; it is left alone and nothing runs" }
func (e *recordError) Unwrap() error { return e.err }

// jitter returns between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// maxPause bounds how long an outage goes on for us after it is over.
const maxPause = 10 * time.Second

// A backoff doubles its pauses up to the longest, with jitter.
type backoff struct{ first, pause, longest time.Duration }

// newBackoff is for calls to the store.
func newBackoff(first time.Duration) *backoff {
	return &backoff{first: first, pause: first, longest: maxPause}
}

func (b *backoff) next() time.Duration {
	d := jitter(min(b.pause, b.longest))
	b.pause = min(2*b.pause, b.longest)
	return d
}

func (b *backoff) reset() { b.pause = b.first }
