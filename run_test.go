package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

func TestRunOutcomes(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		do   func(context.Context, *soloist.Run) error
		want string
	}{
		"nil":     {func(context.Context, *soloist.Run) error { return nil }, "succeeded 00:00:10"},
		"error":   {func(context.Context, *soloist.Run) error { return boom }, "failed 00:00:10 boom"},
		"panic":   {func(context.Context, *soloist.Run) error { panic("oh") }, "failed 00:00:10 panic: oh"},
		"goexit":  {func(context.Context, *soloist.Run) error { runtime.Goexit(); return nil }, "failed 00:00:10 the job ended its goroutine (runtime.Goexit)"},
		"skip":    {func(context.Context, *soloist.Run) error { return soloist.Skip("empty") }, "skipped 00:00:10 empty"},
		"timeout": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }, "failed 00:00:10 timed out after 4s"},
		"late": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return boom },
			"failed 00:00:10 timed out after 4s: boom"},
		"in time after all": {func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return nil }, "succeeded 00:00:10 after the end of its context: timed out after 4s"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			fine := named("fine", work("@every 10s", time.Second))
			c.start("a", soloist.Job{Name: "odd", Schedule: "@every 10s", Lease: D, Timeout: 4 * time.Second, Do: tt.do}, fine)
			time.Sleep(19 * time.Second)
			c.wantOutcomes("odd", tt.want)
			if got := c.outcomes("fine"); !slices.Equal(got, []string{"succeeded 00:00:10"}) {
				t.Errorf("the other job: got %q", got)
			}
		})
	}
}

type causeTest struct {
	job     func(*soloist.Job)
	grace   time.Duration
	meet    func(c *cluster, r *replica) // a minute and a second after the start, a second into the run
	cause   error                        // nil: the context did not end before the run returned
	text    string
	outcome string // empty: not told, since another replica tells it
	after   time.Duration
}

var causes = map[string]causeTest{
	"returns": {
		job:     func(j *soloist.Job) { j.Do = func(context.Context, *soloist.Run) error { return nil } },
		outcome: "succeeded 00:01:00",
	},
	"time-out": {
		job:   func(j *soloist.Job) { j.Timeout = 10 * time.Second },
		cause: soloist.ErrTimeout, text: "timed out after 10s", outcome: "failed 00:01:00 timed out after 10s", after: 9 * time.Second,
	},
	"silence": {
		job:   func(j *soloist.Job) { j.HeartbeatTimeout = 10 * time.Second },
		cause: soloist.ErrStalled, text: "stalled: no heartbeat for 10s", outcome: "stalled 00:01:00 no heartbeat for 10s", after: 9 * time.Second,
	},
	"unhealthy": {
		job: func(j *soloist.Job) {
			j.HealthCheck.Interval, j.HealthCheck.FailureThreshold = 4*time.Second, 2
			j.HealthCheck.Check = func(context.Context) error { return errors.New("no data") }
		},
		cause: soloist.ErrStalled, text: "stalled: unhealthy 2 times in a row: no data", outcome: "stalled 00:01:00 unhealthy 2 times in a row: no data", after: 7 * time.Second,
	},
	"unhealthy once": {
		job: func(j *soloist.Job) {
			j.HealthCheck.Interval, j.HealthCheck.FailureThreshold = 4*time.Second, 1
			j.HealthCheck.Check = func(context.Context) error { return errors.New("no data") }
		},
		cause: soloist.ErrStalled, text: "stalled: unhealthy: no data", outcome: "stalled 00:01:00 unhealthy: no data", after: 3 * time.Second,
	},
	"stop without a grace": {
		meet:  func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped",
	},
	"stop with a grace": {
		grace: 5 * time.Second,
		meet:  func(_ *cluster, r *replica) { go r.stop() },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped", after: 5 * time.Second,
	},
	"stepped down": {
		meet:  func(c *cluster, r *replica) { go r.StepDown(c.t.Context(), "work") },
		cause: soloist.ErrStopped, text: "the replica is stopping", outcome: "abandoned 00:01:00 stopped",
	},
	"cut off": {
		meet:  func(_ *cluster, r *replica) { r.kill() },
		cause: store.ErrLost, text: "the lease is lost: no renewal in time", after: D - D/100 - D/6 - time.Second,
	},
	"cancelled": {
		meet: func(c *cluster, r *replica) {
			c.order(soloist.Order{Kind: store.OrderCancel, Reason: "wrong data"}, r.Jobs[0])
		},
		cause: soloist.ErrCancelled, text: "cancelled by anna: wrong data", after: 4 * time.Second,
		outcome: "cancelled 00:01:00 by anna: wrong data",
	},
	"replaced": {
		job: func(j *soloist.Job) {
			j.Overlap, j.Schedule = soloist.Replace, "0,30 1 0 * * *"
		},
		cause: soloist.ErrReplaced, text: "replaced by the tick of 2000-01-01T00:01:30Z", after: 29 * time.Second,
		outcome: "cancelled 00:01:00 replaced by the tick of 2000-01-01T00:01:30Z",
	},
	"errors that pass": {
		meet: func(_ *cluster, r *replica) {
			r.tap.meet(fail(errNetwork))
		},
		cause: store.ErrLost, text: "the lease is lost: no renewal in time", after: D - D/100 - D/6 - time.Second,
	},
	"broken": {
		meet:  func(c *cluster, r *replica) { _ = c.store.Break(c.t.Context(), "soloist/work", 0) },
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": the lease is lost`, after: D/3 - time.Second,
	},
	"deleted": {
		meet: func(c *cluster, r *replica) {
			_ = c.store.Break(c.t.Context(), "soloist/work", 0)
			_ = c.store.Delete(c.t.Context(), "soloist/work")
		},
		cause: store.ErrLost, text: `the lease is lost: renew the lease of "soloist/work": file does not exist`, after: D/3 - time.Second,
	},
}

