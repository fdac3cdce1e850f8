package soloist_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// long is a job that takes half an hour.
func long() soloist.Job {
	job := work("@daily", 30*time.Minute)
	job.Interrupted = soloist.Rerun
	return job
}

// A long run survives any number of orderly deploys: they are no deaths.
func TestDeploysDoNotUseUpATick(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(23*time.Hour + 59*time.Minute)
		replica := c.start("a", long())
		for i := range 8 {
			time.Sleep(3 * time.Minute)
			replica.stop()
			replica = c.start(string(rune('b'+i)), long())
		}
		time.Sleep(40 * time.Minute)
		if got := c.outcomes("work"); !slices.Equal(got, []string{"succeeded 00:00:00"}) {
			t.Errorf("got %q", got)
		}
		for i, r := range c.all() {
			if r.Attempt != i+1 {
				t.Errorf("run %d is attempt %d", i+1, r.Attempt)
			}
		}
		if r := c.record("work"); r.Attempt != 9 || r.Deaths != 0 {
			t.Errorf("attempt %d, %d deaths", r.Attempt, r.Deaths)
		}
	})
}

// Five deaths give a tick up, however often it was stopped in between. The next
// tick begins at zero.
func TestFiveDeathsGiveATickUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		time.Sleep(23*time.Hour + 59*time.Minute)
		for i := range 9 {
			r := c.start(string(rune('a'+i)), long())
			time.Sleep(3 * time.Minute)
			if i%2 == 0 {
				r.kill()
			}
			r.stop()
		}
		c.start("z", long())
		time.Sleep(3 * time.Minute)
		if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 00:00:00 its runner died"}) || len(c.all()) != 9 {
			t.Errorf("got %q after %d runs", got, len(c.all()))
		}
		time.Sleep(25 * time.Hour)
		if r := c.record("work"); r.Deaths != 0 || r.Attempt != 1 || r.Status != store.Succeeded {
			t.Errorf("the next tick: %s, attempt %d, %d deaths", r.Status, r.Attempt, r.Deaths)
		}
	})
}

// A run that needs more time than any call has is not called for ever.
func TestATickThatNoCallHasTheTimeForIsGivenUp(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.replica("a", long())
		if _, err := a.RunDue(c.t.Context(), soloist.Wake{}); err != nil {
			t.Error(err)
		}
		time.Sleep(24 * time.Hour)
		for range 8 {
			ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Minute)
			if _, err := a.RunDue(ctx, soloist.Wake{}); err != nil && !strings.Contains(err.Error(), "deadline") {
				t.Error(err)
			}
			cancel()
		}
		if got := c.outcomes("work"); !slices.Equal(got, []string{"abandoned 00:00:00 out of time, stopped"}) || len(c.all()) != 5 {
			t.Errorf("got %q after %d runs", got, len(c.all()))
		}
	})
}
