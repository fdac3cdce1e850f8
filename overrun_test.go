package soloist_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// An overrunLog keeps the calls of Overrun.
type overrunLog struct {
	mu    sync.Mutex
	calls []overrunCall
}

type overrunCall struct {
	job   string
	cause error
	at    time.Time
}

func (l *overrunLog) add(job string, cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, overrunCall{job, cause, time.Now()})
}

func (l *overrunLog) all() []overrunCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// deaf is a job of one tick that ignores the end of its context for d.
func deaf(d time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D,
		Do: func(context.Context, *soloist.Run) error { time.Sleep(d); return nil }}
}

// A run that ignores its time-out keeps its lease, so there is time. Once the
// lease is lost, the process has to end before another replica has it.
func TestOverrunAfterATimeoutAndTheLossOfTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var overran overrunLog
		job := deaf(20 * time.Minute)
		job.Timeout = 10 * time.Second
		a := c.replica("a", job)
		a.Overrun = overran.add
		c.launch(a)
		time.Sleep(10 * time.Minute)
		if calls := overran.all(); len(calls) > 0 || !errors.Is(a.Health().Overrun["work"], soloist.ErrTimeout) {
			t.Fatalf("the lease is kept: Overrun was called %d times, health says %v", len(calls), a.Health().Overrun)
		}
		wantOverrunAfterLoss(c, a, &overran)
	})
}

// A stop ends the context and not the lease.
func TestOverrunAfterAStopAndTheLossOfTheLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var overran overrunLog
		a := c.replica("a", deaf(20*time.Minute))
		a.Overrun = overran.add
		c.launch(a)
		time.Sleep(2 * time.Minute)
		go a.stop()
		time.Sleep(time.Second)
		wantOverrunAfterLoss(c, a, &overran)
	})
}

// A lease may be lost at any time after the end of the context, also before
// Health tells of the overrun.
func TestOverrunAfterATimeoutAndTheLossOfTheLeaseSoonAfter(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var overran overrunLog
		job := deaf(20 * time.Minute)
		job.Timeout = 10 * time.Second
		a := c.replica("a", job)
		a.Overrun = overran.add
		c.launch(a)
		time.Sleep(time.Minute + 12*time.Second)
		wantOverrunAfterLoss(c, a, &overran)
	})
}

// wantOverrunAfterLoss breaks the lease of a's job: Overrun is called once, a
// sixth of the lease after the next renewal shows the loss.
func wantOverrunAfterLoss(c *cluster, a *replica, overran *overrunLog) {
	c.t.Helper()
	lost := make(chan time.Time, 1)
	a.tap.meet(func(op string, apply func() error) error {
		err := apply()
		if op == "renew" && errors.Is(err, store.ErrLost) {
			select {
			case lost <- time.Now():
			default:
			}
		}
		return err
	})
	if err := c.store.Break(c.t.Context(), "soloist/work", 0); err != nil {
		c.t.Fatal(err)
	}
	at := <-lost
	time.Sleep(D)
	calls := overran.all()
	if len(calls) != 1 || calls[0].job != "work" || !errors.Is(calls[0].cause, store.ErrLost) {
		c.t.Fatalf("Overrun was called with %+v, want one call with ErrLost", calls)
	}
	if took := calls[0].at.Sub(at); took != D/6 {
		c.t.Errorf("Overrun was called %s after the loss of the lease, want %s", took, D/6)
	}
	if cause := a.Health().Overrun["work"]; !errors.Is(cause, store.ErrLost) {
		c.t.Errorf("health says %v, want ErrLost", cause)
	}
}

// After the loss of the lease alone, and when the run returns in time.
func TestOverrunAfterTheLossOfTheLease(t *testing.T) {
	for returns, want := range map[time.Duration]int{D/6 - time.Millisecond: 0, D/6 + time.Millisecond: 1} {
		inCluster(t, func(c *cluster) {
			var overran overrunLog
			a := c.replica("a", soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D,
				Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); time.Sleep(returns); return nil }})
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(2 * time.Minute)
			if err := c.store.Break(t.Context(), "soloist/work", 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(D)
			if got := len(overran.all()); got != want {
				t.Errorf("the run returned %s after the loss of its lease: Overrun was called %d times, want %d", returns, got, want)
			}
		})
	}
}

// A log that blocks while it tells of the time-out does not delay Overrun.
func TestABlockedLogDoesNotDelayOverrun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var overran overrunLog
		job := deaf(20 * time.Minute)
		job.Timeout = 10 * time.Second
		a := c.replica("a", job)
		a.Overrun = overran.add
		release := make(chan struct{})
		a.Logger = slog.New(blockedLog{slog.NewTextHandler(io.Discard, nil), "ignores the end", release})
		defer close(release)
		c.launch(a)
		time.Sleep(10 * time.Minute)
		if err := c.store.Break(t.Context(), "soloist/work", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(D/3 + D/6 + time.Second)
		if got := len(overran.all()); got != 1 {
			t.Errorf("Overrun was called %d times, want once", got)
		}
	})
}

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
