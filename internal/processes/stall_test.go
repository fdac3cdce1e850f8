//go:build unix

package processes

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestStalledRunIsReplaced(t *testing.T) {
	t.Parallel()
	stalls(t, obeys, func(t *testing.T, f *fleet, o order, last event) {
		next := f.await("a run after it", func(e event) bool { return e.What == "start" && e.Token > last.Token })
		end := f.have("the end of the one that stalled", ended("a"))
		if !strings.HasPrefix(end.Cause, soloist.ErrStalled.Error()) {
			t.Errorf("it ended for %q", end.Cause)
		}
		if quiet := end.At.Sub(last.At); quiet < o.HeartbeatTimeout {
			t.Errorf("it was ended %s after its last heartbeat, and may be silent for %s", quiet, o.HeartbeatTimeout)
		}
		if next.At.Before(end.At) {
			t.Errorf("two runs at once for %s", end.At.Sub(next.At))
		}
		f.checkReplaced(last, next, o.HeartbeatTimeout+windUp+3*time.Second)
		if took := next.At.Sub(end.At); took > limit(time.Second) { // an expiry takes longer
			t.Errorf("it began %s after the end of the one that stalled, want at most %s", took, limit(time.Second))
		}
		if h := f.record().History; !o.Rerun && (len(h) == 0 || h[0].Status != store.Stalled) {
			t.Errorf("the record tells %+v", h)
		}
	})
}

func TestStalledRunThatGoesOnEndsItsProcess(t *testing.T) {
	t.Parallel()
	stalls(t, ignores, func(t *testing.T, f *fleet, o order, last event) {
		gone, code := f.exit("a")
		if code != 3 {
			t.Errorf("it exited with code %d", code)
		}
		if r := f.record(); r.Run.Status != store.Stalled || r.Run.Replica != "a" || r.Token != last.Token {
			t.Errorf("once it is gone, the record tells of %s, token %d, %s", r.Run.Replica, r.Token, r.Run.Status)
		}
		next := f.have("a run after it", started("b"))
		if next.At.Before(gone) {
			t.Errorf("the other one started %s before the process was gone", gone.Sub(next.At))
		}
		f.checkReplaced(last, next, o.HeartbeatTimeout+lease+3*time.Second)
		f.checkDump()
	})
}

// stalls starts two replicas, of which the first has the work, a singleton or a
// job, and stalls. check gets its last heartbeat.
func stalls(t *testing.T, program string, check func(t *testing.T, f *fleet, o order, last event)) {
	for name, o := range map[string]order{
		"a singleton":     {Program: program, HeartbeatTimeout: 8 * time.Second},
		"a job, to rerun": {Program: program, HeartbeatTimeout: lease + time.Second, Rerun: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if o.Rerun {
				furtherCase(t)
			}
			f := newFleet(t, o)
			f.start("a", 0)
			f.await("the first run", started("a"))
			f.order.Program = leads
			f.start("b", 0)
			check(t, f, o, f.have("the last heartbeat", func(e event) bool { return e.What == "beat" }))
		})
	}
}

// checkReplaced checks how long the work was not done, and that under Rerun it
// is the same tick that is done.
func (f *fleet) checkReplaced(last, next event, within time.Duration) {
	f.t.Helper()
	took := next.At.Sub(last.At)
	if took > limit(within) {
		f.t.Errorf("replaced %s after its last heartbeat, want at most %s", took, limit(within))
	}
	if !last.Tick.IsZero() && (!next.Tick.Equal(last.Tick) || next.Attempt != last.Attempt+1) {
		f.t.Errorf("attempt %d of tick %s follows on attempt %d of %s", next.Attempt, next.Tick, last.Attempt, last.Tick)
	}
	f.t.Logf("replaced by %s %s after its last heartbeat", next.Replica, took.Round(time.Millisecond))
}

// checkDump checks that what is logged shows where the work was stuck.
func (f *fleet) checkDump() {
	f.t.Helper()
	for _, text := range []string{"the run has stalled", "the process exits"} {
		if !slices.ContainsFunc(f.Events(), func(e event) bool { return logged("a", text)(e) && strings.Contains(e.Text, "processes.ignore") }) {
			f.t.Errorf("no log %q with the goroutine that is stuck", text)
		}
	}
}
