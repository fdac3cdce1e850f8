package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// Heartbeats keep a leader, and cost a write a minute. A beat that comes late, and a check that fails now and then, alarm
// followers no more than for a moment. Within a short HeartbeatTimeout, or between two calls of HealthCheck that follow each
// other soon, followers cannot come near: that costs no writes.
func TestHeartbeatsCostFewCalls(t *testing.T) {
	lead := func(every, silence, interval time.Duration, check func(context.Context) error) soloist.Singleton {
		s := beating(every, 24*time.Hour, true)
		s.HeartbeatTimeout, s.HealthCheck.Interval, s.HealthCheck.Check = silence, interval, check
		return s
	}
	const s, often = time.Second, 800 * time.Millisecond
	var calls atomic.Int32
	flaps := func(context.Context) error { return sick(calls.Add(1)%3 != 0, errors.New("no data")) }
	for name, tt := range map[string]struct {
		lead        soloist.Singleton
		least, most int // writes in ten minutes
		reads       int // of a follower in ten minutes, at most; zero: the leader is alone
	}{
		"each 50 ms":                          {lead(50*time.Millisecond, silence, 0, nil), 9, 11, 0},
		"each 10 s":                           {lead(10*s, silence, 0, nil), 9, 11, 140},
		"each 14 s":                           {lead(14*s, silence, 0, nil), 9, 11, 140},
		"late, each 16 s":                     {lead(16*s, silence, 0, nil), 9, 15 + 2*600/16, 600},
		"as late as can be":                   {lead(silence-s, silence, 0, nil), 10, 12 + 2*33, 0},
		"a short HeartbeatTimeout":            {lead(often, s, 0, nil), 8, 12, 0},
		"a HeartbeatTimeout of D/3 and 1 s":   {lead(often, D/3+s, 0, nil), 8, 12, 0},
		"a HeartbeatTimeout that is too long": {lead(often, time.Hour, 0, nil), 0, 1, 0},
		"a check each tenth second":           {lead(often, 0, 100*time.Millisecond, flaps), 8, 12, 0},
		"a check each sixth of D":             {lead(often, 0, D/6, flaps), 2 * 75, 2 * 90, 0},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			calls.Store(0)
			all := []*replica{c.start("a", tt.lead)}
			time.Sleep(time.Minute)
			if tt.reads > 0 {
				all = append(all, c.start("b", tt.lead))
			}
			time.Sleep(20 * time.Minute)
			for _, r := range all {
				r.tap.counts()
			}
			time.Sleep(10 * time.Minute)
			if n := all[0].tap.counts()["write"]; n < tt.least || n > tt.most {
				t.Errorf("%d writes in 10 minutes, want %d to %d", n, tt.least, tt.most)
			}
			if n := all[len(all)-1].tap.counts()["read"]; n > tt.reads {
				t.Errorf("%d reads of a follower in 10 minutes", n)
			}
			run := c.record("lead").Run
			if tt.most <= 12 && run.Stopping { // followers would look ten times a second
				t.Error("it is announced")
			}
			p := run.Progress
			if tt.least > 0 && (p.Note != "all well" || time.Since(p.At) > 2*time.Minute || p.At.After(time.Now().Add(s))) {
				t.Errorf("progress is %+v at %s", p, time.Now())
			}
			c.wantRuns(1)
		})
	}
}

// A leader that is silent or unhealthy and obeys: others are near when it is given up.
func TestStalledLeaderIsReplaced(t *testing.T) {
	unwell := leader()
	unwell.HealthCheck.Check = func(context.Context) error { return errors.New("no data") }
	for reason, lead := range map[string]soloist.Singleton{
		"no heartbeat for 20s": beating(time.Second, 20*time.Second, true),
		"unhealthy 3 times":    unwell,
	} {
		inCase(t, reason, func(t *testing.T, c *cluster) {
			a := c.start("a", lead)
			time.Sleep(time.Second)
			c.startAll(leader(), "b", "c")
			time.Sleep(45 * time.Second)
			runs := c.succession(2)
			if gap := runs[1].start.Sub(runs[0].end); gap > 300*time.Millisecond || runs[1].replica == "a" {
				t.Errorf("%s leads after %s", runs[1].replica, gap)
			}
			if !errors.Is(runs[0].cause, soloist.ErrStalled) {
				t.Errorf("the cause is %v", runs[0].cause)
			}
			if got := c.record("lead").Counts; got[store.Stalled] != 1 || got[store.Abandoned] != 0 {
				t.Errorf("counts are %v", got)
			}
			a.wantLines(1, "the run has stalled", reason, "goroutine")
		})
	}
}

// stalling is a job whose runs have to beat.
func stalling(schedule string, do func(context.Context, *soloist.Run) error) soloist.Job {
	job := doing(schedule, do)
	job.HeartbeatTimeout = silence
	return job
}

