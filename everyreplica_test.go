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
)

func TestEveryReplicaRunsEachTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := soloist.Job{Name: "cache", Schedule: "@every 10s", EveryReplica: true, Retry: soloist.Retry{MaxTries: 2, Backoff: time.Second},
			Do: func(_ context.Context, run *soloist.Run) error {
				if run.Token != 0 || run.Attempt != 1 {
					t.Errorf("got %+v", run)
				}
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
			if want := []string{"10", "20", "20", "30"}; !slices.Equal(ticks[name], want) {
				t.Errorf("%s ran %q, want %q", name, ticks[name], want)
			}
		}
		for _, r := range []*replica{a, b} {
			if got := r.tap.counts(); len(got) != 0 {
				t.Errorf("it asked the store: %v", got)
			}
		}
		status, err := a.Status(c.t.Context())
		if err != nil || !status[0].EveryReplica || status[0].Next.Second() != 40 {
			t.Errorf("status: %+v, %v", status, err)
		}
		report, err := c.replica("c", job).RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || len(report.Jobs[0].Ran) != 1 || report.Jobs[0].Ran[0].Tick.Second() != 30 || report.Next.Second() != 40 {
			t.Errorf("RunDue: %+v, %v", report, err)
		}
	})
}

func TestEveryReplicaRunEndsWithStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", time.Hour)
		job.Lease, job.EveryReplica = 0, true
		a := c.start("a", job)
		time.Sleep(15 * time.Second)
		a.stop()
		if got := c.all(); len(got) != 1 || !errors.Is(got[0].cause, soloist.ErrStopped) {
			t.Errorf("got %+v", got)
		}
	})
}

// An EveryReplica job has nobody to alarm, and waits in peace.
func TestEveryReplicaRunStalls(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", soloist.Job{Name: "here", Schedule: "0 1 0 * * *", EveryReplica: true, HeartbeatTimeout: silence,
			Do: func(ctx context.Context, run *soloist.Run) error { <-ctx.Done(); return nil }})
		time.Sleep(time.Minute + silence + time.Second)
		a.stop()
		if r := c.all()[0]; !errors.Is(r.cause, soloist.ErrStalled) || r.end.Sub(r.start) != silence {
			t.Errorf("ended after %s for %v", r.end.Sub(r.start), r.cause)
		}
	})
}

// A Scheduler that runs again owes no tick everywhere from the time between.
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
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "* * * * *", EveryReplica: true})
		a.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
		off.Store(int64(24 * time.Hour)) // wrong at the start, then put right
		c.launch(a)
		time.Sleep(10 * time.Minute)
		off.Store(0)
		n := len(c.all())
		time.Sleep(10 * time.Hour)
		if got := len(c.all()) - n; got < 500 {
			t.Errorf("%d runs in the ten hours after the clock was put right by a day", got)
		}
	})
}

// An EveryReplica job runs on all replicas at once, so its trouble would stop all
// jobs of all replicas. It stays its own.
func TestEveryReplicaOverrunStopsNoOtherJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := here("0 1 0 * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
		deaf.Timeout = 10 * time.Second
		var all []*replica
		for _, name := range []string{"a", "b", "c"} {
			r := c.replica(name, deaf, work("* * * * *", 0))
			r.Overrun = func(string, error) { t.Error("Overrun was called") }
			all = append(all, c.launch(r))
		}
		time.Sleep(10*time.Minute + time.Second)
		for _, r := range all {
			h := r.Health()
			if err := h.Broken["here"]; len(h.Overrun) > 0 || !errors.Is(err, soloist.ErrTimeout) || !strings.Contains(err.Error(), "goes on though its context has ended") {
				t.Errorf("%s: health is %+v", r.Replica, h)
			}
			if len(h.Broken) != 1 {
				t.Errorf("%s: broken are %v, want the job itself alone", r.Replica, h.Broken)
			}
		}
		if got := c.outcomes("work"); len(got) != 10 {
			t.Errorf("got %q, want 10 ticks", got)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range all {
			if h := r.Health(); len(h.Broken) > 0 {
				t.Errorf("%s: its run has returned, and health is %+v", r.Replica, h)
			}
		}
	})
}

// A wake-up during the overrun tells of it.
func TestEveryReplicaOverrunIsToldByRunDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		deaf := here("* * * * *", func(context.Context, *soloist.Run) error { time.Sleep(18 * time.Minute); return nil })
		deaf.Timeout = 10 * time.Second
		a := c.launch(c.replica("a", deaf))
		time.Sleep(5 * time.Minute)
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if !errors.Is(err, soloist.ErrTimeout) || got.Jobs[0].Err == nil {
			t.Errorf("got %+v, %v", got, err)
		}
		time.Sleep(15 * time.Minute)
	})
}

// wokenHere makes a replica with an hourly EveryReplica job, and moves time to
// offset after the hour.
func wokenHere(c *cluster, schedule string, offset time.Duration) *replica {
	a := c.replica("a", here(schedule, nil))
	time.Sleep(time.Hour + offset)
	return a
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
		if err != nil || len(got.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v, want one run", got, err)
		}
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
			a := wokenHere(c, test.schedule, test.offset)
			got, err := a.RunDue(c.t.Context(), test.wake)
			if err != nil {
				t.Errorf("got %v", err)
			}
			tick := ""
			for _, r := range c.all() {
				tick += r.Tick.Format("15:04:05")
				if r.start.Before(r.Tick) {
					t.Errorf("tick %s was started at %s", r.Tick, r.start)
				}
			}
			if tick != test.want || len(got.Jobs[0].Ran) != len(c.all()) {
				t.Errorf("the ticks %q ran, want %q; the report is %+v", tick, test.want, got)
			}
			if next := got.Jobs[0].Next; !next.After(time.Now()) || next.After(time.Now().Add(time.Hour)) {
				t.Errorf("at %s the next tick is said to be %s", time.Now(), next)
			}
		})
	}
}

