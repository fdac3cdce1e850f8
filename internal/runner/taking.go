package runner

import (
	"errors"
	"fmt"
	"time"

	"github.com/soloist-go/soloist/internal/lease"
	"github.com/soloist-go/soloist/store"
)

// ErrNotBegun is the error of a call that may have claimed something and has not run it.
var ErrNotBegun = errors.New("it was claimed and not begun")

// ErrTrying is the error of a call that has waited for another one of its process, which was not known to have
// the lease, or to wait for a holder.
var ErrTrying = errors.New("another call of this process still tries to take it")

// errToExpire is the error of a call that finds a lease which an earlier one of its process has left to expire; see leftover.
var errToExpire = fmt.Errorf("%w, or has ended before it could claim, and its lease has yet to expire", ErrTrying)

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
