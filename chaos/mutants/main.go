// Command mutants plants random mistakes in the program, one at a time, and
// prints those that no test notices.
//
//	cd chaos && go run ./mutants -seed 1 -n 200
//
// A mistake is one small change of a source file: another comparison, another
// bound, a condition that always or never holds, a statement left out. Each
// mutant that compiles is tested by the short tests of its package. In the core
// a survivor is then tested by the interleavings and the simulation too. The same seed plants the same mistakes in the same source.
//
// It ends with code 1 if mutants survive. A survivor is not always a defect:
// some mistakes change nothing that anybody could notice. Read each.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"
)

// targets are the packages in which mistakes are planted, relative to the
// module's root.
var targets = []struct {
	dir  string
	more [][]string // arguments of further runs of go test, for survivors of the package's own tests
}{
	{".", [][]string{{"./internal/interleavings"}, {"./internal/sim", "-run", "TestSeeds$", "-seeds", "10", "-length", "20m"}}},
	{"host/azure", nil},
	{"host/local", nil},
	{"internal/schedule", nil},
}

func main() {
	seed := flag.Uint64("seed", 1, "which mistakes are drawn")
	n := flag.Int("n", 200, "how many `mutants`")
	skip := flag.Int("skip", 0, "leave out the first `mutants` of these, which an interrupted run has tested")
	side := flag.Int("side", 2, "how many are tested side by side")
	timeout := flag.Duration("timeout", 2*time.Minute, "of one test run; a mutant that takes longer is caught")
	root := flag.String("root", "..", "the module's `directory`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survived, err := run(ctx, *root, *seed, *skip, *n, *side, *timeout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

// run plants the mistakes from skip to n and returns how many survived.
func run(ctx context.Context, root string, seed uint64, skip, n, side int, timeout time.Duration) (survived int, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return 0, err
	}
	all, err := findAll(root)
	if err != nil {
		return 0, err
	}
	fmt.Printf("%d places for a mistake; seed %d draws %d of them\n", len(all), seed, n)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	var (
		mu     sync.Mutex
		counts = map[verdict]int{}
		queue  = make(chan mutant)
		done   sync.WaitGroup
	)
	for range side {
		done.Go(func() {
			for m := range queue {
				start := time.Now()
				v, detail := test(ctx, root, m, timeout)
				mu.Lock()
				counts[v]++
				fmt.Printf("%-8s %5.1fs  %s\n", v, time.Since(start).Seconds(), m)
				if detail != "" {
					fmt.Println(detail)
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all[min(skip, len(all)):min(n, len(all))] {
		if ctx.Err() != nil {
			break
		}
		queue <- m
	}
	close(queue)
	done.Wait()
	fmt.Printf("%d caught, %d do not compile, %d survived\n", counts[caught], counts[invalid], counts[alive])
	return counts[alive], ctx.Err()
}
