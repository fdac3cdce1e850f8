package soloist_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

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

// pushOut has so many ticks of a minute run that the record forgets what was before them.
func pushOut() { time.Sleep(25 * time.Minute) }

// A run that was ordered is not run again by hand after its outcome has left the record, also
// where the call is the first of its process.
func TestServedOrderIsNotRunByHand(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		a := c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "one"}, w)
		pushOut()
		for _, r := range []*replica{a, c.replica("b", w)} {
			f, err := r.RunNow(c.within(time.Minute), "work", "one")
			if err == nil || !strings.Contains(err.Error(), "was ordered") {
				t.Errorf("got %+v, %v", f, err)
			}
		}
		c.wantOnce("one")
	})
}

// A call by hand waits until it can read the orders, which may have the request.
func TestRunByHandWaitsForOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 1m", time.Second)
		c.start("a", w)
		time.Sleep(time.Minute)
		c.order(soloist.Order{Kind: store.OrderRun, Request: "one"}, w)
		pushOut()
		b := c.replica("b", w).meets(fail(errNetwork, "read document"))
		time.AfterFunc(5*time.Minute, func() { b.tap.meet(nil) })
		if f, err := b.RunNow(c.within(10*time.Minute), "work", "one"); err == nil || !strings.Contains(err.Error(), "was ordered") {
			t.Errorf("got %+v, %v", f, err)
		}
		c.wantOnce("one")
	})
}

// Orders that a person has to correct are not waited for.
func TestRunByHandWithForeignOrders(t *testing.T) {
	inCluster(t, func(c *cluster) {
		if _, err := c.store.WriteDocument(c.t.Context(), "soloist/.control", "", []byte("{")); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, err := c.replica("a", work("@every 1m", 0)).RunNow(c.within(time.Hour), "work", "one")
		wantError(t, err, "the orders of operators cannot be read", "")
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
		c.wantRuns(0)
	})
}

// What was ordered and then run by hand is served, however many such runs follow before a
// replica comes up.
func TestOrderThatWasRunByHandIsServed(t *testing.T) {
	inCluster(t, func(c *cluster) {
		w := work("@every 24h", time.Second)
		desk := c.replica("desk", w)
		desk.wake()
		for n := range 25 {
			name := fmt.Sprintf("run-%d", n)
			if _, err := desk.Order(c.t.Context(), soloist.Order{Kind: store.OrderRun, Job: "work", Request: name}); err != nil {
				t.Fatal(err)
			}
			if _, err := desk.RunNow(c.t.Context(), "work", name); err != nil {
				t.Fatal(err)
			}
		}
		c.start("a", w)
		time.Sleep(2 * time.Minute)
		c.wantRuns(25)
	})
}
