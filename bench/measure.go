//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/procfs"

	"github.com/soloist-go/soloist/internal/proctest"
)

// A row is what was seen of one fleet.
type row struct {
	spec
	Report
	cpu    float64            // of one processor, of all replicas, in percent
	rss    float64            // of one replica, MiB
	calls  map[string]float64 // of the service for each tick of a job, or each hour if idle, by kind; nil: they are not counted
	growth []moment
}

// A bench measures.
type bench struct {
	options
	services *services
	spaces   int // so many fleets so far
}

// prepare builds the programs and starts the services of all that will be measured: it would disturb what is measured first.
func (b *bench) prepare(ctx context.Context) error {
	for _, s := range b.scenarios {
		for _, specs := range s.batches(b.options) {
			for _, of := range specs {
				if _, _, err := b.services.of(ctx, of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// batch runs fleets at once.
func (b *bench) batch(ctx context.Context, specs []spec) ([]row, error) {
	rows, errs := make([]row, len(specs)), make(chan error)
	var started int
	var err error
	for i, of := range specs {
		b.spaces++
		var f *fleet
		if f, err = open(ctx, b.services, fmt.Sprintf("%s-%s-%d", of.peer, of.scenario, b.spaces), of); err != nil {
			break
		}
		started++
		go func() { errs <- b.measure(ctx, f, &rows[i]) }()
	}
	for range started {
		err = errors.Join(err, <-errs)
	}
	return rows, err
}

// measure runs a fleet for as long as it takes.
func (b *bench) measure(ctx context.Context, f *fleet, r *row) error {
	defer f.Close()
	for _, name := range f.names() {
		if err := f.start(name); err != nil {
			return err
		}
	}
	j := f.jobs[0]
	warm := warmUp + time.Duration(f.size)*100*ms + time.Duration(len(f.jobs))*20*ms
	if f.idle {
		return b.idle(ctx, f, warm, r)
	}
	w := Window{Jobs: f.jobs, Begin: j.Next(time.Now().Add(warm))}
	if err := until(ctx, w.Begin.Add(-min(j.Every/2, time.Second*5/2))); err != nil {
		return err
	}
	before, err := b.sample(ctx, f)
	if err != nil {
		return err
	}
	if w.End, err = f.pass(ctx, w.Begin); err != nil {
		return err
	}
	if f.growth {
		if r.growth, err = b.growth(ctx, f, w); err != nil {
			return err
		}
	}
	if err := errors.Join(until(ctx, w.End.Add(-min(j.Every/2, time.Second*5/2))), f.check()); err != nil {
		return err
	}
	after, err := b.sample(ctx, f)
	if err != nil {
		return err
	}
	if err := until(ctx, w.End.Add(-j.Every+max(j.Every/2, drain)+f.skew)); err != nil {
		return err
	}
	_ = f.Stop(stops) // a replica that does not stop is killed
	r.fill(f, w, before, after)
	return nil
}

// idle counts what replicas ask of their service while no job is due.
func (b *bench) idle(ctx context.Context, f *fleet, warm time.Duration, r *row) error {
	const settles = 30 * time.Second // some look for jobs of others only so often
	if err := proctest.Pause(ctx, warm+settles); err != nil {
		return err
	}
	before, err := b.sample(ctx, f)
	if err != nil {
		return err
	}
	w := Window{Begin: time.Now()}
	w.End = w.Begin.Add(time.Duration(f.ticks) * time.Minute)
	if err := errors.Join(until(ctx, w.End), f.check()); err != nil {
		return err
	}
	after, err := b.sample(ctx, f)
	if err != nil {
		return err
	}
	_ = f.Stop(stops) // a replica that does not stop is killed
	r.fill(f, w, before, after)
	return nil
}

// pass lets the ticks pass, with their faults, and returns when the window ends.
func (f *fleet) pass(ctx context.Context, begin time.Time) (end time.Time, err error) {
	j := f.jobs[0]
	if f.faults == nil {
		return begin.Add(time.Duration(f.ticks) * j.Every), nil
	}
	if err := until(ctx, begin.Add(j.Every/2)); err != nil {
		return end, err
	}
	err = f.faults(ctx, f)
	return j.Next(time.Now()), err
}

// A sample is what a fleet has taken so far.
type sample struct {
	cpu   map[int]float64 // seconds by process
	rss   float64         // MiB of all
	calls map[string]int
}

func (b *bench) sample(ctx context.Context, f *fleet) (sample, error) {
	s := sample{cpu: map[int]float64{}}
	for _, name := range f.names() {
		pid := f.Replica(name).Pid()
		p, err := procfs.NewProc(pid)
		if err != nil {
			return s, errors.Join(err, f.check())
		}
		stat, err := p.Stat()
		if err != nil {
			return s, errors.Join(err, f.check())
		}
		s.cpu[pid], s.rss = stat.CPUTime(), s.rss+float64(stat.ResidentMemory())/(1<<20)
	}
	var err error
	s.calls, err = b.services.calls(ctx, f.settings)
	return s, err
}

// fill makes the row of a fleet that has ended.
func (r *row) fill(f *fleet, w Window, before, after sample) {
	if r.spec = f.spec; f.lease > 0 {
		r.Report = judgeLeader(f.Events(), f.done)
	} else {
		r.Report = judge(f.Events(), f.done, w)
	}
	for pid, cpu := range after.cpu {
		r.cpu += 100 * (cpu - before.cpu[pid]) / w.End.Sub(w.Begin).Seconds()
	}
	r.rss = after.rss / float64(f.size)
	if len(after.calls) == 0 || f.lease > 0 {
		return
	}
	per := float64(r.Ticks)
	if f.idle {
		per = w.End.Sub(w.Begin).Hours()
	}
	r.calls = map[string]float64{}
	for kind, n := range after.calls {
		r.calls[kind] = float64(n-before.calls[kind]) / per
	}
}
