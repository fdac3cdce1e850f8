package plan

import (
	"cmp"
	"time"

	"github.com/soloist-go/soloist/internal/instant"
	"github.com/soloist-go/soloist/store"
)

const (
	nearEvery = 100 * time.Millisecond // how often a follower reads a run that is about to be handed over
)

// Next says what to do about an entry as it was last seen. The order of the cases matters.
// A definition that is not in force decides nothing. While another replica runs the job,
// nothing else counts. Queue needs a fresh read: a lease that only an older read has shown
// may be free by now, so acquiring takes the place of another read.
func (p *Policy) Next(v View, o *Observation, c Clock) Action {
	if p.Outdated(v) {
		return p.yield(v, o)
	}
	_, todo := p.Claim(v)
	live := v.State.Live()
	if a, ok := p.expect(v, o); ok && !(v.Record.MayRun() && live) {
		return a
	}
	switch {
	case v.Record.MayRun() && live && todo && o.silent(v):
		return Action{What: Acquire, Break: true, Lease: p.LeaseAfter(v.Record, v.State)}
	case v.Record.MayRun() && live:
		return p.follow(v, o, c)
	case !todo:
		return p.tellLate(p.idle(v, o), v, o)
	case o.Fresh && live:
		return p.queue(v, o)
	}
	return Action{What: Acquire, Lease: p.LeaseAfter(v.Record, v.State)}
}

// LeaseAfter returns the length of the lease to acquire. After a break the last runner may
// still trust its lease, which may be longer than ours. Ours must not end before that trust
// does: then a lease that is seen expired proves that no earlier holder trusts its own.
func (p *Policy) LeaseAfter(r *store.Record, seen store.LeaseState) time.Duration {
	if r.MayRun() && seen != store.Expired {
		return max(p.Lease, time.Duration(r.Run.Lease))
	}
	return p.Lease
}

// yield leaves the job to the replicas of a younger definition, and asks from time to time
// whether any of them is up.
func (p *Policy) yield(v View, o *Observation) Action {
	if since, ok := p.inherits(v, o); ok {
		return Action{What: Inherit, Since: since}
	}
	asked := o.AskedAt
	if v.Record.Definition.Mark.Spec == p.Spec {
		asked = o.At
	}
	if v.State.Live() || o.At.Sub(asked) < markAgain || !p.mayMark(v) {
		return Action{What: Yield, After: maxSleep, Read: true}
	}
	return Action{What: Mark, After: maxSleep, Read: true}
}

// idle waits for the next tick. It reads the record once a minute anyway: a replica
// with an older definition may have left a mark, which must be answered. A younger definition that is not in force yet, as
// of a paused singleton, answers none: the answer would be from the definition in force.
func (p *Policy) idle(v View, o *Observation) Action {
	if o.Fresh && v.Record.Definition.Mark.Spec != "" && v.Record.Definition.Spec == p.Spec && !v.State.Live() {
		return Action{What: Answer}
	}
	stale := o.stale(v.LookBy)
	if stale <= 0 {
		return Action{Read: true}
	}
	if armed(v) { // its runner has died: at the tick a claim settles it, also in a pause, and may claim a run that was ordered
		return Action{After: min(stale, max(v.Record.Run.Tick.Sub(v.Now), minIdle))}
	}
	next := p.NextTick(v.Record)
	if next.IsZero() || p.PausedAt(v) {
		return Action{After: min(stale, maxSleep, p.pauseLeft(v))}
	}
	if _, awaits := p.Awaits(v); awaits {
		return Action{What: Await, After: stale}
	}
	if a, ok := p.ahead(v, o, next); ok {
		if a.What == Wait && !a.Read {
			a.After = min(a.After, stale)
		}
		return a
	}
	return Action{After: min(stale, max(next.Sub(v.Now), minIdle))}
}

// queue waits while a client holds the lease and the record shows no run. The client is
// about to claim, or died before it could, or is no replica.
func (p *Policy) queue(v View, o *Observation) Action {
	if p.Occupied(v.Record, o) {
		return Action{What: Blocked, After: maxSleep, Read: true}
	}
	half := cmp.Or(p.Beat, p.Lease) / 6 / 2
	a := Action{What: Queue, After: half, Jitter: half, Read: true}
	// The release of a lease that is handed over follows its outcome at once. If the lease is live
	// for longer, another client has it: the reads become rarer.
	if o.handedOver(v.Record) {
		a.Most = max(nearEvery, o.At.Sub(o.UnchangedSince))
	}
	// The lease of a job with a short period is free only for a moment before a tick, now
	// and then. The next read is in that moment.
	if wait := p.untilLook(v, o); wait > 0 && wait < half {
		a.After, a.Jitter = wait, 0
	}
	return p.often(a, v)
}

