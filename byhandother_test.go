package soloist_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/store"
)

// A run by hand of a Scheduler with another definition, which started later,
// leaves the one in force as it is, and its ticks.
func TestARunByHandLeavesTheDefinitionInForce(t *testing.T) {
	for name, takes := range map[string]time.Duration{"over before the tick": time.Second, "over after the tick": 70 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				c.start("a", work("0 2 * * *", time.Second))
				time.Sleep(25 * time.Hour)
				before := c.record("work")
				tool := c.replica("tool", work("*/30 * * * *", takes))
				if f, err := tool.RunNow(c.t.Context(), "work", "x"); err != nil || f.Status != store.Succeeded {
					t.Fatal(f, err)
				}
				after := c.record("work")
				if after.Spec != before.Spec || !after.Since.Equal(before.Since) || !after.Watermark.Equal(before.Watermark) || !after.Due.Equal(before.Due) {
					t.Errorf("the record was %+v and is %+v", before, after)
				}
				time.Sleep(22 * time.Hour)
				ticks := 0
				for _, r := range c.all() {
					if r.Request == "" {
						ticks++
					}
				}
				if ticks != 2 {
					t.Errorf("%d daily ticks ran, want 2: %q", ticks, c.outcomes("work"))
				}
			})
		})
	}
}

// A run whose outcome the definition in force has to decide is not settled by a run
// by hand of another one.
func TestARunByHandOfAnotherDefinitionSettlesNoRun(t *testing.T) {
	for name, end := range map[string]func(*replica){
		"died":    func(a *replica) { a.kill() },
		"stopped": func(a *replica) { a.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("0 * * * *", 10*time.Minute)
				job.Interrupted = soloist.Rerun
				a := c.start("a", job)
				time.Sleep(time.Hour + time.Minute)
				end(a)
				time.Sleep(time.Minute)
				tool := c.replica("tool", work("30 * * * *", time.Second))
				_, err := tool.RunNow(c.t.Context(), "work", "x")
				if !errors.Is(err, soloist.ErrHeld) || !strings.Contains(err.Error(), "the schedule in force") {
					t.Errorf("RunNow: %v", err)
				}
				c.start("b", job)
				time.Sleep(20 * time.Minute)
				if r := c.record("work"); r.Attempt != 2 || r.Status != store.Succeeded {
					t.Errorf("the tick is not run again: %+v", r)
				}
			})
		})
	}
}

// What is claimed by hand and taken back leaves the definition in force too; after
// a deploy the new definition comes into force with its first tick.
func TestANewDefinitionComesIntoForceWithItsTickAfterARunByHand(t *testing.T) {
	inCluster(t, func(c *cluster) {
		a := c.start("a", work("0 2 * * *", time.Second))
		time.Sleep(25 * time.Hour)
		old := c.record("work").Spec
		a.stop()
		b := c.replica("b", work("*/30 * * * *", time.Second))
		if _, err := b.RunNow(c.t.Context(), "work", "x"); err != nil {
			t.Fatal(err)
		}
		if got := c.record("work").Spec; got != old {
			t.Errorf("the definition in force is %s, was %s", got, old)
		}
		c.launch(b)
		time.Sleep(time.Hour)
		if got := c.record("work"); got.Spec == old || got.Tick.Minute()%30 != 0 {
			t.Errorf("the record is %+v", got)
		}
	})
}
