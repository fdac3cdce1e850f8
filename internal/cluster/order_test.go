package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/history"
)

func TestOrdersThatAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, everywhere := work("@every 1h", time.Second), here("@every 1m", nil)
		c.start("a", w, leader(), everywhere)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w, leader(), everywhere, named("unknown", w))
		refused := func(o soloist.Order, text string) {
			t.Helper()
			if _, err := desk.Order(c.t.Context(), o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", o, err, text)
			}
		}
		for text, o := range map[string]soloist.Order{
			"no job or singleton": {Kind: soloist.OrderPause, Job: "other"},
			"kind of the order":   {Kind: "explode", Job: "work"},
			"not run by hand":     {Kind: soloist.OrderRun, Job: "lead"},
			"it has no ticks":     {Kind: soloist.OrderBackfill, Job: "lead", Backfill: lastHour(3, 1)},
			"runs on each":        {Kind: soloist.OrderCancel, Job: "here"},
			"paused and resumed":  {Kind: soloist.OrderBackfill, Job: "here", Backfill: lastHour(3, 1)},
			"nothing runs":        {Kind: soloist.OrderCancel, Job: "work"},
			"in the future":       {Kind: soloist.OrderPause, Job: "work", Until: time.Now().Add(-time.Hour)},
			"has no end":          {Kind: soloist.OrderResume, Job: "work", Until: time.Now().Add(time.Hour)},
			"on one line":         {Kind: soloist.OrderPause, Job: "work", Reason: "two\nlines"},
			"letter or digit":     {Kind: soloist.OrderRun, Job: "work", Request: "two words"},
			"has no request":      {Kind: soloist.OrderPause, Job: "work", Request: "please"},
			"has no range":        {Kind: soloist.OrderRun, Job: "work", Backfill: lastHour(3, 1)},
		} {
			refused(o, text)
		}
		for _, job := range []string{"lead", "here"} {
			if _, err := desk.PlanBackfill(c.t.Context(), job, lastHour(3, 1)); !errors.Is(err, soloist.ErrRefused) {
				t.Errorf("a backfill of %s: %v", job, err)
			}
		}
		twice := soloist.Order{Kind: soloist.OrderRun, Job: "work", Request: "twice"}
		c.order(twice, w)
		refused(twice, "ordered already")
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderRun, Job: "unknown"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a job without an entry: %v", err)
		}
	})
}

// An order whose answer is lost is in force once. If it is not known whether an order was written, the error says so, and a
// refusal of a later try is none of the order.
func TestOrderInDoubtSaysSo(t *testing.T) {
	const op = "write document"
	for name, meets := range map[string]func(c *cluster) fault{
		"an answer is lost":  func(*cluster) fault { return lose(op, 1) },
		"no answer":          func(*cluster) fault { return fail(errNetwork, op) },
		"refused in the end": func(*cluster) fault { return inTurn(op, errNetwork, fmt.Errorf("no: %w", fs.ErrPermission)) },
		"garbage in the end": func(c *cluster) fault {
			return onNth(op, 1, func(func() error) error { c.writeOrders("garbage"); return errNetwork })
		},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", 0)
			c.replica("first", w).wake()
			desk := c.replica("desk", w).meets(meets(c))
			err := desk.orders(soloist.OrderRun)
			if name == "an answer is lost" {
				got, gerr := desk.Orders(c.t.Context())
				if err := errors.Join(err, gerr); err != nil || len(got) != 1 {
					t.Errorf("got %+v, %v", got, err)
				}
				return
			}
			if wantError(t, err, "not known whether"); errors.Is(err, soloist.ErrRefused) {
				t.Errorf("in doubt: %v", err)
			}
			if err := desk.orders(soloist.OrderRun); name == "garbage in the end" && !errors.Is(err, soloist.ErrRefused) {
				t.Errorf("without a doubt: %v", err)
			}
		})
	}
}

