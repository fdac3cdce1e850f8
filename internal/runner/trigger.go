package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/store"
)

// keptLook is how often a manual run looks whether a lease is free that no run has: a lease that is
// kept from tick to tick is free for less than a second, now and then; see keeps.
const keptLook = 400 * time.Millisecond

// RunNow runs the job once manually, in addition to its ticks, and returns when that run is over
// or ctx has ended. It uses a runner of its own: the loop may be in the middle of a step.
func (r *Runner) RunNow(ctx context.Context, request string) (store.Outcome, error) {
	b := r.beside(request)
	c := &call{request: request, bounded: true}
	if r.job.EveryReplica {
		if err := errors.Join(context.Cause(ctx), r.replica.degraded(), b.fits(ctx, c)); err != nil {
			return store.Outcome{}, err
		}
		b.runHere(ctx, c, r.replica.Wall().UTC())
		return c.ran[0], nil
	}
	// The runner ends here, so its trouble must not stay in Health.
	defer r.replica.vitals.outage.leave(b.source, false, r.replica.Emit)
	return b.runNow(ctx, c)
}

// runNow steps until the request has its outcome, or until it cannot have one. The
// outcome may come from this replica or, if the request was made before, from another
// one. A failure that may pass is waited out; a failure that lasts is returned.
func (r *Runner) runNow(ctx context.Context, c *call) (store.Outcome, error) {
	var err error
	for ctx.Err() == nil {
		var wait time.Duration
		if err = r.readAll(ctx, c); err != nil {
			// Such a record, or document, stays as it is until a person corrects it: do not wait.
			if _, bad := errors.AsType[*recordError](err); bad || errors.Is(err, control.ErrRefused) {
				return store.Outcome{}, err
			}
			wait = r.unusable(ctx.Err() != nil, err)
		} else {
			_ = r.freeUnanswered(ctx, c) // a manual call does not yield
			if c.undone != nil {         // the record shows a run of this call, which does not run
				return store.Outcome{}, c.undone
			}
			if outcome, known := plan.OutcomeOfRequest(&r.view.rec, c.request, r.view.entry.State); known {
				return outcome, nil
			}
			if err = r.hindered(ctx, c); err != nil {
				return store.Outcome{}, err
			}
			silent := r.view.seen.Silent(r.decideBy(c))
			c.short = nil
			if r.view.entry.State.Live() && !silent { // its holder is about to claim, or died before it could
				held := newHeldError(&r.view.rec, r.now())
				c.short, err = held, r.occupied()
				if c.take != nil {
					held.occupied, _ = errors.AsType[*occupiedError](err)
					return store.Outcome{}, held
				}
				if err != nil {
					return store.Outcome{}, err
				}
				wait = r.client.Jitter.Half(min(r.client.Length/6, keptLook))
			} else {
				wait = r.acquire(ctx, c, plan.Action{Break: silent, Lease: r.job.Policy.LeaseAfter(&r.view.rec, r.view.entry.State)})
			}
		}
		if len(c.ran) > 0 {
			return c.ran[0], nil
		}
		if c.undone != nil { // this call ran it or claimed it, and knows more than the record
			return store.Outcome{}, errors.Join(c.undone, context.Cause(ctx))
		}
		if err = c.slot.full; err != nil {
			return store.Outcome{}, err
		}
		if err = c.take.outrun(&r.view.rec); err != nil {
			return store.Outcome{}, err
		}
		if r.denial.lasting() { // any other failure may pass
			return store.Outcome{}, r.denial.err
		}
		if err = c.take.failed(r.source.state.lastErr()); err != nil && ctx.Err() == nil {
			return store.Outcome{}, err
		}
		lease.Sleep(ctx, wait)
	}
	return store.Outcome{}, errors.Join(cmp.Or(r.source.state.lastErr(), c.short, err), context.Cause(ctx))
}

// readAll reads the entry, and the orders if what is known of them is too old: the request may
// have been ordered and served. The entry is read first: if the request is served
// after that, the entry changes, and the store refuses the lease.
func (r *Runner) readAll(ctx context.Context, c *call) error {
	if err := r.read(ctx, c.wake.Tick); err != nil {
		return err
	}
	return r.replica.Orders.Refresh(ctx)
}

// hindered returns why the job cannot be run manually now, nil if it can. It never waits
// for another replica's run: the person who asks decides whether to ask again.
func (r *Runner) hindered(ctx context.Context, c *call) error {
	if err := r.replica.degraded(); err != nil {
		return err
	}
	if err := r.fits(ctx, c); err != nil {
		return err
	}
	v, rec := r.decideBy(c), &r.view.rec
	if plan.Served(v) {
		return fmt.Errorf("%s@%s was ordered before, and is not run again: it had its run or its outcome, or it was ordered for an entry that was deleted; its outcome is not in the record any more", r.job.Name, c.request)
	}
	if r.job.Policy.Outdated(v) {
		return errors.New("a replica that started later has another schedule for this job: ask that replica")
	}
	if first := plan.BeforeTurn(v); first != "" {
		return busyError(fmt.Sprintf("too many runs have begun before %s@%s, which was ordered first: run that, or start a replica", r.job.Name, first))
	}
	if rec.MayRun() && v.State.Live() && !r.view.seen.Silent(v) {
		// The lease is over for whom the record names. Its successor may begin once that of an earlier call here has expired.
		if r.leftToExpire() {
			return &passingError{errToExpire}
		}
		held := newHeldError(rec, r.now())
		held.Silent = r.view.seen.UntilSilent(v)
		return held
	}
	c.claims = plan.AnyRun
	switch err := c.take.barred(rec); {
	case errors.Is(err, ErrUnsettled):
		c.claims = plan.NoRun
	case err != nil:
		return err
	}
	v.Claims = c.claims
	if r.job.Policy.Undecided(rec) {
		return busyError("another schedule is in force for this job, and only that schedule says whether the last run is repeated: ask again after a replica with that schedule has decided it, or after the next tick of this replica's schedule")
	}
	if _, todo := r.job.Policy.Claim(v); !todo {
		return busyError(fmt.Sprintf("its tick %s has to be run again first", rec.Run.Tick.Format(time.RFC3339)))
	}
	return nil
}

// A busyError says why a job cannot be run manually yet though no other replica may have its lease. It is store.ErrHeld, as
// the caller does the same about it: ask again later.
type busyError string

func (e busyError) Error() string { return string(e) }

// Is reports whether target is store.ErrHeld.
func (e busyError) Is(target error) bool { return target == store.ErrHeld }
