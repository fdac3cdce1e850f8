package soloist_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// The winner dies between its acquisition and its claim, when the loser has
// seen the lease: the loser takes over before it says that all is well.
func TestRunDueOutlivesAWinnerThatDiesBeforeItsClaim(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		b := c.replica("b", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		b.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "acquire" {
				a.kill()
			}
			return err
		})
		go a.RunDue(c.t.Context(), soloist.Wake{})
		synctest.Wait()
		got, err := b.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) != 1 && got.Jobs[0].Replica == "" && err == nil {
			t.Errorf("nobody has claimed the tick, and b says all is well: %+v, %v", got, err)
		}
		time.Sleep(time.Hour)
		c.replica("c", work("0 * * * *", time.Second)).RunDue(c.t.Context(), soloist.Wake{})
		if got := c.outcomes("work"); !strings.HasPrefix(got[0], "succeeded 01:00:00") {
			t.Errorf("got %q", got)
		}
	})
}

// A claim that is not confirmed is no success.
func TestRunDueTellsOfAClaimThatFailed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" {
				return errNetwork
			}
			return apply()
		})
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(got.Jobs[0].Ran) == 0 && err == nil {
			t.Errorf("the tick did not run and nothing is said: %+v", got)
		}
	})
}

// Nor is a run whose outcome the store refuses: what became of its tick is not
// for this call to say.
func TestRunDueTellsOfAnOutcomeThatWasRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		writes := 0
		a.tap.meet(func(op string, apply func() error) error {
			if op == "write" {
				if writes++; writes == 2 { // an operator unlocks the job meanwhile
					_ = c.store.Break(context.Background(), "soloist/work", 0)
				}
			}
			return apply()
		})
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(c.all()) != 1 || len(got.Jobs[0].Ran) != 0 {
			t.Fatalf("%d runs, %+v: want one, without an outcome", len(c.all()), got)
		}
		if err == nil || got.Jobs[0].Err == nil || !strings.Contains(err.Error(), "job work: its tick 2000-01-01T01:00:00Z has run, and the outcome, succeeded, was refused") {
			t.Errorf("got %v, %+v", err, got)
		}
		a.tap.meet(nil)
		time.Sleep(time.Hour)
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
			t.Errorf("the next call tells of it again: %v", err)
		}
	})
}

// A call that ends while the store answers nothing does not know what became of
// the outcome, and says that: no store has refused it.
func TestRunDueTellsOfAnOutcomeThatWasNotConfirmed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		ctx, cancel := context.WithCancel(c.t.Context())
		defer cancel()
		var a *replica
		job := work("@hourly", 0)
		job.Do = func(context.Context, *soloist.Run) error {
			a.tap.meet(func(string, func() error) error { return errors.New("no answer") })
			time.AfterFunc(time.Second, cancel)
			return nil
		}
		a = c.replica("a", job)
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(time.Hour)
		_, err := a.RunDue(ctx, soloist.Wake{})
		if err == nil || !strings.Contains(err.Error(), "has run, and the outcome, succeeded, was not confirmed") || strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
		if a.log.lines("the outcome was not confirmed") == nil || a.log.lines("the outcome was refused") != nil {
			t.Errorf("got %q", a.log.lines("the outcome"))
		}
	})
}

// Nor is a tick whose claim was made, and whose lease ran out before it could
// run: the machine was suspended.
func TestRunDueTellsOfATickThatWasClaimedAndNotRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var machine suspended
		a := c.replica("a", work("0 * * * *", time.Second))
		a.Elapsed = machine.elapsed
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Hour + time.Second)
		a.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write" && machine.slept.Load() == 0 {
				machine.slept.Add(int64(2 * D))
			}
			return err
		})
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if len(c.all()) != 0 {
			t.Fatalf("it ran: %+v", got)
		}
		if !errors.Is(err, store.ErrLost) || !strings.Contains(err.Error(), "its tick 2000-01-01T01:00:00Z was claimed and not run") {
			t.Errorf("got %v, %+v", err, got)
		}
	})
}

// Between two calls there is no loop that could hang.
func TestRunDueIsNotStuckBetweenCalls(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(10 * time.Minute)
		if h := a.Health(); len(h.Stuck) != 0 {
			t.Errorf("stuck: %q", h.Stuck)
		}
	})
}

func TestRunDueBesideItself(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 30*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		go a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Second)
		got, _ := a.RunDue(c.t.Context(), soloist.Wake{})
		if got.Next.IsZero() || got.Jobs[0].Next.IsZero() {
			t.Errorf(`Next is zero, which says "none ever": %+v`, got)
		}
		time.Sleep(time.Minute)
	})
}

// The run itself meets the outage, and waits for its end: the job is looked after.
func TestRunDueBesideItselfInAnOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1m", 30*time.Second))
		a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Minute)
		go a.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(time.Second)
		a.tap.meet(func(string, func() error) error { return errNetwork })
		time.Sleep(8 * time.Second) // two renewals fail
		if a.Health().Storage == nil {
			t.Fatal("the outage is not told")
		}
		got, err := a.RunDue(c.t.Context(), soloist.Wake{})
		if err != nil || got.Jobs[0].Replica != "a" {
			t.Errorf("got %+v, %v, want that a runs it", got, err)
		}
		a.tap.meet(nil)
		time.Sleep(time.Minute)
	})
}

