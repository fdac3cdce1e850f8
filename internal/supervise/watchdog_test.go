package supervise

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/lease"
)

// A run whose lease is lost has not stalled, whatever its watchdog finds at that
// instant: the end of the session reaches the run's own context last of all here.
func TestALostLeaseCountsBeforeAStall(t *testing.T) {
	for name, find := range map[string]func(m *watchdog){
		"HealthCheck fails":        func(m *watchdog) { m.judge(errors.New("ill")) },
		"HeartbeatTimeout is over": func(m *watchdog) { m.look() },
		"both were found out":      func(m *watchdog) { m.stalled(ErrStalled) },
	} {
		t.Run(name, func(t *testing.T) {
			held, lost := context.WithCancelCause(t.Context())
			lost(lease.ErrNotRenewed)
			run, end := context.WithCancelCause(t.Context())
			m := watchdogOf(run, end, &lostLease{ctx: held})
			find(m)
			if m.gaveUp != nil || m.failures > 0 || run.Err() != nil {
				t.Errorf("given up: %v, failures: %d, ended: %v", m.gaveUp, m.failures, context.Cause(run))
			}
		})
	}
}

// A verdict that has come while the watchdog was busy is judged before a look that
// is due by then: chance decides nothing.
func TestAWaitingVerdictIsJudgedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			run, end := context.WithCancelCause(t.Context())
			m := watchdogOf(run, end, nil)
			go m.verdict(errors.New("ill"))
			synctest.Wait()
			m.watch(run)
			if !strings.Contains(m.gaveUp.Error(), "ill") {
				t.Fatalf("given up: %v, want the verdict", m.gaveUp)
			}
		}
	})
}

// watchdogOf returns a watchdog of a run that has been silent for too long.
func watchdogOf(run context.Context, end context.CancelCauseFunc, l Lease) *watchdog {
	h := &Handle{ctx: run, over: context.Background(), beat: time.Now().Add(-time.Minute),
		under: &Conditions{Stop: context.Background(), Lease: l, Elapsed: func() time.Duration { return 0 }}}
	a := &Attempt{Under: h.under, Task: &Task{HeartbeatTimeout: time.Second, FailureThreshold: 1}, Emit: func(event.Event) {}}
	return &watchdog{Attempt: a, handle: h, fail: end, verdicts: make(chan error), written: time.Now()}
}

// A lostLease cannot be trusted any more.
type lostLease struct {
	Lease
	ctx context.Context
}

func (l *lostLease) Context() context.Context { return l.ctx }
func (l *lostLease) Left() time.Duration      { return time.Hour }
