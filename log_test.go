package soloist_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A blockedLog blocks on a message with text until release. It has no mutex,
// which would stop virtual time.
type blockedLog struct {
	slog.Handler
	text    string
	release <-chan struct{}
}

func (l blockedLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l blockedLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, l.text) {
		<-l.release
	}
	return nil
}

// A slowLog calls block before it writes the line with a message.
type slowLog struct {
	slog.Handler
	message string
	block   func()
}

func (l slowLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == l.message {
		l.block()
	}
	return l.Handler.Handle(ctx, r)
}

func (l slowLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slowLog{l.Handler.WithAttrs(attrs), l.message, l.block}
}

// A debugging handler is enabled for all levels.
type debugging struct{ slog.Handler }

func (debugging) Enabled(context.Context, slog.Level) bool { return true }

func (d debugging) WithAttrs([]slog.Attr) slog.Handler { return d }

// blocked makes a replica whose log blocks at lines with text until release.
func (c *cluster) blocked(text string, work ...soloist.Work) (r *replica, release func()) {
	r = c.replica("a", work...)
	open := make(chan struct{})
	r.Logger = slog.New(blockedLog{slog.NewTextHandler(io.Discard, nil), text, open})
	return r, func() { close(open) }
}

// Whatever line of a replica blocks, the job's ticks go on: here or elsewhere.
func TestBlockedLogCostsNoTicks(t *testing.T) {
	ill := soloist.Job{Name: "work", Schedule: "*/10 * * * *", Lease: D, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second},
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
		inCase(t, line, func(t *testing.T, c *cluster) {
			x := c.replica("x", dies)
			c.launch(x)
			time.Sleep(10*time.Minute + time.Second)
			x.kill()
			if line == "lease did not run" {
				c.breakLease()
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
	}
}

// A log that blocks on the start of a run delays it by a sixth of the lease at most.
func TestBlockedLogDelaysStartLittle(t *testing.T) {
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
func TestBlockedLogHidesNoStall(t *testing.T) {
	for _, line := range []string{"is not healthy", "the record was not updated"} {
		inCase(t, line, func(t *testing.T, c *cluster) {
			g := soloist.Singleton{Name: "work", Lease: D, HeartbeatTimeout: 20 * time.Second,
				HealthCheck: soloist.HealthCheck{Check: func(context.Context) error { return errors.New("sick") }},
				Do:          func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }}
			a, release := c.blocked(line, g)
			defer release()
			a.Logger = slog.New(debugging{a.Logger.Handler()})
			c.launch(a)
			time.Sleep(2 * time.Second)
			a.tap.meet(fail(errNetwork, "write"))
			time.Sleep(time.Minute)
			if first := c.all()[0]; !errors.Is(first.cause, soloist.ErrStalled) {
				t.Errorf("the sick run goes on: %v", first.cause)
			}
		})
	}
}

// Health tells of a log that has taken no line for three minutes, and no more
// once it takes lines again; those that waited come in order, and say how many
// were dropped.
func TestBlockedLogIsToldByHealth(t *testing.T) {
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
		wantError(t, a.Health().Log, "2000-01-01T00:00:10Z")
		close(open)
		time.Sleep(time.Minute)
		if err := a.Health().Log; err != nil {
			t.Errorf("once it goes on: %v", err)
		}
		a.wantLines(1, "lines were dropped")
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

// The log blocks just before a further try, on a replica that has lost the store:
// the wait for the log comes before the look at the deadline, so that the try
// does not start once the lease is lost, and starts if it lasts.
func TestBlockedLogComesBeforeDeadlineCheck(t *testing.T) {
	for first, want := range map[time.Duration][]string{
		11 * time.Second: {"a", "b"},
		6 * time.Second:  {"a", "a", "b"},
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 0)
			job.Interrupted, job.Retry.MaxTries, job.Retry.Backoff = soloist.Rerun, 2, time.Millisecond
			var a *replica
			job.Do = func(ctx context.Context, run *soloist.Run) error {
				switch {
				case run.Attempt > 1:
					return nil
				case run.Try > 1:
					<-ctx.Done()
					return ctx.Err()
				}
				a.kill()
				time.Sleep(first)
				return errors.New("not yet")
			}
			a = c.replica("a", job)
			lines := 0
			a.Logger = slog.New(slowLog{a.Logger.Handler(), "run started", func() {
				if lines++; lines == 2 {
					time.Sleep(2 * D)
				}
			}})
			c.launch(a)
			time.Sleep(time.Hour + 500*time.Millisecond) // a claims the tick
			c.start("b", job)
			time.Sleep(10 * time.Minute)
			var got []string
			for _, r := range c.all() {
				got = append(got, r.replica)
			}
			if !slices.Equal(got, want) {
				t.Errorf("a first try of %s: runs of %q, want %q", first, got, want)
			}
			if all := c.all(); len(all) > 1 && all[len(all)-1].start.Before(all[len(all)-2].end) {
				t.Errorf("a first try of %s: b starts beside a", first)
			}
			if n := len(a.log.lines("the lease was lost before the run began")); n != 3-len(want) {
				t.Errorf("a first try of %s: the log says %q", first, a.log.lines("work"))
			}
		})
	}
}

// The log blocks on the line that an outage begins: no lease is lost for that,
// Health answers, and other jobs run.
func TestBlockedLogInOutageCostsNoRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, other := work("@every 1h", 10*time.Minute), work("@every 1m", 0)
		other.Name = "other"
		a := c.replica("a", long, other)
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "a call to the store failed: trying again", func() {
			time.Sleep(5 * time.Minute)
		}})
		c.launch(a)
		time.Sleep(time.Hour + 2*time.Second)
		failed := 0
		a.tap.meet(func(op string, apply func() error) error {
			if op == "renew" && failed < 2 {
				failed++
				return errNetwork
			}
			return apply()
		})
		time.Sleep(10 * time.Second)
		begin := time.Now()
		if a.Health(); time.Since(begin) > 0 {
			t.Errorf("Health takes %s", time.Since(begin))
		}
		time.Sleep(4 * time.Minute)
		ran := 0
		for _, r := range ranBy(c, "a", begin) {
			if r.Job == "other" {
				ran++
			}
		}
		if ran < 4 {
			t.Errorf("the other job runs %d times in 4 minutes", ran)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range c.all() {
			if r.Job == "work" && r.cause != nil && r.cause != context.Canceled && r.end.Sub(r.start) < 10*time.Minute {
				t.Errorf("the run ended after %s: %v", r.end.Sub(r.start), r.cause)
			}
		}
		if n := len(a.log.lines("the store answers again")); failed != 2 || n != 1 {
			t.Errorf("%d renewals failed, the end of the outage was logged %d times", failed, n)
		}
	})
}
