package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A lateLog has the late ticks that replicas have told, in order.
type lateLog struct {
	mu  sync.Mutex
	all []string
}

// of has a replica that is not started yet tell the log of late ticks: when, the tick, how many, and why.
func (l *lateLog) of(r *replica) *replica {
	r.Events = func(e event.Event) {
		if e.Kind == event.Late {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all = append(l.all, fmt.Sprintf("%s %s: %s*%d %s", e.Time.Format("15:04"), e.Job, e.Run.Tick.Format("15:04"), e.Count, e.Note))
		}
	}
	return r
}

func (l *lateLog) want(c *cluster, want ...string) {
	c.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.all, want) {
		c.t.Errorf("\ngot  %q\nwant %q", l.all, want)
	}
}

// wantLate checks what the status of the job "work" says: "" for a job that is not late.
func (c *cluster) wantLate(r *replica, want string) {
	c.t.Helper()
	st, err := r.StatusOf(c.t.Context(), "work")
	if err != nil {
		c.t.Fatal(err)
	}
	got := ""
	if l := st.Late; l.Count > 0 {
		got = fmt.Sprintf("since %s: %s*%d", l.Since.Format("15:04"), l.Tick.Format("15:04"), l.Count)
	}
	if got != want {
		c.t.Errorf("late: got %q, want %q", got, want)
	}
}

// finishBy is a job whose runs have to have succeeded so long after their tick.
func finishBy(d time.Duration, job soloist.Job) soloist.Job {
	job.FinishBy = d
	return job
}

var errLate = errors.New("boom")

// A tick that has not succeeded by FinishBy is told then, once, by one replica, whatever keeps it. The
// job is late until a tick has succeeded.
func TestLateTickIsToldOnce(t *testing.T) {
	runs := func(of map[int]time.Duration) func(context.Context, *soloist.Run) error {
		return func(ctx context.Context, run *soloist.Run) error {
			d, ok := of[run.Tick.Hour()]
			if ok && d == 0 {
				return errLate
			}
			return pause(ctx, d)
		}
	}
	for name, tt := range map[string]struct {
		job  soloist.Job
		want []string
		late string // at 02:45
	}{
		"in time":        {doing("@hourly", nil), nil, ""},
		"failed":         {doing("@hourly", runs(map[int]time.Duration{2: 0})), []string{"02:30 work: 02:00*1 failed: boom"}, "since 02:30: 02:00*1"},
		"takes too long": {doing("@hourly", runs(map[int]time.Duration{2: 50 * time.Minute})), []string{"02:30 work: 02:00*1 its run has not ended"}, "since 02:30: 02:00*1"},
		"overlap": {doing("@hourly", runs(map[int]time.Duration{1: 85 * time.Minute})), []string{"01:30 work: 01:00*1 its run has not ended",
			"02:30 work: 02:00*1 skipped: overlap"}, "since 02:30: 02:00*1"},
		"skipped on purpose": {doing("@hourly", func(context.Context, *soloist.Run) error { return soloist.Skip("nothing to do") }), nil, ""},
		"longer than its period": {finishBy(90*time.Minute, doing("@hourly", runs(map[int]time.Duration{1: 0, 2: 0}))),
			[]string{"02:30 work: 01:00*1 failed: boom", "03:30 work: 02:00*1 failed: boom"}, "since 02:30: 01:00*1"},
		"paused by its settings": {func() soloist.Job { j := doing("@hourly", nil); j.Paused = true; return j }(), nil, ""},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			if tt.job.FinishBy == 0 {
				tt.job.FinishBy = 30 * time.Minute
			}
			var told lateLog
			for _, n := range []string{"a", "b", "c"} {
				c.launch(told.of(c.replica(n, tt.job)))
			}
			until(2*time.Hour + 45*time.Minute)
			c.wantLate(c.started[0], tt.late)
			until(3*time.Hour + 50*time.Minute)
			if tt.late != "" && tt.job.FinishBy < time.Hour {
				c.wantLate(c.started[0], "")
			}
			c.stopAll()
			told.want(c, tt.want...)
		})
	}
}

// Ticks that nobody has begun are told by the first replica that comes up, with their number.
func TestLateTicksOfATimeWithoutReplicas(t *testing.T) {
	for name, missed := range map[string]soloist.MissedPolicy{"latest": soloist.RunLatest, "all": soloist.RunAll, "skip": soloist.SkipMissed} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			job := finishBy(10*time.Minute, doing("@hourly", nil))
			job.Missed = missed
			var told lateLog
			a := c.launch(told.of(c.replica("a", job)))
			until(time.Hour + time.Minute)
			a.stop()
			until(50*time.Hour + 5*time.Minute)
			c.wantLate(c.replica("status", job), "since 02:10: 01:00*48")
			c.launch(told.of(c.replica("b", job)))
			c.launch(told.of(c.replica("c", job)))
			time.Sleep(30 * time.Minute)
			c.stopAll()
			if len(told.all) == 0 || !strings.HasPrefix(told.all[0], "02:05 work: 01:00*48 ") {
				t.Errorf("got %q", told.all)
			}
			want := 1
			if missed == soloist.SkipMissed { // that of 02:00 is not run any more
				want = 2
			}
			if len(told.all) != want {
				t.Errorf("got %q, want %d", told.all, want)
			}
		})
	}
}

