package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"
)

// A campaign tests mutants and counts the verdicts.
type campaign struct {
	root    string
	all     []mutant // in the order of the draw
	timeout time.Duration

	mu     sync.Mutex
	counts map[verdict]int
}

// draw puts all mistakes in the order that belongs to the seed.
func draw(root string, seed uint64, timeout time.Duration) (*campaign, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	all, err := findAll(root)
	if err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return &campaign{root: root, all: all, timeout: timeout, counts: map[verdict]int{}}, nil
}

// run tests the mutants from skip to n, side of them side by side. The error is
// the context's.
func (c *campaign) run(ctx context.Context, skip, n, side int) error {
	var (
		queue = make(chan int)
		done  sync.WaitGroup
	)
	for range side {
		done.Go(func() {
			for i := range queue {
				c.one(ctx, i)
			}
		})
	}
	for i := skip; i < min(n, len(c.all)) && ctx.Err() == nil; i++ {
		queue <- i
	}
	close(queue)
	done.Wait()
	return ctx.Err()
}

// one tests the mutant at index i. An interruption ends its tests too: that says
// nothing about the mistake.
func (c *campaign) one(ctx context.Context, i int) {
	start := time.Now()
	v, detail := test(ctx, c.root, c.all[i], c.timeout)
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[v]++
	fmt.Printf("%4d  %-9s %5.1fs  %s\n", i+1, v, time.Since(start).Seconds(), c.all[i])
	if detail != "" {
		fmt.Println("      " + detail)
	}
}

// String is the summary.
func (c *campaign) String() string {
	k := c.counts
	return fmt.Sprintf("%d mutants: %d caught, %d timed out, %d invalid, %d survived",
		k[caught]+k[endless]+k[invalid]+k[alive], k[caught], k[endless], k[invalid], k[alive])
}
