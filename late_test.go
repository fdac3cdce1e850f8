package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A lateLog has the late ticks that replicas have told, in order.
type lateLog struct {
	mu    sync.Mutex
	all   []string
	ticks int
	after []time.Duration // their ticks
}

// of has a replica that is not started yet tell the log of late ticks: when, the tick, how many, and why.
func (l *lateLog) of(r *replica) *replica {
	r.Events = func(e event.Event) {
		if e.Kind == event.Late {
			l.mu.Lock()
			defer l.mu.Unlock()
			tick := fmt.Sprintf("%s*%d", e.Run.Tick.Format("15:04"), e.Count)
			l.after = append(l.after, e.Time.Sub(e.Run.Tick))
			l.all, l.ticks = append(l.all, fmt.Sprintf("%s %s: %s %s", e.Time.Format("15:04"), e.Job, tick, e.Note)), l.ticks+e.Count
		}
	}
	return r
}

// start launches a replica that tells the log of late ticks.
func (l *lateLog) start(c *cluster, name string, work ...soloist.Work) *replica {
	return c.launch(l.of(c.replica(name, work...)))
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

// failsAt fails at these hours, or at all if none is named.
func failsAt(hours ...int) func(context.Context, *soloist.Run) error {
	return func(_ context.Context, run *soloist.Run) error {
		if len(hours) == 0 || slices.Contains(hours, run.Tick.Hour()) {
			return errLate
		}
		return nil
	}
}

// A tick that has not succeeded by FinishBy is told then, once, by one replica, whatever keeps it. The
// job is late until a tick has succeeded.
func TestLateTickIsToldOnce(t *testing.T) {
	taking := func(hour int, d time.Duration) soloist.Job {
		return doing("@hourly", func(ctx context.Context, run *soloist.Run) error {
			if run.Tick.Hour() == hour {
				return pause(ctx, d)
			}
			return nil
		})
	}
	grouped := func(job soloist.Job) soloist.Job {
		job.Group, job.StartingDeadline = "db", 40*time.Minute
		return job
	}
	paused := func(job soloist.Job) soloist.Job {
		job.Paused = true
		return job
	}
	type of = []soloist.Work
	half := 30 * time.Minute
	for name, tt := range map[string]struct {
		work of
		late string // at 02:45; an hour later it is over
		want []string
	}{
		"in time": {of{finishBy(half, doing("@hourly", nil))}, "", nil},
		"failed": {of{finishBy(half, doing("@hourly", failsAt(2)))}, "since 02:30: 02:00*1",
			[]string{"02:30 work: 02:00*1 failed: boom"}},
		"takes too long": {of{finishBy(half, taking(2, 50*time.Minute))}, "since 02:30: 02:00*1",
			[]string{"02:30 work: 02:00*1 its run has not ended"}},
		"overlap": {of{finishBy(half, taking(1, 85*time.Minute))}, "since 02:30: 02:00*1",
			[]string{"01:30 work: 01:00*1 its run has not ended", "02:30 work: 02:00*1 skipped: overlap"}},
		"longer than its period": {of{finishBy(90*time.Minute, doing("@hourly", failsAt(1, 2)))}, "since 02:30: 01:00*1",
			[]string{"02:30 work: 01:00*1 failed: boom", "03:30 work: 02:00*1 failed: boom"}},
		"waits for another job": {of{named("import", taking(2, half)), finishBy(20*time.Minute, following("work", "import", 0))}, "",
			[]string{"02:20 work: 02:00*1 it has not begun"}},
		"follows a paused job": {of{paused(importing("@hourly", 0)), finishBy(20*time.Minute, following("work", "import", 0))},
			"since 01:20: 02:00*2", []string{"01:20 work: 01:00*1 skipped: import skipped",
				"02:20 work: 02:00*1 skipped: import skipped", "03:20 work: 03:00*1 skipped: import skipped"}},
		"paused as is the job before": {of{paused(importing("@hourly", 0)), finishBy(20*time.Minute, paused(following("work", "import", 0)))},
			"", nil},
		"waits for a slot": {of{grouped(named("long", work("0 2 * * *", 50*time.Minute))),
			grouped(finishBy(half, work("5 * * * *", 0)))},
			"since 02:35: 02:05*1", []string{"02:35 work: 02:05*1 it has not begun"}},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			var told lateLog
			for _, n := range []string{"a", "b", "c"} {
				r := told.of(c.replica(n, tt.work...))
				if strings.Contains(name, "slot") {
					r.Groups = map[string]int{"db": 1}
				}
				c.launch(r)
			}
			until(2*time.Hour + 45*time.Minute)
			c.wantLate(c.started[0], tt.late)
			until(3*time.Hour + 50*time.Minute)
			if name != "longer than its period" && name != "follows a paused job" {
				c.wantLate(c.started[0], "")
			}
			c.stopAll()
			told.want(c, tt.want...)
		})
	}
}

