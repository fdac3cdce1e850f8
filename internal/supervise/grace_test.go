package supervise

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/elapsed"
)

// A slowLog takes as long as that to write the line that a try has started.
type slowLog time.Duration

func (l slowLog) Overrun(error)       {}
func (l slowLog) Leaseless(error)     {}
func (l slowLog) Flush(time.Duration) { time.Sleep(time.Duration(l)) }

// A run that begins after a stop has what is left of the grace, though its log was slow before or after the stop.
func TestGraceCountsFromTheStop(t *testing.T) {
	for _, after := range []time.Duration{0, 500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			stop, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			begun, took := elapsed.Now(), time.Duration(0)
			a := &Attempt{
				Task: &Task{MaxTries: 1, Do: func(ctx context.Context, _ *Handle) error {
					<-ctx.Done()
					took = elapsed.Now() - begun - after
					return nil
				}},
				Under:  &Conditions{Stop: stop, Grace: 5 * time.Second, Elapsed: elapsed.Now},
				Status: slowLog(time.Second), Emit: func(event.Event) {},
			}
			a.Run()
			if took.Round(time.Millisecond) != 5*time.Second {
				t.Errorf("the context ends %s after the stop, want 5s", took)
			}
		})
	}
}

// A shortLease cannot be trusted after a time. The timer that ends its context is late.
type shortLease struct {
	Lease
	until time.Duration
}

func (l shortLease) Context() context.Context { return context.Background() }
func (l shortLease) Left() time.Duration      { return l.until - elapsed.Now() }
func (l shortLease) Expired() bool            { return l.Left() <= 0 }

// The log is waited for before the look at the lease: no run begins once that is lost.
func TestSlowLogComesBeforeLookAtLease(t *testing.T) {
	for left, want := range map[time.Duration]bool{500 * time.Millisecond: false, 1500 * time.Millisecond: true} {
		synctest.Test(t, func(t *testing.T) {
			began := false
			a := &Attempt{
				Task:   &Task{MaxTries: 1, Do: func(context.Context, *Handle) error { began = true; return nil }},
				Under:  &Conditions{Stop: t.Context(), Lease: shortLease{until: elapsed.Now() + left}, Elapsed: elapsed.Now},
				Status: slowLog(time.Second), Emit: func(event.Event) {},
			}
			if a.Run(); began != want {
				t.Errorf("a lease of %s: it began: %t", left, began)
			}
		})
	}
}