// follow waits while another replica runs the job. If a tick, an attempt or a singleton
// waits for the end of that run, the next read comes when the lease could have lapsed;
// else after a minute, or when the next tick makes it urgent.
func (p *Policy) follow(v View, o *Observation, c Clock) Action {
	a := Action{What: Follow, Read: true}
	switch urgent := p.urgent(v.Record, v.Now) || p.Backfills(v); {
	case urgent && v.Record.Run.Stopping:
		// The run is about to end, so followers read ten times a second. After half a
		// minute they read ever more rarely: some runs take long to stop.
		a.After, a.Jitter = p.untilLapse(v.Record, c)
		a.Most = max(nearEvery, o.At.Sub(o.HandoverAt)/300)
	case urgent:
		a.After, a.Jitter = p.untilLapse(v.Record, c)
		a = o.byBeat(a, v)
	default:
		a.After = LookEvery
		if next := p.Ticks.Next(instant.Later(v.Now, v.Record.Run.Tick)); !next.IsZero() {
			a.After = min(a.After, next.Sub(v.Now))
		}
	}
	wait := p.untilLook(v, o)
	if armed(v) { // the claim may be taken back
		wait = p.lookAgain(v, o, v.Record.Run.Tick)
	}
	if v.Ahead.Lead > 0 && wait > 0 && wait < a.After {
		a.After, a.Jitter = wait, 0
	}
	return p.often(a, v)
}

// often has a replica of a younger definition read a job often whose lease may be kept from
// tick to tick: that lease is free for a moment only, now and then, and the ticks of this
// definition do not say when.
func (p *Policy) often(a Action, v View) Action {
	if p.Ticks != nil && v.Record.Definition.Spec != p.Spec && v.Now.Sub(v.Record.Run.Claimed) < 2*p.Lead() {
		a.After, a.Jitter = min(a.After, 2*nearEvery), 2*nearEvery
	}
	return a
}

// urgent reports whether something waits for the end of the run in r: another attempt, a
// singleton, a tick that is due, or a younger definition that is to come into force.
func (p *Policy) urgent(r *store.Record, now time.Time) bool {
	if p.Ticks == nil || p.Interrupted == Rerun || r.Definition.Spec != p.Spec {
		return true
	}
	return p.Ticks.Last(now).After(instant.Later(r.Watermark, claimed(r)))
}

// untilLapse returns when to read next: just after the next instant at which the lease of
// the run could lapse. Renewals come at thirds of the lease after the claim, so a lapse
// comes at such an instant too. The service's clock is taken as early as it can be, and that
// reading falls behind by Drift while the replica waits; without allowance for that, the
// replica would wake up too early and read twice.
func (p *Policy) untilLapse(r *store.Record, c Clock) (after, jitter time.Duration) {
	third := time.Duration(r.Run.Lease) / 3
	if c.Low.IsZero() || third <= 0 {
		return p.Lease / 3, 0
	}
	wait := third - c.Low.Sub(r.Run.Claimed)%third
	wait += wait / time.Duration(c.Drift-1)
	return min(wait, 2*third) + 50*time.Millisecond, 200 * time.Millisecond
}

// Waits returns about when the run in r can be followed by another, if its job was unlocked
// during the run; else zero. Replicas that are up read the entry once more, see that the
// lease was ended, and hold off from then on: for one lease, or until they have seen the last beat
// for long enough.
func (p *Policy) Waits(r *store.Record, now time.Time) time.Time {
	if r.Run.Unlocked.At.IsZero() || !r.MayRun() {
		return time.Time{}
	}
	third, lease := time.Duration(r.Run.Lease)/3, max(p.Lease, time.Duration(r.Run.Lease))
	if beat := r.Beats(); beat > 0 {
		third, lease = beat/3, silentAfter(beat)
	}
	look := LookEvery
	if p.urgent(r, now) {
		look = third + time.Second
	}
	return r.Run.Unlocked.At.Add(look + lease)
}

// A What is what a replica does about an entry.
type What int

const (
	Wait    What = iota // nothing is due
	Follow              // another replica runs the job: read again later
	Queue               // a lease without a claim: its holder is about to claim
	Blocked             // a lease without a claim that has lasted longer than a replica needs
	Yield               // another definition is in force: read again later
	Mark                // the same, and ask whether a replica with that definition is up
	Inherit             // no such replica answers: the definition of this one is in force from Since on
	Answer              // remove a mark: the replica that asks learns that one is up
	Expect              // another replica holds the lease before a tick: it is expected to run that tick
	Tell                // write that ticks have not succeeded in time
	Await               // a job that this one follows has not ended: read its entry again
	Acquire             // something is due, or almost, and the lease is free
)

// An Action is what a replica does next. It contains no random number: the caller adds the
// jitter, so that a table can test the action.
type Action struct {
	What What

	After  time.Duration // until the next step
	Jitter time.Duration // up to this is added at random, so that followers do not all read at once
	Most   time.Duration // the longest sum of both; zero: no limit
	Read   bool          // the entry is read again before the next decision

	Lease time.Duration // Acquire: for how long
	Break bool          // Acquire: the lease is live, and its holder trusts it no more: it is broken first
	Tick  time.Time     // Acquire, Expect: the tick that is not due yet; zero: something is due
	Since time.Time     // Inherit: from when the definition counts
}

