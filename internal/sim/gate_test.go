package sim_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/soloist-go/soloist/internal/sim"
)

var gate = flag.Bool("gate", false, "print the hashes of 200 simulations, to compare the behaviour of two versions")

// TestGate prints what 200 simulations of 20 minutes come to. A change of the code
// that leaves its behaviour alone leaves both hashes of each alone, one that changes
// only texts leaves the second one alone:
//
//	go test ./internal/sim -run TestGate -gate -v | grep gate
func TestGate(t *testing.T) {
	if !*gate {
		t.Skip("it compares versions: -gate")
	}
	const n = 200
	var (
		hashes [n][2]string
		all    sync.Mutex
	)
	t.Run("seeds", func(t *testing.T) {
		for i := range n {
			t.Run(fmt.Sprint(i+1), func(t *testing.T) {
				t.Parallel()
				l := simulate(t, sim.Config{Seed: uint64(i + 1), Length: 20 * time.Minute})
				all.Lock()
				defer all.Unlock()
				hashes[i] = [2]string{l.Hash(), l.Structure()}
			})
		}
	})
	sum, structure := sha256.New(), sha256.New()
	for i, h := range hashes {
		fmt.Printf("gate: seed %d %s %s\n", i+1, h[0], h[1])
		fmt.Fprintln(sum, h[0])
		fmt.Fprintln(structure, h[1])
	}
	fmt.Printf("gate: all %d seeds %x, without texts %x\n", n, sum.Sum(nil), structure.Sum(nil))
}
