// Blob is a replica of the bench: a blob lease for each tick, as people write it by hand. Whoever
// gets the lease runs the tick, and gives the lease back.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/soloist-go/soloist/bench/internal/replica"
)

func main() { replica.Main(serve) }

func serve(ctx context.Context, w *replica.Worker) error {
	c, err := openBlobs(ctx, w.Service, w.Space)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	defer all.Wait()
	for _, j := range w.Jobs {
		b, err := c.Blob(ctx, j.Name)
		if err != nil {
			return err
		}
		all.Go(func() {
			for tick := j.Next(w.Now()); wait(ctx, tick.Sub(w.Now())); tick = j.Next(tick) {
				if err := run(ctx, w, b, j, tick); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
	return nil
}

// run runs a tick if the lease is free.
func run(ctx context.Context, w *replica.Worker, b *leasedBlob, j replica.Job, tick time.Time) error {
	const seconds = 15
	ok, err := b.Acquire(ctx, seconds)
	if err != nil || !ok {
		return err
	}
	defer b.Release(context.WithoutCancel(ctx))
	return w.Do(ctx, j, tick)
}

// wait waits, and returns false if ctx ends.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