// What was told is not told again after the end of the run, a take-over, or a restart; the runner
// that dies is no reason for silence.
func TestLateTickOfADeadRunner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := finishBy(30*time.Minute, rerun(doing("@hourly", func(ctx context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == 1 && run.Attempt < 3 {
				return pause(ctx, 40*time.Minute)
			}
			return nil
		})))
		a := c.launch(told.of(c.replica("a", job)))
		until(time.Hour + 31*time.Minute)
		told.want(c, "01:30 work: 01:00*1 its run has not ended")
		b := c.launch(told.of(c.replica("b", job)))
		a.stop()
		until(time.Hour + 40*time.Minute)
		c.launch(told.of(c.replica("c", job)))
		b.stop()
		until(3 * time.Hour)
		c.stopAll()
		told.want(c, "01:30 work: 01:00*1 its run has not ended")
	})
}

// A follower is late if the job before it does not succeed in time, and waits on.
func TestLateFollower(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		report := finishBy(20*time.Minute, following("report", "import", time.Minute))
		for _, n := range []string{"a", "b"} {
			c.launch(told.of(c.replica(n, importing("@hourly", 30*time.Minute), report)))
		}
		until(time.Hour + 50*time.Minute)
		c.stopAll()
		told.want(c, "01:20 report: 01:00*1 it has not begun")
		c.wantOutcomes("report", "succeeded 01:00:00")
	})
}

// A tick that waits for a slot of its group is late.
func TestLateInGroup(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		long, job := named("long", work("0 1 * * *", 50*time.Minute)), finishBy(20*time.Minute, doing("5 1 * * *", nil))
		long.Group, job.Group = "db", "db"
		job.StartingDeadline = 40 * time.Minute
		for _, n := range []string{"a", "b"} {
			r := told.of(c.replica(n, long, job))
			r.Groups = map[string]int{"db": 1}
			c.launch(r)
		}
		until(2 * time.Hour)
		c.stopAll()
		told.want(c, "01:25 work: 01:05*1 it has not begun")
	})
}

// A tick whose runner has died, and whose next attempt waits for a slot of its group, is late too.
func TestLateInGroupOfADeadRunner(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		long, job := named("long", work("11 1 * * *", 50*time.Minute)), finishBy(20*time.Minute, rerun(work("0 1 * * *", 15*time.Minute)))
		long.Group, job.Group = "imports", "imports"
		a := c.limited("a", 1, job)
		until(time.Hour + 10*time.Minute)
		a.kill()
		c.limited("b", 1, long)
		until(time.Hour + 12*time.Minute)
		r := told.of(c.replica("c", job))
		r.Groups = map[string]int{"imports": 1}
		c.launch(r)
		until(2*time.Hour + 30*time.Minute)
		c.stopAll()
		told.want(c, "01:20 work: 01:00*1 its run has not ended")
		c.wantOutcomes("work", "succeeded 01:00:00")
	})
}

// Ticks of a pause are not late, those from before it are.
func TestLateAndPaused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := finishBy(30*time.Minute, doing("@hourly", func(_ context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == 1 {
				return errLate
			}
			return nil
		}))
		a := c.launch(told.of(c.replica("a", job)))
		until(time.Hour + 10*time.Minute)
		if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work", By: "ann"}); err != nil {
			t.Fatal(err)
		}
		until(5 * time.Hour)
		c.wantLate(a, "since 01:30: 01:00*1")
		c.stopAll()
		told.want(c, "01:30 work: 01:00*1 failed: boom")
	})
}

// A call that is woken up tells too, and so does one of a job whose tick is not due.
func TestLateByRunDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		r := told.of(c.replica("a", finishBy(30*time.Minute, doing("@hourly", func(context.Context, *soloist.Run) error { return errLate }))))
		r.wake()
		until(time.Hour)
		r.wake()
		told.want(c)
		until(time.Hour + 40*time.Minute)
		r.wake()
		r.wake()
		told.want(c, "01:40 work: 01:00*1 failed: boom")
	})
}