// A Clock is what is known of the service's clock when a decision is made.
type Clock struct {
	Low   time.Time // the earliest that it can show; zero: not known
	Drift int       // by how much the rates of two clocks may differ: one part in so many
}


// wantedAgain is after how long a replica is wanted that cannot do anything yet: it looks again.
const wantedAgain = 30 * time.Second

// Wanted returns when a replica is wanted next, if none is up until then and nothing else happens. Now or before: there is
// something to do. Zero: never. A singleton wakes no replica.
func (p *Policy) Wanted(v View) time.Time {
	if p.Ticks == nil {
		return time.Time{}
	}
	r, live := v.Record, v.State.Live()
	switch {
	case r.MayRun() && live: // a replica has to be there if its holder dies
		return p.afterLease(v)
	case p.Outdated(v):
		return p.wantedByOthers(v)
	case armed(v):
		return r.Run.Tick
	}
	at := p.wantedForTick(v)
	if late := p.wantedForLate(v); at.IsZero() || late.Before(at) && !late.IsZero() {
		at = late
	}
	if live && !at.IsZero() && !at.After(v.Now) { // its holder is about to claim, or died before it could
		return p.afterLease(v)
	}
	return at
}

// afterLease returns when a replica is wanted that waits for the end of a lease: by the next tick, if that comes first. The
// holder may have died a while ago, so its lease may be over by then.
func (p *Policy) afterLease(v View) time.Time {
	from, at := v.Now, v.Now.Add(p.outlasts(v))
	if p.PausedAt(v) { // the first tick after the pause
		from = v.Control.Pause.Until.Add(-1)
	}
	next := p.Ticks.Next(from)
	if next.IsZero() || p.Paused || p.Follows() || p.PausedAt(v) && (selfPaused(v.Record, v.Control) || v.Control.Pause.Until.IsZero()) {
		return at
	}
	return instant.Earlier(at, next)
}

// outlasts returns for how long the lease of a holder that dies now goes on, before another replica can take over.
func (p *Policy) outlasts(v View) time.Duration {
	if beat := v.Record.Beats(); beat > 0 && v.Break.Able {
		return silentAfter(beat)
	}
	return max(p.Lease, time.Duration(v.Record.Run.Lease))
}

// wantedByOthers is Wanted if another definition is in force, whose replicas may all be gone. The record says when its next
// tick is due; this definition takes the job over at one of its own ticks, or for a run that was ordered. See definition.go. The
// longer a tick is due that it may not run, or such a run waits, the less often it looks for the others.
func (p *Policy) wantedByOthers(v View) time.Time {
	q := waiting(v)
	if q == nil && p.PausedAt(v) {
		if selfPaused(v.Record, v.Control) {
			return time.Time{} // its resume is an order, which wakes the app up
		}
		return v.Control.Pause.Until
	}
	at, waits := p.Ticks.Next(v.Now), []time.Time{Due(v.Record)}
	if q != nil {
		waits = append(waits, q.At)
	}
	for _, due := range waits {
		look := instant.Later(due, v.Now.Add(v.Now.Sub(due)/2))
		if !due.IsZero() && (at.IsZero() || look.Before(at)) {
			at = look
		}
	}
	if at.IsZero() {
		return at
	}
	return instant.Later(at, v.Now.Add(wantedAgain))
}

// wantedForTick returns when there is something to run or to settle, whoever has the lease now.
func (p *Policy) wantedForTick(v View) time.Time {
	r := v.Record
	if _, todo := p.Claim(v); todo && !p.onlySkips(v) {
		return v.Now
	}
	next := p.Ticks.Next(instant.Later(r.Watermark, claimed(r)))
	switch {
	case p.Paused && !v.Awaited:
		return time.Time{}
	case p.PausedAt(v):
		return p.wantedAfterPause(v)
	case p.Follows() && next.After(DecidedBy(v.Before)): // the jobs before it wake the app up
		return time.Time{}
	}
	return next
}

// onlySkips reports whether the job is paused by its settings, and all there is to write is that its ticks were skipped. The
// next manual run, or the next program, writes that too.
func (p *Policy) onlySkips(v View) bool {
	return p.Paused && !v.Awaited && !v.Record.MayRun() && !open(v.Record) && !p.Ordered(v)
}

// wantedAfterPause is wantedForTick of a job that an order has paused, or that has paused itself. The end of the pause is
// when the first claim can write: it skips the ticks of the pause, for which followers may wait.
func (p *Policy) wantedAfterPause(v View) time.Time {
	if selfPaused(v.Record, v.Control) || v.Control.Pause.Until.IsZero() {
		return time.Time{} // its resume is an order, which wakes the app up
	}
	v.Now = v.Control.Pause.Until
	return p.wantedForTick(v)
}

// wantedForLate returns when a tick becomes late that has not succeeded, which a replica has to report, whoever has the lease
// now; zero: none does.
func (p *Policy) wantedForLate(v View) time.Time {
	wait := p.UntilTell(v.Record, v.Now, v.Control)
	if wait == never {
		return time.Time{}
	}
	return v.Now.Add(wait)
}
