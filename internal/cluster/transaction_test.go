package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
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
		return returned(ctx, run, run.FinishIn(ctx, b.enter(run)))
	}))
	job.Retry.MaxTries = 2
	return job
}

// enter returns what enters the tick of a run in a transaction.
func (b *book) enter(run *soloist.Run) func(tx any) error {
	return func(tx any) error {
		tx.(*transaction).effects = append(tx.(*transaction).effects, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ticks = append(b.ticks, run.ID())
		})
		return nil
	}
}

// entered returns the ticks that were entered so far.
func (b *book) entered() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ticks)
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
			c.wrong(!slices.Equal(b.entered(), want), "entered %q", b.entered())
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
			applied := make(chan error, 1)
			r := c.start("a", b.enters(asItIs))
			r.tap.meet(onNth("commit", 1, func(apply func() error) error {
				if late {
					time.AfterFunc(time.Second, func() { applied <- apply() })
					r.tap.meet(slow(2*time.Second, "write"))
				} else {
					time.AfterFunc(2*time.Second, func() { applied <- apply() })
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
			err := <-applied
			c.wrong(late == (err != nil) || len(b.entered()) != 1, "applied: %v; entered %q", err, b.entered())
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
		c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
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

// The answer to a commit is lost, and the store cannot be asked in time. Whatever finds out later that it was committed, the tick
// has succeeded, and that is told once.
func TestTransactionFoundOut(t *testing.T) {
	over := func(c *cluster, err error) { wantError(c.t, err, "the run is over") }
	for name, finds := range map[string]func(c *cluster, ctx context.Context, run *soloist.Run){
		"by the end of the run": func(*cluster, context.Context, *soloist.Run) {},
		"by a checkpoint": func(c *cluster, ctx context.Context, run *soloist.Run) {
			over(c, run.Save(ctx, 1))
			over(c, run.Save(ctx, 2))
		},
		"by a look at the checkpoint": func(c *cluster, ctx context.Context, run *soloist.Run) { over(c, run.Load(ctx, new(int))) },
		"by a checkpoint in a transaction": func(c *cluster, ctx context.Context, run *soloist.Run) {
			over(c, run.SaveIn(ctx, 1, func(any) error { return nil }))
		},
		"by the report that it is late": func(c *cluster, ctx context.Context, run *soloist.Run) { time.Sleep(2 * time.Minute) },
		"by the progress of the run, and it is finished again": func(c *cluster, ctx context.Context, run *soloist.Run) {
			c.ok(run.Heartbeat("on"))
			time.Sleep(2 * time.Minute)
			c.ok(run.FinishIn(ctx, func(any) error { return errors.New("called again") }))
			over(c, run.FinishIn(ctx, func(any) error { return nil }))
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			c.whole = true
			b := &book{}
			job := b.enters(func(ctx context.Context, run *soloist.Run, err error) error {
				wantError(t, err, "not confirmed")
				time.Sleep(5 * time.Second)
				finds(c, ctx, run)
				return errors.New("gives up")
			})
			job.Retry.MaxTries = 1
			job.Late.Finish = time.Minute
			r := c.replica("a", job)
			r.meets(onNth("commit", 1, func(apply func() error) error {
				c.ok(apply())
				r.tap.meet(fail(errNetwork, "read", "write", "save"))
				time.AfterFunc(D+time.Second, func() { r.tap.meet(nil) })
				return errNetwork
			}))
			told := r.tells()
			c.launch(r)
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantRuns(1)
			c.wantOutcomes("work", "succeeded 00:01:00")
			c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
			ended := told.only(t, "work", event.Ended).Outcome
			c.wrong(outcomeText(ended) != "succeeded 00:01:00", "told %s", outcomeText(ended))
			c.wrong(len(told.of("work", event.Unrecorded)) != 0, "unrecorded: %+v", told.of("work", event.Unrecorded))
		})
	}
}

// A commit that is still under way, and a second one: the effect is kept once.
func TestTransactionsOneAfterTheOther(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		c.whole = true
		b := &book{}
		r := c.replica("a", b.enters(func(ctx context.Context, run *soloist.Run, err error) error {
			if err != nil {
				time.Sleep(5 * time.Second)
				err = run.FinishIn(ctx, b.enter(run))
			}
			return err
		}))
		r.meets(onNth("commit", 1, func(first func() error) error {
			r.tap.meet(fail(errNetwork, "write"))
			time.AfterFunc(D+time.Second, func() {
				r.tap.meet(onNth("commit", 1, func(second func() error) error { _, _ = first(), second(); return errNetwork }))
			})
			return errNetwork
		}))
		c.launch(r)
		time.Sleep(5 * time.Minute)
		c.stopAll()
		c.wantOutcomes("work", "succeeded 00:01:00")
		c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
	})
}

// A commit that is still under way, and the write of another outcome, which the store could take together with the release:
// the first to arrive decides, also if the answer to the second is lost.
func TestTransactionBeforeAnotherOutcome(t *testing.T) {
	inCase(t, "", func(_ *testing.T, c *cluster) {
		c.whole = true
		b := &book{}
		job := b.enters(func(_ context.Context, _ *soloist.Run, err error) error {
			time.Sleep(5 * time.Second)
			return err
		})
		job.Retry.MaxTries = 1
		r := c.replica("a", job)
		r.meets(onNth("commit", 1, func(commit func() error) error {
			r.tap.meet(fail(errNetwork, "write"))
			time.AfterFunc(D+time.Second, func() {
				r.tap.meet(func(op string, apply func() error) error {
					if (op == "write" || op == "write and release") && len(b.entered()) == 0 {
						_, _ = commit(), apply()
						return errNetwork
					}
					return apply()
				})
			})
			return errNetwork
		}))
		c.launch(r)
		time.Sleep(5 * time.Minute)
		c.stopAll()
		c.wantOutcomes("work", "succeeded 00:01:00")
		c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
	})
}

// What becomes of a run that stalls before or after its outcome was written.
func TestTransactionAndStall(t *testing.T) {
	inCases(t, map[string]func(c *cluster){
		"it has stalled in its transaction: nothing is kept": func(c *cluster) {
			c.whole = true
			b := &book{}
			job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				err := run.FinishIn(context.WithoutCancel(ctx), func(tx any) error {
					time.Sleep(silence + time.Second)
					return b.enter(run)(tx)
				})
				wantError(c.t, err, "the run is over")
				c.ok(run.Save(context.WithoutCancel(ctx), 1)) // what a run that is ending may still do
				return nil
			})
			job.HeartbeatTimeout = silence
			c.start("a", job)
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantOutcomes("work", "stalled 00:01:00 no heartbeat for 20s")
			c.wrong(len(b.entered()) != 0, "entered %q", b.entered())
		},
		"it stalls after its outcome: its lease is not used again": func(c *cluster) {
			c.whole = true
			b := &book{}
			job := doing("*/10 * * * * *", func(ctx context.Context, run *soloist.Run) error {
				if len(b.entered()) == 0 && run.Tick.Minute() == 1 && run.Tick.Second() == 10 { // the first run under its lease
					c.ok(run.FinishIn(ctx, b.enter(run)))
					time.Sleep(time.Until(run.Tick.Add(9 * time.Second)))
					return nil
				}
				for range 8 {
					if pause(ctx, time.Second) != nil {
						return context.Cause(ctx)
					}
					c.ok(run.Heartbeat(""))
				}
				return nil
			})
			job.HeartbeatTimeout = 3 * time.Second
			r := c.replica("a", job)
			told := r.tells()
			c.launch(r)
			time.Sleep(2*time.Minute + 9*time.Second)
			c.stopAll()
			c.wantAllSucceeded()
			c.wrong(len(told.of("work", event.NoProgress)) != 1, "it has not stalled")
			c.wrong(len(told.of("work", event.Lost)) != 0, "lost: %+v", told.of("work", event.Lost))
		},
	})
}

