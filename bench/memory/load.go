//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/bench/internal/ahead"
	"github.com/soloist-go/soloist/bench/internal/profile"
	"github.com/soloist-go/soloist/host/local"
)

// A load is the jobs of one replica. Some are due each period, all at once; the others are due
// once a day, and not while it is measured.
type load struct {
	Jobs, Busy int
	Period     time.Duration
	Ticks      int
	Quiet      time.Duration // how long a load without busy jobs is measured
	Ahead      bool
}

// A result is what a load took.
type result struct {
	Late      []delay // of each measured tick
	CPU, Wall time.Duration
	Runs      int
	Twice     int
	Lost      int
	Bytes     int64            // of all jobs, in the scheduler
	Start     map[string]int64 // calls of the store until the replica has settled, all entries being there
	Calls     map[string]int64 // while it was measured
}

// A delay is how late after a tick its runs were.
type delay struct{ Median, First, Last, Outcome time.Duration }

// settle is how long a replica has to read all records after its start.
const settle = 5 * time.Second

func (l load) measure() (r result, err error) {
	memory := &local.Memory{}
	if err := l.create(memory); err != nil {
		return r, err
	}
	before := used()
	c, watch := newCounted(memory), newWatch(l)
	c.written = watch.wrote
	stop := l.start(c, watch.started)
	defer stop()
	time.Sleep(settle)
	r.Start = c.since(nil)
	r.Bytes = used() - before
	time.Sleep(time.Until(watch.begin))
	end, err := profile.Start(fmt.Sprintf("jobs-%d-busy-%d", l.Jobs, l.Busy))
	if err != nil {
		return r, err
	}
	calls, spent := c.total(), cpu()
	time.Sleep(time.Until(watch.end))
	r.CPU, r.Wall, r.Calls = cpu()-spent, watch.end.Sub(watch.begin), c.since(calls)
	watch.judge(&r)
	runtime.KeepAlive(memory)
	return r, end()
}

// create has all entries made, by a replica that is gone when it returns.
func (l load) create(memory *local.Memory) error {
	c := newCounted(memory)
	stop := l.start(c, func(int, time.Time) {})
	defer stop()
	for late := time.Now().Add(2 * time.Minute); c.kinds["create"].Load() < int64(l.Jobs); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			return fmt.Errorf("after two minutes the replica has made %d of %d entries", c.kinds["create"].Load(), l.Jobs)
		}
	}
	return nil
}

// start starts a replica. It calls started with the number of a job and its tick.
func (l load) start(c *counted, started func(int, time.Time)) (stop func()) {
	s := &soloist.Scheduler{Store: c, Logger: slog.New(slog.DiscardHandler), Replica: "bench"}
	far := time.Now().UTC().Add(12 * time.Hour)
	daily := fmt.Sprintf("%d %d * * *", far.Minute(), far.Hour())
	for n := range l.Jobs {
		j := soloist.Job{Name: fmt.Sprintf("job-%d", n), Schedule: daily}
		if n < l.Busy {
			j.Schedule = "@every " + l.Period.String()
		}
		j.Do = func(_ context.Context, run *soloist.Run) error {
			started(n, run.Tick)
			return nil
		}
		ahead.Claim(&j, l.Ahead)
		s.Jobs = append(s.Jobs, j)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	return func() {
		cancel()
		<-done
	}
}
