package soloist_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestEveryReplicaRunsEachTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "cache", Schedule: "@every 10s", EveryReplica: true, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second},
			Do: func(_ context.Context, run *soloist.Run) error {
				c.wrong(run.Token != 0 || run.Attempt != 1, "got %+v", run)
				if run.Try == 1 && run.Tick.Second() == 20 {
					return errors.New("boom")
				}
				return nil
			}}
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(35 * time.Second)
		ticks := map[string][]string{}
		for _, r := range c.all() {
			ticks[r.replica] = append(ticks[r.replica], r.Tick.Format("05"))
		}
		for _, name := range []string{"a", "b"} {
			want := []string{"10", "20", "20", "30"}
			c.wrong(!slices.Equal(ticks[name], want), "%s ran %q, want %q", name, ticks[name], want)
		}
		for _, r := range []*replica{a, b} {
			got := r.tap.counts()
			c.wrong(len(got) != 0, "it asked the store: %v", got)
		}
		status, err := a.Status(c.t.Context())
		c.wrong(err != nil || !status[0].EveryReplica || status[0].Next.Second() != 40, "status: %+v, %v", status, err)
		report, err := c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(report.Jobs[0].Ran) != 1 || report.Jobs[0].Ran[0].Tick.Second() != 30 || report.Next.Second() != 40 {
			t.Errorf("RunDue: %+v, %v", report, err)
		}
	})
}

// A run ends with the stop of its replica, or when it stalls.
func TestEveryReplicaRunEnds(t *testing.T) {
	for name, want := range map[string]error{"with the stop": soloist.ErrStopped, "as stalled": soloist.ErrStalled} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := here("0 1 0 * * *", func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil })
			if want == soloist.ErrStalled {
				job.HeartbeatTimeout = silence
			}
			a := c.start("a", job)
			until(time.Minute + silence + time.Second)
			a.stop()
			if got := c.succession(1)[0]; !errors.Is(got.cause, want) || want == soloist.ErrStalled && got.end.Sub(got.start) != silence {
				t.Errorf("ended after %s for %v, want %v", got.end.Sub(got.start), got.cause, want)
			}
		})
	}
}

// A Scheduler that runs again has no tick to run from the time between.
func TestEveryReplicaOwesNothingToSecondRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("0 * * * *", nil))
		for range 2 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
			_ = a.Run(ctx)
			cancel()
			time.Sleep(150 * time.Minute)
		}
		c.wantRuns(0)
	})
}

// Its ticks are due by the new time.
func TestEveryReplicaRunsAfterClockPutBack(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var off atomic.Int64
		a := c.replica("a", here("* * * * *", nil))
		a.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		off.Store(int64(24 * time.Hour)) // wrong at the start, then put right
		c.launch(a)
		time.Sleep(10 * time.Minute)
		off.Store(0)
		n := len(c.all())
		time.Sleep(10 * time.Hour)
		got := len(c.all()) - n
		c.wrong(got < 500, "%d runs in the ten hours after the clock was put right by a day", got)
	})
}

// An EveryReplica job runs on all replicas at once, so its trouble would stop all jobs of all replicas. It concerns that job
// alone, and a wake-up during it returns it as an error.
func TestEveryReplicaOverrunStopsNoOtherJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := here("0 1 0 * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
		deaf.Timeout = 10 * time.Second
		var all []*replica
		for _, name := range letters(3) {
			r := c.replica(name, deaf, work("* * * * *", 0))
			r.Overrun = func(string, error) { t.Error("Overrun was called") }
			all = append(all, c.launch(r))
		}
		until(10*time.Minute + time.Second)
		for _, r := range all {
			h := r.Health()
			if err := h.Broken["here"]; len(h.Overrun) > 0 || len(h.Broken) != 1 || !errors.Is(err, soloist.ErrTimeout) {
				t.Errorf("%s: health is %+v", r.Replica, h)
			}
			wantError(t, h.Broken["here"], "goes on though its context has ended")
			got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"here"}})
			c.wrong(!errors.Is(err, soloist.ErrTimeout) || got.Jobs[0].Err == nil,
				"%s: a wake-up says %+v, %v", r.Replica, got, err)
		}
		if got := c.outcomes("work"); len(got) != 10 {
			t.Errorf("got %q, want 10 ticks", got)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			r.wantWell() // its run has returned
		}
	})
}

