//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

// faults happen to a fleet. They return when they are over and their effects can be seen.
type faults func(ctx context.Context, f *fleet) error

const patience = time.Minute

// runner waits for a run of the first job that begins after a time, by another replica than the one of that name, and returns the
// replica of the last one.
func (f *fleet) runner(ctx context.Context, after time.Time, not string) (string, error) {
	for late := time.Now().Add(patience); time.Now().Before(late); {
		for _, e := range slices.Backward(f.Events()) {
			if e.What == replica.Start && e.At.After(after) && e.Replica != not && e.Job == f.jobs[0].Name {
				return e.Replica, nil
			}
		}
		if err := proctest.Pause(ctx, 20*ms); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s in %s: no run of %s within %s", f.peer, f.scenario, f.jobs[0].Name, patience)
}

// leader returns the replica that was the last to enqueue a tick that any replica may run; "": the peer has none.
func (f *fleet) leader() string {
	for _, e := range slices.Backward(f.Events()) {
		if e.What == replica.Lead {
			return e.Replica
		}
	}
	return ""
}

// hit sends a signal to the leader, or else to the last runner since a time, and waits until another replica has run.
func (f *fleet) hit(ctx context.Context, what string, since time.Time) (name string, err error) {
	if name, err = f.runner(ctx, since, ""); err != nil {
		return name, err
	}
	name = cmp.Or(f.leader(), name)
	began := time.Now()
	if err := f.signal(what, name); err != nil {
		return name, err
	}
	not := name
	if f.lease > 0 { // the same one may lead again
		not = ""
	}
	_, err = f.runner(ctx, began, not)
	return name, err
}

// eachSignal does to the last runner what can happen to one.
func eachSignal(n int) faults {
	return func(ctx context.Context, f *fleet) error {
		for range n {
			for _, what := range []string{"kill", "term", "stop"} {
				began := time.Now()
				name, err := f.hit(ctx, what, began.Add(-f.jobs[0].Every))
				if err != nil {
					return err
				}
				if err := f.mend(ctx, what, name, began); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// mend has a replica go on, or starts it again, and leaves the fleet some seconds to settle.
func (f *fleet) mend(ctx context.Context, what, name string, since time.Time) error {
	const frozen, settles = 20 * time.Second, 4 * time.Second
	if what == "stop" {
		return errors.Join(until(ctx, since.Add(frozen)), f.signal("cont", name), proctest.Pause(ctx, settles))
	}
	f.Replica(name).GoneWithin(stops)
	return errors.Join(f.start(name), proctest.Pause(ctx, settles))
}

// rollingRestart stops one replica after the other, as a deployment does, within so many ticks.
func rollingRestart(n int) faults {
	return func(ctx context.Context, f *fleet) error {
		begin := time.Now()
		for i, name := range f.names() {
			if err := until(ctx, begin.Add(f.jobs[0].Every*time.Duration((i+1)*n/(2*f.size)))); err != nil {
				return err
			}
			if err := f.signal("term", name); err != nil {
				return err
			}
			f.Replica(name).GoneWithin(stops)
			if err := f.start(name); err != nil {
				return err
			}
		}
		return until(ctx, begin.Add(time.Duration(n)*f.jobs[0].Every))
	}
}

// killLeader kills the replica that leads, n times, at any moment between two renewals.
func killLeader(n int) faults {
	return func(ctx context.Context, f *fleet) error {
		lease := f.settings.Lease
		for range n {
			// A replica that was started again has found the leader by then.
			if err := proctest.Pause(ctx, 2*time.Second+lease+rand.N(lease)); err != nil {
				return err
			}
			name, err := f.hit(ctx, "kill", time.Time{})
			if err != nil {
				return err
			}
			if err := f.start(name); err != nil {
				return err
			}
		}
		return nil
	}
}
