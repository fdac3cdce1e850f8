package sqlstore_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
)

var (
	seeds  = flag.Int("seeds", 8, "simulate so many seeds")
	length = flag.Duration("length", 10*time.Minute, "of the time with faults in each simulation")
)

// TestSimulation simulates replicas that share the store: with a network that
// loses, delays and repeats, crashes, suspensions, clocks that are wrong,
// operators and deploys; and judges them by every property.
func TestSimulation(t *testing.T) {
	for seed := 1; seed <= *seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := sim.Simulate(sim.Config{Seed: uint64(seed), Length: *length, Store: openSQLite(t)})
				bad := judge.Judge(log)
				for _, violation := range bad[:min(len(bad), 5)] {
					t.Error(violation)
				}
				if len(bad) > 5 {
					t.Errorf("and %d more", len(bad)-5)
				}
			})
		})
	}
}
