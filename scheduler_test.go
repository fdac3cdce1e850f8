package soloist_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// work returns a job that takes d, or ends with its context.
func work(schedule string, d time.Duration) soloist.Job {
	return soloist.Job{Name: "work", Schedule: schedule, Lease: D, Do: func(ctx context.Context, _ *soloist.Run) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// once checks that each tick ran once, and returns how many ran.
func once(t *testing.T, runs []ran) int {
	t.Helper()
	seen := map[time.Time]int{}
	for _, r := range runs {
		if seen[r.Tick]++; seen[r.Tick] > 1 {
			t.Errorf("tick %s ran %d times", r.Tick, seen[r.Tick])
		}
	}
	return len(seen)
}

func skewed(d time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(d) }
}

func TestEachTickRunsOnce(t *testing.T) {
	for _, skew := range []time.Duration{0, 2 * time.Second, -2 * time.Second, time.Hour, -time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				for i := range 3 {
					r := c.replica(string(rune('a'+i)), work("@every 1s", 50*time.Millisecond))
					r.Now = skewed(time.Duration(i) * skew)
					c.launch(r)
				}
				time.Sleep(62*time.Second + 500*time.Millisecond)
				if got := once(t, afterTheFirst(c.all())); got != 60 {
					t.Errorf("%d ticks ran, want 60", got)
				}
				for _, r := range c.all() {
					if early := r.Tick.Sub(r.start); early > time.Second {
						t.Errorf("tick %s started %s early", r.Tick, early)
					}
				}
			})
		})
	}
}

// afterTheFirst leaves out what came due in the first two seconds: the first claim
// of an entry waits for its token meanwhile.
func afterTheFirst(runs []ran) []ran {
	begin := time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)
	return slices.DeleteFunc(runs, func(r ran) bool { return !r.Tick.After(begin) })
}

func TestShortJobIsNotRepeatedByALateClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("right", work("@every 10s", time.Millisecond))
		late := c.replica("late", work("@every 10s", time.Millisecond))
		late.Now = skewed(-4 * time.Second)
		c.launch(late)
		time.Sleep(5*time.Minute + time.Second)
		if got := once(t, c.all()); got != 30 {
			t.Errorf("%d ticks ran, want 30", got)
		}
	})
}

func TestALoneReplicaWithAWrongClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -4 * time.Second, 4 * time.Second, time.Hour} {
		inCluster(t, func(c *cluster) {
			a := c.replica("a", work("@every 1s", 50*time.Millisecond))
			a.Now = skewed(skew)
			c.launch(a)
			time.Sleep(62*time.Second + 500*time.Millisecond)
			if got := once(t, afterTheFirst(c.all())); got != 60 {
				t.Errorf("off by %s: %d ticks ran, want 60: %q", skew, got, c.outcomes("work"))
			}
		})
	}
}

func TestANewJobOwesNothingAndWaitsForNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(3 * time.Second)
		begin := time.Now()
		for _, name := range []string{"a", "b", "c"} {
			c.start(name, work("@every 10s", time.Second))
		}
		time.Sleep(9 * time.Second)
		runs := c.all()
		if len(runs) != 1 || runs[0].start.Sub(begin) > 7*time.Second+100*time.Millisecond {
			t.Fatalf("got %v, want one run at the first tick", runs)
		}
		if got, want := c.outcomes("work"), []string{"succeeded 00:00:10"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestADeadRunnerIsReplaced(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 5s", time.Hour))
		time.Sleep(6 * time.Second)
		c.start("b", work("@every 5s", time.Second))
		time.Sleep(27 * time.Second) // 00:00:33
		a.kill()
		killed := time.Now()
		time.Sleep(D + 2*time.Second)
		runs := c.all()
		if len(runs) < 2 || runs[1].replica != "b" {
			t.Fatalf("nobody took over: %+v", runs)
		}
		if late := runs[1].start.Sub(killed); late > D+2*time.Second {
			t.Errorf("taken over after %s", late)
		}
		if runs[0].end.IsZero() || !errors.Is(runs[0].cause, store.ErrLost) {
			t.Fatalf("the old run ended at %s with %v", runs[0].end, runs[0].cause)
		}
		if !runs[0].end.Before(runs[1].start) {
			t.Errorf("the old run ended at %s, the new one began at %s", runs[0].end, runs[1].start)
		}
		if runs[1].Token <= runs[0].Token {
			t.Errorf("token %d after %d", runs[1].Token, runs[0].Token)
		}
		outcomes := c.outcomes("work")
		if len(outcomes) < 2 || outcomes[0] != "abandoned 00:00:05 its runner died" || !strings.HasPrefix(outcomes[1], "missed 00:00:05-") {
			t.Errorf("got %q", outcomes)
		}
	})
}

