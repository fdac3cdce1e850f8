package soloist

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// stuckAfter is how long a loop that never sleeps longer than maxSleep, and
// whose calls to the store are bounded by a lease, may take to come round.
const stuckAfter = 3 * time.Minute

// state is what others may see of a worker.
type state struct {
	mu sync.Mutex
	seen
}

func (s *state) get() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

type seen struct {
	running int       // calls of the user's function under way here
	busy    bool      // in a term, which takes as long as its run
	byHand  int       // terms of RunNow, beside the loop
	looping bool      // in Run
	beat    time.Time // when its loop last came round
	err     error     // why this job is left alone
	fault   error     // why the store could not be used for it
	overrun []overrun // runs that go on though their context has ended; never changed in place

	created time.Time     // of the entry as this process saw it last, for ticks and by hand; zero: it has not
	anew    time.Time     // when the entry was seen made again after a deletion, of which its last holder may not know
	before  time.Duration // the lease of the last holder seen

	stepDown func()        // hands over what runs here; nil: nothing does
	over     chan struct{} // closed when that is done
}

// An overrun is the run of one worker that goes on though its context has ended,
// and why that has ended.
type overrun struct {
	of    *worker
	cause error
}

// overruns is why a run of the job goes on though its context has ended, nil if
// none does.
func (s *seen) overruns() error {
	if len(s.overrun) == 0 {
		return nil
	}
	return s.overrun[0].cause
}

// Health is how a [Scheduler] fares on this replica.
type Health struct {
	Running []string         // jobs and singletons that run here now
	Stuck   []string         // those whose loop does not come round: restart the process
	Broken  map[string]error // those that cannot be looked after, and why
	Overrun map[string]error // those with a lease that go on though their context has ended, and why: restart the process
	Skew    time.Duration    // how far the wall clock is ahead of the store's, behind if negative, as far as that is proved
	Storage error            // why the store is out of reach; nil: it is not, as far as known
	Reached bool             // the store has answered, once
	Log     error            // why the lines of the log wait: it has taken none for three minutes; nil: they do not
}

// Health returns how the scheduler fares. It asks nobody.
func (s *Scheduler) Health() Health {
	s.once.Do(s.prepare)
	h := Health{Broken: map[string]error{}, Overrun: map[string]error{}, Skew: s.service.skew()}
	h.Storage, h.Reached = s.outage.now()
	h.Log = s.lines.blocked()
	for _, w := range s.workers {
		st := w.state.get()
		if st.running > 0 {
			h.Running = append(h.Running, w.job)
		}
		if st.looping && !st.busy && time.Since(st.beat) > stuckAfter {
			h.Stuck = append(h.Stuck, w.job)
		}
		cause := st.overruns()
		if cause != nil && !w.everywhere {
			h.Overrun[w.job] = cause
		}
		if st.err != nil {
			h.Broken[w.job] = st.err
		} else if cause != nil && w.everywhere {
			h.Broken[w.job] = cause
		} else if st.fault != nil && h.Storage == nil {
			h.Broken[w.job] = st.fault
		}
	}
	return h
}

func (w *worker) set(f func(*seen)) {
	w.state.mu.Lock()
	defer w.state.mu.Unlock()
	f(&w.state.seen)
}

func (w *worker) beat()             { w.set(func(s *seen) { s.beat = time.Now() }) }
func (w *worker) setLooping(b bool) { w.set(func(s *seen) { s.looping, s.beat = b, time.Now() }) }

// setRunning counts, since a run by hand of an Everywhere job may be beside a tick.
func (w *worker) setRunning(b bool) { w.set(func(s *seen) { s.running += change(b) }) }

// setBusy says that a term begins or ends. That of a run by hand tells nothing of
// the loop.
func (w *worker) setBusy(b bool) {
	w.set(func(s *seen) {
		if w.request != "" {
			s.byHand += change(b)
			return
		}
		s.busy, s.beat = b, time.Now()
	})
}

// change is what a begin or an end makes of a count.
func change(begins bool) int {
	if begins {
		return 1
	}
	return -1
}

// setOverrun keeps why the context of the run of this worker ended that has not
// returned since, nil once it has. Of an Everywhere job it is the trouble of this
// job alone: all replicas run it at once, and would all take nothing new.
func (w *worker) setOverrun(cause error) {
	switch {
	case cause == nil || !w.everywhere:
	case w.request != "":
		cause = fmt.Errorf("its run by hand %s goes on though its context has ended (%w)", w.request, cause)
	default:
		cause = fmt.Errorf("its run goes on though its context has ended (%w): no tick of this job runs on this replica until it returns", cause)
	}
	w.set(func(s *seen) {
		s.overrun = slices.DeleteFunc(slices.Clone(s.overrun), func(o overrun) bool { return o.of == w })
		if cause != nil {
			s.overrun = append(s.overrun, overrun{w, cause})
		}
	})
}

