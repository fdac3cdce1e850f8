package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
)

// A book has the ticks whose effect was committed.
type book struct {
	mu    sync.Mutex
	ticks []string
}

// enters returns a job that enters its tick into the book, in the transaction that writes its outcome. Returned gets what
// FinishIn has returned, and what it returns is what the job returns.
func (b *book) enters(returned func(ctx context.Context, run *soloist.Run, err error) error) soloist.Job {
	job := rerun(doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
		return returned(ctx, run, run.FinishIn(ctx, func(tx any) error {
			tx.(*transaction).effects = append(tx.(*transaction).effects, func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.ticks = append(b.ticks, run.ID())
			})
			return nil
		}))
	}))
	job.Retry.MaxTries = 2
	return job
}

func asItIs(_ context.Context, _ *soloist.Run, err error) error { return err }

// The effect of a transaction is kept if the tick has succeeded, and not otherwise.
func TestTransactionWithOutcome(t *testing.T) {
	const tick = "work@2000-01-01T00:01:00Z"
	for name, test := range map[string]struct {
		fault    fault
		returned func(ctx context.Context, run *soloist.Run, err error) error
		want     string // the outcome
		entered  bool
	}{
		"committed":                       {nil, asItIs, "succeeded 00:01:00", true},
		"the answer is lost":              {lose("commit", 1), asItIs, "succeeded 00:01:00", true},
		"it never arrives":                {fail(errNetwork, "commit"), asItIs, "failed 00:01:00 the transaction was not committed: connection reset", false},
		"an answer without an ETag":       {fail(nil, "commit"), asItIs, "failed 00:01:00 the transaction was not committed: the answer has no ETag: it is not from the store", false},
		"it fails after that":             {nil, func(context.Context, *soloist.Run, error) error { return errors.New("too late") }, "succeeded 00:01:00", true},
		"it panics after that":            {nil, func(context.Context, *soloist.Run, error) error { panic("too late") }, "succeeded 00:01:00", true},
		"it ignores that nothing is kept": {fail(errNetwork, "commit"), func(context.Context, *soloist.Run, error) error { return nil }, "succeeded 00:01:00", false},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.whole = true
			b := &book{}
			r := c.replica("a", b.enters(func(ctx context.Context, run *soloist.Run, err error) error {
				c.wrong((err == nil) != test.entered, "the call returns %v", err)
				return test.returned(ctx, run, err)
			})).meets(test.fault)
			told := r.tells()
			c.launch(r)
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantOutcomes("work", test.want)
			want := []string{tick}
			if !test.entered {
				want = nil
			}
			c.wrong(!slices.Equal(b.ticks, want), "entered %q", b.ticks)
			tries := 2
			if test.want == "succeeded 00:01:00" {
				tries = 1
			}
			c.wantRuns(tries)
			ended := told.only(t, "work", event.Ended).Outcome
			c.wrong(outcomeText(ended) != test.want, "told %s", outcomeText(ended))
		})
	}
}

// A commit that is under way for long and the write after it: the first to arrive decides, and the effect is kept once.
func TestTransactionThatHangs(t *testing.T) {
	for name, late := range map[string]bool{"it is committed late": true, "it is not committed": false} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.whole = true
			b := &book{}
			var applied error
			r := c.start("a", b.enters(asItIs))
			r.tap.meet(onNth("commit", 1, func(apply func() error) error {
				if late {
					time.AfterFunc(time.Second, func() { applied = apply() })
					r.tap.meet(slow(2*time.Second, "write"))
				} else {
					time.AfterFunc(2*time.Second, func() { applied = apply() })
				}
				return errNetwork
			}))
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantOutcomes("work", "succeeded 00:01:00")
			tries := 2
			if late {
				tries = 1
			}
			c.wantRuns(tries)
			c.wrong(late == (applied != nil) || len(b.ticks) != 1, "applied: %v; entered %q", applied, b.ticks)
		})
	}
}

// A run whose lease another replica has gets nothing kept, and the other one does.
func TestTransactionOfAStaleRun(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		c.whole = true
		b := &book{}
		var stale error
		slowly := b.enters(func(_ context.Context, _ *soloist.Run, err error) error { stale = err; return err })
		a := c.start("a", slowly)
		a.tap.meet(onNth("commit", 1, func(apply func() error) error {
			a.tap.cut.Store(true) // what else it sends does not arrive
			time.Sleep(2 * time.Minute)
			return apply()
		}))
		time.Sleep(time.Minute + time.Second)
		c.start("b", b.enters(asItIs))
		time.Sleep(5 * time.Minute)
		c.stopAll()
		c.wantOutcomes("work", "succeeded 00:01:00")
		c.wrong(!errors.Is(stale, soloist.ErrLost), "the stale run gets %v", stale)
		c.wrong(len(b.ticks) != 1, "entered %q", b.ticks)
	})
}

// What FinishIn and SaveIn refuse, and what they leave as it was.
func TestTransactionRefusals(t *testing.T) {
	own := fs.ErrNotExist // of the user's own work: it says nothing about the lease
	fails := func(any) error { return own }
	stories := map[string]func(c *cluster){
		"the error of the function is returned, and the run goes on": func(c *cluster) {
			c.start("a", doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				c.wrong(run.FinishIn(ctx, fails) != own || run.SaveIn(ctx, 1, fails) != own, "another error")
				c.ok(run.Check(ctx))
				c.ok(run.SaveIn(ctx, 7, func(any) error { return nil }))
				var n int
				c.ok(run.Load(ctx, &n))
				c.wrong(n != 7, "the checkpoint is %d", n)
				c.ok(run.FinishIn(ctx, func(any) error { return nil }))
				wantError(c.t, run.FinishIn(ctx, fails), "the run is over")
				wantError(c.t, run.Save(ctx, 8), "the run is over")
				return run.Heartbeat("done")
			}))
			time.Sleep(2 * time.Minute)
			c.wantOutcomes("work", "succeeded 00:01:00")
		},
		"a singleton saves, and has no outcome to write": func(c *cluster) {
			c.start("a", soloist.Singleton{Name: "work", Do: func(ctx context.Context, run *soloist.Run) error {
				wantError(c.t, run.FinishIn(ctx, fails), "no tick whose outcome")
				c.ok(run.SaveIn(ctx, 7, func(any) error { return nil }))
				<-ctx.Done()
				return nil
			}})
			time.Sleep(time.Minute)
		},
		"a job without a lease": func(c *cluster) {
			c.start("a", soloist.Job{Name: "work", Schedule: "0 1 0 * * *", EveryReplica: true, Do: func(ctx context.Context, run *soloist.Run) error {
				wantError(c.t, run.FinishIn(ctx, fails), "without a lease")
				wantError(c.t, run.SaveIn(ctx, 1, fails), "without a lease")
				return nil
			}})
			time.Sleep(2 * time.Minute)
			c.wantRuns(1)
		},
		"a store without transactions": func(c *cluster) {
			c.whole = false
			r := c.replica("a", doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				wantError(c.t, run.FinishIn(ctx, fails), "the store has no transactions", "PostgreSQL")
				wantError(c.t, run.SaveIn(ctx, 1, fails), "the store has no transactions", "PostgreSQL")
				return nil
			}))
			c.launch(r)
			time.Sleep(2 * time.Minute)
			c.wantRuns(1)
		},
	}
	for name, story := range stories {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			c.whole = true
			story(c)
		})
	}
}
