package sim_test

import (
	"fmt"
	"testing"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
)

// TestSingles judges clusters that meet one thing at a time after all faults.
func TestSingles(t *testing.T) {
	if !*both {
		t.Skip()
	}
	t.Run("seed", func(t *testing.T) {
		for s := *from; s < *from+uint64(*seeds); s++ {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				l, _ := simulate(t, sim.Config{Seed: s, Length: *length, Single: true})
				n := map[string]int{}
				for _, e := range l.Events {
					if e.What == sim.Single {
						n[e.Note]++
					}
				}
				fmt.Println("SINGLES", s, n)
				say(s, "LEAN", judge.Judge(l))
			})
		}
	})
}
