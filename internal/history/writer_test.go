package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/internal/nightly"
)

// Replicas die at any instant, calls and answers get lost and calls arrive late: the log
// has each of thousands of outcomes once.
func TestKilledWritersLeaveEachOutcomeOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		dice := rand.New(rand.NewPCG(1, 2))
		seeded := func(seed int) *replica { return w.over(&way{dice: rand.New(rand.NewPCG(uint64(seed), 1))}).run() }
		replicas := []*replica{seeded(1), seeded(2), seeded(3)}
		now, kills, runs := 0, 0, 1000
		if nightly.Runs() {
			runs = 10000
		}
		for i := range runs {
			if dice.IntN(8) == 0 {
				now = dice.IntN(len(replicas))
			}
			replicas[now].Take(w.run(event.Succeeded))
			if dice.IntN(30) == 0 {
				time.Sleep(time.Duration(dice.IntN(5000)) * time.Millisecond)
				victim := dice.IntN(len(replicas))
				replicas[victim].kill()
				replicas[victim] = seeded(i + 10)
				kills++
			}
			if i%500 == 0 {
				w.holds(&w.rec)
			}
		}
		for range 30 { // the last ones mend what the dead have left
			replicas[0].Take(w.run(event.Succeeded))
		}
		for _, r := range replicas {
			r.end()
		}
		w.write(event.Succeeded)
		w.holds(nil)
		t.Logf("%d outcomes, %d kills", len(w.all), kills)
	})
}

// What came while no replica wrote, and is not in the record any more, is a gap.
func TestGapIsShown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.write(event.Failed)
		for range 18 { // these are in the record still
			w.run(event.Succeeded)
		}
		w.write(event.Failed)
		w.holds(nil)
		for range 60 { // and of these some are not
			w.run(event.Succeeded)
		}
		w.write(event.Failed)
		lost := 60 + 1 - len(w.rec.History)
		if lost < 20 {
			t.Errorf("%d outcomes are lost", lost)
		}
		w.all = slices.Delete(w.all, 20, 20+lost)
		w.holds(&w.rec, 20)
	})
}

// An append creates the blob first. A writer that ended between the two has left an empty
// log, before which nothing can have been lost.
func TestEmptyLogIsNoGap(t *testing.T) {
	inWorld(t, func(w *world) {
		broken, r := &creating{Memory: w.store}, w.over(&way{})
		r.Writer.Store = broken
		r.run().Take(w.run(event.Succeeded))
		time.Sleep(time.Second)
		synctest.Wait()
		if len(r.failed) != 1 || broken.empty == "" {
			t.Fatalf("got %v, want one append that ended half way", r.failed)
		}
		if lines, err := history.Read(t.Context(), broken, entry, time.Time{}, &w.rec); err != nil || len(lines) != 1 || lines[0].Gap {
			t.Errorf("read with the record: %+v, %v, want one outcome and no gap", lines, err)
		}
		time.Sleep(2 * time.Minute)
		r.end()
		w.holds(nil)
	})
}

// creating is a store whose first append creates a log and gets no further.
type creating struct {
	*local.Memory
	empty string
}

func (c *creating) Append(ctx context.Context, name string, size int64, b []byte) error {
	if c.empty == "" {
		c.empty = name
		return errNetwork
	}
	return c.Memory.Append(ctx, name, size, b)
}

func (c *creating) Logs(ctx context.Context, entry string, f func(string, int64) bool) error {
	some := false
	err := c.Memory.Logs(ctx, entry, func(name string, size int64) bool {
		some = true
		return f(name, size)
	})
	if !some && c.empty != "" {
		f(c.empty, 0)
	}
	return err
}

func (c *creating) ReadLog(ctx context.Context, name string, offset int64, n int) ([]byte, error) {
	if name == c.empty && n == 0 {
		return nil, nil
	}
	return c.Memory.ReadLog(ctx, name, offset, n)
}

