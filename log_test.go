package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
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

// Whatever line of a replica blocks, the job's ticks go on, here or elsewhere, and no lease is lost for it. The start of a run is
// delayed by a sixth of the lease at most.
func TestBlockedLogCostsNoTicks(t *testing.T) {
	const each = "*/10 * * * *"
	fine, boom := work(each, time.Second), doing(each, func(context.Context, *soloist.Run) error { return errors.New("boom") })
	boom.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
	for line, job := range map[string]soloist.Job{
		"run started":        fine,
		"run ended":          fine,
		"not run to its end": fine,
		"lease did not run":  fine,
		"try failed":         boom,
		"trying again":       work(each, time.Minute),
		"panicked":           doing(each, func(context.Context, *soloist.Run) error { panic("boom") }),
	} {
		inCase(t, line, func(t *testing.T, c *cluster) {
			x := c.start("x", work(each, 10*time.Hour))
			time.Sleep(10*time.Minute + time.Second)
			x.kill()
			if line == "lease did not run" {
				c.breakLease()
			}
			a, release := c.blocked(line, job)
			defer release()
			c.launch(a)
			c.start("b", job)
			if line == "trying again" { // as an outage begins
				for _, r := range c.started[1:] {
					r.meets(inTurn("renew", errNetwork, errNetwork, nil))
				}
			}
			time.Sleep(2 * time.Hour)
			ticks := map[time.Time]bool{}
			for _, r := range c.all() {
				ticks[r.Tick] = true
				if late := r.start.Sub(r.Tick); r.Try == 1 && late > D/6+time.Second {
					t.Errorf("tick %s starts %s late", r.Tick, late)
				}
			}
			if len(ticks) < 12 || len(a.Health().Stuck) > 0 {
				t.Errorf("%d ticks in two hours: %q, %+v", len(ticks), c.outcomes("work"), a.Health())
			}
		})
	}
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

// receivers are what a replica's log and events go to. Each calls block when it is told of a kind, and told reports whether
// it has taken that.
var receivers = map[string]struct {
	block  func(a *replica, book *eventBook, kind event.Kind, block func())
	told   func(a *replica, book *eventBook, kind event.Kind) int
	health func(h soloist.Health) error
}{
	"log": {
		func(a *replica, _ *eventBook, kind event.Kind, block func()) {
			a.Logger = slog.New(slowLog{a.Logger.Handler(), "run " + string(kind), block})
		},
		func(a *replica, _ *eventBook, kind event.Kind) int { return len(a.log.lines("run " + string(kind))) },
		func(h soloist.Health) error { return h.Log },
	},
	"events": {
		func(a *replica, book *eventBook, kind event.Kind, block func()) {
			a.Events = func(e event.Event) {
				if e.Kind == kind {
					block()
				}
				book.add(e)
			}
		},
		func(_ *replica, book *eventBook, kind event.Kind) int { return len(book.of("work", kind)) },
		func(h soloist.Health) error { return h.Events },
	},
}

// A log, or an Events function, that blocks costs no tick and no lease. Health tells of it after three minutes, and no more once
// it goes on. What found no room is counted.
func TestBlockedReceiverIsToldByHealth(t *testing.T) {
	for name, on := range receivers {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a, book, open := c.replica("a", work("*/5 * * * * *", 0)), &eventBook{}, make(chan struct{})
			on.block(a, book, event.Started, func() { <-open })
			c.launch(a)
			time.Sleep(2 * time.Minute)
			if err := on.health(a.Health()); err != nil {
				t.Errorf("after two minutes: %v", err)
			}
			time.Sleep(150 * time.Minute)
			wantError(t, on.health(a.Health()), "2000-01-01T00:00:05Z")
			if n := len(c.all()); n < 152*12-1 {
				t.Errorf("%d runs in 152 minutes", n)
			}
			close(open)
			time.Sleep(time.Minute)
			if err := on.health(a.Health()); err != nil {
				t.Errorf("once it goes on: %v", err)
			}
			dropped, starts := len(book.of("", event.Dropped))+len(a.log.lines("lines were dropped")), on.told(a, book, event.Started)
			if dropped != 1 || starts < 100 {
				t.Errorf("what was dropped is told %d times, and %d starts", dropped, starts)
			}
		})
	}
}

// Run, RunNow and RunDue return once their lines are written and their events are taken, and soon if one blocks.
func TestCallsWaitForTheirReceivers(t *testing.T) {
	for call, do := range map[string]func(*cluster, *replica){
		"Run": func(c *cluster, a *replica) { _ = a.Run(c.within(62 * time.Second)) },
		"RunDue": func(c *cluster, a *replica) {
			a.wake()
			time.Sleep(time.Minute)
			a.wake()
		},
		"RunNow": func(c *cluster, a *replica) { _, _ = a.RunNow(c.t.Context(), "work", "x") },
	} {
		for name, on := range receivers {
			for _, block := range []time.Duration{4 * time.Second, time.Hour} {
				inCase(t, fmt.Sprintf("%s, %s, %s", call, name, block), func(t *testing.T, c *cluster) {
					a, book := c.replica("a", work("* * * * *", time.Second)), &eventBook{}
					on.block(a, book, event.Ended, func() { time.Sleep(block) })
					begin := time.Now()
					do(c, a)
					told := on.told(a, book, event.Ended) > 0
					if took := time.Since(begin); told != (block < time.Minute) || took > 70*time.Second {
						t.Errorf("the call took %s, told: %t", took, told)
					}
					time.Sleep(time.Hour)
				})
			}
		}
	}
}