// A read for an order that gets no answer in time is repeated, since the operator waits for it.
func TestOrderRepeatsReadWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, late := work("@every 1h", 0), context.DeadlineExceeded
		c.replica("first", w).wake()
		if err := c.replica("desk", w).meets(inTurn("read", late, late, nil)).orders(soloist.OrderRun); err != nil {
			t.Error(err)
		}
		if err := c.replica("other", w).meets(inTurn("read", late, late, late, nil)).orders(soloist.OrderRun); err == nil {
			t.Error("a fourth read is made")
		}
	})
}

// A document that cannot be understood is left alone, and nothing starts by it. A person has to correct it, so a call does not
// wait for that.
func TestForeignOrders(t *testing.T) {
	for name, text := range map[string]string{
		"garbage":     "{",
		"newer":       `{"schema":99,"app":"soloist","seq":1}`,
		"another app": `{"schema":1,"app":"other","seq":1}`,
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 0)
			c.writeOrders(text)
			a := c.start("a", w)
			time.Sleep(3 * time.Minute)
			if h := a.Health(); h.Storage == nil && len(h.Broken) == 0 {
				t.Error("Health is silent")
			}
			begin := time.Now()
			if err := a.orders(soloist.OrderPause); err == nil || time.Since(begin) > time.Second {
				t.Errorf("an order: %v after %s", err, time.Since(begin))
			}
			_, err := c.replica("b", w).RunNow(c.within(time.Hour), "work", "one")
			wantError(t, err, "the orders of operators cannot be read")
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("a manual run is refused after %s", took)
			}
			c.wantRuns(0)
		})
	}
}

// The clock of an operator's machine may be wrong.
func TestOrderWithWrongClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		c.ok(c.replica("slow", w).skewed(-2 * time.Hour).orders(soloist.OrderRun))
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != event.Succeeded {
			t.Errorf("got %+v", f)
		}
		pause := soloist.Order{Kind: soloist.OrderPause, Job: "work", Until: time.Now().Add(time.Hour)}
		_, err := c.replica("fast", w).skewed(2*time.Hour).Order(c.t.Context(), pause)
		c.ok(err)
	})
}

// An order costs a read of the record and a write; where the orders are not known, a read of them
// before. The replica knows its order at once.
func TestOrderCallsAreFew(t *testing.T) {
	write, both := map[string]int{"write document": 1}, map[string]int{"read": 1, "write document": 1}
	for what, one := range map[string]struct {
		job  soloist.Job
		up   bool // the replica runs its jobs, and so knows the orders
		want map[string]int
	}{
		"a replica that is up":   {work("@hourly", time.Second), true, both},
		"a tool":                 {work("@hourly", time.Second), false, both},
		"everywhere, up":         {here("@hourly", nil), true, write},
		"everywhere, for a tool": {here("@hourly", nil), false, write},
	} {
		inCase(t, what, func(t *testing.T, c *cluster) {
			c.start("other", one.job)
			a, read := c.replica("a", one.job), 1
			if one.up {
				c.launch(a)
				read = 0
			}
			time.Sleep(time.Minute + 2*time.Second) // no read is due
			a.tap.counts()
			for range 2 {
				_, err := a.Order(t.Context(), soloist.Order{Kind: soloist.OrderPause, Job: one.job.Name})
				c.ok(err)
				if got, reads := a.tap.countsAndOrders(); !maps.Equal(got, one.want) || reads != read {
					t.Errorf("got the calls %v and %d reads of the orders, want %v and %d", got, reads, one.want, read)
				}
				read = 0 // the next one is based on this one
			}
			if all, err := a.Status(t.Context()); err != nil || !all[0].Paused {
				t.Errorf("the replica does not know its own order: %+v, %v", all, err)
			}
		})
	}
}

