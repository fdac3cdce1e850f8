//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/soloist-go/soloist/bench/internal/runs"
	"github.com/soloist-go/soloist/internal/proctest"
)

// faults happen to a fleet. They return when they are over and their effects can be seen.
type faults func(ctx context.Context, f *fleet) error

// runner waits for a run of the first job that begins after a time, by another replica than the
// one of that name, and returns its replica.
func (f *fleet) runner(ctx context.Context, after time.Time, not string, patience time.Duration) (name string, err error) {
	for late := time.Now().Add(patience); time.Now().Before(late); {
		lines, err := runs.Read(f.settings.Log)
		if err != nil {
			return "", err
		}
		for _, l := range lines {
			if l.What == runs.Start && l.Wall.After(after) && l.Replica != not && l.Job == f.jobs[0].Name {
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

// readLog is how long after a tick the log is first read: at the tick that would keep a processor,
// and the log, from the replica that is to write the start of its run there.
const readLog = 200 * ms

// killAt kills the replica that ran a tick so long after that tick, n times, and starts it again.
func killAt(n int, after func(i int, every time.Duration) time.Duration) faults {
	return func(ctx context.Context, f *fleet) error {
		j := f.jobs[0]
		for i := range n {
			tick := j.Next(time.Now())
			if err := until(ctx, tick.Add(readLog)); err != nil {
				return err
			}
			name, err := f.runner(ctx, tick.Add(-time.Second), "", 2*j.Every)
			if err != nil {
				return err
			}
			if err := until(ctx, tick.Add(after(i, j.Every))); err != nil {
				return err
			}
			if err := f.kill(ctx, name); err != nil {
				return err
			}
		}
		// The tick after the last kill may have to wait for a lease, or for the next one to be recorded.
		return until(ctx, j.Next(time.Now()).Add(j.Every+time.Second))
	}
}

// kill kills a replica and starts it again.
func (f *fleet) kill(ctx context.Context, name string) error {
	err := f.signal(runs.Kill, name)
	<-f.replicas[name].Gone()
	return errors.Join(err, proctest.Pause(ctx, 300*ms), f.start(name))
}

// calmTicks is how many ticks come before the first kill: how late they are is what is usual.
const calmTicks = 8

// killBetween kills long after a run, and long before the next tick.
func killBetween(n int) faults {
	kill := killAt(n, func(int, time.Duration) time.Duration { return 500*ms + rand.N(1500*ms) })
	return func(ctx context.Context, f *fleet) error {
		j := f.jobs[0]
		if err := until(ctx, j.Next(time.Now()).Add((calmTicks-1)*j.Every+time.Second)); err != nil {
			return err
		}
		return kill(ctx, f)
	}
}

// killInLead kills at different moments of the last two seconds before a tick.
func killInLead(n int) faults {
	return killAt(n, func(_ int, every time.Duration) time.Duration { return every - rand.N(2*time.Second) })
}

// eachSignal does to the last runner what can happen to one, and waits each time until another
// replica has run.
func eachSignal(n int) faults {
	const patience = time.Minute
	return func(ctx context.Context, f *fleet) error {
		for range n {
			for _, what := range []string{runs.Kill, runs.Term, runs.Stop} {
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
	if what == runs.Stop {
		return errors.Join(until(ctx, since.Add(frozen)), f.signal(runs.Cont, name), proctest.Pause(ctx, settles))
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
			if err := f.signal(runs.Term, name); err != nil {
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