// A tick that a wake-up names too early is not believed, also not once a run of the call
// has taken so long that it is near.
func TestEveryReplicaWakeIsBelievedOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("* * * * *", func(ctx context.Context, _ *soloist.Run) error {
			time.Sleep(50 * time.Second)
			return nil
		}))
		time.Sleep(10 * time.Second)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)})
		c.wrong(err != nil || len(got.Jobs[0].Ran) != 1, "got %+v, %v, want one run", got, err)
	})
}

// A process that a wake-up starts runs the tick that the wake-up is for.
func TestEveryReplicaColdWakeRunsItsTick(t *testing.T) {
	hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		schedule string
		offset   time.Duration
		wake     soloist.Wake
		want     string // the tick that runs; empty: none
	}{
		"no tick named, in time":            {"@hourly", 5 * time.Second, soloist.Wake{}, "01:00:00"},
		"no tick named, a minute late":      {"@hourly", 61 * time.Second, soloist.Wake{}, ""},
		"no tick named, some were due":      {"@every 10s", 25 * time.Second, soloist.Wake{}, "01:00:20"},
		"a tick named":                      {"@hourly", 5 * time.Second, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, a newer one was due": {"@every 10s", 25 * time.Second, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, early":               {"@hourly", -300 * time.Millisecond, soloist.Wake{Tick: hour}, "01:00:00"},
		"a tick named, too early":           {"@hourly", -2 * time.Minute, soloist.Wake{Tick: hour}, ""},
		"a tick named, too late":            {"@hourly", 2 * time.Minute, soloist.Wake{Tick: hour}, ""},
		"another job's tick named":          {"@hourly", 5 * time.Second, soloist.Wake{Tick: hour.Add(time.Second)}, "01:00:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			a := c.replica("a", here(test.schedule, nil))
			until(time.Hour + test.offset)
			got, err := a.RunDue(c.t.Context(), test.wake)
			c.wrong(err != nil, "got %v", err)
			tick := ""
			for _, r := range c.all() {
				tick += r.Tick.Format("15:04:05")
				c.wrong(r.start.Before(r.Tick), "tick %s was started at %s", r.Tick, r.start)
			}
			c.wrong(tick != test.want || len(got.Jobs[0].Ran) != len(c.all()),
				"the ticks %q ran, want %q; the report is %+v", tick, test.want, got)
			if next := got.Jobs[0].Next; !next.After(time.Now()) || next.After(time.Now().Add(time.Hour)) {
				t.Errorf("at %s the next tick is said to be %s", time.Now(), next)
			}
		})
	}
}

// A platform may send a wake-up twice, and along with another: each tick runs once. One that comes late for an older tick
// leaves the newer one to the wake-up of that.
func TestEveryReplicaWakesRunTickOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("*/30 * * * * *", nil))
		begin := time.Now()
		until(time.Minute + time.Second)
		for _, tick := range []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, time.Minute, 0, 90 * time.Second} {
			wake := soloist.Wake{Tick: begin.Add(tick)}
			if tick == 0 {
				wake = soloist.Wake{}
			}
			time.Sleep(max(0, tick-sinceMidnight()))
			if _, err := a.RunDue(c.t.Context(), wake); err != nil {
				t.Error(err)
			}
		}
		runs := c.all()
		c.wantRuns(3)
		for i, r := range runs {
			want := begin.Add(time.Duration(i+1) * 30 * time.Second)
			c.wrong(!r.Tick.Equal(want), "run %d is of the tick %s, want %s", i, r.Tick, want)
		}
	})
}

