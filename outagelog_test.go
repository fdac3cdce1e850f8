package soloist_test

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// The log blocks on the line that an outage begins: no lease is lost for that,
// Health answers, and other jobs run.
func TestALogThatBlocksInAnOutageCostsNoRun(t *testing.T) {
	inCluster(t, func(c *cluster) {
		long, other := work("@every 1h", 10*time.Minute), work("@every 1m", 0)
		other.Name = "other"
		a := c.replica("a", long, other)
		a.Logger = slog.New(slowLog{a.Logger.Handler(), "the store is out of reach: trying again until it answers", func() {
			time.Sleep(5 * time.Minute)
		}})
		c.launch(a)
		time.Sleep(time.Hour + 2*time.Second)
		failed := 0
		a.tap.meet(func(op string, apply func() error) error {
			if op == "renew" && failed < 2 {
				failed++
				return errNetwork
			}
			return apply()
		})
		time.Sleep(10 * time.Second)
		begin := time.Now()
		if a.Health(); time.Since(begin) > 0 {
			t.Errorf("Health takes %s", time.Since(begin))
		}
		time.Sleep(4 * time.Minute)
		ran := 0
		for _, r := range ranBy(c, "a", begin) {
			if r.Job == "other" {
				ran++
			}
		}
		if ran < 4 {
			t.Errorf("the other job runs %d times in 4 minutes", ran)
		}
		time.Sleep(10 * time.Minute)
		for _, r := range c.all() {
			if r.Job == "work" && r.cause != nil && r.cause != context.Canceled && r.end.Sub(r.start) < 10*time.Minute {
				t.Errorf("the run ended after %s: %v", r.end.Sub(r.start), r.cause)
			}
		}
		if n := len(a.log.lines("the store answers again")); failed != 2 || n != 1 {
			t.Errorf("%d renewals failed, the end of the outage was logged %d times", failed, n)
		}
	})
}

// A run by hand that ends does not hide an outage that goes on.
func TestARunByHandHidesNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1m", 0))
		time.Sleep(10 * time.Minute)
		a.kill()
		time.Sleep(10 * time.Minute)
		for range 10 {
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
			_, _ = a.RunNow(ctx, "work", "x")
			cancel()
			for range 20 {
				if a.Health().Storage == nil {
					t.Fatal("Health hides the outage")
				}
				time.Sleep(time.Second)
			}
		}
		if n := len(a.log.lines("the store is out of reach")); n != 1 {
			t.Errorf("the outage was logged %d times", n)
		}
	})
}
