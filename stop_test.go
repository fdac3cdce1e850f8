package soloist_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestAStop(t *testing.T) {
	for name, tt := range map[string]struct {
		grace time.Duration
		want  string
		cause error
	}{
		"within the grace": {20 * time.Second, "succeeded 00:00:10", nil},
		"after the grace":  {2 * time.Second, "abandoned 00:00:10 stopped", soloist.ErrStopped},
		"without a grace":  {0, "abandoned 00:00:10 stopped", soloist.ErrStopped},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				a := c.replica("a", work("@every 10s", 5*time.Second))
				a.Grace = tt.grace
				c.launch(a)
				time.Sleep(11 * time.Second)
				a.stop()
				if got := c.outcomes("work"); !slices.Equal(got, []string{tt.want}) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if got := c.all(); len(got) != 1 || !errors.Is(got[0].cause, tt.cause) {
					t.Errorf("got %+v, want the cause %v", got, tt.cause)
				}
				e, _ := c.store.Read(c.t.Context(), "soloist/work")
				if e.State != store.Available {
					t.Errorf("the lease is %s after the stop", e.State)
				}
			})
		})
	}
}

func TestAStoppedRunIsOfferedAgainUnderRerun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Minute)
		job.Interrupted = soloist.Rerun
		time.Sleep(59 * time.Minute)
		a := c.start("a", job)
		time.Sleep(2 * time.Minute)
		a.stop()
		c.start("b", job)
		time.Sleep(11 * time.Minute)
		runs := c.all()
		if len(runs) != 2 || runs[1].Attempt != 2 || !runs[1].Tick.Equal(runs[0].Tick) {
			t.Errorf("got %+v", runs)
		}
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnIdleStopLosesNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 10s", time.Second))
		c.start("b", work("@every 10s", time.Second))
		time.Sleep(35 * time.Second)
		a.stop()
		time.Sleep(26 * time.Second)
		if got := once(t, c.all()); got != 6 {
			t.Errorf("%d ticks ran, want 6: %q", got, c.outcomes("work"))
		}
	})
}

// The end of Run is a stop, also where its context has a deadline: it counts as
// no death.
func TestADeadlineOfRunIsNoDeath(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 100*time.Hour)
		job.Interrupted = soloist.Rerun
		for n := range 7 {
			r := c.replica("a", job)
			ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Hour)
			_ = r.Run(ctx)
			cancel()
			if got := c.record("work"); got.Deaths != 0 || got.Attempt != n+1 {
				t.Fatalf("after stop %d: attempt %d, %d deaths, outcomes %q", n+1, got.Attempt, got.Deaths, c.outcomes("work"))
			}
		}
	})
}
