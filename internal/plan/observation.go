package plan

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// An Observation is what a replica has noticed over several reads of an entry. One read
// cannot know how long something has been so. Unless noted otherwise its instants are by
// the replica's monotonic clock: they are used for how long ago something was.
type Observation struct {
	At       time.Time // now
	LookedAt time.Time // when the entry was last read or written here
	Fresh    bool      // it was read for this decision

	UnchangedSince time.Time // every read since then has shown the same ETag
	AskedAt        time.Time // when a mark of this replica's definition was last seen in the record

	BrokenAt    time.Time     // when the lease of the last run was first seen to have ended before its time; zero: it was not
	HandoverAt  time.Time     // when the record was first seen to announce a hand-over of its last run; zero: it did not
	RecreatedAt time.Time     // when the entry was seen to replace a deleted one, whose holder may not know; zero: it was not
	LastLease   time.Duration // the longest lease of a holder that this process has seen since its own last claim

	Occupation Occupation // the lease without a claim that the last reads have shown
	Expected   time.Time  // the tick that another replica is expected to run, since it held the lease before it; zero: none

	etag      string // that UnchangedSince is about
	dated     dated
	lastWrite lastWrite
	tokens    tokens
}

// tokens belong to runs of which something was noticed.
type tokens struct {
	broken int64 // the run that BrokenAt is about
	handed int64 // the run that HandoverAt is about
	ended  int64 // the run whose lease an operator is known to have ended
}

// A dated is the service's date in the first of the answers that have shown an ETag.
type dated struct {
	etag string
	date time.Time
}

// An Occupation is a lease under which no run is recorded, seen without a break.
type Occupation struct {
	Since time.Time // monotonic; zero: there is none
	Date  time.Time // the same instant by the service's clock, for people

	etag string
	last time.Time // when it was last seen
}

// occupationGap is the time without a read after which a lease counts as another one: two
// clients may have had it in turn. The reads of a job that waits for a lease are nearer to each
// other; writes of an idle job, a minute apart, are not.
const occupationGap = maxSleep * 3 / 2

// See adds one read of the entry. The caller has set At; now is the service's time, as well
// as it is known.
func (o *Observation) See(e *store.Entry, r *store.Record, now time.Time) {
	o.LookedAt = o.At
	o.Occupation.see(e, r, o.At, now)
	if o.etag != e.ETag {
		o.etag, o.UnchangedSince = e.ETag, o.At
	}
	o.Dated(e.ETag, e.Date)
	o.lastWrite.see(e.ETag)
	if o.endedByOperator(e.State, r) {
		o.tokens.ended = r.Token
	}
	// The lease has ended, and not by expiry, though the run may go on. The token keeps
	// a later read from moving the instant, which HoldOff counts from.
	if r.MayRun() && !e.State.Live() && e.State != store.Expired && o.tokens.broken != r.Token {
		o.tokens.broken, o.BrokenAt = r.Token, o.At
	}
	switch over := !r.MayRun() && o.tokens.handed == r.Token; {
	case !r.Run.Stopping && !over:
		o.tokens.handed, o.HandoverAt = 0, time.Time{}
	case o.tokens.handed != r.Token:
		o.tokens.handed, o.HandoverAt = r.Token, o.At
	}
}

// handedOver reports whether the last run in r was seen to be handed over and has its outcome: its
// holder is about to release the lease.
func (o *Observation) handedOver(r *store.Record) bool {
	return !o.HandoverAt.IsZero() && o.tokens.handed == r.Token && !r.MayRun()
}

// LookedAway notes that this replica did not watch for a while: the entry may have been
// changed more than once, so it does not count as unchanged.
func (o *Observation) LookedAway() { o.etag, o.UnchangedSince = "", o.At }

// Dated notes an answer, to a read or to a write of our own, that has shown etag. Its date
// is the service's; zero: the answer had none.
func (o *Observation) Dated(etag string, date time.Time) {
	if o.dated.etag != etag && !date.IsZero() {
		o.dated = dated{etag, date}
	}
}

// stale returns how long it is until the entry is read again at the latest.
func (o *Observation) stale(lookBy time.Time) time.Duration {
	if lookBy.IsZero() {
		lookBy = o.LookedAt.Add(LookEvery)
	}
	return lookBy.Sub(o.At)
}

// SeenFirst returns the service's date in the first of the answers that have shown etag.
// It returns false if the last answer has shown another one, or if the store gives no dates.
func (o *Observation) SeenFirst(etag string) (date time.Time, ok bool) {
	return o.dated.date, o.dated.etag == etag
}

// see adds one read. A lease with a claim under it is no occupation.
func (o *Occupation) see(e *store.Entry, r *store.Record, at, now time.Time) {
	switch {
	case !e.State.Live() || r.MayRun():
		*o = Occupation{}
	case o.etag != e.ETag || at.Sub(o.last) > occupationGap:
		*o = Occupation{etag: e.ETag, Since: at, Date: now}
	}
	o.last = at
}

// OccupiedAfter returns after how long a lease without a claim cannot be a replica's: a
// replica holds off for one lease at most and then claims.
func (p *Policy) OccupiedAfter(r *store.Record) time.Duration {
	return 2*max(p.Lease, time.Duration(r.Run.Lease)) + 5*time.Second
}

// Occupied reports whether it is no use to wait for the lease that was seen last, since its
// holder claims nothing.
func (p *Policy) Occupied(r *store.Record, o *Observation) bool {
	return !o.Occupation.Since.IsZero() && o.At.Sub(o.Occupation.Since) > p.OccupiedAfter(r)
}

// HoldOff returns how long the last holder may still trust its lease: an operator has broken
// that lease, or deleted the entry, and the holder may not have noticed. The new holder
// waits that long before it claims. Zero or less: it need not wait.
//
// A lease that was seen expired needs no hold-off: the trust in it ends before it expires.
func (p *Policy) HoldOff(v View, o *Observation) time.Duration {
	length := max(o.LastLease, time.Duration(v.Record.Run.Lease))
	if left, beats := o.untilSilent(v); beats && v.State != store.Expired && o.RecreatedAt.IsZero() {
		return left
	}
	// The wait counts from the first read that showed the end of the lease, so that a
	// hold-off which was cut short is not begun again.
	if v.Record.MayRun() && v.State != store.Expired && !o.BrokenAt.IsZero() && o.tokens.broken == v.Record.Token {
		return length - o.At.Sub(o.BrokenAt)
	}
	if o.RecreatedAt.IsZero() {
		return 0
	}
	return length - o.At.Sub(o.RecreatedAt)
}