// Every end of a context has its cause, which the record and the run's own
// methods tell as well.
func TestRunCauses(t *testing.T) {
	for name, test := range causes {
		inCase(t, name, func(t *testing.T, c *cluster) {
			var heart, check error
			var cause error
			var left time.Duration
			var ended time.Time
			job := soloist.Job{Name: "work", Schedule: "0 1 0 * * *", Lease: D}
			job.Do = func(ctx context.Context, run *soloist.Run) error {
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
			}
			if test.job != nil {
				test.job(&job)
			}
			r := c.replica("a", job)
			r.Grace = test.grace
			c.launch(r)
			time.Sleep(time.Minute + time.Second)
			met := time.Now()
			if test.meet != nil {
				test.meet(c, r)
			}
			time.Sleep(time.Minute)
			c.stopAll()
			if !errors.Is(cause, test.cause) || test.cause == nil && cause != nil || cause != nil && cause.Error() != test.text {
				t.Errorf("the cause is %q, want %q", cause, test.text)
			}
			if test.cause != nil {
				if got := ended.Sub(met); got < test.after-aheadOf || got > test.after+time.Second { // the lease was acquired before the tick
					t.Errorf("ended after %s, want %s", got, test.after)
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
		shown := false
		for _, test := range causes {
			if test.cause == nil || !errors.Is(test.cause, sentinels[row[1]]) {
				continue
			}
			outcome, _, _ := strings.Cut(test.outcome, " ")
			if outcome == "" {
				outcome = "written by the replica that takes over"
			}
			if shown = true; outcome != row[2] {
				t.Errorf("%s: the page says %q, the test %q", row[1], row[2], outcome)
			}
		}
		if !shown {
			t.Errorf("no test shows %s", row[1])
		}
	}
}

// The methods of an error that Do returns may panic: it is the run that fails.
func TestErrorThatPanicsFailsRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job, here := work("@every 1m", 0), work("@every 1m", 0)
		job.Retry.MaxTries, job.Retry.Backoff = 2, time.Second
		job.Do = func(context.Context, *soloist.Run) error { var f *faulty; return f }
		here.Name, here.EveryReplica, here.Lease, here.Do = "here", true, 0, job.Do
		a := c.start("a", job, here)
		time.Sleep(90 * time.Second)
		if r := c.record("work"); r.Run.Status != store.Failed || !strings.Contains(r.Run.Error, "panic") {
			t.Errorf("the record says %s %q", r.Run.Status, r.Run.Error)
		}
		if len(a.log.lines("run ended", "job=here", "outcome=failed")) == 0 {
			t.Error("the job that runs everywhere has not failed")
		}
	})
}

type faulty struct{ text string }

func (f *faulty) Error() string { return f.text }

// failing returns a job that fails n times, with err, and then does not.
func failing(n int, err error) soloist.Job {
	return soloist.Job{Name: "work", Schedule: "@every 1h", Lease: D, Retry: soloist.Retry{MaxTries: 4, Backoff: 10 * time.Second},
		Do: func(_ context.Context, run *soloist.Run) error {
			if run.Try <= n {
				return err
			}
			return nil
		}}
}

func TestTries(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		job     soloist.Job
		pauses  [][2]time.Duration // the shortest and the longest before each further try
		outcome string
	}{
		"once is enough":  {failing(0, boom), nil, "succeeded 01:00:00"},
		"again":           {failing(2, boom), [][2]time.Duration{{5 * time.Second, 10 * time.Second}, {10 * time.Second, 20 * time.Second}}, "succeeded 01:00:00"},
		"until none left": {failing(9, boom), [][2]time.Duration{{5 * time.Second, 10 * time.Second}, {10 * time.Second, 20 * time.Second}, {20 * time.Second, 40 * time.Second}}, "failed 01:00:00 boom"},
		"permanent":       {failing(9, fmt.Errorf("wrapped: %w", soloist.Permanent(boom))), nil, "failed 01:00:00 wrapped: boom"},
		"skip":            {failing(9, soloist.Skip("empty")), nil, "skipped 01:00:00 empty"},
		"told when":       {failing(1, soloist.RetryAfter(boom, time.Minute)), [][2]time.Duration{{time.Minute, time.Minute}}, "succeeded 01:00:00"},
		"nothing wrong":   {failing(9, errors.Join(soloist.Permanent(nil), soloist.RetryAfter(nil, 1))), nil, "succeeded 01:00:00"},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.start("a", tt.job)
			c.start("b", tt.job)
			time.Sleep(time.Hour + 5*time.Minute)
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
			c.wantOutcomes("work", tt.outcome)
		})
	}
}

