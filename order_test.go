package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// order gives an order for the job "work" at a desk: by a program that runs nothing.
func (c *cluster) order(o soloist.Order, work ...soloist.Work) store.Order {
	c.t.Helper()
	if o.Job == "" {
		o.Job = "work"
	}
	o.By = "anna"
	got, err := c.replica("desk", work...).Order(c.t.Context(), o)
	if err != nil {
		c.t.Errorf("%s: %v", o.Kind, err)
	}
	return got
}

// orders gives an order for the job "work" that says no more than what to do.
func (r *replica) orders(kind store.OrderKind) error {
	_, err := r.Order(r.tap.t.Context(), soloist.Order{Kind: kind, Job: "work"})
	return err
}

// writeOrders writes the first document of orders.
func (c *cluster) writeOrders(text string) {
	c.t.Helper()
	if _, err := c.store.WriteDocument(c.t.Context(), store.ControlName("soloist"), "", []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// newest returns the newest outcome of the job "work".
func (c *cluster) newest() store.Outcome {
	c.t.Helper()
	h := c.record("work").History
	if len(h) == 0 {
		c.t.Error("there is no outcome")
		return store.Outcome{}
	}
	return h[0]
}

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
			"no job or singleton": {Kind: store.OrderPause, Job: "other"},
			"kind of the order":   {Kind: "explode", Job: "work"},
			"not run by hand":     {Kind: store.OrderRun, Job: "lead"},
			"it has no ticks":     {Kind: store.OrderBackfill, Job: "lead", Backfill: lastHour(3, 1)},
			"runs on each":        {Kind: store.OrderCancel, Job: "here"},
			"paused and resumed":  {Kind: store.OrderBackfill, Job: "here", Backfill: lastHour(3, 1)},
			"nothing runs":        {Kind: store.OrderCancel, Job: "work"},
			"in the future":       {Kind: store.OrderPause, Job: "work", Until: time.Now().Add(-time.Hour)},
			"has no end":          {Kind: store.OrderResume, Job: "work", Until: time.Now().Add(time.Hour)},
			"on one line":         {Kind: store.OrderPause, Job: "work", Reason: "two\nlines"},
			"letter or digit":     {Kind: store.OrderRun, Job: "work", Request: "two words"},
			"has no request":      {Kind: store.OrderPause, Job: "work", Request: "please"},
			"has no range":        {Kind: store.OrderRun, Job: "work", Backfill: lastHour(3, 1)},
		} {
			refused(o, text)
		}
		for _, job := range []string{"lead", "here"} {
			if _, err := desk.PlanBackfill(c.t.Context(), job, lastHour(3, 1)); !errors.Is(err, soloist.ErrRefused) {
				t.Errorf("a backfill of %s: %v", job, err)
			}
		}
		twice := soloist.Order{Kind: store.OrderRun, Job: "work", Request: "twice"}
		c.order(twice, w)
		refused(twice, "ordered already")
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "unknown"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a job without an entry: %v", err)
		}
	})
}

// A hundred operators order at once, over a store whose calls take a moment. Each order is kept, with a number of its own.
func TestHundredOrdersAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		done := make(chan error)
		for i := range 100 {
			desk := c.replica(fmt.Sprint("desk", i), w).meets(func(_ string, apply func() error) error {
				time.Sleep(10 * time.Millisecond)
				defer time.Sleep(10 * time.Millisecond)
				return apply()
			})
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				done <- desk.orders(store.OrderPause)
			}()
		}
		for range 100 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		got, err := c.replica("desk", w).Control(c.t.Context())
		if err != nil || len(got.Audit) != 100 || got.Jobs["work"].Pause.At.IsZero() {
			t.Errorf("got %+v, %v", got, err)
		}
		for i := 1; i < len(got.Audit); i++ {
			if newer, older := got.Audit[i-1].Seq, got.Audit[i].Seq; newer <= older {
				t.Errorf("the orders have the numbers %d and %d", newer, older)
			}
		}
	})
}

// An order whose answer is lost is in force once. If it is not known whether an order was written, the error says so.
func TestOrderInDoubtSaysSo(t *testing.T) {
	for name, tt := range map[string]struct {
		fault   fault
		written bool
	}{
		"an answer is lost":  {lose("write document", 1), true},
		"no answer":          {fail(errNetwork, "write document"), false},
		"refused in the end": {inTurn("write document", errNetwork, fmt.Errorf("no: %w", fs.ErrPermission)), false},
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1h", 0)
			c.replica("first", w).wake()
			desk := c.replica("desk", w).meets(tt.fault)
			err := desk.orders(store.OrderRun)
			if !tt.written {
				wantError(t, err, "not known whether")
				return
			}
			got, gerr := desk.Control(c.t.Context())
			if err := errors.Join(err, gerr); err != nil || len(got.Audit) != 1 || len(got.Jobs["work"].Requests) != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// If the order may be written, a refusal of a later try is none of the order.
func TestOrderInDoubtIsNotRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", 0)
		c.replica("first", w).wake()
		desk := c.replica("desk", w).meets(onNth("write document", 1, func(func() error) error {
			c.writeOrders("garbage")
			return errNetwork
		}))
		err := desk.orders(store.OrderPause)
		if wantError(t, err, "not known whether"); errors.Is(err, soloist.ErrRefused) {
			t.Errorf("in doubt: %v", err)
		}
		if err := desk.orders(store.OrderPause); !errors.Is(err, soloist.ErrRefused) {
			t.Errorf("without a doubt: %v", err)
		}
	})
}

