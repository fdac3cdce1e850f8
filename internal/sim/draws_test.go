package sim_test

import (
	"testing"

	"github.com/soloist-go/soloist/internal/sim"
)

// TestDraws has settled clusters meet what no seed draws.
func TestDraws(t *testing.T) {
	for _, name := range sim.Draws() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := max(*from, *seed)
			for s := first; s < first+4; s++ { // some take a coincidence
				holds(t, s, simulate(t, sim.Config{Seed: s, Draw: name}))
			}
		})
	}
}