// A paused job, and one that does not fit into the call.
func TestEveryReplicaWakeStartsNothingUnfit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused, long := here("@hourly", nil), here("@hourly", nil)
		paused.Name, paused.Paused, long.Timeout = "paused", true, time.Hour
		a := c.replica("a", paused, long)
		time.Sleep(time.Hour + time.Second)
		ctx := c.within(time.Minute)
		_, err := a.RunDue(ctx, soloist.Wake{})
		c.wrong(len(c.all()) > 0 || err == nil || !strings.Contains(err.Error(), "job here: not started: it may take 1h0m0s"),
			"%d runs, %v", len(c.all()), err)
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(c.all()) != 1 {
			t.Errorf("a call with enough time: %d runs, %v", len(c.all()), err)
		}
	})
}

// A replica that takes nothing new, for a run that goes on after its context has
// ended, takes no ticks of EveryReplica jobs either, and none late.
func TestEveryReplicaWaitsForOverrun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		x := named("hangs", doing("@hourly", func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Minute); return nil }))
		x.Timeout = time.Minute
		a := c.start("a", x, here("*/10 * * * *", nil))
		time.Sleep(65 * time.Minute) // the first run of hangs began at minute 60
		before := len(c.all())
		time.Sleep(80 * time.Minute)
		n := len(c.all()) - before
		c.wrong(n != 0, "%d runs while the replica takes nothing new", n)
		c.wrong(a.Health().Broken["here"] == nil, "Health does not say why")
		_, err := a.RunNow(c.t.Context(), "here", "x")
		c.wrong(err == nil, "a run by hand is not refused")
		time.Sleep(17 * time.Minute) // hangs has returned at minute 160
		for _, r := range c.all()[before:] {
			late := r.start.Sub(r.Tick)
			c.wrong(late > time.Second, "%s of %s is %s late", r.Job, r.Tick, late)
		}
		time.Sleep(11 * time.Minute)
		c.wrong(len(c.all()) == before || a.Health().Broken["here"] != nil,
			"once it takes ticks again: %d runs, %v", len(c.all())-before, a.Health().Broken)
	})
}

// A manual run of a job that runs on each replica knows its request. Only the ticks of the job are paused.
func TestEveryReplicaRunNowKnowsRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var got *soloist.Run
		job := here("@hourly", func(_ context.Context, r *soloist.Run) error { got = r; r.Log.Info("it works"); return nil })
		job.Paused = true
		a := c.start("a", job)
		outcome, err := a.RunNow(c.t.Context(), "here", "ann")
		c.wrong(err != nil || got.Request != "ann" || got.ID() != "here@ann" || outcome.Request != "ann",
			"got %+v, %+v, %v", got, outcome, err)
		a.wantLines(1, "it works", "request=ann")
	})
}

// A run by hand ends while the tick beside it goes on, which is neither over nor
// stuck.
func TestEveryReplicaRunNowBesideTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", here("0 1 0 * * *", func(_ context.Context, r *soloist.Run) error {
			if r.Request == "" {
				time.Sleep(20 * time.Minute)
			}
			return nil
		}))
		time.Sleep(2 * time.Minute)
		if _, err := a.RunNow(c.t.Context(), "here", "ann"); err != nil {
			t.Fatal(err)
		}
		for range 15 {
			if h := a.Health(); !slices.Equal(h.Running, []string{"here"}) || len(h.Stuck) > 0 {
				t.Fatalf("got %+v", h)
			}
			time.Sleep(time.Minute)
		}
		time.Sleep(5 * time.Minute)
		if h := a.Health(); len(h.Running) > 0 || len(h.Stuck) > 0 {
			t.Errorf("both are over: got %+v", h)
		}
	})
}

