package history_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// A slow store takes its time for each call, and fails some reads of records.
type slow struct {
	*counting
	takes time.Duration
	fails int // so many of the next reads
}

func (s *slow) wait(ctx context.Context) error {
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Read(ctx context.Context, name string) (store.Entry, error) {
	s.add(&s.reads)
	if err := s.wait(ctx); err != nil {
		return store.Entry{}, err
	}
	if s.fails > 0 {
		s.fails--
		return store.Entry{}, errNetwork
	}
	return s.Memory.Read(ctx, name)
}

func (s *slow) Append(ctx context.Context, name string, size int64, b []byte) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Memory.Append(ctx, name, size, b)
}

// slowly starts a replica whose way to the store is s. It returns the failures so far, of all jobs.
func (w *world) slowly(s *slow) (r *replica, failed func() []error) {
	s.counting = &counting{Memory: w.store}
	var all []error
	r = &replica{way: &faulty{}, done: make(chan struct{})}
	r.Writer.Store, r.Writer.App = s, "app"
	r.Writer.Failed = func(_ string, err error) { all = append(all, err) }
	r.run(&r.Writer)
	return r, func() []error { return all }
}

// What waits still waits after a read of the record has failed: it is tried again, and not
// forgotten until the record does not have it any more.
func TestFailedReadForgetsNothing(t *testing.T) {
	for what, one := range map[string]struct{ runs, fails int }{
		"a batch":          {10, 1},
		"a batch, twice":   {10, 2},
		"a few, at a stop": {5, 1},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := &slow{}
				r, failed := w.slowly(s)
				r.Take(w.run(store.Succeeded)) // the first is written at once
				time.Sleep(time.Second)
				synctest.Wait()
				w.holds(nil)
				s.fails = one.fails
				for range one.runs {
					r.Take(w.run(store.Succeeded))
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				w.holds(nil)
				if len(failed()) != one.fails {
					w.t.Errorf("got the failures %v, want %d", failed(), one.fails)
				}
				r.end()
			})
		})
	}
}

// A stop does not break a write off: what waits is written, by the calls that are under way.
func TestStopDuringAWrite(t *testing.T) {
	for _, runs := range []int{1, 11} { // the first is written at once, and then a batch of ten
		inWorld(t, func(w *world) {
			s := &slow{takes: 50 * time.Millisecond}
			r, failed := w.slowly(s)
			for range runs {
				r.Take(w.run(store.Succeeded))
			}
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			before := s.reads
			r.end()
			w.holds(nil)
			if len(failed()) > 0 || s.reads > before {
				w.t.Errorf("%d runs: got the failures %v, and %d more reads", runs, failed(), s.reads-before)
			}
		})
	}
}

// A store that does not answer holds a stop up for five seconds, whatever it does then.
func TestStopWaitsForNoStore(t *testing.T) {
	inWorld(t, func(w *world) {
		r, failed := w.slowly(&slow{takes: time.Hour})
		r.Take(w.run(store.Succeeded))
		time.Sleep(time.Second)
		begun := time.Now()
		r.end()
		if took := time.Since(begun); took != 5*time.Second || len(failed()) == 0 {
			w.t.Errorf("the stop took %s, failures %v", took, failed())
		}
	})
}

// A run that has stalled is logged once its end is known, also if ticks were skipped under it.
// What came after it waits with it, so that the order stays. Page and command show both.
func TestStalledRunWithSkippedTicks(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica(nil)
		r.Take(w.run(store.Succeeded))
		e := w.run(store.Stalled)
		end := w.rec.Run.Finished
		now := time.Now().UTC()
		skipped := store.Outcome{Tick: now, Status: store.Skipped, Reason: "overlap"}
		w.rec.Run.Finished, w.rec.History[0].End = time.Time{}, time.Time{}
		w.rec.History = append([]store.Outcome{skipped}, w.rec.History...)
		w.keep()
		w.all[1].End = time.Time{}
		w.all = append(w.all, skipped)
		r.Take(e)
		time.Sleep(2 * time.Hour)
		w.holds(&w.rec)
		if lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, nil); err != nil || len(lines) != 1 {
			w.t.Errorf("while it runs the log has %+v, %v", lines, err)
		}
		w.rec.Run.Finished, w.rec.History[1].End, w.all[1].End = end, end, end
		w.keep()
		r.Take(w.run(store.Succeeded))
		time.Sleep(2 * time.Hour)
		r.end()
		w.holds(nil)
	})
}
