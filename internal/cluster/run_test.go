package cluster_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A run whose function panics, ends its goroutine, or returns an error whose text panics has failed, with a lease and on each
// replica. Other jobs go on.
func TestOddEndsAreFailures(t *testing.T) {
	for reason, do := range map[string]func(context.Context, *soloist.Run) error{
		"boom":      func(context.Context, *soloist.Run) error { return errors.New("boom") },
		"panic: oh": func(context.Context, *soloist.Run) error { panic("oh") },
		"panic":     func(context.Context, *soloist.Run) error { var f *faulty; return f },
		"the job ended its goroutine (runtime.Goexit)": func(context.Context, *soloist.Run) error { runtime.Goexit(); return nil },
	} {
		inCase(t, reason, func(t *testing.T, c *cluster) {
			a := c.replica("a", doing("@every 10s", do), here("@every 10s", do), named("fine", work("@every 10s", time.Second)))
			book := a.tells()
			c.launch(a)
			time.Sleep(19 * time.Second)
			for _, job := range []string{"work", "here"} {
				e := book.only(t, job, event.Ended)
				if o := e.Outcome; o.Status != event.Failed || !strings.Contains(o.Reason, reason) || e.Run.Tick.IsZero() {
					t.Errorf("%s: got %+v", job, e)
				}
			}
			c.wantOutcomes("fine", "succeeded 00:00:10")
		})
	}
}

type faulty struct{ text string }

func (f *faulty) Error() string { return f.text }

type causeTest struct {
	job     func(*soloist.Job)
	grace   time.Duration
	meet    func(c *cluster, r *replica) // a minute and a second after the start, a second into the run
	cause   error                        // nil: the context did not end before the run returned
	text    string
	outcome string // empty: not told, since another replica tells it
	after   time.Duration

	foreseen bool // Remaining says when
}

var causes = map[string]causeTest{
	"returns": {
		job:     func(j *soloist.Job) { j.Do = func(context.Context, *soloist.Run) error { return nil } },
		outcome: "succeeded 00:01:00",
	},
	"time-out": {
		job:   func(j *soloist.Job) { j.Timeout = 10 * time.Second },
		cause: soloist.ErrTimeout, text: "timed out after 10s", outcome: "failed 00:01:00 timed out after 10s",
		after: 9 * time.Second, foreseen: true,
	},
	"silence": {
		job:   func(j *soloist.Job) { j.HeartbeatTimeout = 10 * time.Second },
		cause: soloist.ErrStalled, text: "stalled: no heartbeat for 10s", outcome: "stalled 00:01:00 no heartbeat for 10s", after: 9 * time.Second,
	},
	"unhealthy": {
		job:   func(j *soloist.Job) { j.HealthCheck = ill(2) },
		cause: soloist.ErrStalled, text: "stalled: unhealthy 2 times in a row: no data",
		outcome: "stalled 00:01:00 unhealthy 2 times in a row: no data", after: 7 * time.Second,
	},
	"unhealthy once": {
		job:   func(j *soloist.Job) { j.HealthCheck = ill(1) },
		cause: soloist.ErrStalled, text: "stalled: unhealthy: no data", outcome: "stalled 00:01:00 unhealthy: no data", after: 3 * time.Second,
	},
	"stop without a grace": {meet: func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: stopping, outcome: stopped},
	"stop with a grace": {meet: func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: stopping, outcome: stopped, grace: 5 * time.Second, after: 5 * time.Second},
	"stepped down": {meet: func(c *cluster, r *replica) { go r.StepDown(c.t.Context(), "work") },
		cause: soloist.ErrStopped, text: stopping, outcome: stopped},
	"cut off": {meet: func(_ *cluster, r *replica) { r.kill() },
		cause: store.ErrLost, text: unrenewed, after: trusted, foreseen: true},
	"errors that pass": {meet: func(_ *cluster, r *replica) { r.meets(fail(errNetwork)) },
		cause: store.ErrLost, text: unrenewed, after: trusted, foreseen: true},
	"broken": {
		meet:  func(c *cluster, _ *replica) { c.breakLease() },
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": the lease is lost`, after: D/3 - time.Second,
	},
	"deleted": {
		meet:  func(c *cluster, _ *replica) { c.breakLease(); c.deleteEntry() },
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": file does not exist`, after: D/3 - time.Second,
	},
	"cancelled": {
		meet: func(c *cluster, r *replica) {
			c.order(soloist.Order{Kind: soloist.OrderCancel, Reason: "wrong data"}, r.Jobs[0])
		},
		cause: soloist.ErrCancelled, text: "cancelled by anna: wrong data", after: 4 * time.Second,
		outcome: "cancelled 00:01:00 by anna: wrong data",
	},
	"replaced": {
		job:   func(j *soloist.Job) { j.Overlap, j.Schedule = soloist.Replace, "0,30 1 0 * * *" },
		cause: soloist.ErrReplaced, text: "replaced by the tick of 2000-01-01T00:01:30Z", after: 29 * time.Second,
		outcome: "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:01:30Z",
	},
}

