package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/record"
)

// A lateLog has the late ticks that replicas have told, in order.
type lateLog struct {
	mu    sync.Mutex
	all   []string
	after []time.Duration // their ticks
}

// of has a replica that is not started yet tell the log of late ticks: when, the tick, how many, and why.
func (l *lateLog) of(r *replica) *replica {
	r.Events = func(e event.Event) {
		if e.Kind == event.Late {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.after = append(l.after, e.Time.Sub(e.Run.Tick))
			tick := fmt.Sprintf("%s*%d", e.Run.Tick.Format("15:04"), e.Count)
			l.all = append(l.all, fmt.Sprintf("%s %s: %s %s", e.Time.Format("15:04"), e.Job, tick, e.Note))
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

// A tick that has not succeeded by Late.Finish is told then, once, by one replica, whatever keeps it. The
// job is late until a tick has succeeded.
func TestLateTickIsToldOnce(t *testing.T) {
	grouped := func(job soloist.Job) soloist.Job {
		job.Group, job.Late.Start = "db", 40*time.Minute
		return job
	}
	paused := func(job soloist.Job) soloist.Job {
		job.Paused = true
		return job
	}
	type of = []soloist.Work
	half, follows := 30*time.Minute, finishBy(20*time.Minute, following("work", "import", 0))
	for name, tt := range map[string]struct {
		work of
		late string // at 02:45
		over bool   // an hour later
		want []string
	}{
		"failed": {of{finishBy(half, doing("@hourly", failsAt(2)))}, "since 02:30: 02:00*1", true,
			[]string{"02:30 work: 02:00*1 failed: boom"}},
		"overlap": {of{finishBy(half, work("0 1-2 * * *", 85*time.Minute))}, "since 02:30: 02:00*1", false,
			[]string{"01:30 work: 01:00*1 its run has not ended", "02:30 work: 02:00*1 skipped: overlap"}},
		"longer than its period": {of{finishBy(90*time.Minute, doing("@hourly", failsAt(1, 2)))}, "since 02:30: 01:00*1", false,
			[]string{"02:30 work: 01:00*1 failed: boom", "03:30 work: 02:00*1 failed: boom"}},
		"waits for another job": {of{importing("0 2 * * *", half), follows}, "", true,
			[]string{"02:20 work: 02:00*1 it has not begun"}},
		"follows a paused job": {of{paused(importing("@hourly", 0)), follows}, "since 01:20: 02:00*2", false,
			[]string{"01:20 work: 01:00*1 skipped: import skipped", "02:20 work: 02:00*1 skipped: import skipped",
				"03:20 work: 03:00*1 skipped: import skipped"}},
		"paused as is the job before": {of{paused(importing("@hourly", 0)), paused(follows)}, "", true, nil},
		"waits for a slot": {of{grouped(named("long", work("0 2 * * *", 50*time.Minute))),
			grouped(finishBy(half, work("5 * * * *", 0)))}, "since 02:35: 02:05*1", true, []string{"02:35 work: 02:05*1 it has not begun"}},
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
			if until(3*time.Hour + 50*time.Minute); tt.over {
				c.wantLate(c.started[0], "")
			}
			c.stopAll()
			told.want(c, tt.want...)
		})
	}
}

// Ticks that nobody has begun are told by the first replica that comes up, with their number.
func TestLateTicksOfATimeWithoutReplicas(t *testing.T) {
	// Under SkipMissed that of 02:00 is not run any more.
	for missed, want := range map[soloist.MissedPolicy]int{soloist.RunAll: 1, soloist.SkipMissed: 2} {
		inCase(t, "missed: "+string(missed), func(_ *testing.T, c *cluster) {
			job := finishBy(10*time.Minute, doing("@hourly", nil))
			job.Late.Missed = missed
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
			if len(told.all) != want || !strings.HasPrefix(told.all[0], "02:05 work: 01:00*48 ") {
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

// Of the ticks from before Late.Finish was asked for, those with an outcome are not told.
func TestLateOnceAskedFor(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var told lateLog
		job := doing("@hourly", failsAt())
		a := told.start(c, "a", job)
		until(3*time.Hour + time.Minute)
		a.stop()
		if rec := c.record("work"); rec.Past != (record.Past{}) {
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

// wantAround checks what each run of a job knew of the ticks around its own: its tick or request, its
// attempt, and the ticks before and after.
func (c *cluster) wantAround(job string, want ...string) {
	c.t.Helper()
	clock := func(at time.Time) string {
		if at.IsZero() {
			return "none"
		}
		return at.Format(time.TimeOnly)
	}
	var got []string
	for _, r := range c.runsOf(job) {
		got = append(got, fmt.Sprintf("%s/%d: %s, %s", cmp.Or(r.Request, clock(r.Tick)), r.Attempt, clock(r.Previous), clock(r.Next)))
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("%s:\ngot  %q\nwant %q", job, got, want)
	}
}

// A run knows the last tick that succeeded, on whichever replica, and the next one; so does a manual run, which is no tick. A job
// without a record knows what has succeeded in its process, and a job whose entry is made again what has since. A singleton
// has no ticks.
func TestTicksAroundARun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		everywhere, job := here("@hourly", failsAt(2)), doing("@hourly", failsAt(2))
		a := c.start("a", everywhere, job, lead("leader"))
		until(2*time.Hour + time.Minute)
		for _, name := range []string{"here", "work"} {
			_, err := a.RunNow(c.t.Context(), name, "manual")
			c.ok(err)
		}
		a.stop()
		c.deleteEntry()
		c.start("b", everywhere, job)
		until(4*time.Hour + time.Minute)
		want := []string{"01:00:00/1: none, 02:00:00", "02:00:00/1: 01:00:00, 03:00:00", "manual/1: 01:00:00, 03:00:00",
			"03:00:00/1: none, 04:00:00", "04:00:00/1: 03:00:00, 05:00:00"}
		c.wantAround("work", want...)
		c.wantAround("here", want...)
		c.wantAround("leader", "none/1: none, none")
	})
}

func (r *replica) wanted(want string) {
	r.tap.t.Helper()
	at, err := r.NextDue(r.tap.t.Context())
	if err != nil {
		r.tap.t.Errorf("NextDue: %v", err)
	}
	got := at.UTC().Format(time.TimeOnly)
	switch {
	case at.IsZero():
		got = "never"
	case !at.After(time.Now()):
		got = "now"
	}
	if got != want {
		r.tap.t.Errorf("at %s a replica is wanted at %s, want %s", time.Now().Format(time.TimeOnly), got, want)
	}
}

// wanted checks when a new replica of some work says that one is wanted next: a time of day, "now" or "never".
func (c *cluster) wanted(want string, w ...soloist.Work) {
	c.t.Helper()
	c.replica("asks", w...).wanted(want)
}

func TestReplicaIsWantedAtNextTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		hourly, daily := work("@hourly", time.Second), named("daily", work("0 30 0 * * *", 0))
		c.wanted("00:30:00", hourly, daily)
		a := c.replica("a", hourly, daily)
		a.wake()
		until(10 * time.Minute)
		a.tap.counts()
		a.wanted("00:30:00")
		calls, orders := a.tap.countsAndOrders()
		if orders != 1 || len(calls) > 1 || calls["read"] != 2 {
			t.Errorf("it made the calls %v and %d reads of orders, want 2 and 1 reads", calls, orders)
		}
		until(30 * time.Minute)
		a.wanted("now")
		a.wake()
		a.wanted("01:00:00")
	})
}

func TestJobThatIsOverWantsNoReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 10m", time.Second)
		w.Days.Until = time.Now().Add(15 * time.Minute)
		a := c.replica("a", w, here("@every 1m", nil), leader())
		a.wanted("00:10:00")
		a.wake()
		until(10 * time.Minute)
		a.wanted("now")
		a.wake()
		a.wanted("never")
	})
}