// Outcomes are written in batches: ten runs of a job that runs each twenty seconds cost
// one append and one read, whichever of the replicas they ran on.
func TestBatches(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint(replicas, " replicas"), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var all []*replica
				for range replicas {
					all = append(all, w.replica())
				}
				const runs = 600
				for i := range runs {
					all[i/7%replicas].Take(w.run(event.Succeeded))
				}
				appends, reads := 0, 0
				for _, r := range all {
					r.end()
					appends, reads = appends+r.way.appends, reads+r.way.reads
				}
				w.holds(nil)
				most := map[int]int{1: runs/10 + 3, 3: runs/10*2 + 6}[replicas]
				if appends > most || reads > 2*most {
					t.Errorf("%d runs: %d appends, %d reads, want at most %d and %d", runs, appends, reads, most, 2*most)
				}
			})
		})
	}
}

// A rare outcome is written within the hour.
func TestOutcomeIsWrittenWithinAnHour(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica()
		for range 2 { // the first is written at once
			r.Take(w.run(event.Succeeded))
		}
		time.Sleep(time.Hour + time.Minute)
		w.holds(nil)
		r.end()
	})
}

// Jobs without a record, and events of other kinds, cost no call.
func TestOnlyOutcomesOfARecordCount(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica()
		for range 30 {
			r.Take(event.Event{Kind: event.Ended, Job: "everywhere"})
			r.Take(event.Event{Kind: event.Started, Job: "job", Run: event.Run{Token: 5}})
			r.Take(event.Event{Kind: event.Settled})
		}
		time.Sleep(2 * time.Hour)
		r.end()
		if s := r.way; s.reads+s.looks+s.appends > 0 {
			t.Errorf("%d reads, %d looks, %d appends", s.reads, s.looks, s.appends)
		}
	})
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
				r := w.over(&way{}).run()
				r.Take(w.run(event.Succeeded)) // the first is written at once
				time.Sleep(time.Second)
				synctest.Wait()
				w.holds(nil)
				r.way.fails = one.fails
				for range one.runs {
					r.Take(w.run(event.Succeeded))
				}
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				w.holds(nil)
				if len(r.failed) != one.fails {
					w.t.Errorf("got the failures %v, want %d", r.failed, one.fails)
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
			r := w.over(&way{takes: 50 * time.Millisecond}).run()
			for range runs {
				r.Take(w.run(event.Succeeded))
			}
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			before := r.way.reads
			r.end()
			w.holds(nil)
			if len(r.failed) > 0 || r.way.reads > before {
				w.t.Errorf("%d runs: got the failures %v, and %d more reads", runs, r.failed, r.way.reads-before)
			}
		})
	}
}

// A store that does not answer holds a stop up for five seconds, whatever it does then.
func TestStopWaitsForNoStore(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.over(&way{takes: time.Hour}).run()
		r.Take(w.run(event.Succeeded))
		time.Sleep(time.Second)
		begun := time.Now()
		r.end()
		if took := time.Since(begun); took != 5*time.Second || len(r.failed) == 0 {
			w.t.Errorf("the stop took %s, failures %v", took, r.failed)
		}
	})
}

// A run that has stalled is logged once its end is known, or another run has begun. Ticks that were skipped under it wait with
// it, so that the order stays. Page and command show both.
func TestStalledRunIsLoggedWithItsEnd(t *testing.T) {
	for _, skips := range []int{0, 1} {
		inWorld(t, func(w *world) {
			r := w.replica()
			r.Take(w.run(event.Succeeded))
			e := w.run(event.Stalled)
			end := w.rec.Run.Finished
			ends := func(at time.Time) {
				w.rec.Run.Finished, w.rec.History[skips].End, w.all[1].End = at, at, at
				w.keep()
			}
			if skips > 0 {
				skipped := event.Outcome{Tick: time.Now().UTC(), Status: event.Skipped, Reason: "overlap"}
				w.rec.History = append([]event.Outcome{skipped}, w.rec.History...)
				w.all = append(w.all, skipped)
			}
			ends(time.Time{})
			r.Take(e)
			time.Sleep(2 * time.Hour)
			w.holds(&w.rec)
			if lines, err := history.Read(t.Context(), w.store, entry, time.Time{}, nil); err != nil || len(lines) != 1 {
				t.Errorf("while it runs the log has %+v, %v", lines, err)
			}
			ends(end)
			r.Take(w.run(event.Succeeded))
			time.Sleep(2 * time.Hour)
			r.end()
			w.holds(nil)
		})
	}
}

