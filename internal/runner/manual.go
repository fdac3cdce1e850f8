package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/soloist-go/soloist/event"
	"github.com/soloist-go/soloist/internal/control"
	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/internal/plan"
	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/internal/supervise"
	"github.com/soloist-go/soloist/store"
)

// keptLook is how often a manual run looks whether a lease is free that no run has: a lease that is
// kept from tick to tick is free for less than a second, now and then; see keeps.
const keptLook = 400 * time.Millisecond

// RunNow runs the job once manually, in addition to its ticks, and returns when that run is over
// or ctx has ended. It uses a runner of its own: the loop may be in the middle of a step.
func RunNow(ctx context.Context, r *Runner, request string) (event.Outcome, error) {
	d := driver{r.beside(request), &call{request: request, bounded: true}, ctx}
	if r.job.EveryReplica {
		if err := errors.Join(context.Cause(ctx), r.replica.Degraded(), d.fits(ctx, r.job.Task.Timeout)); err != nil {
			return event.Outcome{}, err
		}
		d.here.runTick(ctx, d.call, r.clock.Wall().UTC())
		return d.ran[0], nil
	}
	// The runner ends here, so its trouble must not stay in Health.
	defer r.replica.vitals.outage.leave(d.source, false, r.replica.Emit)
	return runOnce(&d)
}

// runOnce is runNow that leaves no claim which was not begun, as far as it can.
func runOnce(d *driver) (event.Outcome, error) {
	outcome, err := d.runNow()
	left := d.denial.left.session
	switch {
	case left != nil && (d.claim == nil || left != d.claim.session): // an acquisition is in doubt
		d.leaves(left)
	case !d.over && d.claim != nil && (d.undone != nil || left != nil):
		claim := &unbegun{d.claim.session, d.claim.before, d.claim.session.Sent()}
		d.source.state.unbegun.Store(claim)
		takeBackUnbegun(context.WithoutCancel(d.ctx), d, claim)
	}
	return outcome, err
}

// runNow steps until the request has its outcome, or until it cannot have one. The
// outcome may come from this replica or, if the request was made before, from another
// one. A failure that may pass is waited out; a failure that lasts is returned.
func (d *driver) runNow() (event.Outcome, error) {
	var err error
	for d.ctx.Err() == nil {
		var wait time.Duration
		// The entry comes first: if the request was ordered, and is served after that read, the entry changes, and the store
		// refuses the lease.
		if err = d.read(d.ctx, d.wake.Tick); err == nil {
			err = d.replica.Orders.Refresh(d.ctx)
		}
		switch claim := d.unbegun(); {
		case err != nil:
			// Such a record, or document, stays as it is until a person corrects it: do not wait.
			if Unusable(err) || errors.Is(err, control.ErrRefused) {
				return event.Outcome{}, err
			}
			wait = d.unusable(err)
		case claim != nil: // or it would be settled as that of a runner that died
			if takeBackUnbegun(d.ctx, d, claim); d.source.state.unbegun.Load() == nil {
				continue
			}
			d.short, wait = errToExpire, time.Second
			if d.take.terms != nil && d.take.terms.Brief {
				return event.Outcome{}, &passingError{errToExpire}
			}
		default:
			_ = d.freeUnanswered() // a manual call does not yield
			if d.undone != nil {   // the record shows a run of this call, which does not run
				return event.Outcome{}, d.undone
			}
			if outcome, known := plan.OutcomeOfRequest(&d.view.rec, d.request, d.view.entry.State); known {
				return outcome, nil
			}
			if err = d.hindered(); d.take.terms == nil && Passing(err) { // a lease that this process has left is over soon
				d.short = err
				lease.Sleep(d.ctx, time.Second)
				continue
			} else if err != nil {
				return event.Outcome{}, err
			}
			silent := d.view.seen.Silent(d.decideBy())
			d.short = nil
			if d.view.entry.State.Live() && !silent { // its holder is about to claim, or died before it could
				held := newHeldError(&d.view.rec, d.clock.Best())
				d.short, err = held, d.occupied()
				if d.take.terms != nil {
					held.occupied, _ = errors.AsType[*occupiedError](err)
					return event.Outcome{}, cmp.Or(d.toExpire(), error(held))
				}
				if err != nil {
					return event.Outcome{}, err
				}
				wait = d.client.Jitter.Half(min(d.client.Length/6, keptLook))
			} else {
				wait = d.acquire(plan.Action{Break: silent, Lease: d.job.Policy.LeaseAfter(&d.view.rec, d.view.entry.State)})
			}
		}
		if len(d.ran) > 0 {
			return d.ran[0], nil
		}
		if d.undone != nil { // this call ran it or claimed it, and knows more than the record
			return event.Outcome{}, errors.Join(d.undone, context.Cause(d.ctx))
		}
		if err = d.slot.full; err != nil {
			return event.Outcome{}, err
		}
		if d.take.terms != nil && d.take.behind {
			return event.Outcome{}, &HeldError{Token: d.view.rec.Token} // from before that
		}
		if d.denial.lasting() { // any other failure may pass
			return event.Outcome{}, d.denial.err
		}
		if trouble := d.source.state.lastErr(); trouble != nil && d.take.terms != nil && d.take.terms.Brief && d.ctx.Err() == nil {
			return event.Outcome{}, &passingError{trouble}
		}
		lease.Sleep(d.ctx, wait)
	}
	return event.Outcome{}, errors.Join(cmp.Or(d.source.state.lastErr(), d.short, err), context.Cause(d.ctx))
}