// An order that is based on what another one has changed since is written all the same, and keeps the other; what would not be
// possible by the older orders is judged by the newer ones.
func TestOrderAfterAnotherIsKept(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute + 2*time.Second)
		run := func(request string) error {
			_, err := a.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderRun, Job: "work", Request: request})
			return err
		}
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "one"}, w)
		a.tap.counts()
		if err := run("two"); err != nil {
			c.t.Fatal(err)
		}
		if got, reads := a.tap.countsAndOrders(); got["write document"] != 2 || reads != 2 {
			c.t.Errorf("got the calls %v and %d reads of the orders, want a refused write, a read, a write and a read", got, reads)
		}
		wantError(t, run("one"), "ordered already")
		if all, err := a.Orders(c.t.Context()); err != nil || len(all) != 2 {
			c.t.Errorf("got %+v, %v, want both requests", all, err)
		}
	})
}

// The orders are read once in a call of a woken replica, however many jobs it has, and also where
// the clock stands still between the begin of the call and the read.
func TestWokenReplicaReadsOrdersOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", crowd(3, "@every 1m")...)
		a.tap.meet(faraway(1))
		for n := range 5 {
			a.wake()
			if _, reads := a.tap.countsAndOrders(); reads != 1 {
				t.Errorf("call %d: %d reads of the orders", n, reads)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A replica that cannot read the orders starts nothing: one of them may be a pause.
func TestUnreadableOrdersStopAll(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(90 * time.Second)
		a.tap.meet(fail(errNetwork, "read document"))
		time.Sleep(3 * time.Minute)
		c.wantRuns(1)
		if a.Health().Storage == nil {
			t.Error("Health is silent")
		}
		a.tap.meet(nil)
		time.Sleep(2 * time.Minute)
		if n := len(c.all()); n < 3 {
			t.Errorf("%d runs", n)
		}
	})
}

// Orders that cannot be read for some seconds before a tick cost neither the tick nor its claim,
// if they can again half a second before it, whenever they are read otherwise.
func TestOrdersAreReadAgainBeforeTick(t *testing.T) {
	for after := time.Duration(0); after < 5*time.Second; after += 250 * time.Millisecond {
		inCase(t, after.String(), func(t *testing.T, c *cluster) {
			w := work("@every 1m", time.Second)
			w.ClaimAhead = true
			time.Sleep(after)
			a := c.start("a", w)
			tick := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
			time.Sleep(time.Until(tick) - 9*time.Second)
			a.tap.meet(fail(errNetwork, "read document"))
			time.Sleep(8400 * time.Millisecond)
			a.tap.meet(nil)
			time.Sleep(time.Until(tick) + 10*time.Second)
			all := c.all()
			if last := all[len(all)-1]; len(all) != 2 || !last.Tick.Equal(tick) || last.Token != all[0].Token+1 {
				t.Errorf("got %+v, want the tick %s, and no claim that was given up", all, tick)
			}
		})
	}
}

// A wake-up for a job of EveryReplica reads the orders first. If that takes long, the tick is
// run all the same: one that was due when the call began, or has come due since.
func TestSlowOrdersCostNoTick(t *testing.T) {
	for _, at := range []time.Duration{59 * time.Second, time.Minute, 119 * time.Second} {
		inCase(t, at.String(), func(t *testing.T, c *cluster) {
			tick := time.Now().Add(time.Minute)
			time.Sleep(at)
			a := c.replica("a", here("@every 1m", nil)).meets(slow(2*time.Second, "read document"))
			if _, err := a.RunDue(c.t.Context(), soloist.Wake{Tick: tick}); err != nil {
				t.Error(err)
			}
			if all := c.all(); len(all) != 1 || !all[0].Tick.Equal(tick) {
				t.Errorf("got %+v, want tick %s", all, tick)
			}
		})
	}
}

// failSlowly lets each read of the orders take d, and fail.
func failSlowly(d time.Duration) fault {
	return func(op string, apply func() error) error {
		if op == "read document" {
			time.Sleep(d)
			return errNetwork
		}
		return apply()
	}
}

