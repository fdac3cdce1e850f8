package runner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
)

// step does what there is to do now and returns how long there is nothing.
func (r *Runner) step(ctx context.Context, c *call) time.Duration {
	if r.job.EveryReplica {
		return r.stepHere(ctx, c)
	}
	r.source.beat()
	if err := r.replica.degraded(); err != nil {
		r.lookedAway()
		r.note(err)
		return restDegraded
	}
	fresh := r.view.entry == nil
	if fresh {
		if wait := time.Until(r.view.readAt); wait > 0 {
			return wait
		}
		if err := r.read(ctx, c.wake); err != nil {
			return r.unusable(ctx.Err() != nil, err)
		}
	}
	c.short = nil
	r.forgive()
	v := r.decideBy(c)
	r.view.seen.Fresh = fresh
	action := r.job.Policy.Next(v, &r.view.seen, r.clock())
	if action.What == plan.Inherit {
		r.inherit(action.Since)
		v.Since = action.Since
		action = r.job.Policy.Next(v, &r.view.seen, r.clock())
	}
	switch action.What {
	case plan.Yield, plan.Mark:
		if fresh {
			r.reached()
		}
		return r.yield(ctx, action)
	case plan.Acquire:
		if early := r.job.Policy.AlmostDue(v, c.wake.Tick); early > 0 {
			c.again = true
			return early
		}
		if !r.hasTime(ctx, c, &v) {
			return maxSleep
		}
		return r.acquire(ctx, c)
	}
	wait := r.waitFor(c, action)
	if fresh { // a read that succeeds does not clear the trouble: the credentials may be read-only
		r.reached()
	}
	if action.What == plan.Answer {
		return r.answer(ctx)
	}
	return wait
}

// waitFor notes why there is nothing to do, and returns for how long.
func (r *Runner) waitFor(c *call, a plan.Action) time.Duration {
	switch a.What {
	case plan.Blocked:
		r.notice(slog.LevelWarn, r.occupied())
		return r.wait(a)
	case plan.Queue:
		c.again = true
		return r.wait(a)
	case plan.Follow:
		c.holder = r.view.rec.Replica
	case plan.Wait:
		c.again = c.again || a.Read // a call of RunDue looks too: there may be no other for long
	}
	r.note(nil)
	r.losses.Reset()
	return r.wait(a)
}

// acquire acquires the lease of an entry that was seen free, and does what is due
// under it.
func (r *Runner) acquire(ctx context.Context, c *call) time.Duration {
	if err := plan.Exhausted(&r.view.rec); err != nil {
		return r.unusable(ctx.Err() != nil, &recordError{err})
	}
	r.note(nil)
	s, err := lease.Acquire(ctx, r.client, r.view.entry.ETag, &r.view.rec, r.job.Policy.LeaseAfter(&r.view.rec))
	if err != nil && !lease.Definite(err) {
		return r.unusable(ctx.Err() != nil, err)
	}
	if err != nil {
		r.reached()
		// Another replica is at it. By the time of the first look a short run
		// is over, and the next tick costs no look. If nobody was, because a
		// lease that ran out is not free at once, the looks become rarer.
		r.log.Debug("another replica was first", "error", err)
		c.again = true
		return r.readAgain(firstLook + r.losses.Next())
	}
	r.losses.Reset()
	return r.runWithLease(ctx, c, s)
}

// clock is what is known of the service's clock.
func (r *Runner) clock() plan.Clock {
	low, _, ok := r.client.Clock.Now()
	if !ok {
		low = time.Time{}
	}
	return plan.Clock{Low: low, Drift: lease.Drift}
}

// occupied returns why there is no use in waiting for the lease that was seen
// last, nil if there is.
func (r *Runner) occupied() error {
	r.view.seen.At = time.Now()
	if !r.job.Policy.Occupied(&r.view.rec, &r.view.seen) {
		return nil
	}
	if r.denial.err != nil { // the lease may be one that this replica left, or another whose writes fail
		return r.denial.err
	}
	return &occupiedError{r.job.Name, r.view.seen.Occupation.Date}
}

// An occupiedError is a lease that some client holds for longer than a replica
// needs that is about to claim.
type occupiedError struct {
	job   string
	since time.Time
}

func (e *occupiedError) Error() string {
	return fmt.Sprintf("leased since %s, or longer, by a client that claims nothing: `unlock %s` frees it", e.since.UTC().Format(time.RFC3339), e.job)
}
