//go:build unix

package e2e

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestASIGTERMHandsOver(t *testing.T) {
	t.Parallel()
	for name, rerun := range map[string]bool{"a singleton": false, "a job, to rerun": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, order{Program: leads, Rerun: rerun, Grace: 7 * time.Second})
			f.start("a", 0)
			old := f.await("the first run", time.Minute, started("a"))
			f.start("b", 0)
			f.await("the second replica", time.Minute, func(e event) bool { return e.Replica == "b" && e.What == "ready" })
			time.Sleep(lease / 3) // by then it has found the run
			f.signal("a", syscall.SIGTERM)
			f.awaitStopping(old)
			next := f.await("a run elsewhere", 30*time.Second, started("b"))
			end := f.have("the end of the old run", time.Second, ended("a"))
			if end.Cause != soloist.ErrStopped.Error() {
				t.Errorf("it ended for %q", end.Cause)
			}
			took := next.At.Sub(end.At)
			if took > time.Second {
				t.Errorf("handed over within %s", took)
			}
			t.Logf("handed over within %s", took.Round(time.Millisecond))
			if rerun && (!next.Tick.Equal(old.Tick) || next.Attempt != 2) {
				t.Errorf("attempt %d of tick %s follows on %s", next.Attempt, next.Tick, old.Tick)
			}
			if _, code := f.exit("a", 10*time.Second); code != 0 {
				t.Errorf("it exited with code %d", code)
			}
			f.checkOneAtATime()
		})
	}
}

// awaitStopping waits until the record says that the run is to be handed over,
// which it has to while the run goes on.
func (f *fleet) awaitStopping(run event) {
	f.t.Helper()
	for {
		r := f.record()
		if f.drain(); slices.ContainsFunc(f.seen, ended(run.Replica)) {
			f.t.Fatal("the run ended before the record said that it is stopping")
		}
		if r.Stopping {
			if r.Status != store.Running || r.Token != run.Token {
				f.t.Errorf("what is stopping is token %d, %s", r.Token, r.Status)
			}
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// checkOneAtATime checks that no run started before the one before it had
// returned.
func (f *fleet) checkOneAtATime() {
	f.t.Helper()
	ends := map[int64]time.Time{}
	for _, e := range f.seen {
		if e.What == "end" {
			ends[e.Token] = e.At
		}
	}
	var last event
	for _, e := range slices.SortedFunc(slices.Values(f.seen), func(a, b event) int { return a.At.Compare(b.At) }) {
		if e.What != "start" {
			continue
		}
		if end := ends[last.Token]; last.Token != 0 && (end.IsZero() || end.After(e.At)) {
			f.t.Errorf("token %d started before token %d had returned", e.Token, last.Token)
		}
		last = e
	}
}
