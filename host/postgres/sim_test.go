package postgres_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var seedsFlag = flag.Uint64("seeds", 3, "how many clusters to simulate")

// The clusters of package sim, on the real server in virtual time, have all properties of its judge.
func TestSimulation(t *testing.T) {
	url := start(t)
	for seed := range *seedsFlag {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			for _, v := range judge.Judge(simulate(t, url, seed+1, nil)) {
				t.Error(v)
			}
		})
	}
}

// simulate runs a cluster of its own schema, in whose statements there may be a mistake.
func simulate(t *testing.T, url string, seed uint64, m *mistake) (l *trace.Log) {
	synctest.Test(t, func(t *testing.T) {
		s := virtual(t, url, fmt.Sprint("seed", seed))
		if m != nil && !s.Plant(m.statement, m.text, m.with) {
			t.Fatal("it cannot be planted")
		}
		l = sim.Simulate(sim.Config{Seed: seed, Store: s, Length: 20 * time.Minute})
	})
	return l
}
