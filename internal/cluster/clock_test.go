package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// The dates of the store correct a wrong clock: each tick runs in time, Health reports the skew as far as the dates prove it,
// and the record says how long a run took. Without dates a right clock is enough. A step of the wall clock ends no run.
func TestWrongClock(t *testing.T) {
	for name, tt := range map[string]struct {
		off, then time.Duration // at first, and after a minute
		date      func(time.Time) time.Time
		told      []time.Duration
	}{
		"slow":         {-time.Hour, -time.Hour, nil, []time.Duration{-time.Hour}},
		"a bit slow":   {-4 * time.Second, -4 * time.Second, nil, nil},
		"right":        {0, 0, nil, nil},
		"no dates":     {0, 0, noDate, nil},
		"a bit fast":   {4 * time.Second, 4 * time.Second, nil, nil},
		"corrected":    {10 * time.Minute, 0, nil, []time.Duration{10 * time.Minute, 0}},
		"a step":       {0, time.Hour, nil, []time.Duration{time.Hour}},
		"a step back":  {0, -time.Hour, nil, []time.Duration{-time.Hour}},
		"a small step": {0, -30 * time.Second, nil, []time.Duration{-30 * time.Second}},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var off atomic.Int64
			off.Store(int64(tt.off))
			a := c.replica("a", work("@every 1s", 50*time.Millisecond), leader(), named("long", work("@every 1m", 4*time.Second)))
			a.Now, a.tap.date = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }, tt.date
			book := a.tells()
			c.launch(a)
			time.Sleep(62*time.Second + 500*time.Millisecond)
			ticks := slices.DeleteFunc(afterTheFirst(c.all()), func(r ran) bool { return r.Job != "work" })
			if got := once(t, ticks); got != 60 {
				t.Errorf("%d ticks ran, want 60: %q", got, c.outcomes("work"))
			}
			off.Store(int64(tt.then))
			time.Sleep(5*time.Minute + 20*time.Second)
			if got := a.Health().Skew; (got - tt.then).Abs() > 1100*time.Millisecond {
				t.Errorf("skew is %s, want about %s", got, tt.then)
			}
			var skews []time.Duration // what is more than five seconds is an event, and so is its correction
			for _, e := range book.of("", event.Skewed) {
				skews = append(skews, e.Skew.Round(5*time.Second))
			}
			c.wrong(!slices.Equal(skews, tt.told), "the events tell %s, want %s", skews, tt.told)
			r := c.record("long")
			took := r.Run.Finished.Sub(r.Run.Claimed)
			c.wrong(took < 4*time.Second || took > 5*time.Second, "claimed at %s, finished at %s", r.Run.Claimed, r.Run.Finished)
			if f := r.History[0]; !f.End.Equal(r.Run.Finished) || !f.Start.Equal(r.Run.Claimed) || r.Counts[event.Succeeded] < 6 {
				t.Errorf("the outcome is from %s to %s, of %v", f.Start, f.End, r.Counts)
			}
			for _, r := range c.all() {
				c.wrong(r.cause != nil || r.Job == "lead" && !r.end.IsZero(), "a run of %s ended: %v", r.Job, r.cause)
			}
		})
	}
}

// Hours after the store has told its time, a wrong clock is still put right.
func TestSlowWallClockMissesNoTick(t *testing.T) {
	inEach(t, []soloist.MissedPolicy{soloist.RunLatest, soloist.SkipMissed}, func(c *cluster, missed soloist.MissedPolicy) {
		job := work("0 */6 * * *", time.Second)
		job.Late.Missed = missed
		c.launch(c.replica("a", job).skewed(-10 * time.Minute))
		time.Sleep(25 * time.Hour)
		c.wantInTime(2 * time.Second)
		c.wantAllSucceeded()
	})
}

// A machine that was suspended knows so at once when it is asked, and within a
// second by itself.
func TestSuspensionEndsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		lead := leader()
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			within, cancel := context.WithTimeout(ctx, time.Hour) // as libraries make them
			defer cancel()
			until(time.Minute + time.Millisecond)
			c.wrong(ctx.Err() == nil || within.Err() == nil, "the context of the run goes on, or one that was made of it")
			lasting := context.WithoutCancel(ctx)
			for _, err := range []error{run.Heartbeat(""), run.Check(lasting), run.Save(lasting, "stale")} {
				c.wantIs(err, store.ErrLost)
			}
			c.wrong(run.Remaining() != 0, "it has %s", run.Remaining())
			<-ctx.Done()
			return nil
		}
		a := c.launch(c.replica("a", lead).on(&machine))
		time.Sleep(time.Minute)
		machine.slept.Add(int64(D))
		slept := time.Now()
		time.Sleep(2 * time.Second)
		a.stop()
		got := c.last()
		c.wrong(got.end.IsZero() || got.end.Sub(slept) > time.Second, "ended at %s", got.end)
		c.wantIs(got.cause, store.ErrLost)
	})
}

