package world

import (
	"context"
	"time"
)

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ended(ctx)
}

// ended is why ctx has ended. Where it was cancelled at its deadline, it is that:
// which came first, nobody can tell.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() != nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ended(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}
