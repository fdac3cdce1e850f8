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

// The orders are read once in a call of a woken replica, however many jobs it has, and also where
// the clock stands still between the begin of the call and the read.
func TestWokenReplicaReadsOrdersOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", named("one", work("@every 1m", 0)), named("two", work("@every 1m", 0)), named("three", work("@every 1m", 0)))
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

func TestOrdersThatAreRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w, everywhere := work("@every 1h", time.Second), here("@every 1m", nil)
		c.start("a", w, leader(), everywhere)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w, leader(), everywhere)
		for text, o := range map[string]soloist.Order{
			"no job or singleton": {Kind: store.OrderPause, Job: "other"},
			"kind of the order":   {Kind: "explode", Job: "work"},
			"not run by hand":     {Kind: store.OrderRun, Job: "lead"},
			"runs on each":        {Kind: store.OrderCancel, Job: "here"},
			"nothing runs":        {Kind: store.OrderCancel, Job: "work"},
			"in the future":       {Kind: store.OrderPause, Job: "work", Until: time.Now().Add(-time.Hour)},
			"has no end":          {Kind: store.OrderResume, Job: "work", Until: time.Now().Add(time.Hour)},
			"on one line":         {Kind: store.OrderPause, Job: "work", Reason: "two\nlines"},
			"letter or digit":     {Kind: store.OrderRun, Job: "work", Request: "two words"},
			"has no request":      {Kind: store.OrderPause, Job: "work", Request: "please"},
		} {
			if _, err := desk.Order(c.t.Context(), o); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%+v: %v, want %q", o, err, text)
			}
		}
		c.order(soloist.Order{Kind: store.OrderRun, Request: "twice"}, w)
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "twice"}); err == nil {
			t.Error("a request is ordered twice")
		}
		_, err := c.replica("new", soloist.Job{Name: "unknown", Schedule: "@hourly", Do: w.Do}).Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "unknown"})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a job without an entry: %v", err)
		}
	})
}

// Several operators order at once: each order is kept.
func TestManyOrder(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		done := make(chan error)
		for range 8 {
			go func() {
				_, err := c.replica("desk", w).Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"})
				done <- err
			}()
		}
		for range 8 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		got, err := c.replica("desk", w).Control(c.t.Context())
		if err != nil || len(got.Audit) != 8 || got.Jobs["work"].Pause.At.IsZero() {
			t.Errorf("got %+v, %v", got, err)
		}
		for i := range 7 {
			if got.Audit[i].Seq <= got.Audit[i+1].Seq {
				t.Errorf("the orders have the numbers %d and %d", got.Audit[i].Seq, got.Audit[i+1].Seq)
			}
		}
	})
}

// An order whose answer is lost is in force once.
func TestOrderWithoutAnswer(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", 0)
		c.replica("first", w).wake()
		desk := c.replica("desk", w)
		lost := false
		desk.tap.meet(func(op string, apply func() error) error {
			err := apply()
			if op == "write document" && !lost {
				lost = true
				return errNetwork
			}
			return err
		})
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work"}); err != nil {
			t.Error(err)
		}
		if got, err := desk.Control(c.t.Context()); err != nil || len(got.Audit) != 1 || len(got.Jobs["work"].Requests) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}

// A read for an order that gets no answer in time is repeated: somebody waits for it.
func TestOrderRepeatsReadWithoutAnswer(t *testing.T) {
	for unanswered, given := range map[int]bool{0: true, 2: true, 3: false} {
		inCase(t, fmt.Sprint(unanswered), func(t *testing.T, c *cluster) {
			w := work("@every 1h", 0)
			c.replica("first", w).wake()
			desk, left := c.replica("desk", w), unanswered
			desk.tap.meet(func(op string, apply func() error) error {
				if op == "read" && left > 0 {
					left--
					time.Sleep(5 * time.Second)
					return context.DeadlineExceeded
				}
				return apply()
			})
			if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work"}); (err == nil) != given {
				t.Error(err)
			}
		})
	}
}

// A document that cannot be understood is left alone, and nothing starts by it.
func TestForeignOrders(t *testing.T) {
	for name, text := range map[string]string{
		"garbage":     "{",
		"newer":       `{"schema":99,"app":"soloist","seq":1}`,
		"another app": `{"schema":1,"app":"other","seq":1}`,
	} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := work("@every 1m", 0)
			if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte(text)); err != nil {
				t.Fatal(err)
			}
			a := c.start("a", w)
			time.Sleep(3 * time.Minute)
			c.wantRuns(0)
			if h := a.Health(); h.Storage == nil && len(h.Broken) == 0 {
				t.Error("Health is silent")
			}
			if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work"}); err == nil {
				t.Error("an order was written over it")
			}
		})
	}
}

// An operator's machine has a slow clock.
func TestOrderWithSlowClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w).skewed(-2 * time.Hour)
		o, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "please"})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("at", o.At, "until", o.Until)
		time.Sleep(time.Minute)
		if f := c.newest(); f.Status != store.Succeeded {
			t.Errorf("got %+v", f)
		}
	})
}

// An operator's machine has a fast clock.
func TestOrderWithFastClock(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		desk := c.replica("desk", w).skewed(2 * time.Hour)
		if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderPause, Job: "work", Until: time.Now().Add(time.Hour)}); err != nil {
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

// An order that is based on what another one has changed since is written all the same, and
// keeps the other; what would not be possible by the older orders is judged by the newer ones.
func TestOrderAfterAnotherIsKept(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@hourly", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute + 2*time.Second)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "one"}, w)
		a.tap.counts()
		if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "two"}); err != nil {
			c.t.Fatal(err)
		}
		if got, reads := a.tap.countsAndOrders(); got["write document"] != 2 || reads != 2 {
			c.t.Errorf("got the calls %v and %d reads of the orders, want a refused write, a read, a write and a read", got, reads)
		}
		if _, err := a.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "one"}); err == nil || !strings.Contains(err.Error(), "ordered already") {
			c.t.Errorf("got %v, want a refusal", err)
		}
		doc, err := a.Control(c.t.Context())
		if err != nil || len(doc.Jobs["work"].Requests) != 2 {
			c.t.Errorf("got %+v, %v, want both requests", doc, err)
		}
	})
}
