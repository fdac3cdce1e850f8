package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

func TestRunNow(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Second)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		before := c.record("work")
		outcome, err := a.RunNow(c.t.Context(), "work", "request-1")
		if err != nil || outcome.Status != store.Succeeded || outcome.Request != "request-1" || outcome.Replica != "a" {
			t.Errorf("got %+v, %v", outcome, err)
		}
		run := c.all()[len(c.all())-1]
		if run.ID() != "work@request-1" || run.Request != "request-1" || run.Token <= before.Token {
			t.Errorf("got %+v", run.Run)
		}
		after := c.record("work")
		if !after.Watermark.Equal(before.Watermark) || after.Counts[store.Succeeded] != before.Counts[store.Succeeded] {
			t.Errorf("a run by hand counts as a tick: %+v", after)
		}
		// Once more, here and elsewhere: it is known.
		for _, r := range []*replica{a, b} {
			if again, err := r.RunNow(c.t.Context(), "work", "request-1"); err != nil || again.Status != store.Succeeded || again.Token != outcome.Token {
				t.Errorf("%s: got %+v, %v", r.Replica, again, err)
			}
		}
		time.Sleep(time.Hour)
		want := []string{"succeeded 01:00:00", "succeeded 01:01:00", "succeeded 02:00:00"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if n := len(c.all()); n != 3 {
			t.Errorf("%d runs", n)
		}
	})
}

// While the job runs, nobody runs it by hand, and a tick that comes due under a
// run by hand is skipped.
func TestRunNowBesideATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("0 * * * *", 10*time.Minute)
		a, b := c.start("a", job), c.start("b", job)
		time.Sleep(time.Hour + time.Minute)
		for _, r := range []*replica{a, b} {
			if _, err := r.RunNow(c.t.Context(), "work", "now"); !errors.Is(err, store.ErrHeld) {
				t.Errorf("%s: got %v", r.Replica, err)
			}
		}
		time.Sleep(55 * time.Minute) // 01:56
		if outcome, err := b.RunNow(c.t.Context(), "work", "now"); err != nil || outcome.Status != store.Succeeded {
			t.Errorf("got %+v, %v", outcome, err)
		}
		time.Sleep(time.Minute)
		want := []string{"succeeded 01:00:00", "succeeded 01:56:00", "skipped 02:00:00 overlap"}
		if got := c.outcomes("work"); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		disjoint(t, c.all())
	})
}

// One whose runner dies is abandoned, under either policy, and no tick of the
// job is touched by that.
func TestRunNowAndItsRunnerDies(t *testing.T) {
	for _, policy := range []soloist.InterruptedPolicy{soloist.Abandon, soloist.Rerun} {
		inCluster(t, func(c *cluster) {
			job := work("0 * * * *", 5*time.Minute)
			job.Interrupted = policy
			a, b := c.start("a", job), c.start("b", job)
			time.Sleep(90 * time.Minute)
			ctx, cancel := context.WithCancel(c.t.Context())
			done := make(chan struct{})
			go func() { defer close(done); a.RunNow(ctx, "work", "now") }()
			defer func() { cancel(); <-done }()
			time.Sleep(time.Minute)
			a.kill()
			time.Sleep(29*time.Minute + 10*time.Minute)
			want := []string{"succeeded 01:00:00", "abandoned 01:30:00 its runner died", "succeeded 02:00:00"}
			if got := c.outcomes("work"); !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", policy, got, want)
			}
			if outcome, err := b.RunNow(c.t.Context(), "work", "now"); err != nil || outcome.Status != store.Abandoned {
				t.Errorf("got %+v, %v", outcome, err)
			}
		})
	}
}

