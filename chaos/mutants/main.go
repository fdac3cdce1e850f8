// Command mutants plants random mistakes in the program, one at a time, and
// prints those that no test notices.
//
//	cd chaos && go run ./mutants -seed 1 -n 200
//
// A mistake is one small change of a source file: another comparison, another
// bound, a condition that always or never holds, a statement left out. Each
// mutant that compiles is tested by the short tests of its package. In the core,
// which is the root, store and the packages below internal that run ticks, a
// survivor is then tested by the tests of the root, the scenarios and the
// simulation too. The same seed plants the same mistakes in the same source. Each line begins with
// the mutant's number in the draw; after an interruption, -skip leaves out the
// numbers that are done.
//
// It ends with code 1 if mutants survive or time out. Read each of these:
//
//   - A survivor is not always a defect: some mistakes have no effect.
//   - A time-out is not always a catch. The mistake can keep a replica from
//     ending, or it can merely make it do so much that the tests take too long.
//     The line after it names the tests that were running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

// core are the tests of what runs ticks, as arguments of go test, the quickest
// first.
var core = [][]string{{"."}, {"./internal/scenarios"}, {"./internal/sim", "-run", "TestSeeds$", "-seeds", "10", "-length", "20m"}}

// targets are the packages in which mistakes are planted, relative to the
// module's root.
var targets = []struct {
	dir  string
	more [][]string // arguments of further runs of go test, for survivors of the package's own tests
}{
	{".", core[1:]},
	{"store", core},
	{"internal/instant", core},
	{"internal/lease", core},
	{"internal/logqueue", core},
	{"internal/plan", core},
	{"internal/queue", core},
	{"internal/runner", core},
	{"internal/supervise", core},
	{"host/azure", nil},
	{"host/local", nil},
	{"internal/schedule", nil},
}

func main() {
	seed := flag.Uint64("seed", 1, "which mistakes are drawn")
	n := flag.Int("n", 200, "how many `mutants`")
	skip := flag.Int("skip", 0, "leave out the first `mutants` of these, which an interrupted run has tested")
	side := flag.Int("side", 2, "how many are tested side by side")
	timeout := flag.Duration("timeout", 2*time.Minute, "of one test run; a mutant that takes longer is reported apart from those that fail")
	root := flag.String("root", "..", "the module's `directory`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c, err := draw(*root, *seed, *timeout)
	if err == nil {
		fmt.Printf("%d places for a mistake; seed %d draws %d of them\n", len(c.all), *seed, *n)
		err = c.run(ctx, *skip, *n, *side)
		fmt.Println(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if c.counts[alive]+c.counts[endless] > 0 {
		os.Exit(1)
	}
}