// Ticks that nobody has begun are told by the first replica that comes up, with their number.
func TestLateTicksOfATimeWithoutReplicas(t *testing.T) {
	for _, missed := range []soloist.MissedPolicy{soloist.RunLatest, soloist.RunAll, soloist.SkipMissed} {
		inCase(t, "missed: "+string(missed), func(_ *testing.T, c *cluster) {
			job := finishBy(10*time.Minute, doing("@hourly", nil))
			job.Missed = missed
			var told lateLog
			a := told.start(c, "a", job)
			until(time.Hour + time.Minute)
			a.stop()
			until(50*time.Hour + 5*time.Minute)
			c.wantLate(c.replica("status", job), "since 02:10: 01:00*48")
			told.start(c, "b", job)
			told.start(c, "c", job)
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

// A call that is woken up tells too, and so does one of a job whose tick is not due.
func TestLateByRunDue(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		r := told.of(c.replica("a", finishBy(30*time.Minute, doing("@hourly", failsAt()))))
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

// An outcome that is about to leave the history is told before its time: nothing would tell it later. Long errors in letters that
// take six bytes each leave less room for outcomes, and each late tick is told all the same.
func TestLateOutcomesThatHistoryForgets(t *testing.T) {
	for name, tt := range map[string]struct {
		by    time.Duration
		text  string
		count int
		first string
		late  string
	}{
		"short":   {2 * time.Hour, "boom", 20, "00:11 work: 00:01*1 failed: boom", "since 02:01: 00:20*20"},
		"letters": {570 * time.Second, strings.Repeat("失败了", 60), 31, "00:10 work: 00:01*1 failed: ", "since 00:10: 00:31*31"},
		"escaped": {570 * time.Second, strings.Repeat("<a>", 200), 31, "00:10 work: 00:01*1 failed: ", "since 00:10: 00:31*31"},
		"most":    {570 * time.Second, strings.Repeat("🦊", 500), 31, "00:10 work: 00:01*1 failed: ", "since 00:10: 00:31*31"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var told lateLog
			do := func(context.Context, *soloist.Run) error { return errors.New(tt.text) }
			r := told.start(c, "a", finishBy(tt.by, doing("* * * * *", do)))
			until(time.Duration(tt.count+10)*time.Minute + 30*time.Second)
			c.wantLate(r, tt.late)
			c.stopAll()
			if len(told.all) != tt.count || !strings.HasPrefix(told.all[0], tt.first) {
				t.Errorf("got %d: %q", len(told.all), told.all[:min(1, len(told.all))])
			}
		})
	}
}

// Of the ticks from before FinishBy was asked for, those with an outcome are not told.
func TestLateOnceAskedFor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := doing("@hourly", failsAt())
		a := told.start(c, "a", job)
		until(3*time.Hour + time.Minute)
		a.stop()
		if rec := c.record("work"); rec.Past != (store.Past{}) {
			t.Errorf("got %+v", rec.Past)
		}
		until(5*time.Hour + 50*time.Minute)
		b := told.start(c, "b", finishBy(30*time.Minute, job))
		until(6*time.Hour + 40*time.Minute)
		b.stop()
		told.want(c, "05:50 work: 05:00*2 it has begun too late", "06:30 work: 06:00*1 failed: boom")
		d := told.start(c, "c", job) // it does not ask for it any more
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
		first time.Duration // tick
		every time.Duration
	}{
		"waits for a slot": {of{grouped(named("long", work("1 0 * * * *", time.Hour))),
			grouped(late(work("* 1-59 * * * *", time.Second)))}, time.Minute, time.Second},
		"its run goes on":    {of{late(work("* * * * * *", time.Hour))}, time.Second, time.Second},
		"each run takes 8 s": {of{late(work("* * * * * *", 8*time.Second))}, time.Second, time.Second},
		"each run fails":     {of{late(doing("*/10 * * * * *", failsAt()))}, 10 * time.Second, 10 * time.Second},
		"waits for another":  {of{importing("* * * * * *", time.Hour), late(following("work", "import", 0))}, time.Second, time.Second},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var told lateLog
			var writes atomic.Int64
			midnight := time.Now()
			for _, n := range []string{"a", "b", "c"} {
				r := told.of(c.replica(n, tt.work...))
				if strings.Contains(name, "slot") {
					r.Groups = map[string]int{"db": 1}
				}
				r.tap.write = func(b []byte, apply func() error) error {
					if r, err := store.DecodeRecord(b, "soloist", "work"); err == nil {
						was := c.record("work")
						if r.Token == was.Token && r.Run.Status == was.Run.Status && r.Watermark.Equal(was.Watermark) {
							writes.Add(1)
						}
					}
					return apply()
				}
				c.launch(r)
			}
			until(10*time.Minute + 33700*time.Millisecond)
			c.stopAll()
			if n := writes.Load(); n < 1 || n > 11 {
				t.Errorf("%d writes only tell of late ticks", n)
			}
			judged := c.record("work").Past.Judged
			if want := int((judged.Sub(midnight)-tt.first)/tt.every) + 1; told.ticks != want {
				t.Errorf("told %d late ticks, want %d: up to %s", told.ticks, want, judged)
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
			for range 30 {
				if err := run.Heartbeat("on"); err != nil {
					return err
				}
				time.Sleep(5 * time.Second)
			}
			return nil
		})))
		// The storage is away when the first heartbeat is written, and then cannot be asked what became of that.
		c.launch(told.of(c.replica("a", job)).meets(func(op string, apply func() error) error {
			at := sinceMidnight() - time.Hour
			if at > 58*time.Second && at < 98*time.Second && (op == "write" || op == "read") {
				return errors.New("503")
			}
			return apply()
		}))
		until(2 * time.Hour)
		c.stopAll()
		told.want(c, "01:02 work: 01:00*1 its run has not ended")
	})
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
		a := told.start(c, "a", finishBy(30*time.Minute, without))
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

