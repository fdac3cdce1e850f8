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
)

// readOnly refuses writes, as a role does that allows to read and to lease.
func readOnly(op string, apply func() error) error {
	if op == "write" || op == "save" {
		return fs.ErrPermission
	}
	return apply()
}

// One replica of three may lease and not write: the others run each tick.
func TestAReplicaThatMayNotWriteCostsNoTick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", time.Second)
		a, b := c.start("a", job), c.start("b", job)
		r := c.replica("reader", job)
		r.tap.meet(readOnly)
		c.launch(r)
		time.Sleep(time.Hour + 30*time.Second)
		ran := map[time.Time]bool{}
		for _, run := range c.all() {
			if run.replica == "reader" {
				t.Errorf("the reader runs tick %s", run.Tick)
			}
			if late := run.start.Sub(run.Tick); late > 5*time.Second {
				t.Errorf("tick %s starts %s late", run.Tick.Format("15:04"), late)
			}
			ran[run.Tick] = true
		}
		if len(ran) != 60 {
			t.Errorf("%d of 60 ticks run", len(ran))
		}
		if why := r.Health().Broken["work"]; why == nil || !errors.Is(why, fs.ErrPermission) || !strings.Contains(why.Error(), "write access") {
			t.Errorf("its health says %v", why)
		}
		if n := len(r.log.lines("level=ERROR")); n != 1 {
			t.Errorf("it complains %d times", n)
		}
		if len(a.Health().Broken)+len(b.Health().Broken) > 0 {
			t.Errorf("health of the others: %v, %v", a.Health().Broken, b.Health().Broken)
		}
	})
}

// It runs ticks again once it may write.
func TestAReplicaThatMayWriteAgain(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@every 1m", time.Second))
		r.tap.meet(readOnly)
		c.launch(r)
		time.Sleep(20 * time.Minute)
		if n := r.tap.counts()["write"]; n < 10 || n > 40 {
			t.Errorf("it tried to write %d times in 20 minutes", n)
		}
		r.tap.meet(nil)
		time.Sleep(2 * time.Minute)
		if len(c.all()) == 0 || len(r.Health().Broken) > 0 {
			t.Errorf("%d runs, health is %v", len(c.all()), r.Health().Broken)
		}
	})
}

// A claim that may still be applied keeps its lease.
func TestAClaimInDoubtKeepsItsLease(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@every 1m", time.Second))
		writes := 0
		r.tap.meet(func(op string, apply func() error) error {
			if op != "write" {
				return apply()
			}
			if writes++; writes == 1 {
				return errNetwork // it is under way for long
			}
			return fs.ErrPermission
		})
		c.launch(r)
		time.Sleep(time.Minute + 2*time.Second)
		n := r.tap.counts()
		if n["write"] != 2 || n["release"] != 0 {
			t.Errorf("calls: %v", n)
		}
		if why := r.Health().Broken["work"]; !errors.Is(why, fs.ErrPermission) {
			t.Errorf("its health says %v", why)
		}
	})
}

// A run by hand and a wake-up say why nothing runs.
func TestWithoutWriteAccessARunByHandIsRefused(t *testing.T) {
	inCluster(t, func(c *cluster) {
		r := c.replica("a", work("@every 1m", time.Second))
		r.tap.meet(readOnly)
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
		defer cancel()
		begin := time.Now()
		if _, err := r.RunNow(ctx, "work", "please"); !errors.Is(err, fs.ErrPermission) || time.Since(begin) > time.Minute {
			t.Errorf("RunNow after %s: %v", time.Since(begin), err)
		}
		time.Sleep(2 * time.Minute)
		begin = time.Now()
		if _, err := r.RunDue(ctx, soloist.Wake{}); !errors.Is(err, fs.ErrPermission) || time.Since(begin) > time.Minute {
			t.Errorf("RunDue after %s: %v", time.Since(begin), err)
		}
	})
}

// A replica loses the right to write while its run goes on: it cannot tell the
// outcome, and lets its lease expire, so that the others go on.
func TestAReplicaThatMayNotWriteItsOutcome(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 10*time.Second)
		a := c.start("a", job)
		time.Sleep(65 * time.Second)
		a.tap.meet(readOnly)
		c.start("b", job)
		time.Sleep(10 * time.Minute)
		if n := len(ranBy(c, "b", time.Time{})); n < 8 {
			t.Errorf("b runs %d of 10 ticks", n)
		}
		if got := c.outcomes("work"); !slices.Contains(got, "abandoned 00:01:00 its runner died") {
			t.Errorf("got %q", got)
		}
	})
}

// One that gets the right back in time tells the outcome itself.
func TestAReplicaThatMayWriteItsOutcomeLater(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 1m", 10*time.Second)
		a := c.start("a", job)
		time.Sleep(65 * time.Second)
		a.tap.meet(readOnly)
		c.start("b", job)
		time.Sleep(5*time.Second + D)
		a.tap.meet(nil)
		time.Sleep(time.Minute)
		if got := c.outcomes("work"); !slices.Contains(got, "succeeded 00:01:00") {
			t.Errorf("got %q", got)
		}
	})
}
