package soloist_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// leader returns a singleton that leads until its context ends, and then takes
// a moment to stop.
func leader() soloist.Singleton {
	return soloist.Singleton{Name: "lead", Lease: D, Do: func(ctx context.Context, _ *soloist.Run) error {
		<-ctx.Done()
		time.Sleep(200 * time.Millisecond)
		return ctx.Err()
	}}
}

// disjoint checks that no two terms overlap and that tokens grow.
func disjoint(t *testing.T, runs []ran) {
	t.Helper()
	for i := 1; i < len(runs); i++ {
		if runs[i-1].end.IsZero() || runs[i-1].end.After(runs[i].start) {
			t.Errorf("term %d ends at %s, the next begins at %s", i, runs[i-1].end, runs[i].start)
		}
		if runs[i].Token <= runs[i-1].Token {
			t.Errorf("token %d after %d", runs[i].Token, runs[i-1].Token)
		}
	}
}

func TestOneLeads(t *testing.T) {
	inCluster(t, func(c *cluster) {
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, leader())
		}
		time.Sleep(2 * time.Hour)
		if got := c.all(); len(got) != 1 || !got[0].end.IsZero() {
			t.Errorf("got %+v, want one term that goes on", got)
		}
	})
}

func TestADeadLeaderIsReplaced(t *testing.T) {
	for after := range 10 {
		inCluster(t, func(c *cluster) {
			all := map[string]*replica{}
			for _, name := range []string{"a", "b", "c"} {
				all[name] = c.start(name, leader())
			}
			time.Sleep(time.Minute + time.Duration(after)*510*time.Millisecond)
			all[c.all()[0].replica].kill()
			killed := time.Now()
			time.Sleep(D + 2*time.Second)
			runs := c.all()
			if len(runs) != 2 {
				t.Fatalf("got %d terms", len(runs))
			}
			disjoint(t, runs)
			if took := runs[1].start.Sub(killed); took > D+1500*time.Millisecond {
				t.Errorf("replaced after %s", took)
			}
			if !errors.Is(runs[0].cause, store.ErrLost) {
				t.Errorf("the old term ended with %v", runs[0].cause)
			}
		})
	}
}

func TestTheLeaseOutlivesTheTask(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", leader())
		time.Sleep(time.Minute)
		c.start("b", leader())
		time.Sleep(10 * time.Second)
		stopped := time.Now()
		a.stop()
		if took := time.Since(stopped); took > 300*time.Millisecond {
			t.Errorf("it stopped after %s", took)
		}
		if got := c.all()[0]; !errors.Is(got.cause, soloist.ErrStopped) {
			t.Errorf("the cause is %v", got.cause)
		}
		time.Sleep(D/3 + time.Second)
		runs := c.all()
		if len(runs) != 2 {
			t.Fatalf("got %d terms, want 2", len(runs))
		}
		disjoint(t, runs)
	})
}

func TestATaskThatEndsIsGivenOutAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		hasty := soloist.Singleton{Name: "lead", Lease: D, Backoff: 10 * time.Second,
			Do: func(context.Context, *soloist.Run) error { return errors.New("no connection") }}
		c.start("a", hasty)
		time.Sleep(65 * time.Second)
		runs := c.all()
		if len(runs) != 7 {
			t.Errorf("%d terms in 65 s with a pause of 10 s, want 7", len(runs))
		}
		disjoint(t, runs)
		if got := c.record("lead"); got.Status != store.Failed || got.Error != "no connection" || got.Counts[store.Failed] != 7 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSingletonAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leader()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		backend := &local.Memory{}
		if err := s.Run(ctx, backend); err != nil {
			t.Errorf("Run: %v", err)
		}
		if e, err := backend.Read(t.Context(), "soloist/lead"); err != nil || e.State != store.Available {
			t.Errorf("got %+v, %v", e, err)
		}
		if err := s.Run(t.Context(), nil); err == nil {
			t.Error("a nil store is no error")
		}
	})
}

func TestCallsOfALeader(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := []*replica{c.start("a", leader()), c.start("b", leader())}
		time.Sleep(time.Minute)
		for _, r := range all {
			r.tap.counts()
		}
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			got := r.tap.counts()
			if n := got["renew"] + got["read"]; n < 119 || n > 121 || len(got) != 1 {
				t.Errorf("%s: %v in 10 minutes, want one call each %s", r.Replica, got, D/3)
			}
		}
	})
}
