package plan

import (
	"time"

	"github.com/soloist-go/soloist/store"
)

// An Observation is what a replica has noticed over its looks at an entry. Its
// instants are those of the replica's monotonic clock, unless it is said
// otherwise: they tell how long ago something was.
type Observation struct {
	At       time.Time // now
	LookedAt time.Time // when the entry was last read or written here
	Fresh    bool      // it was read for this decision

	UnchangedSince time.Time // each look since then has shown the same ETag
	UnchangedDate  time.Time // by the service's clock: the date of the first of these looks; zero: not told
	AskedAt        time.Time // when this replica's definition was last seen to ask whether a younger one is up

	BrokenAt    time.Time     // when the lease of the last run was first seen to have ended before its time; zero: it did not
	HandoverAt  time.Time     // when the run was first seen to be handed over; zero: it is not
	RecreatedAt time.Time     // when the entry was seen made again after a deletion, of which its last holder may not know; zero: it was not
	LastLease   time.Duration // of the last holder seen

	Occupation Occupation // the lease without a run that was seen last

	etag        string // unchanged
	brokenToken int64
	handedToken int64
}

// An Occupation is a lease under which no run is recorded, as far as this replica
// has seen without a break.
type Occupation struct {
	Since time.Time // monotonic; zero: there is none
	Date  time.Time // Since, by the service's clock

	etag string
	last time.Time
}

// occupationGap is the time without a look after which a lease counts as another.
const occupationGap = 2 * maxSleep

// See takes in one look at the entry. now is the service's time, as well as it is
// known.
func (o *Observation) See(e *store.Entry, r *store.Record, now time.Time) {
	o.LookedAt = o.At
	o.Occupation.see(e, r, o.At, now)
	if o.etag != e.ETag {
		o.etag, o.UnchangedSince, o.UnchangedDate = e.ETag, o.At, e.Date
	}
	if r.MayRun() && !e.State.Live() && e.State != store.Expired && o.brokenToken != r.Token {
		o.brokenToken, o.BrokenAt = r.Token, o.At
	}
	switch {
	case !r.Stopping:
		o.handedToken, o.HandoverAt = 0, time.Time{}
	case o.handedToken != r.Token:
		o.handedToken, o.HandoverAt = r.Token, o.At
	}
}

// LookedAway says that the entry may have been changed and changed again.
func (o *Observation) LookedAway() { o.etag, o.UnchangedSince = "", o.At }

// SeenFirst is the service's date in the first of the looks that have shown etag,
// if the last look did too and the date is known.
func (o *Observation) SeenFirst(etag string) (date time.Time, ok bool) {
	return o.UnchangedDate, o.etag == etag && !o.UnchangedDate.IsZero()
}

func (o *Occupation) see(e *store.Entry, r *store.Record, at, now time.Time) {
	switch {
	case !e.State.Live() || r.MayRun():
		*o = Occupation{}
	case o.etag != e.ETag || at.Sub(o.last) > occupationGap:
		*o = Occupation{etag: e.ETag, Since: at, Date: now}
	}
	o.last = at
}

// OccupiedAfter is the time after which a lease without a claim is no replica's:
// that one holds off for a lease at most, then claims.
func (p *Policy) OccupiedAfter(r *store.Record) time.Duration {
	return 2*max(p.Lease, time.Duration(r.Lease)) + 5*time.Second
}

// Occupied reports whether there is no use in waiting for the lease that was seen
// last: its holder claims nothing.
func (p *Policy) Occupied(r *store.Record, o *Observation) bool {
	return !o.Occupation.Since.IsZero() && o.At.Sub(o.Occupation.Since) > p.OccupiedAfter(r)
}

// HoldOff is how long the last holder may still believe that it holds the lease:
// it was not seen to run out, or the entry is not the one it leased. The new
// holder waits that long before it claims. It may be negative.
func (p *Policy) HoldOff(v View, o *Observation) time.Duration {
	length := max(o.LastLease, time.Duration(v.Record.Lease))
	if v.Record.MayRun() && v.State != store.Expired && !o.BrokenAt.IsZero() && o.brokenToken == v.Record.Token {
		return length - o.At.Sub(o.BrokenAt)
	}
	if o.RecreatedAt.IsZero() {
		return 0
	}
	return length - o.At.Sub(o.RecreatedAt)
}
