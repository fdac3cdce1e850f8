//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host"
	"github.com/soloist-go/soloist/host/postgres"
	"github.com/soloist-go/soloist/internal/proctest"
)

// What a replica gets in its environment, in addition to its name as its order.
const (
	versionEnv = "STORM_VERSION" // of the program, "1" or "2"
	sinkEnv    = "STORM_SINK"    // URL
)

// replica is the whole life of a process that was started as one: the program
// that a user would write. It does not return.
func replica(name string) {
	p := &program{replica: name, sink: os.Getenv(sinkEnv)}
	h := host.Program{Work: p.works(os.Getenv(versionEnv)), OpenStore: postgres.OpenURL}
	h.Main()
}

// A program is the work of a replica. All that it does for others to see goes
// to the sink.
type program struct{ replica, sink string }

const (
	leader  = "leader"
	pages   = "pages"
	silence = 5 * time.Second // of the job that blocks
)

// works is the work of a version of the program. The second one has another
// schedule for a job, and one job more.
func (p *program) works(version string) []soloist.Work {
	ten := "@every 10s"
	if version == "2" {
		ten = "@every 15s"
	}
	all := []soloist.Work{
		soloist.Job{Name: "five", Schedule: "@every 5s", Do: p.takes(200*time.Millisecond, time.Second)},
		soloist.Job{Name: "ten", Schedule: ten, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second}, Do: p.fails(0.1, p.takes(time.Second, 3*time.Second))},
		soloist.Job{Name: "minute", Schedule: "* * * * *", Late: soloist.Late{Missed: soloist.RunAll}, Interrupted: soloist.Rerun, Do: p.takes(time.Second, 4*time.Second)},
		soloist.Job{Name: "rerun", Schedule: "@every 20s", Interrupted: soloist.Rerun, Do: p.takes(3*time.Second, 8*time.Second)},
		soloist.Job{Name: "slow", Schedule: "@every 6s", Do: p.takes(8*time.Second, 14*time.Second)},
		soloist.Job{Name: "blocks", Schedule: "@every 15s", HeartbeatTimeout: silence, Do: p.blocks(0.1, p.takes(time.Second, 2*time.Second))},
		soloist.Job{Name: pages, Schedule: "@every 10s", Interrupted: soloist.Rerun, Do: p.pages},
		soloist.Singleton{Name: leader, Do: p.lead, Backoff: time.Second},
	}
	if version == "2" {
		all = append(all, soloist.Job{Name: "added", Schedule: "@every 8s", Do: p.takes(time.Second, 2*time.Second)})
	}
	for i, w := range all {
		switch w := w.(type) {
		case soloist.Job:
			w.Do = p.tells(w.Do)
			all[i] = w
		case soloist.Singleton:
			w.Do = p.tells(w.Do)
			all[i] = w
		}
	}
	return all
}

// effect notifies the sink, if the run may still believe in its lease.
func (p *program) effect(run *soloist.Run, what What, position int) error {
	asked := time.Now() // the belief that counts is later than this
	if err := run.Heartbeat(string(what)); err != nil {
		return err
	}
	return p.send(run, Effect{What: what, Asked: asked, Position: position})
}

// send sends an effect to the sink.
func (p *program) send(run *soloist.Run, e Effect) error {
	e.Replica, e.Job, e.Tick, e.Attempt, e.Try, e.Token = p.replica, run.Job, run.Tick, run.Attempt, run.Try, run.Token
	e.Previous = run.Previous
	return proctest.Send(p.sink, e)
}

// tells has a run report its start, also if it comes too late to believe, and why it is over.
func (p *program) tells(do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		err := p.effect(run, Started, 0)
		if err != nil && !errors.Is(err, proctest.ErrStale) {
			p.send(run, Effect{What: Late, Cause: err.Error()})
		}
		if err == nil {
			err = do(ctx, run)
		}
		e := Effect{What: Ended, Failed: err != nil}
		if cause := cmp.Or(context.Cause(ctx), err); cause != nil {
			e.Cause = cause.Error()
		}
		p.send(run, e)
		return err
	}
}

const step = 400 * time.Millisecond

// takes has effects for a while, and then the effect that counts.
func (p *program) takes(least, most time.Duration) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		for end := time.Now().Add(least + rand.N(most-least)); time.Now().Before(end); {
			if err := p.effect(run, Beat, 0); err != nil {
				return err
			}
			if err := p.rest(ctx, run, min(step, time.Until(end))); err != nil {
				return err
			}
		}
		return p.effect(run, Done, 0)
	}
}

// rest is followed by what a run should not do: an effect without asking whether
// it may. Where the process was frozen meanwhile, the sink has to refuse it.
func (p *program) rest(ctx context.Context, run *soloist.Run, d time.Duration) error {
	proctest.Pause(ctx, d)
	err := p.send(run, Effect{What: Blind})
	if errors.Is(err, proctest.ErrStale) {
		p.effect(run, Beat, 0) // what it believes is judged nevertheless
	}
	return cmp.Or(err, context.Cause(ctx))
}

// fails has some runs fail, with a try left or not.
func (p *program) fails(share float64, do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		if rand.Float64() >= share {
			return do(ctx, run)
		}
		return errors.New("fails now and then")
	}
}

// blocks has some runs block: half of them until their context ends, the others forever.
func (p *program) blocks(share float64, do func(context.Context, *soloist.Run) error) func(context.Context, *soloist.Run) error {
	return func(ctx context.Context, run *soloist.Run) error {
		if rand.Float64() >= share {
			return do(ctx, run)
		}
		if rand.IntN(2) == 0 {
			p.send(run, Effect{What: Blocks})
			select {}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// pages goes on where the last run has saved that it was.
func (p *program) pages(ctx context.Context, run *soloist.Run) error {
	var at struct{ Next int }
	if err := run.Load(ctx, &at); err != nil {
		return err
	}
	if err := p.effect(run, Loaded, at.Next); err != nil {
		return err
	}
	for range 5 {
		at.Next++
		if err := run.Save(ctx, at); err != nil {
			return err
		}
		if err := proctest.Pause(ctx, step); err != nil {
			return err
		}
	}
	return p.effect(run, Done, at.Next)
}

// lead goes on until it has to end.
func (p *program) lead(ctx context.Context, run *soloist.Run) error {
	for {
		if err := p.effect(run, Beat, 0); err != nil {
			return err
		}
		if err := p.rest(ctx, run, step); err != nil {
			return err
		}
	}
}
