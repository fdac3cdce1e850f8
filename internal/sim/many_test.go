package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/soloist-go/soloist"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

// A replica with a dozen jobs or more reads their entries by listings, under the faults of a seed.
func TestJobsThatAreListed(t *testing.T) {
	var program []trace.Definition
	for i := range 14 {
		d := trace.Definition{Every: 5 * time.Minute, Job: soloist.Job{Name: fmt.Sprintf("job-%d", i), Schedule: "*/5 * * * *", Lease: 15 * time.Second}, Least: time.Second, Most: 20 * time.Second}
		if i%3 == 0 {
			d.Interrupted = soloist.Rerun
		}
		program = append(program, d)
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) {
			t.Parallel()
			l := simulate(t, sim.Config{Seed: seed + 1, Length: 20 * time.Minute, Program: program})
			for _, v := range judge.Judge(l) {
				t.Error(v)
			}
		})
	}
}