// A goroutine that the run has left behind commits: the tick has succeeded, whatever the run has returned.
func TestTransactionLeftBehind(t *testing.T) {
	inCase(t, "", func(t *testing.T, c *cluster) {
		c.whole = true
		b := &book{}
		job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
			c.meanwhile(func() { c.ok(run.FinishIn(ctx, b.enter(run))) })
			time.Sleep(time.Second)
			return errors.New("does not wait")
		})
		job.Late.Finish = time.Minute
		job.Retry.MaxTries = 1
		r := c.replica("a", job).meets(slow(2*time.Second, "commit"))
		told := r.tells()
		c.launch(r)
		time.Sleep(5 * time.Minute)
		c.stopAll()
		c.wantOutcomes("work", "succeeded 00:01:00")
		c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
		ended := told.only(t, "work", event.Ended).Outcome
		c.wrong(outcomeText(ended) != "succeeded 00:01:00", "told %s", outcomeText(ended))
	})
}

// What the function of a transaction may do to the run that it belongs to.
func TestTransactionWithin(t *testing.T) {
	b := &book{}
	for name, f := range map[string]func(c *cluster, ctx context.Context, run *soloist.Run){
		"it panics":             func(*cluster, context.Context, *soloist.Run) { panic("boom") },
		"it ends its goroutine": func(*cluster, context.Context, *soloist.Run) { runtime.Goexit() },
		"it saves":              func(c *cluster, ctx context.Context, run *soloist.Run) { c.ok(run.Save(ctx, 1)) },
		"it saves in another": func(c *cluster, ctx context.Context, run *soloist.Run) {
			c.ok(run.SaveIn(ctx, 1, func(any) error { return nil }))
		},
		"it finishes in another": func(c *cluster, ctx context.Context, run *soloist.Run) { c.ok(run.FinishIn(ctx, b.enter(run))) },
	} {
		inCase(t, name, func(_ *testing.T, c *cluster) {
			c.whole = true
			b = &book{}
			job := doing("0 1 0 * * *", func(ctx context.Context, run *soloist.Run) error {
				return run.FinishIn(ctx, func(tx any) error {
					if run.Try == 1 {
						f(c, ctx, run)
					}
					return b.enter(run)(tx)
				})
			})
			job.Retry.MaxTries = 2
			c.start("a", job)
			time.Sleep(5 * time.Minute)
			c.stopAll()
			c.wantOutcomes("work", "succeeded 00:01:00")
			c.wrong(len(b.entered()) != 1, "entered %q", b.entered())
		})
	}
}