// A late tick is told within two seconds during a run, and else within a few: those of a read, of a wait that keeps
// replicas apart, and of a write.
func TestLateTickIsToldAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		by, within, takes time.Duration // zero: it fails
	}{
		"its run goes on, for seconds": {35 * time.Second, 2 * time.Second, 10 * time.Minute},
		"its run goes on, for hours":   {3*time.Hour + 7*time.Second, 2 * time.Second, 4 * time.Hour},
		"its run has failed":           {20 * time.Minute, 5 * time.Second, 0},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var told lateLog
			r := told.of(c.replica("a"))
			for i := range 5 {
				job := work("0 1 * * *", tt.takes)
				if tt.takes == 0 {
					job.Do = failsAt()
				}
				r.Jobs = append(r.Jobs, finishBy(tt.by, named(fmt.Sprintf("job-%d", i), job)))
			}
			c.launch(r)
			until(6 * time.Hour)
			c.stopAll()
			if len(told.all) != 5 || slices.Min(told.after) < tt.by || slices.Max(told.after) > tt.by+tt.within {
				t.Errorf("got %q, %s after their ticks", told.all, told.after)
			}
		})
	}
}

// While a job is paused its ticks from before the pause become late, and are reported; those of the pause do not. What was told
// is not told again after the end of the run or a take-over; a runner that dies is no reason for silence.
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
		late string // in the pause
		want string // in the pause; empty: nothing
	}{
		"its run goes on":       {runs(40 * time.Minute), false, "", "01:30 work: 01:00*1 its run has not ended"},
		"its run ended in time": {runs(20 * time.Minute), false, "", ""},
		"its runner died":       {runs(40 * time.Minute), true, "since 01:30: 01:00*1", "01:30 work: 01:00*1 its run has not ended"},
		"it failed":             {doing("@hourly", failsAt()), false, "since 01:30: 01:00*1", "01:30 work: 01:00*1 failed: boom"},
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			var told lateLog
			all := map[string]*replica{}
			for _, n := range []string{"a", "b"} {
				all[n] = told.start(c, n, finishBy(30*time.Minute, tt.job))
			}
			until(time.Hour + 10*time.Minute)
			if tt.kill {
				all[c.all()[0].replica].kill()
			}
			c.order(soloist.Order{Kind: store.OrderPause}, tt.job)
			until(5*time.Hour - time.Second)
			c.wantLate(c.replica("desk", finishBy(30*time.Minute, tt.job)), tt.late)
			var want []string
			if tt.want != "" {
				want = []string{tt.want}
			}
			told.want(c, want...)
			c.order(soloist.Order{Kind: store.OrderResume}, tt.job)
			until(5*time.Hour + 20*time.Minute)
			told.want(c, want...)
		})
	}
}
