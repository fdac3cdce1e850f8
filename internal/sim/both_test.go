package sim_test

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/check"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	both   = flag.Bool("both", false, "judge by both checkers")
	scaled = flag.Bool("zero", false, "compare them on clusters that scale to zero")
)

// TestBoth judges each seed by both checkers, and tells what each says: for comparison.
func TestBoth(t *testing.T) {
	if !*both {
		t.Skip()
	}
	var simulated, full, short, requests atomic.Int64
	var mu sync.Mutex
	t.Run("seed", func(t *testing.T) {
		for s := *from; s < *from+uint64(*seeds); s++ {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				begin := time.Now()
				c := sim.Config{Seed: s, Length: *length, Zero: *scaled}
				if c.Zero {
					c.Length *= 18
				}
				l, tally := simulate(t, c)
				simulated.Add(int64(time.Since(begin)))
				requests.Add(int64(tally.Requests))
				begin = time.Now()
				b := judge.Judge(l)
				short.Add(int64(time.Since(begin)))
				begin = time.Now()
				a := check.Judge(l)
				full.Add(int64(time.Since(begin)))
				mu.Lock()
				defer mu.Unlock()
				say(s, "FULL", a)
				say(s, "LEAN", b)
			})
		}
	})
	fmt.Printf("TIMES simulate %s, full %s, lean %s, %d requests\n", time.Duration(simulated.Load()), time.Duration(full.Load()), time.Duration(short.Load()), requests.Load())
}

func say(s uint64, who string, all []trace.Violation) {
	seen := map[string]int{}
	for _, v := range all {
		if seen[v.Invariant]++; seen[v.Invariant] <= 2 {
			fmt.Printf("%s %d [%s] %s\n", who, s, v.Invariant, v)
		}
	}
	for k, n := range seen {
		fmt.Printf("SUM %s %d %s %d\n", who, s, k, n)
	}
}
