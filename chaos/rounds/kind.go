//go:build unix

package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"
)

// A kind of round is one way to end a leader.
type kind struct {
	name, doc string
	round     func(*fleet) (time.Duration, error) // ends the leader, and leaves another
	wanted    []bound
}

// A bound is what is wanted of one figure.
type bound struct {
	figure string
	of     func(sorted []time.Duration) time.Duration
	most   time.Duration
}

func kindsOf(what string, lease time.Duration) (out []kind) {
	all := []kind{
		// A leader renews each third of the lease, so at a random instant a
		// sixth of it is gone in the mean.
		{"failover", "kill -9 of the leader -> start of Do elsewhere", failover, []bound{
			{"median", median, lease - lease/6 + time.Second}, {"p95", p95, lease + time.Second}}},
		{"handover", "SIGTERM of the leader: its Do has returned -> start of Do elsewhere", handover, []bound{
			{"median", median, 300 * time.Millisecond}, {"max", slices.Max[[]time.Duration], time.Second}}},
	}
	for _, k := range all {
		if what == "all" || what == k.name {
			out = append(out, k)
		}
	}
	return out
}

// run returns the values that it has got if a round fails.
func (k kind) run(f *fleet, rounds int) (values []time.Duration, err error) {
	f.leader, err = f.await("the first leader")
	for _, i := range rand.Perm(rounds) {
		if err != nil {
			break
		}
		var d time.Duration
		phase := (float64(i) + rand.Float64()) / float64(rounds)
		if d, err = k.settled(f, phase); err == nil {
			values = append(values, d)
			err = f.start()
		}
	}
	return values, err
}

// settled does a round once the newest replica has found the leader. All phases
// of the leader's renewals get their turn, at random within each: few rounds
// then tell as much as many.
func (k kind) settled(f *fleet, phase float64) (time.Duration, error) {
	third := f.lease / 3
	if err := f.quiet(time.Until(f.leader.At.Add(third + time.Duration(phase*float64(third))))); err != nil {
		return 0, err
	}
	return k.round(f)
}

func failover(f *fleet) (time.Duration, error) {
	killed := time.Now()
	if err := f.Replica(f.leader.Replica).Signal(syscall.SIGKILL); err != nil {
		return 0, err
	}
	next, err := f.await("the next leader")
	if err == nil && next.What != "start" {
		err = fmt.Errorf("%s of %s, which was not killed", next.What, next.Replica)
	}
	f.leader = next
	return next.At.Sub(killed), err
}

func handover(f *fleet) (time.Duration, error) {
	leader := f.leader
	if err := f.Replica(leader.Replica).Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	// Two processes: the later event may be read first.
	one, err := f.await("the hand-over")
	if err != nil {
		return 0, err
	}
	two, err := f.await("the rest of the hand-over")
	if err != nil {
		return 0, err
	}
	end, next := one, two
	if one.What == "start" {
		end, next = two, one
	}
	switch {
	case end.What != "end" || end.Replica != leader.Replica || next.What != "start":
		return 0, fmt.Errorf("a hand-over of %s by %s of %s and %s of %s", leader.Replica, one.What, one.Replica, two.What, two.Replica)
	case next.At.Before(end.At):
		return 0, fmt.Errorf("two leaders: %s started %s before %s had returned", next.Replica, end.At.Sub(next.At), end.Replica)
	}
	f.leader = next
	return next.At.Sub(end.At), nil
}

func median(sorted []time.Duration) time.Duration {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// p95 is the smallest value that 95 % of all do not exceed.
func p95(sorted []time.Duration) time.Duration { return sorted[(95*len(sorted)+99)/100-1] }

// report prints the values, and returns whether they are what is wanted.
func report(w io.Writer, k kind, values []time.Duration, lease time.Duration) (ok bool) {
	fmt.Fprintf(w, "%s: %s, lease %s, rounds %d\n", k.name, k.doc, lease, len(values))
	if len(values) == 0 {
		return false
	}
	sorted := slices.Sorted(slices.Values(values))
	fmt.Fprintf(w, "  min %s  median %s  p95 %s  max %s\n", ms(sorted[0]), ms(median(sorted)), ms(p95(sorted)), ms(slices.Max(sorted)))
	ok = true
	for _, b := range k.wanted {
		verdict := "ok"
		if b.of(sorted) > b.most {
			verdict, ok = "exceeded", false
		}
		fmt.Fprintf(w, "  wanted: %s at most %s: %s\n", b.figure, b.most, verdict)
	}
	fmt.Fprint(w, "  all:")
	for _, d := range values {
		fmt.Fprintf(w, " %s", ms(d))
	}
	fmt.Fprintln(w)
	return ok
}

func ms(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
