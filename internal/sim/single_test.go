package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// TestSingles judges settled clusters that meet one thing at a time. Two seeds that follow each other meet all of them.
func TestSingles(t *testing.T) { testSingles(t, sim.Config{}, 8) }

// TestSinglesAtZero has all replicas of a cluster that scales to zero die, again and again.
func TestSinglesAtZero(t *testing.T) { testSingles(t, sim.Config{Zero: true}, 4) }

func testSingles(t *testing.T, c sim.Config, befallen int) {
	first, n := named(2)
	c.Length, c.Single, c.NoFaultPlan = 2*time.Minute, true, true
	for s := first; s < first+uint64(n); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			c := c
			if c.Seed = s; s%2 == 0 { // the others have a network that fails before
				c.NetworkFaults = []draw.NetworkFault{}
			}
			l := simulate(t, c)
			holds(t, s, l)
			all := 0
			for _, e := range l.Events {
				if e.What == trace.Single && e.Op != trace.Over {
					all++
				}
			}
			if all < befallen {
				t.Errorf("%d things have befallen the cluster, want %d", all, befallen)
			}
		})
	}
}
