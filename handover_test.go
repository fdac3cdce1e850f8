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

// graceful starts replicas that have a grace.
func (c *cluster) graceful(grace time.Duration, work soloist.Work, names ...string) map[string]*replica {
	all := map[string]*replica{}
	for _, name := range names {
		r := c.replica(name, work)
		r.Grace = grace
		all[name] = c.launch(r)
	}
	return all
}

// A leader that is told to stop goes on until others are near.
func TestALeaderIsHandedOver(t *testing.T) {
	for phase := range 10 {
		inCluster(t, func(c *cluster) {
			all := c.graceful(25*time.Second, leader(), "a", "b", "c")
			time.Sleep(time.Minute + time.Duration(phase)*511*time.Millisecond)
			old := all[c.all()[0].replica]
			stopped := time.Now()
			old.stop()
			if took := time.Since(stopped); took < D/3+time.Second || took > D/3+1500*time.Millisecond {
				t.Errorf("stopped after %s", took)
			}
			time.Sleep(time.Second)
			runs := c.all()
			if len(runs) != 2 {
				c.t.Fatalf("got %d terms", len(runs))
			}
			disjoint(t, runs)
			if gap := runs[1].start.Sub(runs[0].end); gap > 300*time.Millisecond {
				t.Errorf("nobody led for %s", gap)
			}
			if !errors.Is(runs[0].cause, soloist.ErrStopped) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
		})
	}
}

// A run that goes on well until the end of its stop is handed over all the same.
func TestAHandOverIsNotTakenBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		lead := beating(time.Second, time.Hour, true)
		lead.HeartbeatTimeout = 4 * time.Second
		a := c.graceful(25*time.Second, lead, "a")["a"]
		time.Sleep(time.Minute)
		go a.stop()
		for range int(D/3/time.Second) + 1 {
			time.Sleep(990 * time.Millisecond)
			if r := c.record("lead"); !r.Stopping {
				t.Errorf("after %s the record says that it goes on", time.Since(c.all()[0].start))
			}
		}
		time.Sleep(time.Second)
		c.start("b", leader())
		time.Sleep(time.Second)
		if r := c.record("lead"); r.Replica != "b" || r.Stopping || r.Progress != (store.Progress{}) {
			t.Errorf("got %+v", r)
		}
	})
}

func TestAGraceThatIsShorterThanAHandOver(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.graceful(2*time.Second, leader(), "a")["a"]
		time.Sleep(time.Minute)
		stopped := time.Now()
		a.stop()
		if took := time.Since(stopped); took > 2500*time.Millisecond {
			t.Errorf("stopped after %s", took)
		}
	})
}

// A job goes on within the grace, and the record says that it is stopping.
func TestAJobIsHandedOver(t *testing.T) {
	for name, test := range map[string]struct {
		takes    time.Duration
		outcomes []string
		start    time.Duration // of the second attempt after the end of the first
	}{
		"ends within the grace": {20 * time.Second, []string{"succeeded 00:01:00"}, 0},
		"does not":              {time.Minute, []string{"succeeded 00:01:00"}, 300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("0 1 0 * * *", test.takes)
				job.Interrupted = soloist.Rerun
				all := c.graceful(25*time.Second, job, "a", "b")
				time.Sleep(time.Minute + 2*time.Second)
				go all[c.all()[0].replica].stop()
				time.Sleep(time.Second)
				if r := c.record("work"); !r.Stopping || r.Status != store.Running {
					t.Errorf("got %+v", r)
				}
				time.Sleep(2 * time.Minute)
				if got := c.outcomes("work"); !slices.Equal(got, test.outcomes) {
					t.Errorf("got %q", got)
				}
				runs := c.all()
				disjoint(t, runs)
				if test.start == 0 && len(runs) != 1 {
					t.Errorf("got %d runs", len(runs))
				}
				if test.start > 0 && (len(runs) != 2 || runs[1].start.Sub(runs[0].end) > test.start) {
					t.Errorf("got %+v", runs)
				}
				if r := c.record("work"); r.Stopping {
					t.Error("it is over, and the record says that it is stopping")
				}
			})
		})
	}
}

// A long grace costs those that wait for it ever less.
func TestWaitingForALongStopIsCheap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 1 0 * * *", time.Hour)
		job.Interrupted = soloist.Rerun
		a := c.graceful(30*time.Minute, job, "a")["a"]
		time.Sleep(time.Minute + time.Second)
		b := c.graceful(time.Second, job, "b")["b"]
		time.Sleep(10 * time.Second)
		go a.stop()
		b.tap.counts()
		time.Sleep(20 * time.Minute)
		if n := b.tap.counts()["read"]; n > 1600 {
			t.Errorf("%d reads in 20 minutes", n)
		}
		time.Sleep(20 * time.Minute)
		if runs := c.all(); len(runs) != 2 || runs[1].start.Sub(runs[0].end) > D/3+time.Second {
			t.Errorf("got %+v", runs)
		}
	})
}

func TestStepDown(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := c.graceful(25*time.Second, leader(), "a", "b")
		time.Sleep(time.Minute)
		old := all[c.all()[0].replica]
		for name, r := range all {
			if r != old {
				if err := r.StepDown(t.Context(), "lead"); err == nil {
					t.Errorf("%s does not lead, and steps down", name)
				}
			}
		}
		if err := old.StepDown(c.t.Context(), "nobody"); err == nil {
			t.Error("an unknown job steps down")
		}
		if err := old.StepDown(c.t.Context(), "lead"); err != nil {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(time.Minute)
		runs := c.all()
		if len(runs) != 2 || runs[1].replica == old.Replica || runs[1].start.Sub(runs[0].end) > 300*time.Millisecond {
			t.Errorf("got %+v", runs)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		if err := all[runs[1].replica].StepDown(ctx, "lead"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(time.Minute)
		if runs := c.all(); len(runs) != 3 {
			t.Errorf("got %d terms", len(runs))
		}
	})
}

// One that steps down without others leads again after a while.
func TestStepDownAlone(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.graceful(25*time.Second, leader(), "a")["a"]
		time.Sleep(time.Minute)
		if err := a.StepDown(c.t.Context(), "lead"); err != nil {
			t.Errorf("StepDown: %v", err)
		}
		time.Sleep(D/3 + 1500*time.Millisecond)
		if n := len(c.all()); n != 2 {
			t.Errorf("got %d terms", n)
		}
	})
}

func TestUnlock(t *testing.T) {
	for _, now := range []bool{true, false} {
		inCluster(t, func(c *cluster) {
			all := c.graceful(0, leader(), "a", "b")
			time.Sleep(time.Minute + 7*time.Second)
			if err := all["b"].Unlock(c.t.Context(), "lead", now); err != nil {
				c.t.Fatalf("Unlock: %v", err)
			}
			unlocked := time.Now()
			time.Sleep(3 * D)
			runs := c.all()
			if len(runs) != 2 {
				c.t.Fatalf("now=%t: got %d terms", now, len(runs))
			}
			disjoint(t, runs)
			if took := runs[0].end.Sub(unlocked); took > D/3+time.Second {
				t.Errorf("now=%t: the old one went on for %s", now, took)
			}
			if !errors.Is(runs[0].cause, store.ErrLost) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
			// Broken naturally it is still the old one's, who can give it back.
			if took := runs[1].start.Sub(unlocked); now && took < D || took > 2*D+D/3+time.Second {
				t.Errorf("now=%t: the new one started after %s", now, took)
			}
			if err := all["b"].Unlock(c.t.Context(), "nobody", now); err == nil {
				t.Error("an unknown job is unlocked")
			}
		})
	}
}
