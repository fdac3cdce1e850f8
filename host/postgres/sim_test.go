package postgres_test

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	fromFlag  = flag.Uint64("from", 1, "the first seed")
	seedsFlag = flag.Uint64("seeds", 2, "how many clusters of each kind to simulate")
)

// The kinds of clusters, as in the tests of package sim.
var (
	usual  = sim.Config{Length: 20 * time.Minute}
	atZero = sim.Config{Length: 2 * time.Hour, Zero: true}
	single = sim.Config{Length: 2 * time.Minute, Single: true, NoFaultPlan: true, NetworkFaults: []draw.NetworkFault{}}
)

// The clusters of package sim, over the real server in virtual time, have all the properties that its judge demands.
func TestSimulation(t *testing.T) {
	url := start(t)
	for kind, c := range map[string]sim.Config{"usual": usual, "zero": atZero, "single": single} {
		for n := range *seedsFlag {
			c.Seed = *fromFlag + n
			t.Run(fmt.Sprint(kind, c.Seed), func(t *testing.T) {
				t.Parallel()
				l := simulate(t, url, c, mistake{})
				for _, v := range judge.Judge(l) {
					t.Error(v)
				}
				for _, e := range l.Events {
					if e.Status == 400 { // no other error than those of the contract
						t.Error(e.Time, e.Op, e.Job, e.Code)
					}
				}
			})
		}
	}
}

// simulate runs a cluster in a schema of its own, over statements of which one may have a mistake.
func simulate(t *testing.T, url string, c sim.Config, m mistake) (l *trace.Log) {
	schema := fmt.Sprintf("sim%d", time.Now().UnixNano())
	synctest.Test(t, func(t *testing.T) {
		s := virtual(t, url, schema)
		if m.text != "" && !s.Plant(m.statement, m.text, m.with) {
			t.Fatal("it cannot be planted")
		}
		c.Store = s
		l = sim.Simulate(c)
	})
	return l
}
