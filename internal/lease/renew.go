package lease

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/store"
)

// A grant is the lease as the service gives it: acquired, renewed at each third of its length, released.
type grant struct {
	*trust

	Length time.Duration
	Brief  time.Duration // how long one call to the store may take that others wait for
	Dated  time.Time     // the service's date in the answer to the acquisition; zero: the store gives none

	client   *Client
	lease    store.Lease
	start    time.Duration             // elapsed: when the acquisition was sent
	claimed  atomic.Pointer[time.Time] // as the record says: renewals come at thirds of the lease after it
	renewing chan struct{}             // has room for one renewal in flight
	giveUp   context.CancelFunc        // ends the renewals alone: the lease expires, and the trust before it
	renewals context.Context           // ends with them
	released bool                      // together with the outcome; only the goroutine that writes that may use it
	leaving  atomic.Bool               // a call that releases it with the outcome may arrive yet
	news     news
}

// A news is where a session reports what happens to it; see Hold.
type news struct {
	trouble func(error)
	emit    func(event.Event)
}

// acquire makes one call. The trust counts from the sending of the call that was answered.
func (g *grant) acquire(ctx context.Context, etag string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	g.start = g.client.Clock.Elapsed()
	stamp, err := stamped(g.lease.Acquire(ctx, g.Length, etag))
	if err != nil {
		return err
	}
	g.client.Clock.Observe(g.start, stamp.Date)
	g.trust.until, g.Dated = g.start+trusted(g.Length), stamp.Date
	return nil
}

// Age returns for how long the lease is held.
func (g *grant) Age() time.Duration { return g.client.Clock.Elapsed() - g.start }

// patience returns how long a call may take that others wait for in turn. As long as a run that beats is trusted there is little
// time for each, since others replace a holder that is silent. A call with a checkpoint has a little more, until the next beat is
// due. Once the trust has ended there is time: what is still to be written is the outcome.
func (g *grant) patience(checkpoint bool) time.Duration {
	switch {
	case g.Left() <= 0:
		return g.client.CallTimeout()
	case checkpoint:
		return min(g.client.CallTimeout(), 2*g.Brief)
	}
	return g.Brief
}

// RenewFrom sets the time of the claim in the record. Renewals come at thirds of the lease
// after it.
func (g *grant) RenewFrom(at time.Time) { g.claimed.Store(&at) }

// untilRenewal returns how long it takes until the next third of the lease since the
// claim, by the service's clock. By this replica's own clock, a slow one would renew later
// and later, and after hours just after the followers have looked whether the lease is
// still renewed. The latest reading of the service's clock is used, so that the renewal is
// early rather than late.
func (g *grant) untilRenewal() time.Duration {
	third, gone := g.Length/3, g.Age()
	if latest, claimed := g.client.Clock.Now().Latest, g.claimed.Load(); !latest.IsZero() && claimed != nil && !claimed.IsZero() {
		gone = latest.Sub(*claimed)
	}
	wait := third - gone%third
	if wait < third/5 { // the reading went back a little, so this third is already renewed
		wait += third
	}
	// A wrong date must not postpone a renewal.
	return min(wait, third+third/5)
}

// inTime repeats a call until its outcome is known, and returns that. It returns nil if ctx has ended, and an error once
// the lease can no longer be trusted. The pause is constant: there is room for few tries before the trust ends.
func (g *grant) inTime(ctx context.Context, pause time.Duration, call func(context.Context) (known bool, err error)) error {
	for try := 1; ctx.Err() == nil; try++ {
		if g.Left() <= 0 {
			return ErrNotRenewed
		}
		known, err := call(ctx)
		if ctx.Err() == nil {
			g.tell(try, err)
		}
		if known {
			return err
		}
		Sleep(ctx, pause)
	}
	return nil
}

// renewOnce is a call of inTime. ErrLost: the store has said that the lease is gone.
func (g *grant) renewOnce(ctx context.Context) (known bool, err error) {
	if err = g.Renew(ctx); Definite(err) {
		return true, fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	return err == nil, err
}

// Renew asks the service for the lease once more, and moves the deadline if it succeeds.
// One call is in flight at a time: the answers of two could arrive in the wrong order.
func (g *grant) Renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, g.client.CallTimeout())
	defer cancel()
	select {
	case g.renewing <- struct{}{}:
		defer func() { <-g.renewing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if ctx.Err() != nil { // the lease was released while this call waited
		return ctx.Err()
	}
	// The time is kept on the stack of this very call. The deadline may only count from
	// the sending of the request that was answered.
	sent := g.client.Clock.Elapsed()
	stamp, err := stamped(g.lease.Renew(ctx))
	if err != nil {
		return err
	}
	g.client.Clock.Observe(sent, stamp.Date)
	g.trust.extend(sent, g.Length)
	g.news.emit(event.Event{Kind: event.Renewed, Took: g.client.Clock.Elapsed() - sent})
	return nil
}

// GiveUp ends the renewals and returns at once. The lease then expires, although its run
// may still go on.
func (g *grant) GiveUp() { g.giveUp() }

// Release releases the lease, so that another replica can acquire it at once; without it
// the lease would expire. A call of unclear outcome is repeated: no later session has the
// same id, so the second call can release nothing else.
func (g *grant) Release(ctx context.Context) error {
	if g.released {
		return nil
	}
	err := g.release(ctx)
	if err != nil && !Definite(err) {
		err = g.release(ctx)
	}
	return err
}

// release makes one call, also for a session whose context has ended.
func (g *grant) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.client.CallTimeout())
	defer cancel()
	return g.lease.Release(ctx)
}

// tell reports the outcome of the nth try of a call to trouble. One failure is no trouble
// yet, and a definite answer is none: the store works.
func (g *grant) tell(try int, err error) {
	if try > 1 && !Definite(err) {
		g.news.trouble(err)
	}
}
