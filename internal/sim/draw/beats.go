package draw

import (
	"cmp"
	"time"

	"github.com/soloist-go/soloist/internal/sim/trace"
)

// Fence is the shortest lease that the simulated service takes. A run with a shorter one beats.
const Fence = 15 * time.Second

// drawBeats gives some of the jobs and singletons a lease that is shorter than the service's
// shortest, in a third of the programs. The shards of a whole have the same.
func drawBeats(all []trace.Definition, r *Roll) {
	drawn := map[string]time.Duration{}
	some := r.Chance(0.34)
	for i := range all {
		d := &all[i]
		whole := cmp.Or(d.Whole, d.Name)
		beat, known := drawn[whole]
		if !known && some && r.Chance(0.5) {
			beat = Pick(r, time.Second, 2*time.Second, 3*time.Second, 3*time.Second, 5*time.Second, 10*time.Second)
		}
		drawn[whole] = beat
		if d.Beat = 0; beat > 0 && !d.EveryReplica && d.Name != trace.Foreign {
			d.Lease, d.Beat = Fence, beat
		}
	}
}