// A read for an order that gets no answer in time is repeated, since the operator waits for it.
func TestOrderRepeatsReadWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, late := work("@every 1h", 0), context.DeadlineExceeded
		c.replica("first", w).wake()
		if err := c.replica("desk", w).meets(inTurn("read", late, late, nil)).orders(store.OrderRun); err != nil {
			t.Error(err)
		}
		if err := c.replica("other", w).meets(inTurn("read", late, late, late, nil)).orders(store.OrderRun); err == nil {
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
			if err := a.orders(store.OrderPause); err == nil || time.Since(begin) > time.Second {
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
		if err := c.replica("slow", w).skewed(-2 * time.Hour).orders(store.OrderRun); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Succeeded {
			t.Errorf("got %+v", f)
		}
		pause := soloist.Order{Kind: store.OrderPause, Job: "work", Until: time.Now().Add(time.Hour)}
		if _, err := c.replica("fast", w).skewed(2*time.Hour).Order(c.t.Context(), pause); err != nil {
			t.Error(err)
		}
	})
}

// An order costs a read of the record and a write; where the orders are not known, a read of them
// before. The replica knows its order at once.
func TestOrderCallsAreFew(t *testing.T) {
	for what, one := range map[string]struct {
		job  soloist.Job
		up   bool // the replica runs its jobs, and so knows the orders
		want map[string]int
		read int // of the orders
	}{
		"a replica that is up":   {work("@hourly", time.Second), true, map[string]int{"read": 1, "write document": 1}, 0},
		"a tool":                 {work("@hourly", time.Second), false, map[string]int{"read": 1, "write document": 1}, 1},
		"everywhere, up":         {here("@hourly", nil), true, map[string]int{"write document": 1}, 0},
		"everywhere, for a tool": {here("@hourly", nil), false, map[string]int{"write document": 1}, 1},
	} {
		inCase(t, what, func(t *testing.T, c *cluster) {
			c.start("other", one.job)
			a := c.replica("a", one.job)
			if one.up {
				c.launch(a)
			}
			time.Sleep(time.Minute + 2*time.Second) // no read is due
			a.tap.counts()
			for range 2 {
				if _, err := a.Order(t.Context(), soloist.Order{Kind: store.OrderPause, Job: one.job.Name}); err != nil {
					t.Fatal(err)
				}
				got, reads := a.tap.countsAndOrders()
				if !maps.Equal(got, one.want) || reads != one.read {
					t.Errorf("got the calls %v and %d reads of the orders, want %v and %d", got, reads, one.want, one.read)
				}
				one.read = 0 // the next one is based on this one
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
			_, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: request})
			return err
		}
		c.order(soloist.Order{Kind: store.OrderRun, Request: "one"}, w)
		a.tap.counts()
		if err := run("two"); err != nil {
			c.t.Fatal(err)
		}
		if got, reads := a.tap.countsAndOrders(); got["write document"] != 2 || reads != 2 {
			c.t.Errorf("got the calls %v and %d reads of the orders, want a refused write, a read, a write and a read", got, reads)
		}
		wantError(t, run("one"), "ordered already")
		if doc, err := a.Control(c.t.Context()); err != nil || len(doc.Jobs["work"].Requests) != 2 {
			c.t.Errorf("got %+v, %v, want both requests", doc, err)
		}
	})
}

// The orders are read once in a call of a woken replica, however many jobs it has, and also where
// the clock stands still between the begin of the call and the read.
func TestWokenReplicaReadsOrdersOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", manyJobs("@every 1m", 3)...)
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

func manyJobs(schedule string, n int) (all []soloist.Work) {
	for i := range n {
		all = append(all, named(fmt.Sprint("job", i), work(schedule, time.Second)))
	}
	return all
}

// Loops do not wait for each other's failed reads of the orders, so none counts as stuck, and each read is for all of them.
func TestOutageOfOrdersOfManyJobs(t *testing.T) {
	for _, read := range []time.Duration{20 * time.Millisecond, 3 * time.Second} {
		inCase(t, read.String(), func(t *testing.T, c *cluster) {
			a := c.launch(c.replica("a", manyJobs("@every 1h", 100)...))
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
		all := manyJobs("@every 1h", 40)
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