func TestHealthCheck(t *testing.T) {
	no := errors.New("no data")
	for name, test := range map[string]struct {
		healthy func(ctx context.Context, n int) error // the nth call
		end     time.Duration                          // of the run; zero: it goes on
		reason  string
	}{
		"well":                {healthy: func(context.Context, int) error { return nil }},
		"now and then not":    {healthy: func(_ context.Context, n int) error { return sick(n%3 != 0, no) }},
		"sick":                {func(context.Context, int) error { return no }, 30 * time.Second, "stalled: unhealthy 3 times in a row: no data"},
		"sick after a minute": {func(_ context.Context, n int) error { return sick(n > 6, no) }, 90 * time.Second, "unhealthy 3 times"},
		"panics":              {func(context.Context, int) error { panic("oh") }, 30 * time.Second, "panic: oh"},
		"hangs": {func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() },
			40 * time.Second, "no answer before the next check was due"},
		"hangs, and ignores its context": {func(context.Context, int) error { time.Sleep(35 * time.Second); return nil },
			40 * time.Second, "no answer before"},
		"is well, and too late each time": {func(context.Context, int) error { time.Sleep(15 * time.Second); return nil },
			50 * time.Second, "no answer before"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var calls atomic.Int32
			lead := leader()
			lead.HealthCheck.Check = func(ctx context.Context) error { return test.healthy(ctx, int(calls.Add(1))) }
			c.start("a", lead)
			time.Sleep(2*time.Minute - time.Second)
			first := c.all()[0]
			if test.end == 0 {
				if !first.end.IsZero() || calls.Load() != 11 {
					t.Errorf("ended at %s for %v, after %d calls", first.end, first.cause, calls.Load())
				}
				return
			}
			if took := first.end.Sub(first.start); took < test.end || took > test.end+2*time.Second {
				t.Errorf("ended after %s, want %s", took, test.end)
			}
			if !errors.Is(first.cause, soloist.ErrStalled) || !strings.Contains(first.cause.Error(), test.reason) {
				t.Errorf("the cause is %v", first.cause)
			}
		})
	}
}

func sick(really bool, err error) error {
	if really {
		return err
	}
	return nil
}

// What followers were told of an end that may come is taken back by the next beat, also if the answer to that write was lost,
// and by the next try.
func TestStoppingIsTakenBack(t *testing.T) {
	for name, f := range map[string]fault{"next try": nil, "next beat, an answer lost": lose("write", 1)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := stalling("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				for n := 0; ctx.Err() == nil; n++ {
					_ = run.Heartbeat("")
					if n == 0 && run.Try == 1 {
						time.Sleep(16 * time.Second)
					}
					if n == 0 && run.Try == 1 && f == nil {
						return errors.New("slow")
					}
					time.Sleep(time.Second)
				}
				return nil
			})
			job.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
			a := c.start("a", job)
			time.Sleep(time.Minute + time.Second)
			a.meets(f)
			time.Sleep(30 * time.Minute)
			if r := c.record("work"); r.Run.Stopping || r.Run.Status != store.Running {
				t.Errorf("half an hour later the record says %+v", r.Run)
			}
		})
	}
}

// A run ends while it is written that it has stalled: its outcome is the one that others have been told.
func TestRunEndsWhileStallIsWritten(t *testing.T) {
	for name, late := range map[string]error{"returns nil": nil, "fails": errors.New("oh")} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			job := rerun(stalling("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				if run.Attempt == 1 && run.Try == 1 {
					time.Sleep(silence + time.Second)
					return late
				}
				<-ctx.Done()
				return nil
			}))
			job.Retry = soloist.Retry{MaxTries: 2, Backoff: time.Second}
			a := c.start("a", job)
			a.meets(func(op string, apply func() error) error {
				err := apply()
				if op == "write" && err == nil && c.record("work").Run.Status == store.Stalled && c.record("work").Run.Finished.IsZero() {
					time.Sleep(2 * time.Second) // the answer takes long
				}
				return err
			})
			time.Sleep(time.Minute + silence + 10*time.Second)
			a.wantLines(0, "run ended", "outcome=succeeded")
			if slices.ContainsFunc(c.all(), func(r ran) bool { return r.Try == 2 }) {
				t.Error("a second try of a run that has stalled, whose lease is given up")
			}
		})
	}
}

// The end of a stalled run is told, though ticks came due before it returned. They are told once.
func TestStalledRunKeepsItsEnd(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", stalling("@every 10s", func(ctx context.Context, _ *soloist.Run) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		}))
		book := a.tells()
		c.launch(a)
		time.Sleep(10*time.Second + silence + 2*time.Second)
		r := c.record("work")
		i := slices.IndexFunc(r.History, func(f store.Outcome) bool { return f.Status == store.Stalled })
		if i < 1 || r.History[i-1].Reason != "overlap" {
			t.Fatalf("got %q", c.outcomes("work"))
		}
		if took := r.History[i].End.Sub(r.History[i].Start); took < silence || took > silence+2*time.Second {
			t.Errorf("the stalled run is told to have taken %s", took)
		}
		wrote := map[store.Status]int{}
		for _, f := range r.History {
			wrote[f.Status]++
		}
		if told := outcomesIn(book); !maps.Equal(told, wrote) {
			t.Errorf("the events tell %v, the record %q", told, c.outcomes("work"))
		}
	})
}

