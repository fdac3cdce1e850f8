package chaos_test

import (
	"errors"
	"testing"
	"time"

	"github.com/soloist-go/soloist/chaos/line"
	"github.com/soloist-go/soloist/store"
)

// A fault is what may happen to a line.
type fault struct {
	begin     line.Fault
	cut       bool // nothing reaches the service
	throttles bool
}

var faults = map[string]fault{
	"down":              {line.Partition, true, false},
	"all swallowed":     {line.HalfOpen, true, false},
	"replies swallowed": {line.Toxic("downstream", "timeout", "timeout", 0, 0), false, false},

	// At no bandwidth at all, bytes are kept back until the end of the fault.
	"requests delivered late": {line.Toxic("upstream", "bandwidth", "rate", 0, 0), true, false},
	"replies delivered late":  {line.Toxic("downstream", "bandwidth", "rate", 0, 0), false, false},

	"replies cut off": {line.Toxic("downstream", "limit_data", "bytes", 20, 20), false, false},
	"reset":           {line.Toxic("upstream", "reset_peer", "timeout", 0, 0), true, false},
	"slow":            {line.Toxic("upstream", "latency", "latency", 4000, 4000), false, false},

	"429, again after 1 s":   {line.Throttle(429, time.Second), true, true},
	"503, again after 1 s":   {line.Throttle(503, time.Second), true, true},
	"503, again after 50 s":  {line.Throttle(503, 50*time.Second), true, true},
	"429, again after 300 s": {line.Throttle(429, 300*time.Second), true, true},
	"503, again after 300 s": {line.Throttle(503, 300*time.Second), true, true},
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.await(work, time.Time{}, soon)
			w.checkShort(f)
			w.checkLongOfOne(f)
			w.checkLongOfAll(f)
		})
	}
}

// checkShort has a leader go on through faults that leave time for a renewal.
func (w *world) checkShort(f fault) {
	w.t.Helper()
	leader := w.leader(soon)
	begin := time.Now()
	for _, d := range []time.Duration{time.Second, 4 * time.Second} {
		w.meet(f, w.replicas, d)
		time.Sleep(time.Second)
	}
	time.Sleep(time.Until(begin.Add(D))) // what it had before is worth nothing by now
	if r := w.now(leader); !r.end.IsZero() {
		w.t.Errorf("short faults ended the run after %s: %v", r.end.Sub(begin), r.cause)
	}
}

// long is a fault that no trust in a lease outlasts.
const long = 20 * time.Second

// checkLongOfOne cuts off the leader, which has to end before another begins.
func (w *world) checkLongOfOne(f fault) {
	w.t.Helper()
	leader := w.leader(soon)
	begin := time.Now()
	over := w.meet(f, []*replica{leader.replica}, long)
	lost := w.lost(leader, begin)
	next := w.await(lead, begin, soon)
	took := next.start.Sub(begin)
	// Others look just after each instant at which the lease could lapse. Where
	// the last renewal was late, the second look finds it.
	if most := D + D/3 + 2*time.Second; f.cut && (took > most || next.replica == leader.replica) {
		w.t.Errorf("replaced by %s after %s, want another replica within %s", next.replica.Replica, took, most)
	}
	if n := leader.replica.Renewals(); f.throttles && n < 3 {
		w.t.Errorf("throttled, it tried %d times to renew", n)
	}
	w.t.Logf("one cut off: lost after %s, replaced after %s, recovered after %s", ms(lost), ms(took), ms(w.recovered(over)))
}

// checkLongOfAll cuts everybody off.
func (w *world) checkLongOfAll(f fault) {
	w.t.Helper()
	leader := w.leader(soon)
	begin := time.Now()
	over := w.meet(f, w.replicas, long)
	w.t.Logf("all cut off: lost after %s, recovered after %s", ms(w.lost(leader, begin)), ms(w.recovered(over)))
}

// meet has replicas meet a fault, and returns when it was over.
func (w *world) meet(f fault, who []*replica, d time.Duration) (over time.Time) {
	w.t.Helper()
	for _, r := range who {
		if err := f.begin(r.Line, 1); err != nil {
			w.t.Error(err)
		}
	}
	time.Sleep(d)
	for _, r := range who {
		if err := r.Heal(); err != nil {
			w.t.Error(err)
		}
	}
	return time.Now()
}

// lost checks that the run was told, before the service could give its lease to
// another, that it has lost it. It returns how long after begin.
func (w *world) lost(leader run, begin time.Time) time.Duration {
	w.t.Helper()
	r := w.now(leader)
	switch {
	case r.end.IsZero():
		w.t.Fatal("a fault that is longer than the lease did not end the run")
	case !errors.Is(r.cause, store.ErrLost):
		w.t.Errorf("the run ended for %v", r.cause)
	case r.end.Sub(begin) > D:
		w.t.Errorf("the run ended %s after the fault began", r.end.Sub(begin))
	}
	return r.end.Sub(begin)
}

// recovered waits until all work is done again and every replica is well, and
// returns how long after the fault that was.
func (w *world) recovered(over time.Time) time.Duration {
	w.t.Helper()
	w.await(work, over, soon)
	w.leader(soon)
	for _, r := range w.replicas {
		for ; ; time.Sleep(20 * time.Millisecond) {
			h := r.Health()
			if h.Storage == nil && len(h.Broken) == 0 && len(h.Stuck) == 0 {
				break
			}
			if time.Since(over) > soon {
				w.t.Errorf("%s has not recovered: %+v", r.Replica, h)
				break
			}
		}
	}
	return time.Since(over)
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
