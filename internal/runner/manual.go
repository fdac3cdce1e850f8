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
	"github.com/soloist-go/soloist/internal/supervise"
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
		if err := errors.Join(context.Cause(ctx), r.replica.Degraded(), b.fits(ctx, c)); err != nil {
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
					return store.Outcome{}, cmp.Or(r.toExpire(), error(held))
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
	if err := r.replica.Degraded(); err != nil {
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
		if err := r.toExpire(); err != nil { // the lease is over for whom the record names
			return err
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

// toExpire returns the error of a call that finds a lease which an earlier call of its process has left, nil if it is another's.
func (r *Runner) toExpire() error {
	if r.leftToExpire() {
		return &passingError{errToExpire}
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
	Bar func(*store.Record) error

	// Brief says that a failure of the store is not waited out: Take returns it. See Passing.
	Brief bool

	// Ends adds to the record of the outcome, which is written with it. It may be called again, with
	// the record as it was before. Nil: nothing is added.
	Ends func(*store.Record)
}

// A passingError is a failure of the store that may pass, and that was not waited out.
type passingError struct{ error }

func (e *passingError) Unwrap() error { return e.error }

// Passing reports whether an error of Take is a failure of the store that may pass.
func Passing(err error) bool {
	_, passing := errors.AsType[*passingError](err)
	return passing
}

// A taking is the part of a call that is for Take. Its methods may be called on nil.
type taking struct {
	Terms
	behind bool // another replica was first with the lease
	first  bool // the claim is the first one of its entry

	session *lease.Session // of the last claim; nil: there was none
	before  *store.Record  // that claim
}

// claims notes a claim that is about to be written.
func (t *taking) claims(s *lease.Session, before *store.Record) {
	if t != nil {
		t.session, t.before = s, before
	}
}

// begins notes that the claim is the first one of its entry, and reports whether it is for Take. Its
// wait for a token goes on beyond the end of the call's context, for two seconds at most, and so does
// the claim: otherwise callers with little time would all begin to wait, and none would have the lock.
func (t *taking) begins() bool {
	if t != nil {
		t.first = true
	}
	return t != nil
}

// isFirst reports whether the claim is the first one of its entry.
func (t *taking) isFirst() bool { return t != nil && t.first }

// barred returns why nothing may be done under this record.
func (t *taking) barred(rec *store.Record) error {
	if t == nil || t.Bar == nil {
		return nil
	}
	return t.Bar(rec)
}

// ends adds to the record of the outcome.
func (t *taking) ends(rec *store.Record) {
	if t != nil && t.Ends != nil {
		t.Ends(rec)
	}
}

// failed returns the error for a failure of the store, if the call does not wait for its end.
func (t *taking) failed(err error) error {
	if t == nil || !t.Brief || err == nil {
		return nil
	}
	return &passingError{err}
}

// lost notes that another replica was first with the lease, and still has it.
func (t *taking) lost() {
	if t != nil {
		t.behind = true
	}
}

// outrun returns the error for a lease that another replica was first to acquire. The record is from before that.
func (t *taking) outrun(rec *store.Record) error {
	if t == nil || !t.behind {
		return nil
	}
	return &HeldError{Token: rec.Token}
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

func newHeldError(rec *store.Record, now time.Time) *HeldError {
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
func (r *Runner) Take(ctx context.Context, request string, do func(context.Context, *supervise.Handle) error, terms Terms) (store.Outcome, error) {
	job, began := *r.job, false
	job.Task.Do = func(ctx context.Context, h *supervise.Handle) error {
		began = true
		return do(ctx, h)
	}
	b := newRunner(r.replica, &job, r.client, &source{origin: &origin{request}, state: r.source.state})
	b.losses = b.client.Backoff(lossPause)
	c := &call{request: request, bounded: true, take: &taking{Terms: terms}}
	if seen := r.source.state.sighting.Load(); seen != nil {
		b.view.seen.Sighting = *seen
	}
	outcome, err := b.runNow(ctx, c)
	if !began && c.undone != nil {
		takeBackUnbegun(ctx, b, c)
	}
	seen := b.view.seen.Sighting
	r.source.state.sighting.Store(&seen)
	r.replica.vitals.outage.leave(b.source, Passing(err), r.replica.Emit)
	switch {
	case began:
	case err == nil:
		// No other caller has made the request. So this is what became of a claim that was written here
		// and not confirmed in time.
		err = fmt.Errorf("%w: it was %s: %s", ErrNotBegun, outcome.Status, outcome.Reason)
	case c.undone != nil && c.take.session != nil:
		err = fmt.Errorf("%w: %w", ErrNotBegun, err)
	}
	return outcome, err
}

// takeBackUnbegun takes back the last claim of a call that has begun nothing: nothing has failed, so it must not count as the
// death of a runner. It may be too late: another replica that has the lease cannot know that the work was not begun.
func takeBackUnbegun(ctx context.Context, r *Runner, c *call) {
	t := c.take
	if t.session == nil {
		return
	}
	h := &hold{Runner: r, ctx: ctx, call: c, session: t.session, before: *t.before}
	if h.takeBackBriefly() {
		h.release()
	}
}
