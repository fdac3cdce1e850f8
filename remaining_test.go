package soloist_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A Grace beyond all bounds is none: the sum with a deadline does not overflow.
func TestRemainingOfALongGrace(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var left time.Duration
		job := work("* * * * *", 0)
		job.Do = func(_ context.Context, r *soloist.Run) error { left = r.Remaining(); return nil }
		a := c.replica("a", job)
		a.Grace = math.MaxInt64
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
		defer cancel()
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(time.Minute)
		a.RunDue(ctx, soloist.Wake{})
		if left <= 0 {
			t.Errorf("a run that goes on has %s left", left)
		}
	})
}

// How long a run may go on is the least of all that ends it.
func TestRemainingIsTheLeastOfAll(t *testing.T) {
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
			t.Run(name+kind, func(t *testing.T) {
				inCluster(t, func(c *cluster) {
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
			})
		}
	}
}
