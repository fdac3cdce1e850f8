//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/bench/internal/blob"
	"github.com/soloist-go/soloist/internal/proctest"
)

// price measures what one call of the storage takes, over the proxy, while nothing else asks: what
// the delays are compared with. It does so before each batch, since the machine has slow minutes,
// and pauses before each call: the calls of a tick come after a pause too, which makes them slower.
func (b *bench) price(ctx context.Context, t *table) error {
	if b.services.ready["azurite"] == "" {
		return nil
	}
	c, err := blob.Open(ctx, b.services.ready["azurite"], "yardstick")
	if err != nil {
		return err
	}
	one, err := c.Blob(ctx, fmt.Sprint("blob-", time.Now().UnixNano()))
	if err != nil {
		return err
	}
	for range 20 {
		acquire, err := timed(ctx, func() error {
			ok, err := one.Acquire(ctx, 15)
			if err == nil && !ok {
				err = errors.New("the yardstick's lease is not free")
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := one.Release(ctx); err != nil {
			return err
		}
		metadata, err := timed(ctx, func() error { return one.SetMetadata(ctx, "record", "one") })
		if err != nil {
			return err
		}
		t.acquire, t.metadata = append(t.acquire, acquire), append(t.metadata, metadata)
	}
	return nil
}

// timed measures a call after a pause.
func timed(ctx context.Context, call func() error) (time.Duration, error) {
	if err := proctest.Pause(ctx, 20*ms); err != nil {
		return 0, err
	}
	began := time.Now()
	err := call()
	return time.Since(began), err
}

// median of durations in any order.
func median(all []time.Duration) time.Duration {
	return percentile(slices.Sorted(slices.Values(all)), 50)
}
