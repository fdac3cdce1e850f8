package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/soloist-go/soloist/host/local"
	"github.com/soloist-go/soloist/store"
)

// lost calls everybody lost.
func lost(context.Context, *call) (store.Revision, error) { return store.Revision{}, store.ErrLost }

// nothing says it did.
func nothing(context.Context, *call) (store.Revision, error) { return store.Revision{}, nil }

// anybody acts for the holder.
func anybody(ctx context.Context, c *call) (store.Revision, error) {
	c.id = c.store.holder(c.name, c.id)
	return c.run(ctx)
}

// unconditional ignores the ETag.
func unconditional(ctx context.Context, c *call) (store.Revision, error) {
	for {
		c.etag = c.present(ctx).ETag
		r, err := c.run(ctx)
		if !errors.Is(err, store.ErrChanged) {
			return r, err
		}
	}
}

// unheard does what was asked, whatever the context says.
func unheard(ctx context.Context, c *call) (store.Revision, error) {
	return c.run(context.WithoutCancel(ctx))
}

// unmarked succeeds without an ETag.
func unmarked(ctx context.Context, c *call) (store.Revision, error) {
	r, err := c.run(ctx)
	r.ETag = ""
	return r, err
}

// renewing renews on the way.
func renewing(ctx context.Context, c *call) (store.Revision, error) {
	_, _ = c.lease().Renew(ctx)
	return c.run(ctx)
}

// hidden answers every refusal with success.
func hidden(ctx context.Context, c *call) (store.Revision, error) {
	r, err := c.run(ctx)
	for _, refusal := range []error{store.ErrHeld, store.ErrLost, store.ErrChanged} {
		if errors.Is(err, refusal) {
			return store.Revision{ETag: c.present(ctx).ETag}, nil
		}
	}
	return r, err
}

// releasesAny frees whoever holds it.
func releasesAny(ctx context.Context, c *call) (store.Revision, error) {
	r, err := anybody(ctx, c)
	if errors.Is(err, store.ErrLost) {
		err = nil
	}
	return r, err
}

// late writes under a lease that has expired.
func late(ctx context.Context, c *call) (store.Revision, error) {
	r, err := c.run(ctx)
	if errors.Is(err, store.ErrLost) {
		if _, err := c.lease().Renew(ctx); err == nil {
			return c.run(ctx)
		}
	}
	return r, err
}

func acquiresHeld(ctx context.Context, c *call) (store.Revision, error) {
	r, err := c.run(ctx)
	if errors.Is(err, store.ErrHeld) {
		_ = c.store.Break(ctx, c.name, 0)
		return c.run(ctx)
	}
	return r, err
}

// acquiresOnce refuses the holder itself.
func acquiresOnce(ctx context.Context, c *call) (store.Revision, error) {
	if _, err := c.lease().Write(ctx, c.etag, []byte("x")); err == nil || errors.Is(err, store.ErrChanged) {
		return store.Revision{}, store.ErrHeld
	}
	return c.run(ctx)
}

// acquiresFresh thinks that a lease which ended by itself is still there.
func acquiresFresh(ctx context.Context, c *call) (store.Revision, error) {
	if state := c.present(ctx).State; state == store.Expired || state == store.Broken {
		return store.Revision{}, store.ErrHeld
	}
	return c.run(ctx)
}

// acquiresAnyLength cuts a length to the limits in silence.
func acquiresAnyLength(ctx context.Context, c *call) (store.Revision, error) {
	c.length = min(max(c.length, local.Shortest), local.Longest)
	return c.run(ctx)
}

// renewsLive cannot revive an expired lease.
func renewsLive(ctx context.Context, c *call) (store.Revision, error) {
	if e := c.present(ctx); e.ETag != "" && e.State != store.Leased {
		return store.Revision{}, store.ErrLost
	}
	return c.run(ctx)
}

// news makes no new ETag for what is there already.
func news(ctx context.Context, c *call) (store.Revision, error) {
	old, err := c.lease().(store.Checkpointer).Load(ctx, c.etag)
	e := c.present(ctx)
	if err == nil && bytes.Equal(e.Record, c.record) && (c.op == "write" || bytes.Equal(old, c.checkpoint)) {
		return e.Revision, nil
	}
	return c.run(ctx)
}

// forgets saves but the record.
func forgets(ctx context.Context, c *call) (store.Revision, error) {
	c.op = "write"
	return c.run(ctx)
}

// empties does on a write what Put Blob does.
func empties(ctx context.Context, c *call) (store.Revision, error) {
	c.op = "save"
	return c.run(ctx)
}

// nulls finds something where there is nothing.
func nulls(ctx context.Context, c *call) (store.Revision, error) {
	r, err := c.run(ctx)
	if err == nil && len(c.checkpoint) == 0 {
		c.checkpoint = []byte("null")
	}
	return r, err
}

// rejoins lets the holder whose lease was broken save.
func rejoins(ctx context.Context, c *call) (store.Revision, error) {
	if e := c.present(ctx); e.State == store.Broken && e.ETag == c.etag {
		_, _ = c.lease().Acquire(ctx, local.Shortest, c.etag)
	}
	return c.run(ctx)
}

// robs takes the lease from whoever has it.
func robs(ctx context.Context, c *call) (store.Revision, error) {
	_ = c.store.Break(ctx, c.name, 0)
	return c.run(ctx)
}

// generous gives the holder a whole lease before it breaks it.
type generous struct{ *mutant }

func (s generous) Break(ctx context.Context, name string, period time.Duration) error {
	if e, err := s.Read(ctx, name); err == nil && e.State == store.Leased {
		_, _ = s.Memory.Lease(name, s.holder(name, "")).Acquire(ctx, local.Longest, e.ETag)
	}
	return s.Memory.Break(ctx, name, period)
}