const (
	stopping, stopped = "the replica is stopping", "abandoned 00:01:00 stopped"
	unrenewed         = "the lease is lost: no renewal in time"
	trusted           = D - D/100 - D/6 - time.Second
)

// ill is a check that fails always; the run is unhealthy after so many times.
func ill(times int) soloist.HealthCheck {
	no := func(context.Context) error { return errors.New("no data") }
	return soloist.HealthCheck{Interval: 4 * time.Second, FailureThreshold: times, Check: no}
}

// Every end of a context has its cause, which the record and the run's own
// methods tell as well. Remaining is for how long a run may go on for sure.
func TestRunCauses(t *testing.T) {
	for name, test := range causes {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var heart, check error
			var cause error
			var left time.Duration
			var ended time.Time
			job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				if err := run.Heartbeat("at work"); err != nil {
					t.Errorf("Heartbeat: %v", err)
				}
				if run.Tick.Second() > 0 { // what comes after a run that was replaced
					return soloist.Skip("")
				}
				<-ctx.Done()
				ended, cause, left = time.Now(), context.Cause(ctx), run.Remaining()
				heart, check = run.Heartbeat("too late"), run.Check(context.Background())
				return ctx.Err()
			})
			if test.job != nil {
				test.job(&job)
			}
			r := c.graceful(test.grace, job, "a")["a"]
			time.Sleep(time.Minute + time.Second)
			met := time.Now()
			if test.meet != nil {
				test.meet(c, r)
			}
			promised := c.all()[0].Remaining()
			time.Sleep(time.Minute)
			c.stopAll()
			if !errors.Is(cause, test.cause) || test.cause == nil && cause != nil || cause != nil && cause.Error() != test.text {
				t.Errorf("the cause is %q, want %q", cause, test.text)
			}
			if test.cause != nil {
				if got := ended.Sub(met); got < test.after-aheadOf || got > test.after+time.Second { // the lease was acquired before the tick
					t.Errorf("ended after %s, want %s", got, test.after)
				}
				if got := ended.Sub(met); test.foreseen && got != promised {
					t.Errorf("ended after %s, and Remaining said %s", got, promised)
				}
				if heart != cause || check != cause || left != 0 {
					t.Errorf("Heartbeat says %v, Check %v, Remaining %s", heart, check, left)
				}
			}
			if test.outcome == "" {
				return
			}
			if got := c.outcomes("work"); got[0] != test.outcome || len(got) > 1 && !errors.Is(cause, soloist.ErrReplaced) {
				t.Errorf("got %q, want %q", got, test.outcome)
			}
		})
	}
}

// The page's table names each cause with the outcome that the tests show.
func TestPageTellsEachCause(t *testing.T) {
	sentinels := map[string]error{"ErrLost": store.ErrLost, "ErrStalled": soloist.ErrStalled,
		"ErrTimeout": soloist.ErrTimeout, "ErrCancelled": soloist.ErrCancelled, "ErrReplaced": soloist.ErrReplaced, "ErrStopped": soloist.ErrStopped}
	rows := regexp.MustCompile("(?m)^\\| `(Err[A-Z][a-z]+)` \\|.*\\| ([a-z ]+) \\|$").FindAllStringSubmatch(readPage(t, "docs/runs.md"), -1)
	if len(rows) != len(sentinels) {
		t.Errorf("%d rows, want %d", len(rows), len(sentinels))
	}
	for _, row := range rows {
		var shown []string
		for _, test := range causes {
			if test.cause != nil && errors.Is(test.cause, sentinels[row[1]]) {
				outcome, _, _ := strings.Cut(test.outcome, " ")
				shown = append(shown, cmp.Or(outcome, "written by the replica that takes over"))
			}
		}
		if shown = slices.Compact(shown); !slices.Equal(shown, row[2:]) {
			t.Errorf("%s: the page says %q, the tests %q", row[1], row[2], shown)
		}
	}
}

// failing returns a job that fails n times, with err, and then does not.
func failing(n int, err error) soloist.Job {
	job := doing("@every 1h", func(_ context.Context, run *soloist.Run) error {
		if run.Try <= n {
			return err
		}
		return nil
	})
	job.Retry = soloist.Retry{MaxTries: 4, Backoff: 10 * time.Second}
	return job
}

