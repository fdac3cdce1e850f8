package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A follower takes over from a runner that has died, once its run has ended, and says what became of it.
func TestDeadRunnerIsReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 5s", time.Hour))
		time.Sleep(6 * time.Second)
		b := c.start("b", work("@every 5s", time.Second))
		time.Sleep(27 * time.Second) // 00:00:33
		a.kill()
		killed := time.Now()
		time.Sleep(D + 2*time.Second)
		runs := c.all()
		if len(runs) < 2 || runs[1].replica != "b" || runs[1].start.Sub(killed) > D+2*time.Second {
			t.Fatalf("b does not take over in time: %+v", runs)
		}
		if disjoint(t, runs); !errors.Is(runs[0].cause, store.ErrLost) {
			t.Errorf("the old run ended with %v", runs[0].cause)
		}
		outcomes := c.outcomes("work")
		if outcomes[0] != "abandoned 00:00:05 its runner died" || !strings.HasPrefix(outcomes[1], "missed 00:00:05-") {
			t.Errorf("got %q", outcomes)
		}
		b.wantLines(1, "level=WARN", "outcome=abandoned", "its runner died", "runner=a")
	})
}

func TestDeadLeaderIsReplaced(t *testing.T) {
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
			runs := c.succession(2)
			if took := runs[1].start.Sub(killed); took > D+1500*time.Millisecond {
				t.Errorf("replaced after %s", took)
			}
			if !errors.Is(runs[0].cause, store.ErrLost) {
				t.Errorf("the old term ended with %v", runs[0].cause)
			}
		})
	}
}

// Rerun repeats the tick of a runner that died or was stopped elsewhere. A run that an outage has ended did not fail: its runner
// was cut off, and repeats it if there is no other replica.
func TestRerun(t *testing.T) {
	for name, tt := range map[string]struct {
		end   func(*replica)
		alone bool
	}{
		"dies":              {func(r *replica) { r.kill() }, false},
		"stops":             {func(r *replica) { r.stop() }, false},
		"is cut off":        {func(r *replica) { time.AfterFunc(20*time.Second, func() { r.tap.cut.Store(false) }); r.kill() }, false},
		"is cut off, alone": {func(r *replica) { time.AfterFunc(20*time.Second, func() { r.tap.cut.Store(false) }); r.kill() }, true},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(doing("0 * * * *", func(ctx context.Context, run *soloist.Run) error {
				return pause(ctx, map[bool]time.Duration{true: time.Hour, false: time.Second}[run.Attempt == 1])
			}))
			until(59 * time.Minute)
			a := c.start("a", job)
			until(time.Hour + time.Second)
			if !tt.alone {
				c.start("b", job)
			}
			time.Sleep(time.Minute)
			tt.end(a)
			time.Sleep(2*D + 3*time.Second)
			runs := c.all()
			if len(runs) != 2 || !runs[1].Tick.Equal(runs[0].Tick) || runs[1].Attempt != 2 || tt.alone != (runs[1].replica == "a") {
				t.Fatalf("got %+v", runs)
			}
			c.wantOutcomes("work", "succeeded 01:00:00")
		})
	}
}

// long is a job that takes half an hour.
func long() soloist.Job {
	return rerun(work("@daily", 30*time.Minute))
}

// Five deaths give a tick up, however often it was stopped in between: orderly deploys are no deaths. The next
// tick begins at zero.
func TestFiveDeathsEndTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		until(23*time.Hour + 59*time.Minute)
		for i := range 9 {
			r := c.start(string(rune('a'+i)), long())
			time.Sleep(3 * time.Minute)
			if i%2 == 0 {
				r.kill()
			}
			r.stop()
		}
		c.start("z", long())
		time.Sleep(3 * time.Minute)
		c.wantOutcomes("work", "abandoned 00:00:00 its runner died")
		c.wantRuns(9)
		for i, r := range c.all() {
			if r.Attempt != i+1 {
				t.Errorf("run %d is attempt %d", i+1, r.Attempt)
			}
		}
		time.Sleep(25 * time.Hour)
		if r := c.record("work"); r.Run.Deaths != 0 || r.Run.Attempt != 1 || r.Run.Status != store.Succeeded {
			t.Errorf("the next tick: %s, attempt %d, %d deaths", r.Run.Status, r.Run.Attempt, r.Run.Deaths)
		}
	})
}

// A run that needs more time than any call has is not called for ever.
func TestTickTooLongForCallsIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", long())
		a.wake()
		time.Sleep(24 * time.Hour)
		for range 8 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
			if _, err := a.RunDue(ctx, soloist.Wake{}); err != nil && !strings.Contains(err.Error(), "deadline") {
				t.Error(err)
			}
			cancel()
		}
		if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 00:00:00 out of time, stopped"}) || len(c.all()) != 5 {
			t.Errorf("got %q after %d runs", got, len(c.all()))
		}
	})
}