// An outcome that is about to leave the history is told before its time: nothing would tell it later.
func TestLateOutcomesThatHistoryForgets(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		c.launch(told.of(c.replica("a", finishBy(2*time.Hour, doing("* * * * *", func(context.Context, *soloist.Run) error { return errLate })))))
		until(30*time.Minute + 30*time.Second)
		c.stopAll()
		if len(told.all) != 20 || told.all[0] != "00:11 work: 00:01*1 failed: boom" {
			t.Errorf("got %d: %q", len(told.all), told.all)
		}
	})
}

// Of the ticks from before FinishBy was asked for, those with an outcome are not told.
func TestLateOnceAskedFor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := doing("@hourly", func(context.Context, *soloist.Run) error { return errLate })
		a := c.launch(told.of(c.replica("a", job)))
		until(3*time.Hour + time.Minute)
		a.stop()
		if rec := c.record("work"); rec.Past != (store.Past{}) {
			t.Errorf("got %+v", rec.Past)
		}
		until(5*time.Hour + 50*time.Minute)
		b := c.launch(told.of(c.replica("b", finishBy(30*time.Minute, job))))
		until(6*time.Hour + 40*time.Minute)
		b.stop()
		told.want(c, "05:50 work: 05:00*2 it has begun too late", "06:30 work: 06:00*1 failed: boom")
		d := c.launch(told.of(c.replica("c", job))) // it does not ask for it any more
		until(7*time.Hour + 40*time.Minute)
		c.wantLate(d, "")
		told.want(c, "05:50 work: 05:00*2 it has begun too late", "06:30 work: 06:00*1 failed: boom")
	})
}

// Writes that only tell of late ticks are a minute apart, over all replicas, and each late tick is told.
func TestLateTicksAreToldOnceAMinute(t *testing.T) {
	late := func(j soloist.Job) soloist.Job { return finishBy(1500*time.Millisecond, j) }
	grouped := func(j soloist.Job) soloist.Job { j.Group = "db"; return j }
	type of = []soloist.Work
	for name, tt := range map[string]struct {
		work  of
		first string // tick
		every int    // seconds
	}{
		"waits for a slot":   {of{grouped(named("long", work("1 0 * * * *", time.Hour))), grouped(late(work("* 1-59 * * * *", time.Second)))}, "00:01:00", 1},
		"its run goes on":    {of{late(work("* * * * * *", time.Hour))}, "00:00:01", 1},
		"each run takes 8 s": {of{late(work("* * * * * *", 8*time.Second))}, "00:00:01", 1},
		"each run fails":     {of{late(doing("*/10 * * * * *", func(context.Context, *soloist.Run) error { return errLate }))}, "00:00:10", 10},
		"waits for another":  {of{importing("* * * * * *", time.Hour), late(following("work", "import", time.Second))}, "00:00:01", 1},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var mu sync.Mutex
			var writes, told int
			for _, n := range []string{"a", "b", "c"} {
				r := c.replica(n, tt.work...)
				if strings.Contains(name, "slot") {
					r.Groups = map[string]int{"db": 1}
				}
				r.tap.write = func(b []byte, apply func() error) error {
					if rec, err := store.DecodeRecord(b, "soloist", "work"); err == nil {
						mu.Lock()
						defer mu.Unlock()
						if was := c.record("work"); rec.Token == was.Token && rec.Run.Status == was.Run.Status && rec.Watermark.Equal(was.Watermark) {
							writes++
						}
					}
					return apply()
				}
				r.Events = func(e event.Event) {
					if e.Kind == event.Late {
						mu.Lock()
						defer mu.Unlock()
						told += e.Count
					}
				}
				c.launch(r)
			}
			until(10*time.Minute + 33700*time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			if writes < 1 || writes > 11 {
				t.Errorf("%d writes only tell of late ticks", writes)
			}
			first, _ := time.Parse(time.TimeOnly, tt.first)
			judged := c.record("work").Past.Judged
			if want := (judged.Hour()*3600+judged.Minute()*60+judged.Second()-first.Minute()*60-first.Second())/tt.every + 1; told != want {
				t.Errorf("told %d late ticks, want %d: up to %s", told, want, judged)
			}
			if d := time.Since(judged); d > time.Minute+15*time.Second {
				t.Errorf("nothing later than %s is told", judged)
			}
		})
	}
}

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

// While a job is paused its ticks from before the pause become late, and are reported; those of the pause do not.
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
	}{
		"its run goes on":          {runs(40 * time.Minute), false, "", []string{"01:30 work: 01:00*1 its run has not ended"}},
		"its run ended in time":    {runs(20 * time.Minute), false, "", nil},
		"its runner died":          {runs(40 * time.Minute), true, "since 01:30: 01:00*1", []string{"01:30 work: 01:00*1 its run has not ended"}},
		"it failed, and was first": {doing("@hourly", func(context.Context, *soloist.Run) error { return errLate }), false, "since 01:30: 01:00*1", []string{"01:30 work: 01:00*1 failed: boom"}},
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
			told.want(c, tt.want...)
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