func TestEachTryHasItsTimeout(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", soloist.Job{Name: "work", Schedule: "@every 1h", Lease: D, Retry: soloist.Retry{MaxTries: 2}, Timeout: time.Minute,
			Do: func(ctx context.Context, _ *soloist.Run) error { <-ctx.Done(); return ctx.Err() }})
		time.Sleep(time.Hour + 5*time.Minute)
		runs := c.all()
		if len(runs) != 2 || runs[1].end.Sub(runs[1].start) != time.Minute || !errors.Is(runs[1].cause, soloist.ErrTimeout) {
			t.Errorf("got %+v", runs)
		}
	})
}

func TestStopBetweenTriesIsNoFailure(t *testing.T) {
	for policy, want := range map[soloist.InterruptedPolicy][]string{
		soloist.Abandon: {"abandoned 01:00:00 stopped after try 1: boom"},
		soloist.Rerun:   {"succeeded 01:00:00"},
	} {
		inCluster(t, func(c *cluster) {
			job := failing(1, errors.New("boom"))
			job.Interrupted = policy
			a := c.start("a", job)
			time.Sleep(time.Hour + 2*time.Second)
			begin := time.Now()
			a.stop()
			if took := time.Since(begin); took > time.Second {
				t.Errorf("it stopped after %s", took)
			}
			job = failing(0, nil)
			job.Interrupted = policy
			c.start("b", job)
			time.Sleep(time.Minute)
			if got := c.outcomes("work"); !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", policy, got, want)
			}
		})
	}
}

