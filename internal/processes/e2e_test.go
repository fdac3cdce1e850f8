//go:build unix

package processes

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// Sixty ticks, twenty each of three jobs. A replica keeps its lease from one of these ticks
// to the next. The first runner stops in between, so that another one follows it.
func TestSixtyTicksRunOnceEach(t *testing.T) {
	t.Parallel()
	const jobs, each = 3, 20
	for name, skew := range map[string]time.Duration{"same clocks": 0, "clocks skewed by 0, 2 and 4 s": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if skew == 0 {
				furtherCase(t)
			}
			f := newFleet(t, order{Jobs: jobs, Schedule: "@every 1s", Missed: soloist.RunAll, Takes: 50 * time.Millisecond})
			for i, name := range []string{"a", "b", "c"} {
				f.start(name, time.Duration(i)*skew)
			}
			f.stopRunner()
			for i := range jobs {
				job := jobName(i)
				first := f.have("the first run of "+job, func(e event) bool { return e.What == "start" && e.Job == job })
				last := first.Tick.Add((each - 1) * time.Second)
				f.have("the last run of "+job, func(e event) bool { return e.What == "start" && e.Job == job && e.Tick.Equal(last) })
				f.checkOnce(job, time.Second, first.Tick, last)
			}
			t.Logf("%d ticks started", len(f.ticks()))
		})
	}
}

// Without the claim the same replicas run ticks again: the test above can fail.
func TestTicksRunTwiceWithoutTheClaim(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 1s", Missed: soloist.RunAll, Takes: 50 * time.Millisecond, Unwritten: true})
	for i, name := range []string{"a", "b", "c"} {
		f.start(name, time.Duration(2*i)*time.Second)
	}
	f.stopRunner()
	f.await("a tick that runs twice", func(e event) bool { return e.What == "start" && f.ticks()[tickOf(e)] > 1 })
}

// stopRunner stops a replica soon after it began another run.
func (f *fleet) stopRunner() {
	f.t.Helper()
	first := f.await("a run", started(""))
	f.await("another run of that replica", started(first.Replica))
	f.signal(first.Replica, syscall.SIGTERM)
}

func TestKilledRunnerIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 1s", Takes: 700 * time.Millisecond})
	for _, name := range []string{"a", "b", "c"} {
		f.start(name, 0)
	}
	f.await("the first run", started(""))
	victim, _ := f.killRun()
	killed := time.Now()
	next := f.await("a run elsewhere", func(e event) bool { return started("")(e) && e.At.After(victim.At) })
	if next.Replica == victim.Replica {
		t.Errorf("the killed replica ran on")
	}
	if took, most := next.At.Sub(killed), limit(lease+2*time.Second); took > most {
		t.Errorf("replaced after %s, want at most %s", took, most)
	} else {
		t.Logf("replaced after %s", took.Round(time.Millisecond))
	}
	checkTakeOver(t, f.record(), victim, next)
	for tick, n := range f.ticks() {
		if n != 1 {
			t.Errorf("tick %s ran %d times", time.Unix(0, tick.at).UTC().Format(time.TimeOnly), n)
		}
	}
}

// checkTakeOver checks that the dead runner's tick is told as abandoned, and
// the ticks between as missed.
func checkTakeOver(t *testing.T, r store.Record, victim, next event) {
	t.Helper()
	var abandoned, missed bool
	for _, outcome := range r.History {
		if outcome.Status == store.Abandoned && outcome.Tick.Equal(victim.Tick) {
			abandoned = true
		}
		if outcome.Status == store.Missed && outcome.From.Equal(victim.Tick) && outcome.Tick.Equal(next.Tick.Add(-time.Second)) {
			missed = true
			if want := int(next.Tick.Sub(victim.Tick)/time.Second) - 1; outcome.Count != want {
				t.Errorf("%d ticks are missed, want %d", outcome.Count, want)
			}
		}
	}
	if !abandoned || !missed {
		t.Errorf("abandoned: %t, missed: %t in %+v", abandoned, missed, r.History)
	}
}

func TestIdleSIGTERMLosesNoTick(t *testing.T) {
	t.Parallel()
	f := newFleet(t, order{Schedule: "@every 2s", Missed: soloist.RunAll, Takes: 100 * time.Millisecond})
	up := []string{"a", "b", "c"}
	for _, name := range up {
		f.start(name, 0)
	}
	first := f.await("the first run", started(""))
	for range 2 {
		run := f.await("a run", started(""))
		i := slices.IndexFunc(up, func(name string) bool { return name != run.Replica })
		begin := time.Now()
		if err := f.Replica(up[i]).Stop(patience); err != nil {
			t.Errorf("%s: %v", up[i], err)
		}
		t.Logf("%s stopped after %s", up[i], time.Since(begin).Round(time.Millisecond))
		up = slices.Delete(up, i, i+1)
	}
	last := first.Tick.Add(20 * time.Second)
	f.await("the last run", func(e event) bool { return started("")(e) && e.Tick.Equal(last) })
	f.checkOnce("work", 2*time.Second, first.Tick, last)
	for _, e := range f.starts() {
		if late := e.At.Sub(e.Tick); late > limit(time.Second) {
			t.Errorf("the tick %s was late by %s, want at most %s", e.Tick, late, limit(time.Second))
		}
	}
}