// Loops do not wait for each other's failed reads of the orders, so none counts as stuck, and each read is for all of them.
func TestOutageOfOrdersOfManyJobs(t *testing.T) {
	for _, read := range []time.Duration{20 * time.Millisecond, 3 * time.Second} {
		inCase(t, read.String(), func(t *testing.T, c *cluster) {
			a := c.launch(c.replica("a", crowd(100, "@every 1h")...))
			time.Sleep(time.Minute)
			a.tap.meet(failSlowly(read))
			a.tap.countsAndOrders()
			worst := 0
			for range 600 {
				time.Sleep(time.Second)
				worst = max(worst, len(a.Health().Stuck))
			}
			if _, reads := a.tap.countsAndOrders(); worst > 0 || reads > 700 {
				t.Errorf("%d loops are stuck by Health, and there are %d reads of the orders in ten minutes", worst, reads)
			}
		})
	}
}

// In a call of RunDue the jobs of EveryReplica, which need no store, do not wait for the failed reads of the others.
func TestOutageOfOrdersKeepsEveryReplica(t *testing.T) {
	inCluster(t, func(c *cluster) {
		all := crowd(40, "@every 1h")
		for i := range 3 {
			all = append(all, named(fmt.Sprint("here", i), here("@every 1h", nil)))
		}
		until(30 * time.Minute)
		a := c.replica("a", all...)
		a.wake()
		until(time.Hour)
		a.tap.meet(failSlowly(3 * time.Second))
		_, _ = a.RunDue(c.within(time.Minute), soloist.Wake{})
		c.wantInTime(5 * time.Second)
		c.wantRuns(3)
	})
}

// A call of a woken replica reads the orders once more if the first read fails.
func TestFailedReadOfOrdersIsRepeated(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 1h", time.Second))
		a.wake()
		until(time.Hour)
		a.tap.meet(drop("read document", 1))
		_, _ = a.RunDue(c.within(10*time.Minute), soloist.Wake{})
		c.wantRuns(1)
	})
}

// An order is served by the next process that is woken up, once, also while the job is paused.
func TestOrderedRunWithoutReplicas(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: soloist.OrderPause}, w)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "please"}, w)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "soon", Until: time.Now().Add(time.Minute)}, w)
		c.replica("first", w).wake()
		c.wantRuns(2)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "late", Until: time.Now().Add(time.Minute)}, w)
		time.Sleep(10 * time.Minute)
		c.replica("second", w).wake()
		c.replica("third", w).wake()
		c.wantRuns(2)
		if f := c.newest(); f.Request != "late" || f.Status != event.Missed {
			t.Errorf("got %+v", f)
		}
	})
}

// A request that was made by hand is refused as an order. It is not run again either where it is made while the order is written.
func TestRequestRunsOnceByHandOrOrder(t *testing.T) {
	for _, name := range []string{"before", "meanwhile"} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 24h", time.Second)
			a, desk := c.start("a", w), c.replica("desk", w)
			time.Sleep(time.Minute)
			byHand := func() {
				if _, err := a.RunNow(c.t.Context(), "work", "please"); err != nil {
					t.Error(err)
				}
			}
			if name == "before" {
				byHand()
			} else {
				desk.meets(onNth("write document", 1, func(apply func() error) error { byHand(); return apply() }))
			}
			_, err := desk.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderRun, Job: "work", Request: "please"})
			if refused := errors.Is(err, soloist.ErrRefused); refused != (name == "before") || err != nil && !refused {
				t.Errorf("the order: %v", err)
			}
			time.Sleep(time.Minute)
			c.wantRuns(1)
		})
	}
}

