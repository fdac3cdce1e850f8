package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A write that would have told of a late tick and was not sent is made up for.
func TestLateTickOfAnOutageIsToldAfterIt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := leased(time.Minute, finishBy(65*time.Second, doing("@hourly", func(_ context.Context, run *soloist.Run) error {
			for range 30 { // the storage is away when the first heartbeat is written, and then cannot be asked what became of that
				if err := run.Heartbeat("on"); err != nil {
					return err
				}
				time.Sleep(5 * time.Second)
			}
			return nil
		})))
		c.launch(told.of(c.replica("a", job)).meets(func(op string, apply func() error) error {
			if at := time.Since(time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)); at > 58*time.Second && at < 98*time.Second && (op == "write" || op == "read") {
				return errors.New("503")
			}
			return apply()
		}))
		until(2 * time.Hour)
		c.stopAll()
		told.want(c, "01:02 work: 01:00*1 its run has not ended")
	})
}

// Long errors in letters that take six bytes each leave less room for outcomes, and each late tick is told all the same.
func TestLateTicksWithLongReasonsAreTold(t *testing.T) {
	for name, text := range map[string]string{"letters": strings.Repeat("失败了", 60), "escaped": strings.Repeat("<a>", 200), "most": strings.Repeat("🦊", 500)} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var told lateLog
			r := told.of(c.replica("a", finishBy(9*time.Minute+30*time.Second, doing("* * * * *", func(context.Context, *soloist.Run) error { return errors.New(text) }))))
			c.launch(r)
			until(41*time.Minute + 10*time.Second)
			c.wantLate(r, "since 00:10: 00:31*31")
			c.stopAll()
			if len(told.all) != 31 || !strings.HasPrefix(told.all[0], "00:10 work: 00:01*1 failed: ") {
				t.Errorf("got %d: %q", len(told.all), told.all[:min(1, len(told.all))])
			}
		})
	}
}

// A program without FinishBy, as in a deploy that adds it or takes it away, leaves what is to be told.
func TestLateTickSurvivesAProgramWithoutFinishBy(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		without := doing("@hourly", func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == 2 && run.Request == "" {
				return errLate
			}
			return nil
		})
		a := c.launch(told.of(c.replica("a", finishBy(30*time.Minute, without))))
		until(2*time.Hour + 10*time.Minute)
		old := c.replica("old", without)
		if _, err := old.RunNow(c.t.Context(), "work", "hand"); err != nil {
			t.Error(err)
		}
		until(2*time.Hour + 40*time.Minute)
		told.want(c, "02:30 work: 02:00*1 failed: boom")
		c.wantLate(a, "since 02:30: 02:00*1")
		c.wantLate(old, "")
	})
}

// A tick that failed is late under the schedule that follows too.
func TestLateTickOfAScheduleBefore(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		fail := func(context.Context, *soloist.Run) error { return errLate }
		a := c.launch(told.of(c.replica("a", finishBy(30*time.Minute, doing("10 * * * *", fail)))))
		until(15 * time.Minute)
		a.stop()
		b := c.launch(told.of(c.replica("b", finishBy(30*time.Minute, doing("55 23 * * *", fail)))))
		until(3 * time.Hour)
		told.want(c, "00:40 work: 00:10*1 failed: boom")
		c.wantLate(b, "since 00:40: 00:10*1")
	})
}

// A late tick is told within two seconds during a run, and else within a few: those of a read, of a wait that keeps
// replicas apart, and of a write.
func TestLateTickIsToldAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		by, within time.Duration
		do         func(context.Context, *soloist.Run) error
	}{
		"its run goes on, for seconds": {35 * time.Second, 2 * time.Second, func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, 10*time.Minute) }},
		"its run goes on, for hours":   {3*time.Hour + 7*time.Second, 2 * time.Second, func(ctx context.Context, _ *soloist.Run) error { return pause(ctx, 4*time.Hour) }},
		"its run has failed":           {20 * time.Minute, 5 * time.Second, func(context.Context, *soloist.Run) error { return errLate }},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var mu sync.Mutex
			told := map[string]time.Duration{}
			r := c.replica("a")
			for i := range 5 {
				r.Jobs = append(r.Jobs, finishBy(tt.by, named(fmt.Sprintf("job-%d", i), doing("0 1 * * *", tt.do))))
			}
			r.Events = func(e event.Event) {
				if e.Kind == event.Late {
					mu.Lock()
					defer mu.Unlock()
					told[e.Job] = e.Time.Sub(e.Run.Tick.Add(tt.by))
				}
			}
			c.launch(r)
			until(6 * time.Hour)
			mu.Lock()
			defer mu.Unlock()
			for job, after := range told {
				if after < 0 || after > tt.within {
					t.Errorf("%s is told %s after its time", job, after)
				}
			}
			if len(told) != 5 {
				t.Errorf("%d are told", len(told))
			}
		})
	}
}

// While a job is paused its ticks from before the pause are late, and told unless another replica may still write
// their outcome; those of the pause are not. A job that follows a paused one is not paused.
func TestWhatIsLateInAPause(t *testing.T) {
	runs := func(d time.Duration) soloist.Job {
		return rerun(doing("@hourly", func(ctx context.Context, run *soloist.Run) error {
			if run.Attempt > 1 {
				return nil
			}
			return pause(ctx, d)
		}))
	}
	for name, tt := range map[string]struct {
		job  soloist.Job
		kill bool
		late string   // in the pause
		want []string // in the pause
		more []string // once the job goes on
	}{
		"its run goes on":          {runs(40 * time.Minute), false, "", []string{"01:30 work: 01:00*1 its run has not ended"}, nil},
		"its run ended in time":    {runs(20 * time.Minute), false, "", nil, nil},
		"its runner died":          {runs(40 * time.Minute), true, "since 01:30: 01:00*1", nil, []string{"05:00 work: 01:00*1 it has begun too late"}},
		"it failed, and was first": {doing("@hourly", func(context.Context, *soloist.Run) error { return errLate }), false, "since 01:30: 01:00*1", []string{"01:30 work: 01:00*1 failed: boom"}, nil},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			var told lateLog
			all := map[string]*replica{}
			for _, n := range []string{"a", "b"} {
				all[n] = c.launch(told.of(c.replica(n, finishBy(30*time.Minute, tt.job))))
			}
			until(time.Hour + 10*time.Minute)
			if tt.kill {
				all[c.all()[0].replica].kill()
			}
			c.order(soloist.Order{Kind: store.OrderPause}, tt.job)
			until(5*time.Hour - time.Second)
			c.wantLate(c.replica("desk", finishBy(30*time.Minute, tt.job)), tt.late)
			told.want(c, tt.want...)
			c.order(soloist.Order{Kind: store.OrderResume}, tt.job)
			until(5*time.Hour + 20*time.Minute)
			told.want(c, append(tt.want, tt.more...)...)
		})
	}
}

// A job that follows a paused one is late: it is not paused itself.
func TestLateFollowerOfAPausedJob(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		first, next := named("first", work("@hourly", time.Second)), finishBy(20*time.Minute, following("next", "first", time.Second))
		r := c.launch(told.of(c.replica("a", first, next)))
		until(time.Hour + 10*time.Minute)
		for _, kind := range []store.OrderKind{store.OrderPause, store.OrderResume} {
			if _, err := r.Order(c.t.Context(), soloist.Order{Kind: kind, Job: "first", By: "ann"}); err != nil {
				c.t.Error(err)
			}
			time.Sleep(2 * time.Hour)
		}
		told.want(c, "02:20 next: 02:00*1 it has not begun", "03:20 next: 03:00*1 skipped: first skipped")
	})
}
