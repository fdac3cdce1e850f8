package soloist_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		other, daily := work("@every 10s", time.Second), work("0 5 * * *", time.Second)
		other.Name, daily.Name = "other", "daily" // which has nothing to ask during the outage
		a := c.start("a", work("@every 10s", time.Second), other, daily)
		time.Sleep(35 * time.Second)
		a.tap.meet(func(string, func() error) error { return errNetwork })
		a.tap.counts()
		time.Sleep(10 * time.Minute)
		if h := a.Health(); h.Storage == nil || len(h.Stuck) != 0 || len(h.Broken) != 0 {
			t.Errorf("during the outage: %+v", h)
		}
		total := 0
		for _, n := range a.tap.counts() {
			total += n
		}
		if total > 600 {
			t.Errorf("%d calls in ten minutes", total)
		}
		a.tap.meet(nil)
		over := time.Now()
		time.Sleep(30 * time.Second)
		if h := a.Health(); h.Storage != nil {
			t.Errorf("after the outage: %+v", h)
		}
		runs := c.all()
		if last := runs[len(runs)-1]; last.start.Before(over) {
			t.Error("nothing ran after the outage")
		}
		if got := a.log.lines("level=WARN", "out of reach"); len(got) != 1 {
			t.Errorf("the outage was told %d times: %q", len(got), got)
		}
		if got := a.log.lines("answers again"); len(got) != 1 {
			t.Errorf("its end was told %d times", len(got))
		}
		if got := c.outcomes("work"); !strings.HasPrefix(got[3], "missed 00:00:30-00:10:") {
			t.Errorf("got %q", got)
		}
	})
}

func TestATroubleOfOneJobIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		other := work("@every 10s", time.Second)
		other.Name = "other"
		a := c.replica("a", work("@every 10s", time.Second), other)
		a.tap.deny = "soloist/work"
		c.launch(a)
		for range 20 {
			time.Sleep(27 * time.Second)
			if h := a.Health(); h.Storage != nil || len(h.Broken) != 1 || !errors.Is(h.Broken["work"], fs.ErrPermission) {
				t.Errorf("got %+v", h)
			}
		}
	})
}

func TestAnOutageAtTheStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", work("@every 10s", time.Second))
		a.tap.meet(func(string, func() error) error { return fs.ErrPermission })
		c.launch(a)
		time.Sleep(5 * time.Minute)
		if h := a.Health(); !errors.Is(h.Storage, fs.ErrPermission) {
			t.Errorf("health says %v", h.Storage)
		}
		a.tap.meet(nil)
		time.Sleep(30 * time.Second)
		if got := len(c.all()); got < 1 {
			t.Error("nothing runs after the outage")
		}
		if got := a.log.lines("level=WARN", "out of reach"); len(got) != 1 {
			t.Errorf("the outage was told %d times: %q", len(got), got)
		}
	})
}

func TestAFinishAfterAnOutageIsKept(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("@every 1h", 5*time.Second))
		time.Sleep(time.Hour + 2*time.Second)
		a.tap.meet(func(string, func() error) error { return errNetwork })
		time.Sleep(2 * time.Minute)
		a.tap.meet(nil)
		time.Sleep(15 * time.Second)
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A renewal that fails once and then succeeds is no outage: neither Health nor the
// log tells of one.
func TestOneFailureUnderARunIsNoOutage(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 * * * *", time.Minute))
		time.Sleep(time.Hour + time.Second)
		failures := 0
		var told error
		a.tap.meet(func(op string, apply func() error) error {
			if op != "renew" || failures == 1 {
				return apply()
			}
			failures++
			time.AfterFunc(D/100, func() { told = a.Health().Storage })
			return errNetwork
		})
		time.Sleep(10 * time.Minute)
		c.stopAll()
		if failures != 1 || told != nil {
			t.Errorf("%d failures, Health told %v", failures, told)
		}
		if got := a.log.lines("out of reach"); len(got) > 0 {
			t.Errorf("the log says %q", got)
		}
		if got, want := c.outcomes("work"), []string{"succeeded 01:00:00"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