// Where each run makes the next tick due, a call ends all the same.
func TestRunDueEnds(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", 11*time.Second)
		job.Missed = soloist.RunAll
		a := c.replica("a", job)
		ctx, cancel := context.WithCancel(c.t.Context())
		a.RunDue(ctx, soloist.Wake{})
		time.Sleep(30 * time.Second)
		begin := time.Now()
		done := make(chan struct{})
		go func() { a.RunDue(ctx, soloist.Wake{}); close(done) }()
		select {
		case <-done:
		case <-time.After(time.Hour):
			t.Errorf("three ticks were due and RunDue is at work since %s: %d runs", time.Since(begin), len(c.all()))
		}
		cancel()
		<-done
	})
}

func TestRunDueUnderAnEndedContext(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("0 * * * *", time.Second))
		ctx, cancel := context.WithCancel(c.t.Context())
		cancel()
		got, err := a.RunDue(ctx, soloist.Wake{})
		if err == nil {
			t.Errorf("nothing was looked after, and there is no error: %+v", got)
		}
	})
}

// In an outage the schedule says when to call again: zero would say never.
func TestRunDueSaysWhenToCallAgainInAnOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@hourly", 0))
		a.kill()
		next := time.Now().Add(time.Hour)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
		defer cancel()
		if rep, err := a.RunDue(ctx, soloist.Wake{}); err == nil || !rep.Next.Equal(next) {
			t.Errorf("next is %s, %v: want %s", rep.Next, err, next)
		}
	})
}

// A replica of an older definition says when the next tick of the one in force is
// due. By its own the next tick is in the past, since no replica settles it.
func TestRunDueOfAnOlderDefinitionSaysTheTickInForce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		begin := time.Now()
		old := c.replica("old", work("@every 1m", 0))
		old.RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(10 * time.Second)
		c.replica("young", work("@every 7m", 0)).RunDue(c.t.Context(), soloist.Wake{})
		time.Sleep(2 * time.Minute)
		rep, err := old.RunDue(c.t.Context(), soloist.Wake{})
		if want := begin.Add(4 * time.Minute); err == nil || !rep.Next.Equal(want) { // @every counts from 1970
			t.Errorf("next is %s, %v: want %s", rep.Next, err, want)
		}
	})
}

// A process that is woken up every 200 s answers each older definition in time:
// each call looks at the record, also where no tick is due.
func TestEachWakeUpLooksAtTheRecord(t *testing.T) {
	inCluster(t, func(c *cluster) {
		old := c.start("old", work("@every 10m", 0))
		time.Sleep(3 * time.Minute)
		young := c.replica("young", work("30 23 * * *", 0))
		for call := range 40 {
			young.tap.counts()
			if _, err := young.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
				t.Errorf("call %d: %v", call, err)
			}
			if n := young.tap.counts()["read"]; n != 1 {
				t.Errorf("call %d reads %d times", call, n)
			}
			time.Sleep(200 * time.Second)
		}
		if runs := ranBy(c, "old", time.Time{}); len(runs) > 0 {
			t.Errorf("the older definition runs %d ticks; its health is %v", len(runs), old.Health().Broken)
		}
	})
}

// A call ends though the store refuses the outcome of its run without end: other
// replicas settle the run once the lease that the call gave up has expired.
func TestACallEndsThoughItsOutcomeIsRefused(t *testing.T) {
	for name, refusal := range map[string]error{"refused": fs.ErrPermission, "unclear": errNetwork} {
		for how, call := range map[string]func(context.Context, *replica) error{
			"RunDue": func(ctx context.Context, r *replica) error {
				report, err := r.RunDue(ctx, soloist.Wake{})
				if err == nil || len(report.Jobs) != 1 || report.Jobs[0].Err == nil || len(report.Jobs[0].Ran) != 0 {
					t.Errorf("got %+v, %v", report, err)
				}
				return err
			},
			"RunNow": func(ctx context.Context, r *replica) error {
				_, err := r.RunNow(ctx, "work", "wish")
				return err
			},
		} {
			t.Run(how+" "+name, func(t *testing.T) {
				inCluster(t, func(c *cluster) {
					a := c.replica("a", work("@every 1m", time.Second))
					if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					writes := 0
					a.tap.meet(func(op string, apply func() error) error {
						if op == "write" {
							if writes++; writes > 1 {
								return refusal
							}
						}
						return apply()
					})
					ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
					defer cancel()
					begin := time.Now()
					err := call(ctx, a)
					if took := time.Since(begin); took > 6*D || took < 4*D {
						t.Errorf("it took %s", took)
					}
					if err == nil || !strings.Contains(err.Error(), "has run, and the outcome, succeeded, was not confirmed") {
						t.Errorf("got %v", err)
					}
					time.Sleep(D / 2) // since the last renewal
					if e, err := c.store.Read(c.t.Context(), "soloist/work"); err != nil || e.State.Live() {
						t.Errorf("the lease is %s, %v", e.State, err)
					}
				})
			})
		}
	}
}
