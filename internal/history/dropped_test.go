package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// ordered lets the job run so often by hand. A replica that is given takes the events.
func (w *world) ordered(n int, r *replica) {
	w.t.Helper()
	for range n {
		e := w.ends(store.Outcome{Status: store.Succeeded, Attempt: 1, Request: fmt.Sprint("request-", len(w.all))})
		if r != nil {
			r.Take(e)
		}
	}
}

// once checks that the history has each outcome once, and returns before which there is a gap.
func (w *world) once() (gaps []int) {
	w.t.Helper()
	lines, err := history.Read(w.t.Context(), w.store, entry, time.Time{}, &w.rec)
	var got []store.Outcome
	for i, l := range lines {
		if got = append(got, l.Outcome); l.Gap {
			gaps = append(gaps, i)
		}
	}
	if err != nil || !slices.Equal(got, w.all) {
		w.t.Errorf("the history has %d outcomes, want %d, %v", len(got), len(w.all), err)
	}
	return gaps
}

// Ticks stay in a record while hundreds of runs by hand come and go. A writer that starts and does not find them in what it reads of
// the log does not write them again.
func TestTicksThatStayAreNotWrittenAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica(nil)
		for range 5 {
			r.Take(w.run(store.Succeeded))
		}
		w.ordered(400, r)
		if gaps := w.once(); len(gaps) > 0 {
			t.Errorf("gaps before %v", gaps)
		}
		r.end()
		w.ordered(14, nil) // until the record has nothing else that is in that part of the log
		last := w.replica(nil)
		w.ordered(1, last)
		time.Sleep(time.Minute)
		w.once()
		last.end()
		if n := len(slices.DeleteFunc(slices.Clone(w.rec.History), func(o store.Outcome) bool { return o.Request != "" })); n != 5 {
			t.Errorf("the record has %d ticks, want 5", n)
		}
	})
}

// Of many runs by hand that no writer has seen the record has dropped some, and ticks from before them are still there: that is a
// gap. If the first of them that are left comes next after those of the log, none was dropped.
func TestGapBehindTicksThatStay(t *testing.T) {
	for _, c := range []struct {
		ticks, byHand, lost int
		gaps                []int
	}{{5, 30, 15, []int{5}}, {1, 8, 0, nil}, {20, 3, 0, nil}} {
		inWorld(t, func(w *world) {
			r := w.replica(nil)
			for range c.ticks {
				r.Take(w.run(store.Succeeded))
			}
			time.Sleep(2 * time.Hour)
			r.end()
			w.ordered(c.byHand-1, nil)
			r = w.replica(nil)
			w.ordered(1, r)
			time.Sleep(time.Minute)
			r.end()
			w.all = slices.Delete(w.all, c.ticks, c.ticks+c.lost)
			if gaps := w.once(); !slices.Equal(gaps, c.gaps) {
				t.Errorf("%d ticks and %d by hand: gaps before %v, want %v", c.ticks, c.byHand, gaps, c.gaps)
			}
		})
	}
}

// A replica keeps a skipped tick until it has more to write. Another has logged it long before.
func TestSkippedTickIsLoggedOnce(t *testing.T) {
	for _, runs := range [][]int{{2000}, {25, 10}} { // of the other one, and then of the first
		inWorld(t, func(w *world) {
			w.every = 2 * time.Second
			a, b := w.replica(nil), w.replica(nil)
			a.Take(w.run(store.Succeeded))
			a.Take(w.ends(store.Outcome{Status: store.Skipped, Reason: "overlap"}))
			for i, n := range runs {
				for range n {
					[]*replica{b, a}[i].Take(w.run(store.Failed))
				}
			}
			a.end()
			b.end()
			if gaps := w.once(); len(gaps) > 0 {
				t.Errorf("%d runs: gaps before %v", runs, gaps)
			}
		})
	}
}

// Who reads no more of the log than the newest lines does not take ticks that stay in the record for new ones.
func TestTicksThatStayAreNotReadAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica(nil)
		for range 5 {
			r.Take(w.run(store.Succeeded))
		}
		w.ordered(60, r)
		time.Sleep(2 * time.Hour)
		r.end()
		lines, _, err := history.Newest(t.Context(), w.store, entry, time.Time{}, 20, nil)
		all, _, also := history.Newest(t.Context(), w.store, entry, time.Time{}, 20, &w.rec)
		updated, ok := history.Update(lines, &w.rec)
		if err != nil || also != nil || len(lines) != 20 || len(all) != 20 || len(updated) != 20 || !ok {
			t.Errorf("%d lines, %d with the record, %d updated, %t; want 20 of each, %v, %v", len(lines), len(all), len(updated), ok, err, also)
		}
	})
}