func TestRerunGivesTheSameTickToAnother(t *testing.T) {
	inCluster(t, func(c *cluster) {
		slow, quick := work("0 * * * *", time.Hour), work("0 * * * *", time.Second)
		slow.Interrupted, quick.Interrupted = soloist.Rerun, soloist.Rerun
		time.Sleep(59 * time.Minute)
		a := c.start("a", slow)
		time.Sleep(time.Minute + time.Second)
		c.start("b", quick)
		time.Sleep(time.Minute)
		a.kill()
		time.Sleep(D + 3*time.Second)
		runs := c.all()
		if len(runs) != 2 || !runs[1].Tick.Equal(runs[0].Tick) || runs[1].Attempt != 2 {
			t.Fatalf("got %+v", runs)
		}
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnAbandonedRunIsToldWithinAMinute(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(59 * time.Minute)
		a := c.start("a", work("0 * * * *", time.Hour))
		time.Sleep(time.Minute + time.Second)
		b := c.start("b", work("0 * * * *", time.Hour))
		time.Sleep(time.Minute)
		a.kill()
		time.Sleep(D + time.Minute + time.Second)
		if got := b.log.lines("level=WARN", "outcome=abandoned", "its runner died", "runner=a"); len(got) != 1 {
			t.Errorf("logged %d times", len(got))
		}
		if got, want := c.outcomes("work"), []string{"abandoned 01:00:00 its runner died"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestATickUnderARunIsSkipped(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("@every 10s", 25*time.Second))
		c.start("b", work("@every 10s", 25*time.Second))
		time.Sleep(76 * time.Second)
		want := []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped 00:00:40-00:01:00 overlap"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestRunAllMakesUpForEachTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := work("@every 10s", time.Second)
		all.Missed = soloist.RunAll
		a := c.start("a", all)
		time.Sleep(12 * time.Second)
		a.stop()
		time.Sleep(time.Minute)
		c.start("b", all)
		time.Sleep(10 * time.Second) // 00:01:22
		if got := once(t, c.all()); got != 8 {
			t.Errorf("%d ticks ran, want 8", got)
		}
		if !slices.IsSortedFunc(c.all(), func(x, y ran) int { return x.Tick.Compare(y.Tick) }) {
			t.Error("not in order")
		}
	})
}

func TestOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		do   func(context.Context, *soloist.Run) error
		want string
	}{
		"nil":     {func(context.Context, *soloist.Run) error { return nil }, "succeeded 00:00:10"},
		"error":   {func(context.Context, *soloist.Run) error { return boom }, "failed 00:00:10 boom"},
		"panic":   {func(context.Context, *soloist.Run) error { panic("oh") }, "failed 00:00:10 panic: oh"},
		"goexit":  {func(context.Context, *soloist.Run) error { runtime.Goexit(); return nil }, "failed 00:00:10 the job ended its goroutine (runtime.Goexit)"},
		"skip":    {func(context.Context, *soloist.Run) error { return soloist.Skip("empty") }, "skipped 00:00:10 empty"},
		"timeout": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }, "failed 00:00:10 timed out after 4s"},
		"late": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return boom },
			"failed 00:00:10 timed out after 4s: boom"},
		"in time after all": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil }, "succeeded 00:00:10"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				fine := work("@every 10s", time.Second)
				fine.Name = "fine"
				c.start("a", soloist.Job{Name: "odd", Schedule: "@every 10s", Lease: D, Timeout: 4 * time.Second, Do: tt.do}, fine)
				time.Sleep(19 * time.Second)
				if got := c.outcomes("odd"); !slices.Equal(got, []string{tt.want}) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if got := c.outcomes("fine"); !slices.Equal(got, []string{"succeeded 00:00:10"}) {
					t.Errorf("the other job: got %q", got)
				}
			})
		})
	}
}

func TestStorageCallsOfATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var all []*replica
		for _, name := range []string{"a", "b", "c"} {
			all = append(all, c.start(name, work("@every 1m", time.Second/5)))
		}
		time.Sleep(3*time.Minute + 30*time.Second) // the start is over
		for _, r := range all {
			r.tap.counts()
		}
		runs := len(c.all())
		time.Sleep(10 * time.Minute)
		var total int
		for _, r := range all {
			counts := r.tap.counts()
			t.Log(counts)
			for _, n := range counts {
				total += n
			}
		}
		// Four for the winner, two for each of the others.
		if ticks := len(c.all()) - runs; ticks != 10 || total > 10*(4+2+2) {
			t.Errorf("%d calls for %d ticks", total, ticks)
		}
	})
}

func TestRunDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 3*time.Second))
		b := c.replica("b", work("@every 1m", 3*time.Second))
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(got.Jobs[0].Ran) != 0 || !got.Next.Equal(time.Now().Truncate(time.Minute).Add(time.Minute)) {
			t.Fatalf("a new job: got %+v, %v", got, err)
		}
		time.Sleep(61 * time.Second)
		ended := make(chan soloist.Report)
		go func() { r, _ := a.RunDue(c.t.Context(), soloist.Wake{}); ended <- r }()
		time.Sleep(time.Second)
		got, err = b.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(got.Jobs[0].Ran) != 0 || got.Jobs[0].Replica != "a" {
			t.Errorf("beside a run: got %+v, %v", got, err)
		}
		got = <-ended
		if ran := got.Jobs[0].Ran; len(ran) != 1 || ran[0].Status != store.Succeeded {
			t.Errorf("the runner: got %+v", got)
		}
		got, _ = b.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) != 0 || got.Jobs[0].Replica != "" {
			t.Errorf("afterwards: got %+v", got)
		}
	})
}

func TestAChangedScheduleStartsFromNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10s", time.Second))
		time.Sleep(25 * time.Second)
		young := c.start("new", work("@every 7s", time.Second))
		time.Sleep(20 * time.Second) // ticks at 30, 37, 44: multiples of 7 s since 1970
		var byNew []string
		for _, r := range c.all() {
			if r.replica == "new" {
				byNew = append(byNew, r.Tick.Format("05"))
			} else if r.start.After(time.Now().Add(-20 * time.Second)) {
				t.Errorf("the old replica ran %s", r.Tick)
			}
		}
		if want := []string{"30", "37", "44"}; !slices.Equal(byNew, want) {
			t.Errorf("the new one ran %q, want %q", byNew, want)
		}
		if got := old.Health().Broken["work"]; got == nil || !strings.Contains(got.Error(), "another schedule") {
			t.Errorf("the old one says %v", got)
		}
		if got := young.log.lines("level=INFO", "the schedule has changed"); len(got) != 1 {
			t.Errorf("the new one says so %d times", len(got))
		}
		if got := old.log.lines("level=ERROR", "another schedule"); len(got) != 1 {
			t.Errorf("logged %d times: %q", len(got), got)
		}
	})
}

func TestPausedTicksAreSkipped(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", time.Second)
		job.Paused = true
		c.start("a", job)
		time.Sleep(25 * time.Second)
		if got, want := c.outcomes("work"), []string{"skipped 00:00:10 paused", "skipped 00:00:20 paused"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := c.all(); len(got) != 0 {
			t.Errorf("it ran: %+v", got)
		}
	})
}

// The fields are read by the first call: a later change of them has no effect.
func TestLaterChangesHaveNoEffect(t *testing.T) {
	for name, change := range map[string]func(*soloist.Scheduler){
		"more jobs": func(s *soloist.Scheduler) { s.Jobs = append(s.Jobs, s.Jobs[0], s.Jobs[0]) },
		"no job":    func(s *soloist.Scheduler) { s.Jobs = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				r := c.replica("a", work("* * * * *", 0), soloist.Singleton{Name: "leader", Do: func(context.Context, *soloist.Run) error { return nil }})
				if err := r.Validate(); err != nil {
					t.Fatal(err)
				}
				change(r.Scheduler)
				report, err := r.RunDue(c.t.Context(), soloist.Wake{})
				if err != nil || len(report.Jobs) != 1 || report.Jobs[0].Job != "work" {
					t.Errorf("got %+v, %v", report, err)
				}
			})
		})
	}
}
