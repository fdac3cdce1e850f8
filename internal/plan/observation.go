package plan

import (
	"time"

	"github.com/soloist-go/soloist/internal/record"
	"github.com/soloist-go/soloist/store"
)

// An Observation is what a replica has noticed over several reads of an entry. One read
// cannot know how long something has been so. Unless noted otherwise its instants are by
// the replica's monotonic clock: they are used for how long ago something was.
type Observation struct {
	At       time.Time // now
	LookedAt time.Time // when the entry was last read or written here
	Fresh    bool      // it was read for this decision

	AskedAt time.Time // when a mark of this replica's definition was last seen in the record

	BrokenAt    time.Time     // when the lease of the last run was first seen to have ended before its time; zero: it was not
	HandoverAt  time.Time     // when the record was first seen to announce a hand-over of its last run; zero: it did not
	RecreatedAt time.Time     // when the entry was seen to replace a deleted one, whose holder may not know; zero: it was not
	LastLease   time.Duration // the longest lease of a holder that this process has seen since its own last claim

	Expected time.Time // the tick that another replica is expected to run, since it held the lease before it; zero: none

	Sighting
	dated  dated
	tokens tokens
}

// A Sighting is what an [Observation] knows of beats, and of a lease without a claim. It outlives the observation of one call.
type Sighting struct {
	UnchangedSince time.Time  // every read since then has shown the same ETag
	Occupation     Occupation // the lease without a claim that the last reads have shown

	etag      string // that UnchangedSince is about
	lastWrite lastWrite
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

// occupationGap is the time without a read after which a lease counts as another one: two clients may have had it in turn. The
// reads of a job that waits for a lease are nearer to each other; writes of an idle job, a minute apart, are not.
const occupationGap = maxSleep * 3 / 2

// See adds one read of the entry. The caller has set At; now is the service's time, as well as it is known.
func (o *Observation) See(e *store.Entry, r *record.Record, now time.Time) {
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
func (o *Observation) handedOver(r *record.Record) bool {
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
func (o *Occupation) see(e *store.Entry, r *record.Record, at, now time.Time) {
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
func (p *Policy) OccupiedAfter(r *record.Record) time.Duration {
	return 2*p.longer(r) + 5*time.Second
}

// Occupied reports whether it is no use to wait for the lease that was seen last: its holder has claimed nothing for so long.
func (o *Observation) Occupied(after time.Duration) bool {
	return !o.Occupation.Since.IsZero() && o.At.Sub(o.Occupation.Since) > after
}

// HoldOff returns how long the last holder may still trust its lease: an operator has broken that lease, or deleted the entry,
// and the holder may not have noticed. The new holder waits that long before it claims. Zero or less: it need not wait.
//
// A lease that was seen expired needs no hold-off: the trust in it ends before it expires.
func (o *Observation) HoldOff(v View) time.Duration {
	length := max(o.LastLease, time.Duration(v.Record.Run.Lease))
	if v.Record.Beats() > 0 && v.State != store.Expired && o.RecreatedAt.IsZero() {
		return o.UntilSilent(v)
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

// A store may not take a lease as short as the program asks for. Then the shortest lease of the store is the fence, and the
// holder of a run writes the record at each third of the shorter length: it beats. Each beat changes the ETag. A replica that
// has seen the same ETag for the whole of that length knows that the holder trusts its lease no more: its last beat was sent
// before the first answer that showed the ETag. So it breaks the lease, if the ETag is still the same, and goes on as if the
// lease had expired.
//
// What counts is the length in the record, not this replica's, which may differ.

// drift is by how much the rates of two clocks may differ: one part in so many. It is lease.Drift. The ETag has to be seen for so
// much longer than the length of a beat.
const drift = 100

// silentAfter returns for how long a replica has to see one ETag until the trust in a beat of a length is over.
func silentAfter(beat time.Duration) time.Duration { return beat + beat/(drift-1) }

// UntilSilent returns how long it takes until the holder of the run in the view trusts its lease no
// more, if it sends no further beat. It is zero if the run does not beat.
func (o *Observation) UntilSilent(v View) time.Duration {
	length := v.Record.Beats()
	if length == 0 {
		return 0
	}
	length = silentAfter(length)
	if o.etag == "" || o.etag != v.ETag { // what was noticed is about another write
		return length
	}
	return max(0, length-o.At.Sub(o.UnchangedSince))
}

// Silent reports whether the lease in the view can be broken: it is live, and its holder has sent no beat for so long that
// it trusts it no more.
func (o *Observation) Silent(v View) bool {
	return v.runs() && v.Break.Able && v.Record.Beats() > 0 && o.UntilSilent(v) == 0
}

// A lastWrite is after which instant the write was applied that gave the entry its ETag. It outlives
// LookedAway: an ETag belongs to one write, whatever came between two reads.
type lastWrite struct {
	etag  string
	after time.Time // zero: not known
	read  time.Time // when the read was sent that is seen last
	sent  time.Time // when the last read was sent
}

// Sends notes that a read is about to be sent.
func (o *Observation) Sends(at time.Time) { o.lastWrite.sent = at }

// see adds one read. If it has shown another ETag than the read before, the write came after that one was sent.
func (w *lastWrite) see(etag string) {
	if w.etag != etag {
		w.etag, w.after = etag, w.read
	}
	w.read = w.sent
}

// endedByOperator reports whether it is known that an operator has ended the lease of the run in r, or lets it end. If the run
// beats, a replica may have broken the lease, and would have waited for its beat after the last write.
func (o *Observation) endedByOperator(s store.LeaseState, r *record.Record) bool {
	if s == store.Breaking { // replicas break at once
		return r.MayRun()
	}
	after := o.lastWrite.after
	return s == store.Broken && !after.IsZero() && o.At.Sub(after) < r.Beats()
}

// Unlocked reports whether an operator is known to have ended the lease of the run in r.
func (o *Observation) Unlocked(r *record.Record) bool { return o.tokens.ended == r.Token && r.MayRun() }

// byBeat has a replica that waits for the end of the run read at each third of the beat. Once it has seen the last beat for
// long enough it does not read again before it breaks the lease: the store refuses that if there was another beat.
func (o *Observation) byBeat(a Action, v View) Action {
	third, left := v.Record.Beats()/3, o.UntilSilent(v)
	switch {
	case third == 0 || !v.Break.Able:
	case third < left:
		a.After, a.Jitter = min(a.After, third), min(a.Jitter, third/10)
	case left > 0 && left < a.After: // if it is silent and there is nothing to claim, the lease is left to expire
		a.After, a.Jitter, a.Read = left, 0, false
	}
	return a
}

// Retoken gives a claim another token.
func Retoken(r *record.Record, token int64) {
	if r.Beat.Token == r.Token {
		r.Beat.Token = token
	}
	changeOpen(r, func(o *record.OpenTick) { o.Token = token })
	r.Token = token
}
