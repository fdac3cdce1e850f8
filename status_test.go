package soloist_test

import (
	"testing"
	"time"
)

// The next tick is the one by the schedule in force, which a Scheduler with
// another schedule is told apart from its own.
func TestStatusOfAnotherSchedule(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start("a", work("0 * * * *", time.Second))
		time.Sleep(time.Hour + time.Minute)
		for schedule, foreign := range map[string]bool{"0 * * * *": false, "30 * * * *": true} {
			all, err := c.replica("b", work(schedule, time.Second)).Status(c.t.Context())
			if err != nil || len(all) != 1 || all[0].Err != nil {
				t.Fatalf("%s: got %+v, %v", schedule, all, err)
			}
			next := time.Now().Truncate(time.Hour).Add(time.Hour)
			if got := all[0]; got.Foreign != foreign || !got.Next.Equal(next) {
				t.Errorf("%s: foreign %t, next %s, want %t and %s", schedule, got.Foreign, got.Next, foreign, next)
			}
		}
	})
}