// While one of two runs goes on though its context has ended, Health tells of
// it, whatever the other does.
func TestEveryReplicaRunNowBesideOverrun(t *testing.T) {
	for name, test := range map[string]struct {
		byHand bool // the run that goes on; else the tick's
		says   string
	}{
		"of the tick":     {false, "no tick of this job runs on this replica until it returns"},
		"of that by hand": {true, "its run by hand ann goes on"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := here("* * * * *", func(_ context.Context, r *soloist.Run) error {
				if r.Request == "ann" && test.byHand || r.Request == "" && !test.byHand && r.Tick.Minute() == 1 {
					time.Sleep(20 * time.Minute)
				} else {
					time.Sleep(20 * time.Second)
				}
				return nil
			})
			job.Timeout = time.Minute
			a := c.start("a", job)
			time.Sleep(50 * time.Second) // a tick comes under the run by hand
			done := make(chan struct{})
			go func() { defer close(done); a.RunNow(c.t.Context(), "here", "ann") }()
			time.Sleep(5 * time.Minute)
			if !test.byHand {
				a.RunNow(c.t.Context(), "here", "bob")
			}
			if err := a.Health().Broken["here"]; !errors.Is(err, soloist.ErrTimeout) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			time.Sleep(20 * time.Minute)
			<-done
			h := a.Health()
			c.wrong(len(h.Broken) > 0 || len(h.Overrun) > 0, "both have returned: got %+v", h)
		})
	}
}

// A replica that is stopping begins nothing, no manual run either.
func TestEveryReplicaRunNowAfterStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("@hourly", nil))
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		_, err := a.RunNow(ctx, "here", "me")
		c.wrong(!errors.Is(err, context.Canceled), "the error is %v", err)
		c.wantRuns(0)
	})
}

// The ticks of a pause are skipped on each replica, whatever ran when they came due. One that has waited for a run since before
// the pause waits for its end.
func TestPauseOnEveryReplica(t *testing.T) {
	for name, tt := range map[string]struct {
		overlap  soloist.OverlapPolicy
		run      time.Duration // of the tick of 00:05
		from, to time.Duration // the pause
		want     string        // when the tick of 00:10 runs; empty: it does not
	}{
		"comes due in a pause, under a run":    {"", 9 * time.Minute, 6 * time.Minute, 12 * time.Minute, ""},
		"and would wait for that":              {soloist.QueueOne, 9 * time.Minute, 6 * time.Minute, 12 * time.Minute, ""},
		"and would replace it":                 {soloist.Replace, 9 * time.Minute, 6 * time.Minute, 12 * time.Minute, ""},
		"waits for a run, which ends in it":    {soloist.QueueOne, 6 * time.Minute, 620 * time.Second, 740 * time.Second, "00:12"},
		"waits for a run, and the next is due": {soloist.QueueOne, 6 * time.Minute, 620 * time.Second, 920 * time.Second, ""},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := here("0 */5 * * * *", func(_ context.Context, run *soloist.Run) error {
				if run.Tick.Minute() == 5 {
					time.Sleep(tt.run)
				}
				return nil
			})
			w.Overlap = tt.overlap
			c.start("a", w)
			until(tt.from)
			c.order(soloist.Order{Kind: store.OrderPause, Job: "here", Until: time.Now().Add(tt.to - tt.from)}, w)
			until(17 * time.Minute)
			got := ""
			for _, r := range c.all() {
				if r.Tick.Minute() == 10 {
					got = r.start.Format("15:04")
				}
			}
			c.wrong(got != tt.want, "the tick of 00:10 runs at %q, want %q", got, tt.want)
		})
	}
}

// A call that comes after a pause does not run the tick of that pause which woke it.
func TestLateCallForTickOfPauseOnEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := here("0 */5 * * * *", nil)
		until(4 * time.Minute)
		c.order(soloist.Order{Kind: store.OrderPause, Job: "here", Until: time.Now().Add(70 * time.Second)}, w)
		until(5*time.Minute + 30*time.Second)
		_, err := c.replica("a", w).RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().Truncate(5 * time.Minute)})
		all := c.all()
		c.wrong(err != nil || len(all) > 0, "got %v, %v; want no run", all, err)
	})
}