// The entry of a job that cannot be read may be read in a minute, and has its next tick when its schedule says. The record
// that cannot be used waits for a person.
func TestReplicaIsWantedAfterTrouble(t *testing.T) {
	for name, tt := range map[string]struct {
		trouble  func(r *replica, c *cluster)
		schedule string
		want     string
	}{
		"entry":       {func(r *replica, _ *cluster) { r.tap.deny = "soloist/work" }, "0 30 0 * * *", "00:02:00"},
		"before that": {func(r *replica, _ *cluster) { r.tap.deny = "soloist/work" }, "30 1 0 * * *", "00:01:30"},
		"no answer":   {func(r *replica, _ *cluster) { r.kill() }, "0 30 0 * * *", "00:02:"},
		"orders":      {func(r *replica, _ *cluster) { r.meets(fail(errNetwork, "read document")) }, "0 30 0 * * *", "00:02:01"}, // after a second try
		"garbage":     {func(_ *replica, c *cluster) { c.createEntry("garbage") }, "0 30 0 * * *", "00:30:00"},
		"newer":       {func(_ *replica, c *cluster) { c.createEntry(`{"schema":99}`) }, "0 30 0 * * *", "00:30:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			r := c.replica("a", work(tt.schedule, 0))
			tt.trouble(r, c)
			until(time.Minute)
			at, err := r.NextDue(c.within(30 * time.Second))
			if got := at.Format(time.TimeOnly); err != nil || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// What was read of the orders a moment ago says nothing of an order that has come since: if they cannot be read now, a
// replica is wanted in a minute, although a run could still begin by what is known.
func TestReplicaIsWantedWhileOrdersCannotBeRead(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", 0)
		a := c.start("a", w)
		until(30 * time.Minute)
		a.wanted("01:00:00") // which reads the orders
		a.meets(fail(errNetwork, "read document"))
		time.Sleep(300 * time.Millisecond)
		c.order(soloist.Order{Kind: soloist.OrderRun}, w)
		at, err := a.NextDue(c.t.Context())
		if wait := time.Until(at); err != nil || wait <= 0 || wait > time.Minute {
			t.Errorf("a replica is wanted in %s, %v, though an order waits", wait, err)
		}
	})
}

var lives = flag.Int("lives", 8, "of TestNextDueFindsNothingBefore: how many apps")

// If nothing happens meanwhile, there is nothing to do before the time that NextDue named: whoever sleeps until then
// misses nothing. Random apps have pauses, followers, orders, backfills, deaths and Late.Finish.
func TestNextDueFindsNothingBefore(t *testing.T) {
	for seed := range uint64(*lives) {
		beside(t, fmt.Sprint(seed), func(t *testing.T, c *cluster) {
			l := &life{cluster: c, Rand: rand.New(rand.NewPCG(seed, 0))}
			l.draw()
			for end := time.Now().Add(30 * time.Hour); time.Now().Before(end) && !t.Failed(); {
				l.step()
			}
		})
	}
}

// A life is an app that runs only when a replica is wanted.
type life struct {
	*cluster
	*rand.Rand
	jobs []soloist.Work
	last string // what has happened last
}

// draw draws the jobs: up to three of their own, and followers of the first.
func (l *life) draw() {
	for i := range 1 + l.IntN(3) {
		j := named(fmt.Sprint("own-", i), work(pick(l, "*/30 * * * *", "@hourly", "0 */3 * * *", "@daily"), pick(l, time.Second, 5*time.Minute, 40*time.Minute)))
		j.Interrupted = pick(l, soloist.Abandon, soloist.Rerun)
		j.Late.Missed = pick(l, soloist.RunLatest, soloist.RunAll, soloist.SkipMissed)
		if j.Late.Missed == soloist.RunLatest {
			j.Overlap = pick(l, soloist.SkipOverlap, soloist.QueueOne)
		}
		j.Late.Finish = pick(l, 0, time.Minute, 2*time.Hour)
		j.Paused = l.IntN(8) == 0
		if l.IntN(3) == 0 {
			j.Do = func(context.Context, *soloist.Run) error { return errLate }
		}
		l.jobs = append(l.jobs, j)
	}
	for i := range l.IntN(3) {
		f := following(fmt.Sprint("after-", i), "own-0", pick(l, time.Second, 5*time.Minute))
		f.After.Any = l.IntN(2) == 0
		l.jobs = append(l.jobs, f)
	}
}

// step asks when a replica is wanted, and either asks again just before, and wakes one up then, or has something happen.
func (l *life) step() {
	at := l.asks()
	switch left := time.Until(at); {
	case l.IntN(4) == 0:
		if left > 0 {
			time.Sleep(time.Duration(l.Int64N(int64(max(left, time.Hour)))))
		}
		l.happens()
	case left > wantedSoon:
		time.Sleep(left - wantedDoubt)
		l.reported(at)
		if again := l.asks(); again.Before(at) {
			l.t.Errorf("at %s a replica is wanted at %s, and before that it was at %s; %s", time.Now().Format(time.DateTime), again.Format(time.TimeOnly), at.Format(time.TimeOnly), l.last)
		}
		fallthrough
	default:
		time.Sleep(time.Until(at))
		time.Sleep(time.Second)
		l.wakes()
	}
}

const (
	wantedDoubt = 2 * time.Second // by how much the time that is named may be late: dates of the service have whole seconds
	// wantedSoon is from when on a time that is named stays. Before that it may come of a live lease, which ends sooner if its
	// holder has died, or of a report of late ticks, which is a minute after the last.
	wantedSoon = time.Minute + wantedDoubt
)

// asks returns when a replica is wanted. Never is in two hours: until then nothing happens either.
func (l *life) asks() time.Time {
	at, err := l.replica("asks", l.jobs...).NextDue(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	if at.IsZero() {
		at = time.Now().Add(2 * time.Hour)
	}
	return at
}

// reported checks that each tick that is late was reported, since no replica is wanted before at.
func (l *life) reported(at time.Time) {
	all, err := l.replica("status", l.jobs...).Status(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, s := range all {
		if s.Late.Count == 0 {
			continue
		}
		if told := l.record(s.Name).Past.Late; s.Late.Count > told.Count {
			l.t.Errorf("at %s %s is late: %+v, of which %+v is reported, and a replica is wanted at %s; %s",
				time.Now().Format(time.DateTime), s.Name, s.Late, told, at.Format(time.TimeOnly), l.last)
		}
	}
}

// wakes has a replica run what is due, or die meanwhile.
func (l *life) wakes() {
	r, d := l.replica("woken", l.jobs...), pick(l, time.Hour, time.Hour, 2*time.Minute)
	if l.IntN(4) == 0 { // the lease of what it has run lasts a moment longer
		r.meets(fail(errNetwork, "release"))
	}
	if l.IntN(6) == 0 {
		l.last = "a replica dies"
		defer l.happens() // before another one takes over
		die := time.AfterFunc(time.Duration(l.Int64N(int64(time.Minute))), r.kill)
		defer die.Stop()
	} else {
		l.last = "a replica runs for " + d.String()
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	r.RunDue(ctx, soloist.Wake{}) // a death, or the end of its time, is an error
	l.last += " until " + time.Now().Format(time.TimeOnly)
}

// happens has an operator order something, which may be refused.
func (l *life) happens() {
	job := fmt.Sprint("own-", l.IntN(3))
	o := soloist.Order{Job: job, By: "anna", Kind: pick(l, soloist.OrderPause, soloist.OrderPause, soloist.OrderResume, soloist.OrderRun, soloist.OrderCancel, soloist.OrderBackfill, soloist.OrderCancelBackfill)}
	switch o.Kind {
	case soloist.OrderPause:
		o.Until = pick(l, time.Time{}, time.Now().Add(20*time.Minute), time.Now().Add(5*time.Hour))
	case soloist.OrderBackfill:
		o.Backfill = soloist.Backfill{From: time.Now().Add(-5 * time.Hour), To: time.Now().Add(-time.Hour), All: true}
	}
	_, err := l.replica("desk", l.jobs...).Order(l.t.Context(), o)
	l.last = fmt.Sprintf("%s of %s: %v", o.Kind, job, err)
}

func pick[T any](r interface{ IntN(int) int }, of ...T) T { return of[r.IntN(len(of))] }
