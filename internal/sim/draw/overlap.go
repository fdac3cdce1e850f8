package draw

import (
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// drawOverlap draws what becomes of the ticks that come due under a run, for some jobs of most seeds, and has
// the runs of such a job take longer than its period at times. Its dice are its own, so the jobs of a seed are
// otherwise what they are without it.
func drawOverlap(all []trace.Definition, seed uint64) {
	r := New(seed, 0, "overlap")
	if !r.Chance(0.7) {
		return
	}
	for i := range all {
		some, policy, longer := r.Chance(0.5), Pick(r, soloist.QueueOne, soloist.Replace), Pick(r, 1, 2, 3)
		if d := &all[i]; some && mayOverlap(d, policy) {
			// A job that is always at it would keep the slot of its group from the others.
			if d.Overlap = policy; d.Every <= 5*time.Minute && d.Every >= time.Minute && d.Group == "" {
				d.Most = max(d.Most, time.Duration(longer)*d.Every)
			}
		}
	}
	keepAlike(all)
}

// nextOverlap is what becomes of such ticks under a later version of a program. It leaves the dice as they are.
func nextOverlap(all []trace.Definition, dice *Roll) {
	r := New(uint64(*dice), 0, "overlap")
	for i := range all {
		another, policy := r.Chance(0.1), Pick(r, soloist.SkipOverlap, soloist.QueueOne, soloist.Replace)
		if d := &all[i]; another && mayOverlap(d, policy) {
			d.Overlap = policy
		}
	}
}

// mayOverlap reports whether a job may have a policy.
func mayOverlap(d *trace.Definition, policy soloist.OverlapPolicy) bool {
	waitsInVain := policy == soloist.QueueOne && d.Late.Missed == soloist.SkipMissed && d.Late.Start == 0
	return d.Every > 0 && d.Follows == "" && d.Name != trace.Foreign && d.Late.Missed != soloist.RunAll && !waitsInVain
}