// A platform may send a wake-up twice, and beside another.
func TestEveryReplicaWakesRunTickOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := wokenHere(c, "@hourly", time.Second)
		tick := time.Now().Truncate(time.Hour)
		for _, wake := range []soloist.Wake{{Tick: tick}, {Tick: tick}, {}} {
			if _, err := a.RunDue(c.t.Context(), wake); err != nil {
				t.Errorf("got %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := len(c.all()); n != 1 {
			t.Errorf("the tick ran %d times", n)
		}
		time.Sleep(time.Hour)
		a.RunDue(c.t.Context(), soloist.Wake{Tick: tick.Add(time.Hour)})
		if n := len(c.all()); n != 2 {
			t.Errorf("%d runs after the next tick, want 2", n)
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
		if len(c.all()) > 0 || err == nil || !strings.Contains(err.Error(), "job here: not started: it may take 1h0m0s") {
			t.Errorf("%d runs, %v", len(c.all()), err)
		}
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil || len(c.all()) != 1 {
			t.Errorf("a call with enough time: %d runs, %v", len(c.all()), err)
		}
	})
}

// A wake-up that comes late for an older tick leaves the newer one to its own
// wake-up.
func TestEveryReplicaLateWakeLeavesNewerTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", here("*/30 * * * * *", nil))
		begin := time.Now()
		time.Sleep(time.Minute + time.Second)
		for _, tick := range []time.Duration{30 * time.Second, time.Minute, 30 * time.Second, time.Minute} {
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: begin.Add(tick)}); err != nil {
				t.Error(err)
			}
		}
		runs := c.all()
		if len(runs) != 2 || !runs[0].Tick.Equal(begin.Add(30*time.Second)) || !runs[1].Tick.Equal(begin.Add(time.Minute)) {
			t.Errorf("got %d runs, want one of each tick: %+v", len(runs), runs)
		}
	})
}

// A replica that takes nothing new, for a run that goes on after its context has
// ended, takes no ticks of EveryReplica jobs either, and none late.
func TestEveryReplicaWaitsForOverrun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		x := work("@hourly", 0)
		x.Name, x.Timeout = "hangs", time.Minute
		x.Do = func(context.Context, *soloist.Run) error { time.Sleep(100 * time.Minute); return nil }
		a := c.start("a", x, here("*/10 * * * *", nil))
		time.Sleep(65 * time.Minute) // the first run of hangs began at minute 60
		before := len(c.all())
		time.Sleep(80 * time.Minute)
		if n := len(c.all()) - before; n != 0 {
			t.Errorf("%d runs while the replica takes nothing new", n)
		}
		if a.Health().Broken["here"] == nil {
			t.Error("Health does not say why")
		}
		if _, err := a.RunNow(c.t.Context(), "here", "x"); err == nil {
			t.Error("a run by hand is not refused")
		}
		time.Sleep(17 * time.Minute) // hangs has returned at minute 160
		for _, r := range c.all()[before:] {
			if late := r.start.Sub(r.Tick); late > time.Second {
				t.Errorf("%s of %s is %s late", r.Job, r.Tick, late)
			}
		}
		time.Sleep(11 * time.Minute)
		if len(c.all()) == before || a.Health().Broken["here"] != nil {
			t.Errorf("once it takes ticks again: %d runs, %v", len(c.all())-before, a.Health().Broken)
		}
	})
}

// A run by hand of a job that runs on each replica knows its request.
func TestEveryReplicaRunNowTellsRequest(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var got *soloist.Run
		a := c.start("a", here("@hourly", func(_ context.Context, r *soloist.Run) error { got = r; r.Log.Info("it works"); return nil }))
		outcome, err := a.RunNow(c.t.Context(), "here", "ann")
		if err != nil || got.Request != "ann" || got.ID() != "here@ann" || outcome.Request != "ann" {
			t.Errorf("got the run %q of request %q, %+v, %v", got.ID(), got.Request, outcome, err)
		}
		if a.log.lines("it works", "request=ann") == nil {
			t.Error("the run's log does not tell the request")
		}
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
			if h := a.Health(); len(h.Broken) > 0 || len(h.Overrun) > 0 {
				t.Errorf("both have returned: got %+v", h)
			}
		})
	}
}

// Paused are its ticks.
func TestEveryReplicaRunNowWhilePaused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "@hourly", EveryReplica: true, Paused: true})
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("panic: %v", p)
			}
		}()
		f, err := a.RunNow(c.t.Context(), "here", "me")
		t.Log(f, err)
	})
}

// A replica that is stopping begins nothing, by hand neither.
func TestEveryReplicaRunNowAfterStop(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var ran atomic.Bool
		a := c.replica("a", soloist.Job{Name: "here", Schedule: "@hourly", EveryReplica: true, Do: func(context.Context, *soloist.Run) error {
			ran.Store(true)
			return nil
		}})
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		if _, err := a.RunNow(ctx, "here", "me"); !errors.Is(err, context.Canceled) || ran.Load() {
			t.Errorf("it ran: %t, and the error is %v", ran.Load(), err)
		}
	})
}