// hindered returns why the job cannot be run manually now, nil if it can. It never waits
// for another replica's run: the person who asks decides whether to ask again.
func (d *driver) hindered() error {
	if err := d.replica.Degraded(); err != nil {
		return err
	}
	if err := d.fits(d.ctx, d.job.Task.Timeout); err != nil {
		return err
	}
	v, rec := d.decideBy(), &d.view.rec
	if plan.Served(v) {
		return fmt.Errorf("%s@%s was ordered before, and is not run again: it had its run or its outcome, or it was ordered for an entry that was deleted; its outcome is not in the record any more", d.job.Name, d.request)
	}
	if d.job.Policy.Outdated(v) {
		return errors.New("a replica that started later has another schedule for this job: ask that replica")
	}
	if first := plan.BeforeTurn(v); first != "" {
		return busyError(fmt.Sprintf("too many runs have begun before %s@%s, which was ordered first: run that, or start a replica", d.job.Name, first))
	}
	if rec.MayRun() && v.State.Live() && !d.view.seen.Silent(v) {
		if err := d.toExpire(); err != nil { // the lease is over for whom the record names
			return err
		}
		held := newHeldError(rec, d.clock.Best())
		held.Silent = d.view.seen.UntilSilent(v)
		return held
	}
	d.claims = plan.AnyRun
	if d.take.terms != nil && d.take.terms.Bar != nil {
		if err := d.take.terms.Bar(rec); errors.Is(err, ErrUnsettled) {
			d.claims = plan.NoRun
		} else if err != nil {
			return err
		}
	}
	v.Claims = d.claims
	if d.job.Policy.Undecided(rec) {
		return busyError("another schedule is in force for this job, and only that schedule says whether the last run is repeated: ask again after a replica with that schedule has decided it, or after the next tick of this replica's schedule")
	}
	if _, todo := d.job.Policy.Claim(v); !todo {
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

// ErrNotBegun is the error of a call that may have claimed something and has not run it.
var ErrNotBegun = errors.New("it was claimed and not begun")

// ErrTrying is the error of a call that has waited for another one of its process, which was not known to have
// the lease, or to wait for a holder.
var ErrTrying = errors.New("another call of this process still tries to take it")

// errToExpire is the error of a call that finds a lease which an earlier one of its process has left; see leftover.
var errToExpire = fmt.Errorf("%w, or has ended, and its lease has yet to expire", ErrTrying)

// ErrUnsettled is what Bar returns if it cannot judge a record whose last run has no outcome.
var ErrUnsettled = errors.New("its last run has no outcome yet")

// Terms are what a caller of Take asks for.
type Terms struct {
	// Bar sees the record just before the lease is acquired. If it returns an error, Take returns
	// that. The store refuses the lease if the record has changed since, so what Bar has seen is
	// still so when the work begins. After ErrUnsettled the last run, whose holder may only be cut off,
	// gets its outcome, and Bar is asked again. Nil: everything is allowed.
	Bar func(*record.Record) error

	// Brief says that a failure of the store is not waited out: Take returns it. See Passing.
	Brief bool

	// Ends adds to the record of the outcome, which is written with it. It may be called again, with
	// the record as it was before. Nil: nothing is added.
	Ends func(*record.Record)
}

// A passingError is a failure of the store that may pass, and that was not waited out.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// Passing reports whether an error of Take is a failure of the store that may pass.
func Passing(err error) bool {
	_, passing := errors.AsType[*passingError](err)
	return passing
}

// A taking is the part of a call that is for Take.
type taking struct {
	terms  *Terms // nil: the call is not one of Take
	behind bool   // another replica was first with the lease, and still has it
	begins bool   // the claim is the first one of its entry
}

// A HeldError says who has the lease. It is store.ErrHeld.
type HeldError struct {
	Replica  string        // that has claimed; empty: the holder has not claimed yet
	Token    int64         // of the last claim
	For      time.Duration // since that claim, by the service's clock as far as it is known
	Lease    time.Duration // of the holder; zero: not known
	Stopping bool          // it is about to be given up
	Beat     time.Duration // of the holder; zero: it sends none
	Silent   time.Duration // after which the lease can be broken, if it sends no further beat

	occupied *occupiedError // nil: as far as known the holder is a replica
}

func newHeldError(rec *record.Record, now time.Time) *HeldError {
	h := &HeldError{Token: rec.Token}
	if rec.MayRun() {
		h.Replica, h.For, h.Lease, h.Stopping = rec.Run.Replica, max(0, now.Sub(rec.Run.Claimed)), time.Duration(rec.Run.Lease), rec.Run.Stopping
		h.Beat = rec.Beats()
	}
	return h
}

func (h *HeldError) Error() string {
	switch {
	case h.occupied != nil: // not what frees it: there is no unlock for locks
		return h.occupied.what()
	case h.Replica == "":
		return fmt.Sprintf("%v: leased, not claimed yet", store.ErrHeld)
	}
	return fmt.Sprintf("%v: %s runs it", store.ErrHeld, h.Replica)
}

// Is reports whether target is store.ErrHeld.
func (h *HeldError) Is(target error) bool { return target == store.ErrHeld }

// An occupiedError says that a client has held the lease for longer than any replica
// needs between acquisition and claim: a person with a storage tool, for example.
// Only unlock, or the client itself, can end that.
type occupiedError struct {
	job   string
	since time.Time
}

func (e *occupiedError) Error() string {
	return fmt.Sprintf("%s: `unlock %s` frees it", e.what(), e.job)
}

func (e *occupiedError) what() string {
	return fmt.Sprintf("leased since %s, or longer, by a client that claims nothing", e.since.UTC().Format(time.RFC3339))
}

// lossPause is the first pause of a call of Take that has lost a race for the lease, and does not know that another
// replica still has it.
const lossPause = 50 * time.Millisecond

// Take does something once under the lease of the job, as a manual run under a request that
// no caller has made before. It does not wait for another holder: the error is then a HeldError. A
// failure of the store that may pass is waited out until ctx ends, as RunNow does, unless terms say
// otherwise. ErrNotBegun: a claim of this call may be in the record, and do was not called; it was taken back if possible.
func Take(ctx context.Context, r *Runner, request string, do func(context.Context, *supervise.Handle) error, terms Terms) (event.Outcome, error) {
	job, began := *r.job, false
	job.Task.Do = func(ctx context.Context, h *supervise.Handle) error {
		began = true
		return do(ctx, h)
	}
	b := newRunner(r.replica, &job, r.client, &source{origin: &origin{request}, state: r.source.state})
	b.losses = b.client.Backoff(lossPause)
	d := driver{b, &call{request: request, bounded: true, take: taking{terms: &terms}}, ctx}
	if seen := r.source.state.sighting.Load(); seen != nil {
		b.view.seen.Sighting = *seen
	}
	outcome, err := runOnce(&d)
	seen := b.view.seen.Sighting
	r.source.state.sighting.Store(&seen)
	r.replica.vitals.outage.leave(b.source, Passing(err), r.replica.Emit)
	switch {
	case began:
	case err == nil:
		// No other caller has made the request. So this is what became of a claim that was written here
		// and not confirmed in time.
		err = fmt.Errorf("%w: it was %s: %s", ErrNotBegun, outcome.Status, outcome.Reason)
	case d.undone != nil && d.claim != nil:
		err = fmt.Errorf("%w: %w", ErrNotBegun, err)
	}
	return outcome, err
}

// unbegun returns a claim of this process that the record shows and that was not begun, nil if there is none.
func (d *driver) unbegun() *unbegun {
	claim := d.source.state.unbegun.Load()
	if claim == nil || slices.Contains(claim.sent, d.view.rec.Writer) {
		return claim
	}
	if d.view.entry != nil && !d.view.entry.State.Live() { // it cannot arrive any more
		d.source.state.unbegun.CompareAndSwap(claim, nil)
	}
	return nil
}

// takeBackUnbegun takes back a claim of this process that was not begun. Nothing has failed, so it must not count as the death of
// a runner. It may be too late: another replica that has the lease cannot know that the work was not begun. If the store does not
// answer, a call tries again as soon as it does.
func takeBackUnbegun(ctx context.Context, d *driver, claim *unbegun) {
	state := d.source.state
	if !state.returning.TryLock() { // another call does it, and this one looks again
		return
	}
	defer state.returning.Unlock()
	if state.unbegun.Load() != claim {
		return
	}
	h := &hold{driver: d, session: claim.session, held: claim.session.Context(), before: claim.before}
	h.session.Reopen() // the call may have tried to write an outcome
	if err := h.takeBackBriefly(ctx); err == nil {
		h.release()
	} else if !lease.Definite(err) || errors.Is(err, lease.ErrNotConfirmed) {
		h.leaves(h.session) // it may have been renewed
		state.unbegun.Store(&unbegun{claim.session, claim.before, h.session.Sent()})
		return
	}
	state.unbegun.CompareAndSwap(claim, nil)
}