// A renewal that is sent after the end of the trust, here because another was
// under way while the machine slept, does not bring it back. The answer comes
// before the next look of the goroutine that watches the deadline.
func TestRenewalAfterSuspensionExtendsNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		var check error
		lead := leader()
		lead.Do = func(ctx context.Context, run *soloist.Run) error {
			until(D/3 + 100*time.Millisecond) // a renewal is under way
			check = run.Check(context.Background())
			return nil
		}
		a := c.replica("a", lead).on(&machine)
		c.launch(a.meets(onNth("renew", 1, func(apply func() error) error {
			time.Sleep(300 * time.Millisecond)
			machine.slept.Add(int64(D))
			return apply()
		})))
		time.Sleep(D/3 + 2*time.Second)
		a.stop()
		n := a.tap.counts()["renew"]
		c.wrong(n != 2 || !errors.Is(check, store.ErrLost), "%d renewals; Check: %v", n, check)
	})
}

// A short suspension ends no run. A machine that sleeps cannot beat, which is no silence.
func TestShortSuspensionEndsNoRun(t *testing.T) {
	beats := beating(500*time.Millisecond, time.Hour, true)
	beats.HeartbeatTimeout = 3 * time.Second
	for slept, lead := range map[time.Duration]soloist.Singleton{D / 3: leader(), 4 * time.Second: beats} {
		inCluster(t, func(c *cluster) {
			var machine suspended
			c.launch(c.replica("a", lead).on(&machine))
			for range 10 {
				time.Sleep(20*time.Second + 100*time.Millisecond)
				machine.slept.Add(int64(slept))
			}
			time.Sleep(10 * time.Second)
			c.wantRuns(1)
		})
	}
}

// The end of a run counts the time that the write of its claim has taken.
func TestRecordedEndCountsSlowClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.launch(c.replica("a", work("0 * * * *", 4*time.Second)).meets(slow(2*time.Second, "write")))
		time.Sleep(time.Hour + 30*time.Second)
		r, runs := c.record("work"), c.all()
		late := r.Run.Finished.Sub(runs[0].end)
		c.wrong(len(runs) != 1 || late < -100*time.Millisecond || late > 1100*time.Millisecond,
			"the record says that %+v ended at %s", runs, r.Run.Finished)
	})
}

// The machine of a store had its clock ahead for two minutes. Within a minute of its correction Health says what the
// record has from the future, and when that is over. Then the job runs again, and before that if its entry is deleted.
func TestClockThatWasAheadIsTold(t *testing.T) {
	for _, kind := range []string{"directory", "memory"} {
		for ahead, deleted := range map[time.Duration]bool{2 * time.Hour: false, 24 * time.Hour: true} {
			inCase(t, fmt.Sprint(kind, " ", ahead, " ahead"), func(t *testing.T, c *cluster) {
				var off atomic.Int64
				a := c.replica("a", named("sync", work("*/5 * * * *", 0)))
				a.Now = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
				c.store.Now = a.Now
				deletes, dir := func() error { return c.store.Delete(t.Context(), "soloist/sync") }, t.TempDir()
				if kind == "directory" {
					a.tap.Store = local.Dir{Path: dir, Now: a.Now}
					deletes = func() error { return os.RemoveAll(filepath.Join(dir, "soloist/sync.d")) }
				}
				until(15 * time.Hour)
				c.launch(a)
				time.Sleep(2 * time.Hour)
				off.Store(int64(ahead))
				time.Sleep(2 * time.Minute)
				off.Store(0)
				time.Sleep(time.Minute)
				text := fmt.Sprint(a.Health().Broken["sync"])
				_, rest, _ := strings.Cut(text, "right again from ")
				over, err := time.Parse(time.RFC3339, strings.Split(rest, " on;")[0])
				c.wrong(err != nil || !strings.Contains(text, "is in the future") ||
					!strings.Contains(text, "delete its entry soloist/sync "),
					"a minute later health says %s", text)
				if deleted {
					c.ok(deletes())
				} else {
					time.Sleep(time.Until(over) - time.Minute)
					c.wrong(a.Health().Broken["sync"] == nil, "right before its time")
					time.Sleep(2 * time.Minute)
				}
				since := time.Now()
				time.Sleep(time.Hour)
				got := len(ranBy(c, "a", since))
				c.wrong(got < 11 || got > 13, "%d of 12 ticks ran in an hour", got)
				a.wantWell()
			})
		}
	}
}

// A job pauses itself when its run has ended, also over a store that gives no dates: RunAll makes up for ticks from before that.
func TestPausesItselfWithoutDates(t *testing.T) {
	for _, dated := range []bool{true, false} {
		inCase(t, fmt.Sprint("dates ", dated), func(t *testing.T, c *cluster) {
			first := true
			w := doing("* * * * *", func(ctx context.Context, _ *soloist.Run) error {
				if first {
					first = false
					_ = pause(ctx, 150*time.Second)
					return errors.New("boom")
				}
				return nil
			})
			w.Late.Missed, w.Retry = soloist.RunAll, soloist.Retry{PauseAfter: 1}
			a := c.replica("a", w)
			if !dated {
				a.tap.date = noDate
			}
			c.launch(a)
			until(6*time.Minute + 30*time.Second)
			c.order(soloist.Order{Kind: soloist.OrderResume}, w)
			until(7*time.Minute + 30*time.Second)
			c.wantOutcomes("work", "failed 00:01:00 boom", "succeeded 00:02:00", "succeeded 00:03:00",
				"skipped 00:03:00-00:06:00 paused", "succeeded 00:07:00")
		})
	}
}