// Requests of a webhook, ten an hour: a name is used once, for a day after its time is up, however many come after it.
func TestNameOfOrderedRunIsKeptForADay(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "webhook-4711"}, w)
		for i := range 100 {
			time.Sleep(6 * time.Minute)
			c.order(soloist.Order{Kind: soloist.OrderRun, Request: fmt.Sprint("webhook-", 5000+i)}, w)
		}
		again := soloist.Order{Kind: soloist.OrderRun, Job: "work", Request: "webhook-4711"}
		if _, err := c.replica("desk", w).Order(c.t.Context(), again); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("the second order of the name: %v", err)
		}
		time.Sleep(24 * time.Hour)
		c.order(again, w)
		time.Sleep(time.Minute)
		c.wantRuns(102 + 1) // and a tick
	})
}

// keepHistory has replicas that are not started yet write the log of outcomes until stop.
func (c *cluster) keepHistory(replicas ...*replica) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var done sync.WaitGroup
	for _, r := range replicas {
		h := &history.Writer{Store: c.store, App: "soloist", Failed: func(job string, err error) { c.t.Error(job, err) }}
		r.Events = h.Take
		done.Go(func() { h.Run(ctx) })
	}
	return func() { cancel(); done.Wait() }
}

// logged returns the outcomes of a job in its log and in its record.
func (c *cluster) logged(job string) []history.Line {
	rec := c.record(job)
	lines, err := history.Read(c.t.Context(), c.store, "soloist/"+job, time.Time{}, &rec)
	if err != nil {
		c.t.Error(err)
	}
	return lines
}

// The outcomes of many runs that were ordered during a run leave the one of the tick in the record for the follower, which polls.
func TestManyOrdersAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, f := named("import", work("0 */2 * * *", 10*time.Minute)), following("clean", "import", time.Second)
		c.start("a", w) // of the version before, which has no follower
		time.Sleep(time.Minute)
		c.start("b", w, f)
		time.Sleep(2*time.Hour + time.Minute)
		for i := range 60 {
			c.order(soloist.Order{Kind: soloist.OrderRun, Job: "import", Request: fmt.Sprint("r", i)}, w)
		}
		time.Sleep(30 * time.Minute)
		c.wantOutcomes("clean", "succeeded 02:00:00")
		if n := c.record("import").Counts[event.Succeeded]; n != 1 || len(c.runsOf("import")) != 1 {
			t.Errorf("import has succeeded %d times, and its runs are %+v", n, c.runsOf("import"))
		}
	})
}

// A run that was ordered is not run by a call after its outcome has left the record, also where the call is the first of its
// process, or has to wait until it can read the orders.
func TestServedOrderIsNotRunByHand(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a, b, d := c.start("a", w), c.replica("b", w), c.replica("d", w).meets(fail(errNetwork, "read document"))
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: soloist.OrderRun, Request: "one"}, w)
		time.Sleep(25 * time.Minute) // the record forgets what was before twenty ticks
		time.AfterFunc(5*time.Minute, func() { d.tap.meet(nil) })
		for _, r := range []*replica{a, b, d} {
			_, err := r.RunNow(c.within(10*time.Minute), "work", "one")
			wantError(t, err, "was ordered")
		}
		c.wantOnce("one")
	})
}

// A manual call runs no order before its turn once the record names too many of these.
func TestOrderIsNotServedBeforeManyOthers(t *testing.T) {
	inCluster(t, func(c *cluster) {
		desk := c.replica("desk", work("@every 24h", time.Second))
		desk.wake()
		var err error
		for n := range 22 {
			name := fmt.Sprintf("run-%02d", n)
			if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: soloist.OrderRun, Job: "work", Request: name}); err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				_, err = desk.RunNow(c.t.Context(), "work", name)
			}
		}
		wantError(t, err, "too many runs have begun before work@run-00")
		for _, name := range []string{"other", "run-00", "run-21"} {
			if _, err := desk.RunNow(c.t.Context(), "work", name); err != nil {
				t.Error(err)
			}
		}
		if r := c.record("work"); len(r.Orders.Early) > 1 {
			t.Errorf("the record has %+v", r.Orders)
		}
	})
}
