//go:build unix

package processes

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/proctest"
	"github.com/soloist-go/soloist/store"
)

func TestSIGTERMHandsOver(t *testing.T) {
	t.Parallel()
	for name, rerun := range map[string]bool{"a singleton": false, "a job, to rerun": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rerun {
				furtherCase(t)
			}
			f := newFleet(t, order{Program: leads, Rerun: rerun, Grace: 12 * time.Second}) // it is announced at once, and read before the run ends
			f.start("a", 0)
			run := f.await("the first run", started("a"))
			if took := f.handOver(run); took > limit(time.Second) {
				t.Errorf("handed over within %s, want at most %s", took, limit(time.Second))
			}
			f.checkOneAtATime()
		})
	}
}

// handOver ends the replica of a run, and returns how long there was none until that of another replica, b.
func (f *fleet) handOver(old event) time.Duration {
	f.t.Helper()
	f.startReady("b")
	f.signal(old.Replica, syscall.SIGTERM)
	f.awaitStopping(old)
	next := f.await("a run elsewhere", started("b"))
	end := f.have("the end of the old run", ended(old.Replica))
	if end.Cause != soloist.ErrStopped.Error() {
		f.t.Errorf("it ended for %q", end.Cause)
	}
	if f.order.Rerun && (!next.Tick.Equal(old.Tick) || next.Attempt != old.Attempt+1) {
		f.t.Errorf("attempt %d of tick %s follows on attempt %d of %s", next.Attempt, next.Tick, old.Attempt, old.Tick)
	}
	if _, code := f.exit(old.Replica); code != 0 {
		f.t.Errorf("it exited with code %d", code)
	}
	took := next.At.Sub(end.At)
	f.t.Logf("handed over within %s", took.Round(time.Millisecond))
	return took
}

// awaitStopping waits until the record says that the run is to be handed over,
// which it has to while the run goes on.
func (f *fleet) awaitStopping(run event) {
	f.t.Helper()
	var r store.Record
	proctest.Poll(f.t, "the record that says stopping", patience, func() bool {
		r = f.record()
		if slices.ContainsFunc(f.Events(), ended(run.Replica)) {
			f.t.Fatal("the run ended before the record said that it is stopping")
		}
		return r.Run.Stopping
	})
	if r.Run.Status != store.Running || r.Token != run.Token {
		f.t.Errorf("what is stopping is token %d, %s", r.Token, r.Run.Status)
	}
}

// checkOneAtATime checks that no run started before the one before it had
// returned.
func (f *fleet) checkOneAtATime() {
	f.t.Helper()
	ends := map[int64]time.Time{}
	for _, e := range f.Events() {
		if e.What == "end" {
			ends[e.Token] = e.At
		}
	}
	var last event
	for _, e := range slices.SortedFunc(slices.Values(f.Events()), func(a, b event) int { return a.At.Compare(b.At) }) {
		if e.What != "start" {
			continue
		}
		if end := ends[last.Token]; last.Token != 0 && (end.IsZero() || end.After(e.At)) {
			f.t.Errorf("token %d started before token %d had returned", e.Token, last.Token)
		}
		last = e
	}
}
