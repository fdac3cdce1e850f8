package soloist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
)

// A job that takes 25 s is due every 10 s, on three replicas; the one that
// runs the second time dies under it.
func TestAJobLongerThanItsInterval(t *testing.T) {
	const abandoned = "abandoned 00:00:40 its runner died"
	for name, tt := range map[string]struct {
		missed      soloist.MissedPolicy
		interrupted soloist.InterruptedPolicy
		want        []string // the first outcomes
		second      string   // the tick that the dead runner had
		attempt     int      // of the run after its death
	}{
		"latest, abandon": {soloist.RunLatest, soloist.Abandon, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			abandoned, "succeeded "}, "40", 1},
		"latest, rerun": {soloist.RunLatest, soloist.Rerun, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped "}, "40", 2},
		"skip, abandon": {soloist.SkipMissed, soloist.Abandon, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			abandoned, "succeeded "}, "40", 1},
		"skip, rerun": {soloist.SkipMissed, soloist.Rerun, []string{"succeeded 00:00:10", "skipped 00:00:10-00:00:30 overlap",
			"succeeded 00:00:40", "skipped "}, "40", 2},
		"all, abandon": {soloist.RunAll, soloist.Abandon, []string{"succeeded 00:00:10", "abandoned 00:00:20 its runner died",
			"succeeded 00:00:30", "succeeded 00:00:40"}, "20", 1},
		"all, rerun": {soloist.RunAll, soloist.Rerun, []string{"succeeded 00:00:10", "succeeded 00:00:20",
			"succeeded 00:00:30"}, "20", 2},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(c *cluster) {
				job := work("@every 10s", 25*time.Second)
				job.Missed, job.Interrupted = tt.missed, tt.interrupted
				all := map[string]*replica{}
				for _, name := range []string{"a", "b", "c"} {
					all[name] = c.start(name, job)
				}
				time.Sleep(45 * time.Second)
				runs := c.all()
				if len(runs) != 2 || runs[1].Tick.Format("05") != tt.second {
					t.Fatalf("got %+v", runs)
				}
				all[runs[1].replica].kill()
				time.Sleep(2 * time.Minute)
				runs = c.all()
				if runs[2].Attempt != tt.attempt || (tt.attempt == 2) != runs[2].Tick.Equal(runs[1].Tick) {
					t.Errorf("after the death: %+v", runs[2].Run)
				}
				disjoint(t, runs)
				// Whether a tick is missed while the death is not noticed depends on
				// the renewal before it.
				got := slices.DeleteFunc(c.outcomes("work"), func(f string) bool { return strings.HasPrefix(f, "missed") })
				if !alike(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if without := overlapsWithout(c.record("work"), runs, 10*time.Second); len(without) > 0 {
					t.Errorf("overlap is told of %q: %q", without, c.outcomes("work"))
				}
			})
		})
	}
}

// alike compares the first outcomes; the ends of ranges, which depend on when the
// death is noticed, may be left out of want.
func alike(got, want []string) bool {
	return len(got) >= len(want) && slices.EqualFunc(got[:len(want)], want, func(g, w string) bool {
		if before, after, ok := strings.Cut(w, "- "); ok {
			return strings.HasPrefix(g, before+"-") && strings.HasSuffix(g, after)
		}
		return g == w || strings.HasSuffix(w, " ") && strings.HasPrefix(g, w)
	})
}

// The newest tick waits for no older one, and the older are told as missed,
// however the replicas go.
func TestRollingRestarts(t *testing.T) {
	inCluster(t, func(c *cluster) {
		job := work("@every 10s", 3*time.Second)
		var up []*replica
		for i := range 30 {
			up = append(up, c.start(fmt.Sprint("r", i), job))
			time.Sleep(11 * time.Second)
			if len(up) > 2 {
				up[0].stop()
				up = up[1:]
			}
		}
		runs := c.all()
		if got := once(t, runs); got < 31 {
			t.Errorf("%d ticks ran in 330 s: %q", got, c.outcomes("work"))
		}
		disjoint(t, runs)
	})
}
