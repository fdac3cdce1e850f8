//go:build unix

package processes

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

var (
	rounds      = flag.Int("rounds", 0, "measure so often how long a singleton is without its leader")
	roundsLease = flag.Duration("lease", lease, "its lease then, whole seconds from 15s to 60s")
)

// A bound is what is wanted of one figure.
type bound struct {
	figure string
	of     func(sorted []time.Duration) time.Duration
	most   time.Duration
}

// TestRounds measures how long a singleton is without its leader: from SIGKILL,
// and from the return of Do after SIGTERM, to the next start of Do.
func TestRounds(t *testing.T) {
	if *rounds == 0 {
		t.Skip("it measures: -rounds 20 takes a quarter of an hour")
	}
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		wanted []bound
	}{
		// A leader renews each third of the lease, so at a random instant a
		// sixth of it is gone in the mean.
		{"failover", syscall.SIGKILL, []bound{{"median", median, *roundsLease - *roundsLease/6 + time.Second}, {"p95", p95, *roundsLease + time.Second}}},
		{"handover", syscall.SIGTERM, []bound{{"median", median, 300 * time.Millisecond}, {"max", slices.Max[[]time.Duration], time.Second}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFleet(t, order{Program: leads, Grace: 7 * time.Second})
			f.Env = append(f.Env, "SOLOIST_LEASE="+roundsLease.String())
			values := f.measure(*rounds, test.signal)
			sorted := slices.Sorted(slices.Values(values))
			t.Logf("lease %s, %d rounds: min %s, median %s, p95 %s, max %s", *roundsLease, len(values),
				ms(sorted[0]), ms(median(sorted)), ms(p95(sorted)), ms(slices.Max(sorted)))
			for _, b := range test.wanted {
				if got := b.of(sorted); got > limit(b.most) {
					t.Errorf("the %s is %s, want at most %s", b.figure, got, limit(b.most))
				}
			}
		})
	}
}

// measure ends the leader so often, of three replicas each time. All phases of
// its renewals get their turn, at random within each: few rounds then tell as much
// as many.
func (f *fleet) measure(rounds int, how syscall.Signal) (values []time.Duration) {
	f.t.Helper()
	for i := range 3 {
		f.start(fmt.Sprint("replica-", i), 0)
	}
	third := *roundsLease / 3
	leader := f.await("the first leader", started(""))
	for n, i := range rand.Perm(rounds) {
		phase := (float64(i) + rand.Float64()) / float64(rounds)
		f.quiet(leader, time.Until(leader.At.Add(third+time.Duration(phase*float64(third))))) // the newest replica has found the leader by then
		var took time.Duration
		leader, took = f.succeed(leader, how)
		values = append(values, took)
		f.t.Logf("replaced after %s", ms(took))
		f.start(fmt.Sprint("replica-", 3+n), 0)
	}
	if how == syscall.SIGTERM {
		f.checkOneAtATime()
	} else if slices.ContainsFunc(f.Events(), func(e event) bool { return e.What == "end" }) {
		f.t.Error("a leader that was not killed has ended")
	}
	return values
}

// quiet waits. A leader that changes meanwhile does so without a reason.
func (f *fleet) quiet(leader event, d time.Duration) {
	f.t.Helper()
	e, err := f.Await("a change of the leader", d, func(e event) bool { return e.What == "start" || ended(leader.Replica)(e) })
	if err == nil {
		f.t.Fatalf("with nothing wrong: %s of %s", e.What, e.Replica)
	}
}

// succeed ends a leader, and returns the next one and how long there was none.
func (f *fleet) succeed(old event, how syscall.Signal) (next event, took time.Duration) {
	f.t.Helper()
	gone := time.Now()
	f.signal(old.Replica, how)
	next = f.await("the next leader", started(""))
	if how == syscall.SIGTERM {
		gone = f.have("the end of the old one", ended(old.Replica)).At
	}
	return next, next.At.Sub(gone)
}
