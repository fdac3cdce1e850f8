//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
	"github.com/soloist-go/soloist/internal/proctest"
)

// faults happen to a fleet. They return when they are over and their effects can be seen.
type faults func(ctx context.Context, f *fleet) error

// runner waits for a run of the first job that begins after a time, by another replica than the
// one of that name, and returns its replica.
func (f *fleet) runner(ctx context.Context, after time.Time, not string, patience time.Duration) (name string, err error) {
	for late := time.Now().Add(patience); time.Now().Before(late); {
		lines, err := replica.Read(f.settings.Log)
		if err != nil {
			return "", err
		}
		for _, l := range lines {
			if l.What == replica.Start && l.Wall.After(after) && l.Replica != not && l.Job == f.jobs[0].Name {
				name = l.Replica
			}
		}
		if name != "" {
			return name, nil
		}
		if err := proctest.Pause(ctx, 20*ms); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s in %s: no run of %s within %s:\n%s", f.peer, f.scenario, f.jobs[0].Name, patience, f.said())
}

// eachSignal does to the last runner what can happen to one, and waits each time until another
// replica has run.
func eachSignal(n int) faults {
	const patience = time.Minute
	return func(ctx context.Context, f *fleet) error {
		for range n {
			for _, what := range []string{replica.Kill, replica.Term, replica.Stop} {
				name, err := f.runner(ctx, time.Now().Add(-f.jobs[0].Every), "", patience)
				if err != nil {
					return err
				}
				began := time.Now()
				if err := f.signal(what, name); err != nil {
					return err
				}
				if _, err := f.runner(ctx, began, name, patience); err != nil {
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
	if what == replica.Stop {
		return errors.Join(until(ctx, since.Add(frozen)), f.signal(replica.Cont, name), proctest.Pause(ctx, settles))
	}
	f.replicas[name].GoneWithin(stops)
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
			if err := f.signal(replica.Term, name); err != nil {
				return err
			}
			f.replicas[name].GoneWithin(stops)
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
			name, err := f.runner(ctx, time.Time{}, "", time.Minute)
			if err != nil {
				return err
			}
			killed := time.Now()
			if err := f.signal(replica.Kill, name); err != nil {
				return err
			}
			<-f.replicas[name].Gone()
			if _, err := f.runner(ctx, killed, "", time.Minute); err != nil {
				return err
			}
			if err := f.start(name); err != nil {
				return err
			}
		}
		return nil
	}
}
