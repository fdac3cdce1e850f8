package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

// TestSingles judges a cluster that meets one thing at a time after all faults.
func TestSingles(t *testing.T) {
	for s := *from; s < *from+uint64(min(*seeds, 2)); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			l, _ := simulate(t, sim.Config{Seed: s, Length: 2 * time.Minute, Single: true})
			holds(t, s, l)
		})
	}
}