// unwell returns why this replica takes nothing new, nil if it does: a run that
// cannot be ended is a reason to restart the process.
func (s *Scheduler) unwell() error {
	for _, w := range s.workers {
		st := w.state.get()
		if cause := st.overruns(); cause != nil && !w.everywhere {
			return fmt.Errorf("%s goes on though its context has ended (%w): this replica takes nothing new until it returns or the process is restarted", w.job, cause)
		}
	}
	return nil
}

// trouble is why this job could not be looked after, if so.
func (w *worker) trouble() error {
	st := w.state.get()
	if w.everywhere {
		return errors.Join(st.err, st.overruns())
	}
	return errors.Join(st.err, st.fault)
}

// note keeps why the job is left alone, nil for all is well, and logs a change.
// Without write access nothing is well, however much can be read.
func (w *worker) note(err error) { w.notice(slog.LevelError, err) }

// notice is note with the level that trouble is logged at.
func (w *worker) notice(level slog.Level, err error) {
	if err == nil {
		err = w.denied
	}
	var old error
	w.set(func(s *seen) { old, s.err = s.err, err })
	switch {
	case err == nil && old != nil:
		w.log.Info("the job is looked after again")
	case err != nil && (old == nil || old.Error() != err.Error()):
		w.log.Log(context.Background(), level, "the job is left alone", "error", err)
	}
}

// unreachable keeps why the store did not answer.
func (w *worker) unreachable(err error) {
	w.failed(err)
}

// reached says that the store answered, whatever it was.
func (w *worker) reached() {
	w.pause.reset()
	w.answered()
}

// tellTrouble is for the calls of a hold, which go on beside the worker: why one
// failed again, nil once it did not.
func (w *worker) tellTrouble(err error) {
	if err != nil {
		w.failed(err)
	} else {
		w.answered()
	}
}

func (w *worker) failed(err error) {
	w.set(func(s *seen) { s.fault = err })
	w.outage.begin(w, err)
}

func (w *worker) answered() {
	w.set(func(s *seen) { s.fault = nil })
	w.outage.end(w)
}

// readable ends an outage between two wake-ups, when no loop asks the store. A
// successful read does not clear a refusal: the credentials may be read-only.
func (w *worker) readable() {
	st := w.state.get()
	if st.looping || st.busy || st.byHand > 0 || st.fault == nil || errors.Is(st.fault, fs.ErrPermission) {
		return
	}
	w.answered()
}

// An outage is logged once when it begins and once when it is over, however many
// jobs it hits.
type outage struct {
	mu      sync.Mutex
	hit     map[*worker]trouble
	since   time.Time
	answers int   // of the store, to any worker
	err     error // why it is out of reach for all; nil: it is not, as far as known
}

// A trouble is that of one worker.
type trouble struct {
	answers int // how many there had been before
	err     error
}

func (o *outage) begin(w *worker, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.hit) == 0 {
		o.hit, o.since = map[*worker]trouble{}, time.Now()
		w.lines.logger(w.Logger).Warn("the store is out of reach: trying again until it answers", "first", w.job, "error", err)
	}
	t, again := o.hit[w]
	if !again {
		t.answers = o.answers
	}
	t.err = err
	o.hit[w] = t
	// Where others have had answers since its trouble began, it is its own.
	if t.answers == o.answers {
		o.err = err
	}
}

func (o *outage) end(w *worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answers++
	o.err = nil
	if _, hit := o.hit[w]; !hit {
		return
	}
	delete(o.hit, w)
	if len(o.hit) == 0 {
		w.lines.logger(w.Logger).Info("the store answers again", "after", time.Since(o.since).Round(time.Second))
	}
}

// leave forgets the trouble of a worker that has ended. The loop of the same job
// may be in trouble too.
func (o *outage) leave(w *worker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, hit := o.hit[w]; !hit {
		return
	}
	delete(o.hit, w)
	var left error
	for other, t := range o.hit {
		if other.state == w.state {
			left = t.err
		}
	}
	w.set(func(s *seen) { s.fault = left })
	if len(o.hit) == 0 {
		o.err = nil
	}
}

// now is why the store is out of reach, and whether it ever answered.
func (o *outage) now() (unreachable error, reached bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err, o.answers > 0
}
