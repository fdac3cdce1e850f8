package cluster_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// What a job does that runs on each replica, without a lease and without a record.
func TestEveryReplica(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"each replica runs each tick, and asks the store for nothing": func(c *cluster) {
			job := here("@every 10s", func(_ context.Context, run *soloist.Run) error {
				c.wrong(run.Token != 0 || run.Attempt != 1, "got %+v", run)
				if run.Try == 1 && run.Tick.Second() == 20 {
					return errors.New("boom")
				}
				return nil
			})
			job.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
			all := c.startAll(job, "a", "b")
			time.Sleep(35 * time.Second)
			for name, r := range all {
				c.wantTicks(ranBy(c, name, time.Time{}), "05", "10", "20", "20", "30")
				got := r.tap.counts()
				c.wrong(len(got) != 0, "it asked the store: %v", got)
			}
			status, err := all["a"].Status(c.t.Context())
			c.wrong(err != nil || !status[0].EveryReplica || status[0].Next.Second() != 40, "status: %+v, %v", status, err)
			report := c.replica("c", job).wakeFor()
			ran := report.Jobs[0].Ran
			c.wrong(len(ran) != 1 || ran[0].Tick.Second() != 30 || report.Next.Second() != 40, "RunDue: %+v", report)
		},
		"a Scheduler that runs again has no tick to run from the time between": func(c *cluster) {
			a := c.replica("a", here("0 * * * *", nil))
			for range 2 {
				_ = a.Run(c.within(10 * time.Minute))
				time.Sleep(150 * time.Minute)
			}
			c.wantRuns(0)
		},
		"ticks are due by a clock that was put right": func(c *cluster) {
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
		},
		"its overrun stops no other job": func(c *cluster) {
			// It runs on all replicas at once, so its trouble would stop all jobs of all replicas. It concerns that job alone, and a
			// wake-up during it returns it as an error.
			deaf := here("0 1 0 * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
			deaf.Timeout = 10 * time.Second
			for _, name := range letters(3) {
				r := c.replica(name, deaf, work("* * * * *", 0))
				r.Overrun = func(string, error) { c.t.Error("Overrun was called") }
				c.launch(r)
			}
			until(10*time.Minute + time.Second)
			for _, r := range c.started {
				h := r.Health()
				c.wrong(len(h.Overrun) > 0 || len(h.Broken) != 1, "%s: health is %+v", r.Replica, h)
				c.wantIs(h.Broken["here"], soloist.ErrTimeout)
				wantError(c.t, h.Broken["here"], "goes on though its context has ended")
				got, err := r.RunDue(c.t.Context(), soloist.Wake{Jobs: []string{"here"}})
				c.wantIs(err, soloist.ErrTimeout)
				c.wrong(got.Jobs[0].Err == nil, "a wake-up says %+v", got)
			}
			c.wrong(len(c.outcomes("work")) != 10, "got %q, want 10 ticks", c.outcomes("work"))
			time.Sleep(10 * time.Minute)
			for _, r := range c.started {
				r.wantWell() // its run has returned
			}
		},
		"a tick that a wake-up names too early is not believed": func(c *cluster) {
			// It is not, either, once a run of the call has taken so long that the tick is near.
			a := c.replica("a", here("* * * * *", func(context.Context, *soloist.Run) error { time.Sleep(50 * time.Second); return nil }))
			time.Sleep(10 * time.Second)
			_, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)})
			c.ok(err)
			c.wantRuns(1)
		},
		"a platform may send a wake-up twice, and along with another: each tick runs once": func(c *cluster) {
			// One that comes late for an older tick leaves the newer one to the wake-up of that.
			a := c.replica("a", here("*/30 * * * * *", nil))
			begin := time.Now()
			until(time.Minute + time.Second)
			for _, tick := range []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, time.Minute, 0, 90 * time.Second} {
				wake := soloist.Wake{Tick: begin.Add(tick)}
				if tick == 0 {
					wake = soloist.Wake{}
				}
				time.Sleep(max(0, tick-sinceMidnight()))
				_, err := a.RunDue(c.t.Context(), wake)
				c.ok(err)
			}
			c.wantTicks(c.all(), "04:05", "00:30", "01:00", "01:30")
		},
		"a call runs no paused job, and none that does not fit into it": func(c *cluster) {
			paused, long := named("paused", here("@hourly", nil)), here("@hourly", nil)
			paused.Paused, long.Timeout = true, time.Hour
			a := c.replica("a", paused, long)
			time.Sleep(time.Hour + time.Second)
			_, err := a.RunDue(c.within(time.Minute), soloist.Wake{})
			wantError(c.t, err, "job here: not started: it may take 1h0m0s")
			c.wantRuns(0)
			a.wake() // a call with enough time
			c.wantRuns(1)
		},
		"a replica that takes nothing new runs no ticks": func(c *cluster) {
			// It takes nothing for a run that goes on after its context has ended. No tick is run late.
			x := named("hangs", doing("@hourly", func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Minute); return nil }))
			x.Timeout = time.Minute
			a := c.start("a", x, here("*/10 * * * *", nil))
			time.Sleep(65 * time.Minute) // the first run of hangs began at minute 60
			before := len(c.all())
			time.Sleep(80 * time.Minute)
			c.wantRuns(before)
			c.wrong(a.Health().Broken["here"] == nil, "Health does not say why")
			_, err := a.RunNow(c.t.Context(), "here", "x")
			c.wrong(err == nil, "a run by hand is not refused")
			time.Sleep(17 * time.Minute) // hangs has returned at minute 160
			for _, r := range c.all()[before:] {
				c.wrong(r.start.Sub(r.Tick) > time.Second, "%s of %s begins at %s", r.Job, r.Tick, r.start)
			}
			time.Sleep(11 * time.Minute)
			c.wrong(len(c.all()) == before || a.Health().Broken["here"] != nil,
				"it does not take ticks again: %v", a.Health().Broken)
		},
		"a manual run of a job that runs on each replica knows its request": func(c *cluster) {
			// Only the ticks of the job are paused. A replica that is stopping begins no manual run.
			job := here("@hourly", func(_ context.Context, r *soloist.Run) error { r.Log.Info("it works"); return nil })
			job.Paused = true
			a := c.start("a", job)
			ctx, stop := context.WithCancel(c.t.Context())
			outcome, err := a.RunNow(ctx, "here", "ann")
			got := c.last()
			c.wrong(err != nil || got.Request != "ann" || got.ID() != "here@ann" || outcome.Request != "ann",
				"got %+v, %+v, %v", got, outcome, err)
			a.wantLines(1, "it works", "request=ann")
			stop()
			_, err = a.RunNow(ctx, "here", "me")
			c.wantIs(err, context.Canceled)
			c.wantRuns(1)
		},
		"a run by hand ends while the tick beside it goes on, which is neither over nor stuck": func(c *cluster) {
			a := c.start("a", here("0 1 0 * * *", func(_ context.Context, r *soloist.Run) error {
				if r.Request == "" {
					time.Sleep(20 * time.Minute)
				}
				return nil
			}))
			time.Sleep(2 * time.Minute)
			a.byHand("here", "ann")
			for range 15 {
				h := a.Health()
				c.wrong(!slices.Equal(h.Running, []string{"here"}) || len(h.Stuck) > 0, "got %+v", h)
				time.Sleep(time.Minute)
			}
			time.Sleep(5 * time.Minute)
			h := a.Health()
			c.wrong(len(h.Running) > 0 || len(h.Stuck) > 0, "both are over: got %+v", h)
		},
	})
}

