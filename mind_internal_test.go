package soloist

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A run whose lease is lost has not stalled, whatever its minder finds at that
// instant: the end of the hold reaches the run's own context last of all here.
func TestALostLeaseCountsBeforeAStall(t *testing.T) {
	for name, find := range map[string]func(m *minder){
		"Healthy fails":       func(m *minder) { m.judge(errors.New("ill")) },
		"Silence is over":     func(m *minder) { m.look() },
		"both were found out": func(m *minder) { m.stalled(ErrStalled) },
	} {
		t.Run(name, func(t *testing.T) {
			held, lost := context.WithCancelCause(t.Context())
			lost(errNotRenewed)
			h := &hold{cell: &cell{length: 30 * time.Second}, held: held, lost: lost, until: time.Hour, giveUp: func() {},
				book: newBook("", &Record{})}
			run, end := context.WithCancelCause(t.Context())
			clock := &serviceClock{wall: time.Now, elapsed: func() time.Duration { return 0 }}
			m := &minder{worker: &worker{cell: cell{clock: clock}, duty: duty{limits: limits{silence: time.Second, failures: 1}}},
				live: &live{ctx: run, clock: clock, hold: h, beat: time.Now().Add(-time.Minute)},
				run:  &Run{own: slog.New(slog.DiscardHandler)}, stop: t.Context(), fail: end, written: time.Now()}
			find(m)
			if m.gaveUp != nil || m.failures > 0 || run.Err() != nil {
				t.Errorf("given up: %v, failures: %d, ended: %v", m.gaveUp, m.failures, context.Cause(run))
			}
		})
	}
}

// A verdict that has come while the minder was busy is judged before a look that
// is due by then: chance decides nothing.
func TestAWaitingVerdictIsJudgedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			run, end := context.WithCancelCause(t.Context())
			m := &minder{worker: &worker{duty: duty{limits: limits{silence: time.Second, failures: 1}}},
				live: &live{ctx: run, beat: time.Now().Add(-time.Minute)}, verdicts: make(chan error),
				run: &Run{own: slog.New(slog.DiscardHandler)}, stop: t.Context(), fail: end, written: time.Now()}
			go m.verdict(errors.New("ill"))
			synctest.Wait()
			m.watch(run)
			if !strings.Contains(m.gaveUp.Error(), "ill") {
				t.Fatalf("given up: %v, want the verdict", m.gaveUp)
			}
		}
	})
}
