package soak_test

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
)

// work is one try of one job on one replica. What it does follows from the tick.
type work struct {
	*replica
	*sim.RunContext
	ctx context.Context
}

func (r *replica) work(t task) sim.Work {
	d := t.Definition
	d.Schedule, d.Zone = t.rule.text, r.zone.String()
	return sim.Work{Definition: d, Act: func(ctx context.Context, run *sim.RunContext) error {
		if !t.EveryReplica {
			defer r.sit(run.Run)()
		}
		return t.do(&work{r, run, ctx})
	}}
}

var errCrashed = errors.New("crashed")

// busy takes its time and obeys its context.
func (w *work) busy(d time.Duration) error { return w.Sleep(w.ctx, d) }

// one reports whether this tick is one of every n, as what says.
func (w *work) one(n uint64, what string) bool { return w.number(what)%n == 0 }

func (w *work) number(what string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(w.Job + what + w.Tick.Format(time.RFC3339)))
	return h.Sum64() >> 8
}

// from returns a time from least to most.
func (w *work) from(least, most time.Duration) time.Duration {
	return least + time.Duration(w.number("takes")%uint64(most-least))
}

func (w *work) plain() error { return w.busy(w.from(5*time.Second, 2*time.Minute)) }

func (w *work) feed() error { return w.busy(time.Second) }

func (w *work) slow() error { return w.busy(25 * time.Minute) }

func (w *work) audit() error { return w.busy(12 * time.Minute) }

// report crashes its replica now and then, and when clocks change: in the hour
// that the clock shows twice the tick is not to come again.
func (w *work) report() error {
	_, before := w.Tick.Add(-3 * time.Hour).In(w.zone).Zone()
	_, after := w.Tick.Add(3 * time.Hour).In(w.zone).Zone()
	if after != before || w.one(30, "crash") {
		return w.crashAfter(7 * time.Minute)
	}
	return w.busy(20 * time.Minute)
}

func (w *work) crashAfter(d time.Duration) error {
	if err := w.busy(d); err != nil {
		return err
	}
	w.crash("crash by a job")
	return errCrashed
}

// sync hangs on Sunday mornings.
func (w *work) sync() error {
	if wall := w.Tick.In(w.zone); wall.Weekday() == time.Sunday && wall.Hour() == 7 {
		return w.busy(time.Hour)
	}
	for range 1 + w.number("takes")%5 {
		if err := errors.Join(w.busy(30*time.Second), w.Heartbeat("going on")); err != nil {
			return err
		}
	}
	return nil
}

// poll fails now and then, the first time or each time, or finds nothing.
func (w *work) poll() error {
	if err := w.busy(w.from(3*time.Second, 8*time.Second)); err != nil {
		return err
	}
	switch {
	case w.one(90, "fail"), w.one(20, "fail once") && w.Try == 1:
		return errors.New("out of order")
	case w.one(50, "skip"):
		return soloist.Skip("nothing new")
	}
	return nil
}

// billing crashes its replica now and then, at its first attempt.
func (w *work) billing() error {
	if w.Attempt == 1 && w.one(6, "crash") {
		return w.crashAfter(4 * time.Minute)
	}
	return w.busy(10 * time.Minute)
}

// progress is the checkpoint of an import.
type progress struct {
	Tick time.Time
	Done int
}

const steps = 20

// load saves each of its steps, and goes on from there after a crash.
func (w *work) load() error {
	var p progress
	if err := w.Load(w.ctx, &p); err != nil {
		return err
	}
	if !p.Tick.Equal(w.Tick) {
		p = progress{Tick: w.Tick}
	}
	w.resume(p)
	crashAt := -1
	if w.Attempt == 1 && w.one(6, "crash") {
		crashAt = int(w.number("at") % steps)
	}
	for p.Done < steps {
		if p.Done == crashAt {
			return w.crashAfter(time.Second)
		}
		if err := w.busy(15 * time.Second); err != nil {
			return err
		}
		p.Done++
		if err := w.Save(w.ctx, p); err != nil {
			return err
		}
		w.cluster.mu.Lock()
		w.saved[w.Job] = p
		w.cluster.mu.Unlock()
	}
	return nil
}

// resume checks that a run has the checkpoint of the one before it.
func (w *work) resume(p progress) {
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	last := w.saved[w.Job]
	if last.Tick.Equal(w.Tick) && last.Done > p.Done {
		w.bad("%s: %d steps were saved, and it goes on from %d", w.ID(), last.Done, p.Done)
	}
	if p.Done > 0 {
		w.resumed++
	}
}

func (w *work) refresh() error {
	w.cluster.mu.Lock()
	w.here++
	w.cluster.mu.Unlock()
	return w.busy(2 * time.Second)
}

// lead is the task of the singleton: it has no end.
func (r *replica) lead(ctx context.Context, run *sim.RunContext) error {
	defer r.sit(run.Run)()
	return run.Sleep(ctx, 1e6*time.Hour)
}