func TestTries(t *testing.T) {
	boom := errors.New("boom")
	slow, patient, over := leased(D, work("@every 1h", time.Hour)), failing(9, boom), failing(9, boom)
	slow.Retry.MaxTries, slow.Timeout = 2, time.Minute // of each try
	patient.Retry.Backoff = math.MaxInt64              // its double is no time.Duration
	over.Retry.Backoff = 2 * time.Hour                 // its replica stops in the pause
	const s, m, failed = time.Second, time.Minute, "failed 01:00:00 boom"
	for name, tt := range map[string]struct {
		job     soloist.Job
		pauses  [][2]time.Duration // the shortest and the longest before each further try
		outcome string
	}{
		"once is enough":  {failing(0, boom), nil, "succeeded 01:00:00"},
		"again":           {failing(2, boom), [][2]time.Duration{{5 * s, 10 * s}, {10 * s, 20 * s}}, "succeeded 01:00:00"},
		"until none left": {failing(9, boom), [][2]time.Duration{{5 * s, 10 * s}, {10 * s, 20 * s}, {20 * s, 40 * s}}, failed},
		"after long":      {patient, slices.Repeat([][2]time.Duration{{150 * s, 5 * m}}, 3), failed},
		"permanent":       {failing(9, fmt.Errorf("wrapped: %w", soloist.Permanent(boom))), nil, "failed 01:00:00 wrapped: boom"},
		"skip":            {failing(9, soloist.Skip("empty")), nil, "skipped 01:00:00 empty"},
		"told when":       {failing(1, soloist.RetryAfter(boom, m)), [][2]time.Duration{{m, m}}, "succeeded 01:00:00"},
		"nothing wrong":   {failing(9, errors.Join(soloist.Permanent(nil), soloist.RetryAfter(nil, 1))), nil, "succeeded 01:00:00"},
		"timed out":       {slow, [][2]time.Duration{{5 * s, 10 * s}}, "failed 01:00:00 timed out after 1m0s"},
		"stopped":         {over, nil, "abandoned 01:00:00 stopped after try 1: boom"}, // which is no failure
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.startAll(tt.job, "a", "b")
			time.Sleep(time.Hour + 2*s)
			if name == "stopped" {
				c.stopAll()
			}
			time.Sleep(20 * m)
			runs := c.all()
			if len(runs) != len(tt.pauses)+1 {
				t.Fatalf("%d tries, want %d", len(runs), len(tt.pauses)+1)
			}
			for i, limits := range tt.pauses {
				pause := runs[i+1].start.Sub(runs[i].end)
				if pause < limits[0] || pause > limits[1] {
					t.Errorf("the pause before try %d is %s, want %s to %s", i+2, pause, limits[0], limits[1])
				}
				if runs[i+1].Try != i+2 || runs[i+1].Token != runs[i].Token || runs[i+1].replica != runs[i].replica {
					t.Errorf("try %d: got %+v", i+2, runs[i+1].Run)
				}
			}
			for _, r := range runs {
				if took := r.end.Sub(r.start); took != tt.job.Timeout {
					t.Errorf("a try took %s", took)
				}
			}
			c.wantOutcomes("work", tt.outcome)
		})
	}
}

// A machine that is suspended before a further try must not begin it when it
// goes on without its lease.
func TestNoTryWithoutLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		job := doing("@every 1m", func(context.Context, *soloist.Run) error {
			// In the pause, while all that keeps the lease is at rest.
			time.AfterFunc(50*time.Millisecond, func() { machine.slept.Add(int64(2 * D)) })
			return errors.New("failed")
		})
		job.Retry.MaxTries, job.Retry.Backoff = 2, 300*time.Millisecond
		c.launch(c.replica("a", job).on(&machine))
		time.Sleep(time.Minute + 5*time.Second)
		c.wantRuns(1)
	})
}

// Each line of a run's own log names the run.
func TestLinesOfRunNameIt(t *testing.T) {
	inCluster(t, func(c *cluster) {
		says := func(_ context.Context, run *soloist.Run) error { run.Log.Info("at work"); return nil }
		a := c.start("a", doing("0 * * * *", says), soloist.Singleton{Name: "lead", Lease: D, Backoff: 2 * time.Hour, Do: says})
		time.Sleep(time.Hour + time.Second)
		if _, err := a.RunNow(c.t.Context(), "work", "ticket-7"); err != nil {
			t.Fatal(err)
		}
		a.stop()
		a.wantLines(1, "at work", "job=lead", "token=")
		a.wantLines(0, "at work", "job=lead", "tick=") // it has none
		a.wantLines(1, "at work", "job=work", "tick=2000-01-01T01:00:00Z", "attempt=1", "token=")
		a.wantLines(1, "at work", "job=work", "tick=2000-01-01T01:00:01Z", "request=ticket-7", "token=")
	})
}

