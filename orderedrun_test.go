package soloist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/history"
	"github.com/soloist-go/soloist/store"
)

// An order takes some seconds, moves no tick, and is not confused with another order of the same instant.
func TestOrderedRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.startAll(w, "a", "b", "c")
		time.Sleep(time.Minute)
		at := time.Now()
		first, second := c.order(soloist.Order{Kind: store.OrderRun}, w), c.order(soloist.Order{Kind: store.OrderRun}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "again"}, w)
		time.Sleep(30 * time.Second)
		var ran []string
		for _, r := range c.all() {
			ran = append(ran, r.Request)
		}
		if !slices.Equal(ran, []string{first.Name, second.Name, "again"}) || c.all()[0].start.Sub(at) > 6*time.Second {
			t.Errorf("%v ran, the first %s after its order", ran, c.all()[0].start.Sub(at))
		}
		if mark := c.record("work").Watermark; !mark.Before(at) {
			t.Errorf("the watermark has moved to %s", mark)
		}
		time.Sleep(time.Hour)
		c.wantRuns(4)
	})
}

// An order is served by the next process that is woken up, once, also while the job is paused.
func TestOrderedRunWithoutReplicas(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1h", time.Second)
		c.replica("first", w).wake()
		c.order(soloist.Order{Kind: store.OrderPause}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "soon", Until: time.Now().Add(time.Minute)}, w)
		c.replica("first", w).wake()
		c.wantRuns(2)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "late", Until: time.Now().Add(time.Minute)}, w)
		time.Sleep(10 * time.Minute)
		c.replica("second", w).wake()
		c.replica("third", w).wake()
		c.wantRuns(2)
		if f := c.newest(); f.Request != "late" || f.Status != store.Missed {
			t.Errorf("got %+v", f)
		}
	})
}

// While a job is paused, a run that is ordered takes the place of the attempt that a tick waits for: the record has room for
// one of them. The outcome still says what became of the attempt before.
func TestOrderedRunInPauseReplacesAttempt(t *testing.T) {
	const died = "its runner died"
	for name, reason := range map[string]string{"order": died, "here": died, "unlocked": "unlocked by ann"} {
		inCase(t, name, func(t *testing.T, c *cluster) {
			w := rerun(work("@every 1h", 5*time.Minute))
			a := c.start("a", w)
			until(time.Hour + time.Minute)
			c.order(soloist.Order{Kind: store.OrderPause}, w)
			b := c.replica("b", w)
			if name == "unlocked" {
				time.Sleep(10 * time.Second)
				if err := c.replica("ann", w).Unlock(c.t.Context(), "work", true); err != nil {
					t.Error(err)
				}
			} else {
				a.kill()
				c.launch(b)
				time.Sleep(2 * time.Minute)
			}
			if name == "here" {
				if o, err := b.RunNow(c.t.Context(), "work", "please"); err != nil || o.Status != store.Succeeded {
					t.Errorf("%+v, %v", o, err)
				}
			} else {
				c.order(soloist.Order{Kind: store.OrderRun, Request: "please"}, w)
			}
			time.Sleep(10 * time.Minute)
			c.order(soloist.Order{Kind: store.OrderResume}, w)
			time.Sleep(15 * time.Minute)
			got, want := c.outcomes("work"), "abandoned 01:00:00 "+reason+", and a run was ordered in the pause"
			if len(got) != 2 || got[0] != want || !strings.HasPrefix(got[1], "succeeded 01:0") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
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
			_, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: "please"})
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
		c.order(soloist.Order{Kind: store.OrderRun, Request: "webhook-4711"}, w)
		for i := range 100 {
			time.Sleep(6 * time.Minute)
			c.order(soloist.Order{Kind: store.OrderRun, Request: fmt.Sprint("webhook-", 5000+i)}, w)
		}
		again := soloist.Order{Kind: store.OrderRun, Job: "work", Request: "webhook-4711"}
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

// Runs that were ordered during a run are settled together, ten in one write, and the next write follows at once. The outcome
// of the tick stays in the record for the follower, which polls, and the log of outcomes has each of them once.
func TestManyOrdersAtOnce(t *testing.T) {
	for _, n := range []int{25, 60, 99} {
		inCase(t, fmt.Sprint(n), func(t *testing.T, c *cluster) {
			w, f := named("import", work("0 */2 * * *", 10*time.Minute)), following("clean", "import", time.Second)
			var mu sync.Mutex
			seen, most := map[string]bool{}, 0
			grows := func(op string, apply func() error) error {
				if op != "write" {
					return apply()
				}
				mu.Lock()
				defer mu.Unlock()
				before, err := len(seen), apply()
				for _, o := range c.record("import").History {
					seen[o.Request] = true
				}
				most = max(most, len(seen)-before)
				return err
			}
			a, b := c.replica("a", w).meets(grows), c.replica("b", w, f).meets(grows) // a is of the version before, which has no follower
			defer c.keepHistory(a, b)()
			c.launch(a)
			time.Sleep(time.Minute)
			c.launch(b)
			time.Sleep(2*time.Hour + time.Minute)
			want := []string{"succeeded"}
			for i := range n {
				c.order(soloist.Order{Kind: store.OrderRun, Job: "import", Request: fmt.Sprint("r", i)}, w)
				want = append(want, fmt.Sprint("skipped r", i))
			}
			time.Sleep(30 * time.Minute)
			c.wantOutcomes("clean", "succeeded 02:00:00")
			if len(seen) != n+1 || most != 10 {
				t.Errorf("%d outcomes were in the record, want %d; one write settles %d orders, want 10", len(seen), n+1, most)
			}
			var got []string
			for _, l := range c.logged("import") {
				if got = append(got, strings.TrimSpace(fmt.Sprint(l.Status, " ", l.Request))); l.Gap {
					t.Errorf("a gap before %s", l.Request)
				}
			}
			slices.Sort(got) // of two replicas that settle orders, either may be the first to write to the log
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%d outcomes are in the log, want %d, each once: %v", len(got), len(want), got)
			}
		})
	}
}

// wantOnce checks that a request has run once.
func (c *cluster) wantOnce(request string) {
	c.t.Helper()
	n := 0
	for _, r := range c.all() {
		if r.Request == request {
			n++
		}
	}
	if n != 1 {
		c.t.Errorf("%s ran %d times", request, n)
	}
}

// A run that was ordered is not run by a call after its outcome has left the record, also where the call is the first of its
// process, or has to wait until it can read the orders.
func TestServedOrderIsNotRunByHand(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a, b, d := c.start("a", w), c.replica("b", w), c.replica("d", w).meets(fail(errNetwork, "read document"))
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "one"}, w)
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
			if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: name}); err != nil {
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
