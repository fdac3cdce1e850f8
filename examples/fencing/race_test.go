package fencing_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/soloist-go/soloist/examples/fencing"
)

// A resource is what two runs write to.
type resource struct {
	write   func(token int64) error
	effects func(t *testing.T) []int64 // their tokens, in order
}

// checkRace has two runners write at the same time: each accepted write has an
// effect, and none comes after one with a larger token.
func checkRace(t *testing.T, rounds int, r resource) {
	t.Helper()
	want := race(t, rounds, r.write)
	tokens := r.effects(t)
	if n := stale(tokens); n > 0 {
		t.Errorf("of %d effects, %d were of a run older than one before", len(tokens), n)
	}
	if len(tokens) != want {
		t.Errorf("%d effects of %d accepted writes", len(tokens), want)
	}
}

// race has an old and a new runner write to the same resource at the same time,
// in so many rounds, each runner with two goroutines. It returns how many
// writes were accepted.
func race(t *testing.T, rounds int, write func(token int64) error) int {
	t.Helper()
	var accepted, contested atomic.Int64
	for round := range rounds {
		older, newer := int64(2*round+1), int64(2*round+2)
		if err := write(older); err != nil {
			t.Fatalf("token %d, before the newer run: %v", older, err)
		}
		accepted.Add(1)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { // goes on until it is refused, or has kept the row for long
				for range 50 {
					err := write(older)
					if err != nil {
						if !errors.Is(err, fencing.ErrStale) {
							t.Errorf("token %d: %v", older, err)
						}
						return
					}
					accepted.Add(1)
					contested.Add(1)
				}
			})
			both.Go(func() {
				for range 3 { // the same token again and again
					if err := write(newer); err != nil {
						t.Errorf("token %d, the newest: %v", newer, err)
						return
					}
					accepted.Add(1)
				}
			})
		}
		both.Wait()
		if err := write(older); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("token %d after %d: got %v, want ErrStale", older, newer, err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d rounds, %d writes of an old run accepted while the new one wrote", rounds, contested.Load())
	return int(accepted.Load())
}

// stale counts the tokens that come after a larger one.
func stale(tokens []int64) (n int) {
	var largest int64
	for _, token := range tokens {
		if token < largest {
			n++
		}
		largest = max(largest, token)
	}
	return n
}