// A run by hand never has the id of a tick.
func TestRunNowRefusesTheNameOfATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		everywhere := here("@hourly", nil)
		a := c.start("a", work("0 * * * *", 0), everywhere)
		time.Sleep(90 * time.Minute)
		tick := c.all()[0].ID()
		for _, job := range []string{"work", "here"} {
			for request, taken := range map[string]bool{"2000-01-01T01:00:00Z": false, "2000-01-01T02:00:00Z": false, "2000-01-01T01:00:00.5Z": true, "2000-01-01T01:00:00-05:00": true, "2000-01-01": true, "by-2000-01-01T01:00:00Z": true} {
				outcome, err := a.RunNow(c.t.Context(), job, request)
				if taken != (err == nil) || taken != (outcome.Request == request) {
					t.Errorf("%s: %s: got %+v, %v", job, request, outcome, err)
				}
				if !taken && (err == nil || !strings.Contains(err.Error(), request) || !strings.Contains(err.Error(), "tick")) {
					t.Errorf("%s: %s: got %v, want why", job, request, err)
				}
			}
		}
		for _, r := range c.all() {
			if r.Request != "" && r.ID() == tick {
				t.Errorf("a run by hand has the id %s", tick)
			}
		}
	})
}

func TestRunNowRefuses(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", 0), leader())
		for _, try := range [][2]string{{"nobody", "x"}, {"lead", "x"}, {"work", ""}, {"work", "a b"}, {"work", "\x00"}} {
			if _, err := a.RunNow(c.t.Context(), try[0], try[1]); err == nil {
				t.Errorf("%q is taken", try)
			}
		}
		a.kill()
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		if _, err := a.RunNow(ctx, "work", "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with the store out of reach: %v", err)
		}
	})
}

// A job that is paused, one of which a tick is open, and one that is everywhere.
func TestRunNowInSpecialCases(t *testing.T) {
	inCluster(t, func(c *cluster) {
		paused, here := work("0 * * * *", 0), work("0 * * * *", 0)
		paused.Name, paused.Paused = "paused", true
		here.Name, here.EveryReplica, here.Lease = "here", true, 0
		a := c.start("a", paused, here)
		for _, name := range []string{"paused", "here"} {
			if outcome, err := a.RunNow(c.t.Context(), name, "x"); err != nil || outcome.Status != store.Succeeded {
				t.Errorf("%s: got %+v, %v", name, outcome, err)
			}
		}
		rerun := work("0 * * * *", time.Minute)
		rerun.Interrupted = soloist.Rerun
		b := c.start("b", rerun)
		time.Sleep(time.Hour + time.Second)
		b.stop() // the tick is open
		r := c.replica("r", rerun)
		if _, err := r.RunNow(c.t.Context(), "work", "x"); !errors.Is(err, store.ErrHeld) {
			t.Errorf("got %v", err)
		}
	})
}

// A run by hand that cannot end in time is not started.
func TestRunNowThatDoesNotFit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, here := work("0 * * * *", 0), work("0 * * * *", 0)
		long.Timeout, here.Timeout = time.Hour, time.Hour
		here.Name, here.EveryReplica, here.Lease = "here", true, 0
		a := c.start("a", long, here)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		for _, name := range []string{"work", "here"} {
			if _, err := a.RunNow(ctx, name, "x"); err == nil || !strings.Contains(err.Error(), "not started: it may take 1h0m0s, and this call ends in 1m0s") {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if n := len(c.all()); n != 0 {
			t.Errorf("%d runs", n)
		}
	})
}

// That the entry can be read is no reason to hurry where it cannot be written.
func TestRunNowByAReader(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", 0))
		a.RunDue(c.t.Context(), soloist.Wake{})
		a.tap.meet(func(op string, apply func() error) error {
			if op == "read" {
				return apply()
			}
			return fs.ErrPermission
		})
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
		defer cancel()
		a.tap.counts()
		if _, err := a.RunNow(ctx, "work", "x"); err == nil {
			t.Error("it ran")
		}
		if n := a.tap.counts()["acquire"]; n > 300 {
			t.Errorf("%d calls in ten minutes", n)
		}
	})
}