// The answer to "stalled" is lost, and the run saves on its way out: the
// watermark must not go back, or whoever saw it leaves the job alone.
func TestSaveKeepsStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := stalling("@every 15s", func(ctx context.Context, run *soloist.Run) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			_ = run.Save(context.WithoutCancel(ctx), "where I was") // on the way out
			time.Sleep(time.Hour)
			return nil
		})
		a := c.start("a", job)
		time.Sleep(25 * time.Second)
		job.Do = nil
		b := c.start("b", job)
		var through time.Time
		a.meets(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && c.record("work").Run.Status == store.Stalled {
				through = c.record("work").Watermark
				a.meets(nil)
				return errNetwork
			}
			return err
		})
		time.Sleep(11500 * time.Millisecond)
		if now := c.record("work").Watermark; now.Before(through) {
			t.Errorf("the watermark went back from %s to %s", through, now)
		}
		a.kill() // its host exits, since it overran
		time.Sleep(time.Hour)
		if n := len(c.all()); n < 160 {
			t.Errorf("b ran %d ticks in an hour: %v", n-1, b.Health().Broken)
		}
	})
}

// A call just before the next tick waits for that: a run that has stalled, and whose process is gone, is in nobody's way.
func TestEarlyWakeAfterStall(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := stalling("@hourly", func(context.Context, *soloist.Run) error {
			if len(c.all()) == 1 {
				time.Sleep(3 * time.Hour)
			}
			return nil
		})
		a := c.replica("a", job)
		a.wake()
		until(time.Hour)
		ctx, cancel := context.WithCancel(c.t.Context())
		go func() { _, _ = a.RunDue(ctx, soloist.Wake{}) }()
		defer func() { cancel(); time.Sleep(time.Hour) }()
		until(time.Hour + silence + 5*time.Second)
		a.kill() // its host exits
		until(2*time.Hour - 3*time.Second)
		got, err := c.replica("b", job).RunDue(c.t.Context(), soloist.Wake{Tick: time.Now().Add(3 * time.Second)})
		if err != nil || len(got.Jobs[0].Ran) != 1 {
			t.Errorf("got %+v, %v; record %s %s", got, err, c.record("work").Run.Status, c.record("work").Run.Finished)
		}
		time.Sleep(3 * time.Hour)
	})
}

// A process ends while its stalled run goes on, as Overrun is for, and each later
// wake-up is a new process with a short starting deadline. A write that claims
// nothing closes that run: without it each process would hold off until its tick
// is too late.
func TestStalledRunIsClosedByNextWrite(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.StartingDeadline, job.HeartbeatTimeout = 10*time.Second, 5*time.Second
		c.replica("first", job).wake()
		until(time.Hour + time.Second)
		hangs := job
		hangs.Do = func(context.Context, *soloist.Run) error { time.Sleep(40 * time.Second); return nil }
		r := c.replica("hangs", hangs)
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Minute)
		defer cancel()
		r.Overrun = func(string, error) { r.kill(); cancel() }
		_, _ = r.RunDue(ctx, soloist.Wake{})
		tooLate, inTime := 2*time.Hour+10*time.Minute, 3*time.Hour+time.Second // for the tick before
		for _, at := range []time.Duration{tooLate, inTime} {
			until(at)
			c.replica(fmt.Sprint("at ", at), job).wake()
		}
		if r := c.record("work"); r.Run.Status != store.Succeeded || r.Run.Tick.Hour() != 3 {
			t.Errorf("the record says %s, tick %s: %+v", r.Run.Status, r.Run.Tick, r.History)
		}
	})
}

// A replica whose run does not obey is told so in time, also when the storage is
// out of reach and the run's progress is to be written.
func TestProgressDoesNotDelayOverrun(t *testing.T) {
	for range 8 { // if it does, it does so by chance
		inCluster(t, func(c *cluster) {
			var began time.Time
			var overran overrunLog
			a := c.replica("a", stalling("0 1 0 * * *", func(_ context.Context, run *soloist.Run) error {
				began = time.Now()
				for time.Since(began) < time.Minute-silence {
					time.Sleep(silence / 4)
					_ = run.Heartbeat("")
				}
				time.Sleep(time.Minute)
				return nil
			}))
			a.Overrun = overran.add
			c.launch(a)
			time.Sleep(2*time.Minute - time.Second)
			a.tap.cut.Store(true)
			time.Sleep(time.Minute)
			a.tap.cut.Store(false)
			c.stopAll()
			if took := overran.all()[0].at.Sub(began.Add(time.Minute)); took < D/6 || took > 2*D/6+time.Second {
				t.Errorf("told %s after it had stalled; it takes %s to tell others, and then the run has %s", took, D/6, D/6)
			}
		})
	}
}