// aheadOf is how long before a tick its lease is acquired, at most: the trust counts from then.
const aheadOf = 2 * time.Second

// How long a run may go on is the least of all that ends it: its time-out, the deadline of its caller, and a stop.
func TestRemainingIsTheLeast(t *testing.T) {
	const s, stop, grace, longest = time.Second, 250 * time.Millisecond, 4 * time.Second, time.Duration(math.MaxInt64)
	for name, tt := range map[string]struct {
		timeout, deadline, stop, grace time.Duration
		want                           time.Duration // a second after the start
	}{
		"nothing":               {want: longest},
		"a time-out":            {timeout: 5 * s, want: 4 * s},
		"a deadline":            {deadline: 3 * s, grace: grace, want: 2*s + grace},
		"a deadline, after it":  {deadline: s / 2, grace: grace, want: grace - s/2},
		"a deadline and a stop": {deadline: 30 * s, stop: stop, grace: grace, want: stop + grace - s},
		"a stop":                {stop: stop, grace: grace, want: stop + grace - s},
		"a time-out and a stop": {timeout: 2 * s, stop: stop, grace: grace, want: s},
		"a stop to come":        {stop: 2 * s, grace: grace, want: longest},
		"a grace without end":   {deadline: 3 * s, grace: longest, want: longest},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			caller := c.t.Context()
			if tt.deadline > 0 {
				caller = c.within(tt.deadline)
			}
			ctx, cancel := context.WithCancel(caller)
			defer cancel()
			var got time.Duration
			job := here("@hourly", func(_ context.Context, r *soloist.Run) error {
				if tt.stop > 0 {
					time.AfterFunc(tt.stop, cancel)
				}
				time.Sleep(s)
				got = r.Remaining()
				return nil
			})
			job.Timeout = tt.timeout
			a := c.replica("a", job)
			a.Grace = tt.grace
			if a.RunNow(ctx, "here", "x"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// A run of which no scheduler knows, as in a test of the work alone.
func TestRunOfNoScheduler(t *testing.T) {
	run := &soloist.Run{Job: "work"}
	if err := errors.Join(run.Heartbeat("x"), run.Check(t.Context())); err != nil || run.Remaining() < time.Hour {
		t.Errorf("got %v, %s", err, run.Remaining())
	}
	if run.Save(t.Context(), 1) == nil || run.Load(t.Context(), new(int)) == nil {
		t.Error("it has a checkpoint")
	}
}

// A singleton that ends runs again after its Backoff. One that has stalled rests as long, and never less than the others need
// to take over.
func TestSingletonRests(t *testing.T) {
	fails, stalls := leader(), beating(time.Second, 0, true)
	stalls.HeartbeatTimeout, fails.Do = time.Second, func(context.Context, *soloist.Run) error { return errors.New("no connection") }
	for name, tt := range map[string]struct {
		lead          soloist.Singleton
		backoff, want time.Duration
		status        event.Status
	}{
		"failed":        {fails, 10 * time.Second, 10 * time.Second, event.Failed},
		"stalled":       {stalls, 5 * time.Minute, 5 * time.Minute, event.Stalled},
		"stalled, soon": {stalls, time.Millisecond, 1500 * time.Millisecond, event.Stalled},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			tt.lead.Backoff = tt.backoff
			c.start("a", tt.lead)
			for range 8 {
				time.Sleep(tt.want + 3*time.Second)
			}
			runs := c.all()
			for i := 1; i < len(runs); i++ {
				if got := runs[i].start.Sub(runs[i-1].end); got < tt.want || got > tt.want+time.Second {
					t.Fatalf("it rests %s", got)
				}
			}
			if got := c.record("lead"); len(runs) < 7 || got.Counts[tt.status] < 6 {
				t.Errorf("%d terms: %v", len(runs), got.Counts)
			}
		})
	}
}

// A run that needs more time than any call has is not called for ever.
func TestTickTooLongForCallsIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", rerun(work("@daily", 30*time.Minute)))
		a.wake()
		time.Sleep(24 * time.Hour)
		for range 8 {
			if _, err := a.RunDue(c.within(10*time.Minute), soloist.Wake{}); err != nil && !strings.Contains(err.Error(), "deadline") {
				t.Error(err)
			}
		}
		c.wantOutcomes("work", "abandoned 00:00:00 out of time, stopped")
		c.wantRuns(5)
	})
}