// A run ends with the stop of its replica, or when it stalls.
func TestEveryReplicaRunEnds(t *testing.T) {
	ends := map[string]error{"with the stop": soloist.ErrStopped, "as stalled": soloist.ErrStalled}
	inRows(t, ends, func(c *cluster, _ string, want error) {
		job := here("0 1 0 * * *", func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil })
		if want == soloist.ErrStalled {
			job.HeartbeatTimeout = silence
		}
		a := c.start("a", job)
		until(time.Minute + silence + time.Second)
		a.stop()
		got := c.succession(1)[0]
		c.wantIs(got.cause, want)
		c.wrong(want == soloist.ErrStalled && got.end.Sub(got.start) != silence, "it ended at %s", got.end)
	})
}

// A process that a wake-up starts runs the tick that the wake-up is for, but not one of a pause that is over.
func TestEveryReplicaColdWakeRunsItsTick(t *testing.T) {
	hour := time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)
	told, of := soloist.Wake{Tick: hour}, func(tick string) []string { return []string{tick} }
	for name, test := range map[string]struct {
		schedule string
		offset   time.Duration
		wake     soloist.Wake
		want     []string // the tick that runs
	}{
		"no tick named, in time":            {"@hourly", 5 * time.Second, soloist.Wake{}, of("01:00:00")},
		"no tick named, a minute late":      {"@hourly", 61 * time.Second, soloist.Wake{}, nil},
		"no tick named, some were due":      {"@every 10s", 25 * time.Second, soloist.Wake{}, of("01:00:20")},
		"a tick named":                      {"@hourly", 5 * time.Second, told, of("01:00:00")},
		"a tick named, a newer one was due": {"@every 10s", 25 * time.Second, told, of("01:00:00")},
		"a tick named, early":               {"@hourly", -300 * time.Millisecond, told, of("01:00:00")},
		"a tick named, too early":           {"@hourly", -2 * time.Minute, told, nil},
		"a tick named, too late":            {"@hourly", 2 * time.Minute, told, nil},
		"another job's tick named":          {"@hourly", 5 * time.Second, soloist.Wake{Tick: hour.Add(time.Second)}, of("01:00:00")},
		"a tick of a pause":                 {"@hourly", 30 * time.Second, told, nil},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := here(test.schedule, nil)
			a := c.replica("a", job)
			if name == "a tick of a pause" {
				until(59 * time.Minute)
				c.order(soloist.Order{Kind: soloist.OrderPause, Job: "here", Until: time.Now().Add(70 * time.Second)}, job)
			}
			until(time.Hour + test.offset)
			got, err := a.RunDue(c.t.Context(), test.wake)
			c.ok(err)
			c.wantTicks(c.all(), time.TimeOnly, test.want...)
			for _, r := range c.all() {
				c.wrong(r.start.Before(r.Tick), "tick %s was started at %s", r.Tick, r.start)
			}
			c.wrong(len(got.Jobs[0].Ran) != len(c.all()), "the report is %+v", got)
			next := got.Jobs[0].Next
			c.wrong(!next.After(time.Now()) || next.After(time.Now().Add(time.Hour)),
				"at %s the next tick is said to be %s", time.Now(), next)
		})
	}
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
			c.meanwhile(func() { a.RunNow(c.t.Context(), "here", "ann") })
			time.Sleep(5 * time.Minute)
			if !test.byHand {
				a.RunNow(c.t.Context(), "here", "bob")
			}
			c.wantIs(a.Health().Broken["here"], soloist.ErrTimeout)
			wantError(t, a.Health().Broken["here"], test.says)
			time.Sleep(20 * time.Minute)
			h := a.Health()
			c.wrong(len(h.Broken) > 0 || len(h.Overrun) > 0, "both have returned: got %+v", h)
		})
	}
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
			c.order(soloist.Order{Kind: soloist.OrderPause, Job: "here", Until: time.Now().Add(tt.to - tt.from)}, w)
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
