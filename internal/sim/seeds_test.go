package sim_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/internal/sim"
	"github.com/soloist-go/soloist/internal/sim/draw"
	"github.com/soloist-go/soloist/internal/sim/judge"
	"github.com/soloist-go/soloist/internal/sim/trace"
)

var (
	seed   = flag.Uint64("seed", 0, "simulate this seed alone; with -v its events are told")
	from   = flag.Uint64("from", 1, "the first seed")
	seeds  = flag.Int("seeds", 0, "simulate so many seeds; 0: a few")
	length = flag.Duration("length", 20*time.Minute, "of the time with faults in each simulation")
)

// TestMain lets the heap grow: a simulation makes little that lasts.
func TestMain(m *testing.M) {
	flag.Parse()
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// named returns the first seed and how many seeds the flags name, or else so many.
func named(byDefault int) (first uint64, n int) {
	if *seed != 0 {
		return *seed, 1
	}
	return *from, cmp.Or(*seeds, byDefault)
}

// simulate runs a cluster in a bubble of its own.
func simulate(t *testing.T, c sim.Config) (l *trace.Log) {
	synctest.Test(t, func(*testing.T) { l = sim.Simulate(c) })
	return l
}

// TestSeeds simulates clusters that meet all that the seed draws, and judges them by every property.
func TestSeeds(t *testing.T) {
	met := testSeeds(t, sim.Config{Length: *length}, 4)
	if *seeds < 100 || *length < 2*time.Hour {
		return // some faults are rare
	}
	for _, p := range draw.Points() {
		if met["crash: "+p] == 0 {
			t.Errorf("no replica crashed at %q", p)
		}
	}
	for _, kind := range sim.Corruptions {
		if met["spoilt: "+kind] == 0 {
			t.Errorf("nowhere: %s", kind)
		}
	}
}

// TestSeedsOverStore simulates clusters over a store in place of blobs, as the tests of host/postgres do.
func TestSeedsOverStore(t *testing.T) {
	first, n := named(2)
	for s := first; s < first+uint64(n); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			t.Parallel()
			holds(t, s, simulate(t, sim.Config{Seed: s, Length: *length, Store: new(local.Memory)}))
		})
	}
}

// TestSeedsAtZero simulates clusters that a platform scales to zero: it starts a replica when a message is visible in the
// queue of alarms, and loses, delays and repeats messages. A simulated hour without a replica costs next to nothing, so
// each is 18 times as long as -length says.
func TestSeedsAtZero(t *testing.T) { testSeeds(t, sim.Config{Length: 18 * *length, Zero: true}, 1) }

// testSeeds simulates and judges the seeds that the flags name, and returns what they have met.
func testSeeds(t *testing.T, c sim.Config, byDefault int) map[string]int {
	first, n := named(byDefault)
	begin := time.Now()
	var mu sync.Mutex
	met := map[string]int{}
	t.Run("seed", func(t *testing.T) {
		for s := first; s < first+uint64(n); s++ {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				c := c
				c.Seed = s
				l := simulate(t, c)
				holds(t, s, l)
				mu.Lock()
				defer mu.Unlock()
				count(met, l)
			})
		}
	})
	t.Logf("%d seeds of %s in %s: %s", n, c.Length, time.Since(begin).Round(time.Millisecond), list(met))
	return met
}

// count adds what a simulation has met.
func count(met map[string]int, l *trace.Log) {
	for _, e := range l.Events {
		switch e.What {
		case trace.Request:
			met[map[bool]string{true: "operator's ", false: ""}[e.Replica == trace.Operator]+e.Op]++
			if e.Then != nil {
				met[e.Op+" and "+e.Then.Op]++
			}
			if e.Cause != "" {
				met["fault: "+e.Cause]++
			}
		case trace.Crash, trace.Corrupted:
			met[string(e.What)+": "+e.Note]++
		case trace.Ordered:
			met["ordered: "+e.Op]++
		default:
			met[string(e.What)]++
		}
	}
}

// holds tells what is wrong with a log, and how to have it again.
func holds(t *testing.T, s uint64, l *trace.Log) {
	t.Helper()
	bad := judge.Judge(l)
	for i, v := range bad {
		if i == 5 {
			t.Errorf("and %d more", len(bad)-i)
			break
		}
		t.Error(v)
	}
	if len(bad) > 0 {
		name, _, _ := strings.Cut(t.Name(), "/")
		t.Errorf("again: go test ./internal/sim -run %s$ -seed %d -length %s -v", name, s, *length)
	}
	if *seed != 0 && testing.Verbose() {
		l.Write(os.Stdout)
	}
}

func list(counts map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, fmt.Sprintf("%s %d", k, counts[k]))
	}
	return strings.Join(all, ", ")
}