func TestLostLeaseEndsTries(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := failing(9, soloist.RetryAfter(errors.New("boom"), 4*time.Minute))
		a := c.start("a", job)
		time.Sleep(time.Hour + time.Second)
		a.kill()
		time.Sleep(10 * time.Minute)
		if got := c.all(); len(got) != 1 {
			t.Errorf("%d tries without a lease", len(got)-1)
		}
	})
}

// A Backoff so long that its double does not fit a time.Duration counts as the
// longest pause.
func TestLongBackoffIsLimited(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@hourly", 0)
		job.Retry.MaxTries, job.Retry.Backoff = 4, math.MaxInt64
		job.Do = func(context.Context, *soloist.Run) error { return errors.New("no") }
		c.start("a", job)
		time.Sleep(90 * time.Minute)
		c.wantRuns(4)
	})
}

// A machine that is suspended before a further try must not begin it when it
// goes on without its lease.
func TestNoTryWithoutLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var asleep atomic.Int64
		begin := time.Now()
		job := work("@every 1m", 0)
		job.Lease, job.Retry.MaxTries, job.Retry.Backoff = D, 2, 300*time.Millisecond
		job.Do = func(_ context.Context, run *soloist.Run) error {
			time.AfterFunc(50*time.Millisecond, func() { asleep.Add(int64(2 * D)) }) // in the pause, while all that keeps the lease is at rest
			return errors.New("failed")
		}
		a := c.replica("a", job)
		a.Elapsed = func() time.Duration { return time.Since(begin) + time.Duration(asleep.Load()) }
		c.launch(a)
		time.Sleep(time.Minute + 5*time.Second)
		c.wantRuns(1)
	})
}

// Each line of a run's own log names the run.
func TestLinesOfRunNameIt(t *testing.T) {
	says := func(_ context.Context, run *soloist.Run) error {
		run.Log.Info("at work")
		return nil
	}
	job := work("0 * * * *", D)
	job.Do = says
	inCluster(t, func(c *cluster) {
		a := c.start("a", job, soloist.Singleton{Name: "lead", Lease: D, Do: func(ctx context.Context, run *soloist.Run) error {
			_ = says(ctx, run)
			<-ctx.Done()
			return nil
		}})
		time.Sleep(time.Hour + time.Second)
		if _, err := a.RunNow(c.t.Context(), "work", "ticket-7"); err != nil {
			c.t.Fatal(err)
		}
		a.stop()
		lines := a.log.lines("at work")
		for i, want := range [][]string{
			{"job=lead", "token="},
			{"job=work", "tick=2000-01-01T01:00:00Z", "attempt=1", "token="},
			{"job=work", "tick=2000-01-01T01:00:01Z", "request=ticket-7", "token="},
		} {
			for _, part := range want {
				if i >= len(lines) || !strings.Contains(lines[i], part) {
					c.t.Fatalf("line %d of %q lacks %s", i, lines, part)
				}
			}
		}
		if strings.Contains(lines[0], "tick=") {
			c.t.Errorf("a singleton has no tick: %s", lines[0])
		}
	})
}

// aheadOf is how long before a tick its lease is acquired, at most: the trust counts from then.
const aheadOf = 2 * time.Second

// Remaining tells how long a run may go on for sure: for so long does it go on if
// no renewal succeeds any more.
func TestRemainingIsKept(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0:               D - D/100 - D/6,
		5 * time.Second: 5 * time.Second,
		time.Hour:       D - D/100 - D/6,
	} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", D)
			job.Timeout = timeout
			var r *replica
			var left, took time.Duration
			job.Do = func(ctx context.Context, run *soloist.Run) error {
				r.tap.cut.Store(true)
				asked := time.Now()
				left = run.Remaining()
				<-ctx.Done()
				took = time.Since(asked)
				return nil
			}
			r = c.replica("a", job)
			c.launch(r)
			time.Sleep(time.Hour + time.Minute)
			c.stopAll()
			if left != took || left > want || left < want-aheadOf {
				c.t.Errorf("with a time-out of %s: %s remain and the run took %s, want %s", timeout, left, took, want)
			}
		})
	}
}

