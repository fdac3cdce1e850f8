package sim_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

var often = flag.Bool("often", false, "have TestSeedIsRepeatable simulate each seed up to ten times, or for longer")

// A seed is the same simulation each time, or a failure could not be looked at
// again.
func TestSeedIsRepeatable(t *testing.T) {
	for s, one := range map[uint64]struct {
		times  int
		length time.Duration
	}{
		3:   {10, 8 * time.Minute},
		10:  {2, time.Hour}, // all jobs
		19:  {10, 8 * time.Minute},
		27:  {4, 20 * time.Minute}, // quiet: one kind of trouble alone
		30:  {4, 20 * time.Minute}, // all jobs, and a HealthCheck that hangs
		160: {10, 8 * time.Minute}, // woken replicas, with all jobs
		60:  {10, 8 * time.Minute}, // all jobs, and a newer program's entry
	} {
		if !*often {
			one.times, one.length = 2, 8*time.Minute
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			isRepeatable(t, one.times, sim.Config{Seed: s, Length: one.length})
		})
	}
}

// A seed is the same simulation each time also where a platform starts the replicas.
func TestSeedAtZeroIsRepeatable(t *testing.T) {
	for _, s := range []uint64{1, 3, 4, 5} { // in seed 2 two limits of one call end at one instant, and either may end it
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			isRepeatable(t, 2, sim.Config{Seed: s, Length: 3 * time.Hour, Zero: true})
		})
	}
}

func isRepeatable(t *testing.T, times int, c sim.Config) {
	t.Helper()
	first := simulate(t, c)
	for n := range times - 1 {
		if l := simulate(t, c); l.Hash() != first.Hash() {
			t.Fatalf("simulation %d differs from the first: %s", n+2, first.Differs(l))
		}
	}
}
