package soloist_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// blocked makes a replica whose log blocks at lines with text until release.
func (c *cluster) blocked(text string, work ...soloist.Work) (r *replica, release func()) {
	r = c.replica("a", work...)
	open := make(chan struct{})
	r.Logger = slog.New(blockedLog{slog.NewTextHandler(io.Discard, nil), text, open})
	return r, func() { close(open) }
}

// Whatever line of a replica blocks, the job's ticks go on: here or elsewhere.
func TestALogThatBlocksCostsNoTicks(t *testing.T) {
	ill := soloist.Job{Name: "work", Schedule: "*/10 * * * *", Lease: D, MaxTries: 2, Backoff: time.Second,
		Do: func(context.Context, *soloist.Run) error { return errors.New("boom") }}
	panics := ill
	panics.Do = func(context.Context, *soloist.Run) error { panic("boom") }
	dies := work("*/10 * * * *", 10*time.Hour)
	for line, job := range map[string]soloist.Job{
		"run started":        work("*/10 * * * *", time.Second),
		"run ended":          work("*/10 * * * *", time.Second),
		"not run to its end": work("*/10 * * * *", time.Second),
		"lease did not run":  work("*/10 * * * *", time.Second),
		"try failed":         ill,
		"panicked":           panics,
	} {
		t.Run(line, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				x := c.replica("x", dies)
				c.launch(x)
				time.Sleep(10*time.Minute + time.Second)
				x.kill()
				if line == "lease did not run" {
					if err := c.store.Break(t.Context(), "soloist/work", 0); err != nil {
						t.Fatal(err)
					}
				}
				a, release := c.blocked(line, job)
				defer release()
				c.launch(a)
				c.start("b", job)
				time.Sleep(2 * time.Hour)
				ticks := map[time.Time]bool{}
				for _, r := range c.all() {
					ticks[r.Tick] = r.replica != "x"
				}
				if len(ticks) < 12 {
					t.Errorf("%d ticks in two hours: %q", len(ticks), c.outcomes("work"))
				}
				if len(a.Health().Stuck) > 0 {
					t.Errorf("Health: %+v", a.Health())
				}
			})
		})
	}
}

// A log that blocks on the start of a run delays it by a sixth of the lease at most.
func TestALogThatBlocksDelaysAStartByASixthOfTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", time.Second)
		job.StartingDeadline = time.Minute
		a, release := c.blocked("run started", job)
		defer release()
		c.launch(a)
		time.Sleep(time.Hour + time.Minute)
		if all := c.all(); len(all) != 1 || all[0].start.Sub(all[0].Tick) > D/6+time.Second {
			t.Errorf("runs: %+v", all)
		}
	})
}

// A log that blocks when a run is not healthy, or when a write of the watchdog
// fails, keeps neither HealthCheck nor HeartbeatTimeout from ending it.
func TestALogThatBlocksHidesNoStall(t *testing.T) {
	for _, line := range []string{"is not healthy", "was not brought up to date"} {
		t.Run(line, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				g := soloist.Singleton{Name: "work", Lease: D, HeartbeatTimeout: 20 * time.Second,
					HealthCheck: func(context.Context) error { return errors.New("sick") },
					Do:          func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }}
				a, release := c.blocked(line, g)
				defer release()
				a.Logger = slog.New(debugging{a.Logger.Handler()})
				c.launch(a)
				time.Sleep(2 * time.Second)
				a.tap.meet(func(op string, apply func() error) error {
					if op == "write" {
						return errNetwork
					}
					return apply()
				})
				time.Sleep(time.Minute)
				if first := c.all()[0]; !errors.Is(first.cause, soloist.ErrStalled) {
					t.Errorf("the sick run goes on: %v", first.cause)
				}
			})
		})
	}
}

// A debugging handler is enabled for all levels.
type debugging struct{ slog.Handler }

func (debugging) Enabled(context.Context, slog.Level) bool { return true }

func (d debugging) WithAttrs([]slog.Attr) slog.Handler { return d }

// Health tells of a log that has taken no line for three minutes, and no more
// once it takes lines again; those that waited come in order, and say how many
// were dropped.
func TestHealthTellsOfALogThatBlocks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("*/10 * * * * *", time.Second))
		open := make(chan struct{})
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() { <-open }})
		c.launch(a)
		time.Sleep(2 * time.Minute)
		if err := a.Health().Log; err != nil {
			t.Errorf("after two minutes: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if err := a.Health().Log; err == nil || !strings.Contains(err.Error(), "2000-01-01T00:00:10Z") {
			t.Errorf("after two hours: %v", err)
		}
		close(open)
		time.Sleep(time.Minute)
		if err := a.Health().Log; err != nil {
			t.Errorf("once it goes on: %v", err)
		}
		if n := len(a.log.lines("lines were dropped")); n != 1 {
			t.Errorf("%d lines tell of dropped ones", n)
		}
		last := ""
		for _, line := range a.log.lines("time=") {
			if at := strings.Fields(line)[0]; at < last {
				t.Fatalf("%s comes after %s", line, last)
			} else {
				last = at
			}
		}
	})
}

// Run, RunNow and RunDue return once their lines are written, and soon if the
// log blocks.
func TestCallsWaitForTheirLines(t *testing.T) {
	job := work("* * * * *", time.Second)
	calls := map[string]func(*replica){
		"Run": func(a *replica) {
			ctx, cancel := context.WithTimeout(context.Background(), 62*time.Second)
			defer cancel()
			_ = a.Run(ctx)
		},
		"RunDue": func(a *replica) {
			_, _ = a.RunDue(context.Background(), soloist.Wake{})
			time.Sleep(time.Minute)
			_, _ = a.RunDue(context.Background(), soloist.Wake{})
		},
		"RunNow": func(a *replica) { _, _ = a.RunNow(context.Background(), "work", "x") },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for _, block := range []time.Duration{4 * time.Second, time.Hour} {
				inCluster(t, func(c *cluster) {
					a := c.replica("a", job)
					a.Logger = slog.New(slowLog{a.Logger.Handler(), "run ended", func() { time.Sleep(block) }})
					begin := time.Now()
					call(a)
					written := len(a.log.lines("run ended")) > 0
					if took := time.Since(begin); written != (block < time.Minute) || took > 70*time.Second {
						t.Errorf("the log blocks for %s: %s took %s, line written: %t", block, name, took, written)
					}
					time.Sleep(time.Hour)
				})
			}
		})
	}
}