// A Grace beyond all bounds is none: the sum with a deadline does not overflow.
func TestRemainingWithLongGrace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var left time.Duration
		job := doing("* * * * *", func(_ context.Context, r *soloist.Run) error { left = r.Remaining(); return nil })
		a := c.replica("a", job)
		a.Grace = math.MaxInt64
		ctx := c.within(2 * time.Minute)
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(time.Minute)
		a.RunDue(ctx, soloist.Wake{})
		if left <= 0 {
			t.Errorf("a run that goes on has %s left", left)
		}
	})
}

// How long a run may go on is the least of all that ends it.
func TestRemainingIsTheLeast(t *testing.T) {
	const grace, longest = 4 * time.Second, time.Duration(math.MaxInt64)
	for name, test := range map[string]struct {
		timeout  time.Duration // of the job
		deadline time.Duration // of the caller's context, from the call on
		stop     time.Duration // of the caller, from the start of the run on
	}{
		"nothing but the lease": {},
		"a time-out":            {timeout: 5 * time.Second},
		"a deadline":            {deadline: 3 * time.Second},
		"a deadline, after it":  {deadline: 1500 * time.Millisecond},
		"a deadline and a stop": {deadline: 30 * time.Second, stop: 250 * time.Millisecond},
		"a stop":                {stop: 250 * time.Millisecond},
		"a time-out and a stop": {timeout: 2 * time.Second, stop: 250 * time.Millisecond},
		"a stop to come":        {stop: 2 * time.Second},
	} {
		for _, everywhere := range []bool{false, true} {
			kind := ", with a lease"
			if everywhere {
				kind = ", everywhere"
			}
			inCase(t, name+kind, func(t *testing.T, c *cluster) {
				ctx, cancel := context.WithCancel(c.t.Context())
				defer cancel()
				if test.deadline > 0 {
					var release func()
					ctx, release = context.WithTimeout(ctx, test.deadline)
					defer release()
				}
				job := work("@hourly", 0)
				job.Timeout, job.EveryReplica, job.Lease = test.timeout, everywhere, time.Minute
				if everywhere {
					job.Lease = 0
				}
				ran := false
				job.Do = func(_ context.Context, r *soloist.Run) error {
					ran = true
					begin := time.Now()
					if test.stop > 0 {
						time.AfterFunc(test.stop, cancel)
					}
					time.Sleep(time.Second)
					want, least := longest, longest
					if test.timeout > 0 {
						want = time.Until(begin.Add(test.timeout))
					}
					if at, ok := ctx.Deadline(); ok {
						want = min(want, time.Until(at)+grace)
					}
					if test.stop > 0 && test.stop < time.Second {
						want = min(want, time.Until(begin.Add(test.stop))+grace)
					}
					if want == longest && !everywhere {
						want, least = time.Minute, 45*time.Second
					}
					if got := r.Remaining(); got > want || got < min(want, least) {
						t.Errorf("got %s, want %s", got, want)
					}
					return nil
				}
				a := c.replica("a", job)
				a.Grace = grace
				if a.RunNow(ctx, "work", "x"); !ran {
					t.Error("it did not run")
				}
			})
		}
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

func TestSingletonThatEndsRunsAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		hasty := soloist.Singleton{Name: "lead", Lease: D, Backoff: 10 * time.Second,
			Do: func(context.Context, *soloist.Run) error { return errors.New("no connection") }}
		c.start("a", hasty)
		time.Sleep(65 * time.Second)
		c.succession(7)
		if got := c.record("lead"); got.Run.Status != store.Failed || got.Run.Error != "no connection" || got.Counts[store.Failed] != 7 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSingletonAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := leader()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		backend := &local.Memory{}
		if err := s.Run(ctx, backend); err != nil {
			t.Errorf("Run: %v", err)
		}
		if e, err := backend.Read(t.Context(), "soloist/lead"); err != nil || e.State != store.Available {
			t.Errorf("got %+v, %v", e, err)
		}
		if err := s.Run(t.Context(), nil); err == nil {
			t.Error("a nil store is no error")
		}
	})
}