// Ticks stay in a record while hundreds of manual runs come and go. A writer that starts and does not find them in what it reads
// of the log does not write them again.
func TestTicksThatStayAreNotWrittenAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.replica()
		for range 5 {
			r.Take(w.run(event.Succeeded))
		}
		w.ordered(400, r)
		w.holds(&w.rec)
		r.end()
		w.ordered(14, nil) // until the record has nothing else that is in that part of the log
		last := w.replica()
		w.ordered(1, last)
		time.Sleep(time.Minute)
		w.holds(&w.rec)
		last.end()
		if n := len(slices.DeleteFunc(slices.Clone(w.rec.History), func(o event.Outcome) bool { return o.Request != "" })); n != 5 {
			t.Errorf("the record has %d ticks, want 5", n)
		}
	})
}

// Of many manual runs that no writer has seen the record has dropped some, and ticks from before them are still there: that is a
// gap. If the first of them that are left comes next after those of the log, none was dropped.
func TestGapBehindTicksThatStay(t *testing.T) {
	for _, c := range []struct {
		ticks, byHand, lost int
		gaps                []int
	}{{5, 30, 15, []int{5}}, {1, 8, 0, nil}, {20, 3, 0, nil}} {
		inWorld(t, func(w *world) {
			r := w.replica()
			for range c.ticks {
				r.Take(w.run(event.Succeeded))
			}
			time.Sleep(2 * time.Hour)
			r.end()
			w.ordered(c.byHand-1, nil)
			r = w.replica()
			w.ordered(1, r)
			time.Sleep(time.Minute)
			r.end()
			w.all = slices.Delete(w.all, c.ticks, c.ticks+c.lost)
			w.holds(&w.rec, c.gaps...)
		})
	}
}

// A replica keeps a skipped tick until it has more to write. Another has logged it long before.
func TestSkippedTickIsLoggedOnce(t *testing.T) {
	for _, runs := range [][]int{{2000}, {25, 10}} { // of the other one, and then of the first
		inWorld(t, func(w *world) {
			w.every = 2 * time.Second
			a, b := w.replica(), w.replica()
			a.Take(w.run(event.Succeeded))
			a.Take(w.ends(event.Outcome{Status: event.Skipped, Reason: "overlap"}))
			for i, n := range runs {
				for range n {
					[]*replica{b, a}[i].Take(w.run(event.Failed))
				}
			}
			a.end()
			b.end()
			w.holds(&w.rec)
		})
	}
}

// A tick of a pause is settled at the resume, after hundreds of manual runs, by a process that has read no more than the newest of
// these from the log. The tick is logged, also if the record drops it before the log can be written.
func TestOldTickThatIsSettledLateIsLogged(t *testing.T) {
	for _, c := range []struct {
		newer int
		gaps  []int // by the record alone
	}{{0, nil}, {25, []int{404}}} {
		inWorld(t, func(w *world) {
			first := w.replica()
			tick := time.Now().UTC()
			w.ordered(400, first)
			time.Sleep(2 * time.Hour)
			first.end()
			r := w.over(&way{takes: time.Second}).run()
			w.ordered(1, r)
			time.Sleep(time.Minute)
			w.every = 0
			r.Take(w.ends(event.Outcome{Tick: tick, Status: event.Skipped, Reason: "paused"}))
			for range c.newer {
				r.Take(w.run(event.Succeeded))
			}
			time.Sleep(2 * time.Hour)
			r.end()
			w.holds(nil, c.gaps...)
			if len(r.failed) > 0 {
				t.Errorf("%d newer: failures %v", c.newer, r.failed)
			}
		})
	}
}
